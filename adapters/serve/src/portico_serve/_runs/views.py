"""Runs in JSON, as the pages and the API show them: all of it from the entries of the journal."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from portico.errors import PlanFormatError, PorticoError
from portico.plans import Answer, Finding, Infeasible, Plan, Step, Task, plan_difference, plan_from_json
from portico.plugins import RunState
from portico_cli.runs import RunEntry, parse_time
from portico_cli.show.answer import STATES
from portico_cli.show.plans import function_to_json, outcome_to_json
from portico_cli.show.runs import run_to_json
from portico_serve._runs.graphs import drawn, finding_to_json
from portico_serve._runs.steps import StepStates, outside

if TYPE_CHECKING:
    from portico import Kernel

LONGEST_VALUE = 200_000
"""The most characters of a result, in JSON, that a page gets at once."""
VOLATILE = ("steps", "updated_at", "seconds", "cost", "services", "writing")
"""What of a description changes while steps run; the rest is its shape."""
APPROVE = "approve"
"""Under this name the origin of a run says which of its plans are held."""
MODES = ("effects", "always")
_SCHEMES = ("http", "https", "file")
_MOST_KEPT = 300


@dataclass(slots=True)
class Kept:
    """What was made of plans already: each proposal of a run is checked and drawn once."""

    _made: OrderedDict[tuple[Any, ...], Any] = field(default_factory=OrderedDict)

    def get(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """Return what was made under a key; the oldest is forgotten where there are too many."""
        if key in self._made:
            self._made.move_to_end(key)
        else:
            self._made[key] = make()
            while len(self._made) > _MOST_KEPT:
                self._made.popitem(last=False)
        return self._made[key]


@dataclass(frozen=True, slots=True)
class Here:
    """What only the process knows that carries out a run: whether this one does, and the words so far."""

    here: bool = False
    writing: str = ""


def row(each: RunEntry, here: Here) -> dict[str, Any]:
    """Return a run as one of a list."""
    body = run_to_json(each, details=False)
    cost = each.run_state.usage.cost if each.run_state is not None else None
    return body | {"seconds": _seconds(each.run_state), "cost": cost, "here": here.here}


def describe(kernel: Kernel, each: RunEntry, here: Here, kept: Kept) -> dict[str, Any]:
    """Return everything that a page shows of a run but the values of its steps."""
    state = each.run_state
    outcome = state.outcome if state is not None else None
    found = outcome if isinstance(outcome, Answer) else None
    proposals = _proposals(kernel, each, kept) if state is not None else []
    whole = _whole(kernel, each, proposals, kept)
    uncertain = state.uncertain if state is not None and each.state != "running" else ()
    states = StepStates.of(each.entries)
    input, answer, value = (
        cut_value(given)
        for given in (
            state.input if state is not None else None,
            found.text if found is not None else None,
            found.value if found is not None else None,
        )
    )
    return {
        "run": each.name,
        "state": each.state,
        "goal": each.goal,
        "planner": state.planner if state is not None else None,
        "approve": approve_mode(state),
        "started_at": state.started_at if state is not None else None,
        "updated_at": state.updated_at if state is not None else None,
        "seconds": _seconds(state),
        "cost": state.usage.cost if state is not None else None,
        "services": list(state.services) if state is not None else [],
        "input": input[0],
        "reason": ((state.reason if state is not None else "") or each.problem) or None,
        "missing": list(outcome.missing) if isinstance(outcome, Infeasible) else [],
        "held": _held(kernel, each, kept),
        "answer": answer[0],
        "writing": here.writing,
        "value": value[0],
        "cut": input[1] or answer[1] or value[1],
        "citations": [{**asdict(cited), "link": safe_link(cited.link)} for cited in (found.citations if found else ())],
        "warnings": list(found.warnings if found is not None else state.warnings if state is not None else ()),
        "plan": whole.get("plan"),
        "text": whole.get("text"),
        "graph": whole.get("graph"),
        "proposals": proposals,
        "steps": states.shown(at_work=each.state == "running", uncertain=uncertain),
        "resumable": _resumable(each),
        "uncertain": [
            {
                "id": id,
                "function": function_to_json(state.started[id].step),
                "arguments": cut_value(dict(state.started[id].arguments))[0],
            }
            for id in uncertain
            if state is not None
        ],
        "worker": each.worker,
        "here": here.here,
    }


def approve_mode(state: RunState | None) -> str:
    """Return which plans of a run are held: those that may have effects, or all."""
    mode = state.origin.get(APPROVE) if state is not None else None
    return mode if mode in MODES else MODES[0]


def safe_link(link: str | None) -> str | None:
    """Return a link that a page may show as one: of a document or a site, and not of a script.

    >>> safe_link("javascript:alert(1)"), safe_link("file:///docs/a.md#L3")
    (None, 'file:///docs/a.md#L3')
    """
    try:
        return link if link is not None and urlsplit(link.strip()).scheme.lower() in _SCHEMES else None
    except ValueError:
        return None


def _seconds(state: RunState | None) -> float | None:
    if state is None:
        return None
    return round((parse_time(state.updated_at) - parse_time(state.started_at)).total_seconds(), 3)


def _resumable(each: RunEntry) -> bool:
    state = each.run_state
    return state is not None and STATES[each.state].resumable and (each.state != "failed" or state.resumable)


def earlier_steps(state: RunState, plan: Plan) -> tuple[Step, ...]:
    """Return the steps of earlier plans that have a result: a later plan refers to them."""
    own = {step.id for step in plan.steps}
    return tuple(
        each.step for each in state.records if each.error is None and each.step.own and each.step.id not in own
    )


def check_within(kernel: Kernel, plan: Plan, earlier: Sequence[Step], **known: Any) -> list[Finding]:
    """Check a plan that may refer to ``earlier`` steps; what is found in those is left out."""
    whole = Plan(plan.goal, (*earlier, *plan.steps), plan.result, input=plan.input)
    ids = {step.id for step in earlier}
    return [each for each in kernel.check_plan(whole, **known) if each.step not in ids]


def _proposals(kernel: Kernel, each: RunEntry, kept: Kept) -> list[dict[str, Any]]:
    """Return every plan that was proposed, with what became of it."""
    state = each.run_state
    assert state is not None  # noqa: S101 - the caller has looked
    proposals: list[dict[str, Any]] = []
    earlier: dict[str, Step] = {}
    before: Plan | None = None
    finished: set[str] = set()
    given = {} if state.input is None else {"input": state.input}
    for number, entry in enumerate(each.entries):
        key = (each.name, number, entry["at"])
        match entry["type"]:
            case "step-finished":
                finished.add(entry["step"])
            case "plan":
                if entry.get("edited") and proposals:
                    proposals[-1]["state"] = "edited"
                known = tuple(step for id, step in earlier.items() if id in finished)
                made = kept.get(key, lambda: _accepted(kernel, entry, before, known, given))  # noqa: B023 - used at once
                plan, shown = made
                by = "person" if entry.get("edited") else None
                proposals.append({"number": len(proposals) + 1, **shown, "state": "ran", "by": by})
                before = plan
                earlier |= {step.id: step for step in plan.steps}
            case "refused" if proposals and ("by" in entry or entry.get("ran")):
                found = [_written(one) for one in entry["findings"]]
                proposals[-1]["findings"] = [*proposals[-1]["findings"], *found]
                if "by" in entry:
                    proposals[-1] |= {"state": "refused", "by": str(entry["by"])}
            case "refused":
                plan, shown = kept.get(key, lambda: _refused(kernel, entry, before))  # noqa: B023 - used at once
                proposals.append({"number": len(proposals) + 1, **shown, "state": "refused", "by": None})
                before = plan or before
    if proposals and each.state == "held" and state.step is None and state.pending:
        proposals[-1]["state"] = "waits"
    return proposals


def _accepted(
    kernel: Kernel, entry: Mapping[str, Any], before: Plan | None, earlier: Sequence[Step], known: Mapping[str, Any]
) -> tuple[Plan, dict[str, Any]]:
    plan = plan_from_json(entry["plan"])
    # It passed its check then; what a check calls an error now comes from a later change, and the run tells.
    found = [each for each in check_within(kernel, plan, earlier, **known) if each.severity != "error" or each.verdict]
    findings = [finding_to_json(each) for each in found]
    return plan, drawn(kernel, plan, findings) | {"findings": findings, "difference": _difference(before, plan)}


def _refused(kernel: Kernel, entry: Mapping[str, Any], before: Plan | None) -> tuple[Plan | None, dict[str, Any]]:
    findings = [_written(one) for one in entry["findings"]]
    if "plan" not in entry:
        return None, {"plan": None, "text": None, "graph": None, "findings": findings, "difference": None}
    plan = plan_from_json(entry["plan"])
    return plan, drawn(kernel, plan, findings) | {"findings": findings, "difference": _difference(before, plan)}


def _written(one: Mapping[str, Any]) -> dict[str, Any]:
    return finding_to_json(Finding(**one))


def _difference(before: Plan | None, after: Plan) -> str | None:
    if before is None:
        return None
    both = (Plan(each.goal, each.steps, each.result, input=each.input) for each in (before, after))
    try:
        return str(plan_difference(*both))
    except PlanFormatError:
        return None


def _whole(kernel: Kernel, each: RunEntry, proposals: Sequence[Mapping[str, Any]], kept: Kept) -> Mapping[str, Any]:
    """Return the steps of all plans so far as one plan: those that have a result, and those of the last plan."""
    state = each.run_state
    if state is None or state.plan is None:
        return {}
    plan = state.plan
    last: Mapping[str, Any] | None = next((one for one in reversed(proposals) if one["state"] != "refused"), None)
    if len(state.plans) == 1 and last is not None:
        return last
    steps = (*earlier_steps(state, plan), *plan.steps)
    findings = last["findings"] if last is not None else []
    key = (each.name, "whole", state.started_at, tuple(step.id for step in steps))
    made: Mapping[str, Any] = kept.get(
        key, lambda: drawn(kernel, Plan(plan.goal, steps, plan.result, input=plan.input), findings)
    )
    return made


def _held(kernel: Kernel, each: RunEntry, kept: Kept) -> dict[str, Any] | None:
    """Return what a run waits for, or which of its steps may have happened."""
    state = each.run_state
    if state is None or each.state not in ("held", "uncertain"):
        return None
    uncertain = each.state == "uncertain"
    step = state.step if state.step is not None or not uncertain else next(iter(state.uncertain), None)
    key = (each.name, "flows", state.updated_at, step)
    flows = [] if uncertain else kept.get(key, lambda: _flows(kernel, state, step))
    reason = state.reason or "A step with effects was interrupted: it may have happened or not."
    inner = state.inner.get(step or "")
    return {
        "step": step,
        "uncertain": uncertain,
        "reason": reason,
        "flows": flows,
        "arguments": cut_value(arguments_of(state, step))[0] if step is not None and not uncertain else None,
        "text": drawn(kernel, inner, [])["text"] if inner is not None else None,
    }


def _flows(kernel: Kernel, state: RunState, step: str | None) -> list[dict[str, Any]]:
    """Return what the check says of values that a person must agree to: of a step, or of the whole plan."""
    if kernel.policy is None or state.plan is None:
        return []
    known = {} if state.input is None else {"input": state.input}
    found = check_within(kernel, state.plan, earlier_steps(state, state.plan), **known)
    way = [] if step is None else [part.partition("[")[0] for part in step.split("/")]
    return [
        finding_to_json(each)
        for each in found
        if each.verdict and (step is None or [each.step, *each.place.split(" ")][: len(way)] == way)
    ]


def arguments_of(state: RunState, step_id: str) -> dict[str, Any] | None:
    """Return the values that a step takes, as far as they are known before it begins."""
    try:
        step = state.find(step_id)
    except LookupError:
        return None
    begun = state.started.get(step_id)
    if begun is not None:
        return dict(begun.arguments)
    try:
        return Task(state.goal, steps=state.records, input=state.input).arguments_of(step)
    except (PorticoError, LookupError, ValueError):
        return None


def step_view(each: RunEntry, step_id: str) -> dict[str, Any]:
    """Return a step with its values. Raises ``LookupError`` for one that the run does not have."""
    state = each.run_state
    if state is None:
        raise LookupError(step_id)
    step = state.find(step_id)
    started = ended = None
    attempts = 0
    for entry in each.entries:
        if entry.get("step") == step_id:
            match entry["type"]:
                case "step-started":
                    started, ended, attempts = entry, None, 1
                case "step-retried":
                    attempts = entry["attempt"]
                case "step-finished" | "step-failed":
                    ended = entry["at"]
    record = next((one for one in state.records if one.step.id == step_id), None)
    arguments, cut = cut_value(started["arguments"] if started is not None else arguments_of(state, step_id))
    uncertain = state.uncertain if each.state != "running" else ()
    states = StepStates.of(each.entries).shown(at_work=each.state == "running", uncertain=uncertain)
    known = states.get(outside(step_id), {}).get("state", "waiting")
    if "[" in step_id:
        known = "uncertain" if step_id in uncertain else "running" if step_id in state.started else "waiting"
        if record is not None:
            known = "failed" if record.error is not None else "skipped" if record.skipped else "done"
    body: dict[str, Any] = {
        "id": step_id,
        "function": function_to_json(step),
        "reason": step.reason,
        "arguments": arguments,
        "started_at": started["at"] if started is not None else None,
        "ended_at": ended,
        "attempts": attempts,
        "state": known,
        "cut": cut,
    }
    if record is not None:
        outcome = outcome_to_json(record)
        if "result" in outcome:
            outcome["result"], result_cut = cut_value(outcome["result"])
            body["cut"] = cut or result_cut
        body |= {key: value for key, value in outcome.items() if key in ("result", "error")}
    return body


def cut_value(value: Any, longest: int = LONGEST_VALUE) -> tuple[Any, bool]:
    """Return a JSON value, or the beginning of its text where it is too long; and whether it was cut.

    >>> cut_value(["a" * 10], longest=5)
    ('["aaa', True)
    """
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return (value, False) if len(text) <= longest else (text[:longest], True)
