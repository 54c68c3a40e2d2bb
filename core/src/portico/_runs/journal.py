"""The journal of a run: its entries, and what they add up to."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from portico._chat.messages import Usage
from portico._plans.findings import Finding
from portico._plans.json_form import plan_from_json, plan_to_json
from portico._plans.plan import Plan, Step, Value, around
from portico._plans.task import Budget, Refusal, StepRecord
from portico._runs.outcome import FINAL, STATES, FinalOutcome, RunStateName, outcome_of
from portico.errors import PlanError, PlanFormatError, StepFailed, StoreDamaged, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, MutableMapping

JOURNAL_VERSION = 1
FIXED = "plan"
"""The planner of a plan that runs by itself."""

EntryType: TypeAlias = Literal[
    "pursuit", "plan", "approved", "refused", "step-called", "step-started", "step-retried", "step-finished",
    "step-failed", "step-held", "resumed", "interrupted", "outcome",
]  # fmt: skip
_INDEX = re.compile(r"(0|[1-9][0-9]*)\]")


def entry(type: EntryType, /, **body: Any) -> dict[str, Any]:
    """Return an entry of now.

    >>> sorted(entry("step-failed", step="s1", error="no connection"))
    ['at', 'error', 'step', 'type', 'version']
    """
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    return {"version": JOURNAL_VERSION, "at": at, "type": type, **body}


@dataclass(frozen=True, slots=True)
class StartedStep:
    """A step that began and has not ended, with its arguments.

    With ``effects``, its function has effects: they may have happened or not.
    """

    step: Step
    arguments: Mapping[str, Any]
    effects: bool = False


@dataclass(frozen=True, slots=True)
class RunState:
    """How far a run has come, by its journal.

    >>> entries = [entry("pursuit", goal="Shout", planner="plan"), entry("outcome", kind="answer", text="HEY")]
    >>> state = RunState.of(entries)
    >>> state.goal, state.state, state.outcome.text
    ('Shout', 'done', 'HEY')

    ``state`` is "running" until an end is written, also for a process that was killed: the lease says that. ``reason``
    is why the run is paused, infeasible or failed; ``step`` is the paused step. ``plans`` passed their check; the last
    one is ``plan``, and ``pending`` if it has to run, or did not run to its end. ``records`` are the steps that ended,
    ``started`` those that began and did not end, by id, ``called`` those that templates called. ``items`` are how many
    items each step with ``each`` has that began. ``inner`` are the plans of functions that steps began to run, by step;
    ``reviewed`` are the steps whose inner plan was approved, ``agreed`` the flows that a person agreed to, ``read``
    the untrusted places that a chat service read by itself. ``services`` are the chat services that were asked, in
    order, and ``usage`` what they used. ``warnings`` are for the answer. ``origin`` is `Kernel.origin` of the
    application that began the run, with what middleware added whenever it was resumed, ``context`` what came with
    the goal. ``passing`` is a failure that time may mend. Times are UTC.
    """

    goal: str
    planner: str
    state: RunStateName = "running"
    started_at: str = ""
    updated_at: str = ""
    input: Any = None
    context: Mapping[str, Any] = field(default_factory=dict)
    budget: Budget | None = None
    functions: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    pending: bool = False
    approved: bool = False
    reused: bool = False
    plans: tuple[Plan, ...] = ()
    records: tuple[StepRecord, ...] = ()
    started: Mapping[str, StartedStep] = field(default_factory=dict)
    called: Mapping[str, Step] = field(default_factory=dict)
    items: Mapping[str, int] = field(default_factory=dict)
    inner: Mapping[str, Plan] = field(default_factory=dict)
    reviewed: frozenset[str] = frozenset()
    agreed: frozenset[tuple[str, str]] = frozenset()
    read: frozenset[str] = frozenset()
    usage: Usage = field(default_factory=Usage)
    services: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()
    proposals: int = 0
    passing: bool = False
    outcome: FinalOutcome | None = None
    reason: str = ""
    step: str | None = None
    origin: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Iterable[Mapping[str, Any]]) -> RunState:
        """Read the entries of a run, in order.

        Raises ``StoreDamaged`` for what no run writes and ``StoreError`` for a newer version. Unknown types of entries
        are ignored.
        """
        reading: _Reading | None = None
        number = 0
        try:
            for number, each in enumerate(entries, 1):
                if each["version"] > JOURNAL_VERSION:
                    raise StoreError(
                        f"Entry {number} of the run is of version {each['version']}; this is a Portico that knows "
                        f"version {JOURNAL_VERSION}. Use the newer one."
                    )
                if reading is None:
                    reading = _Reading(each)
                else:
                    reading.take(each)
            if reading is not None:
                return reading.state()
        except (LookupError, TypeError, ValueError, AttributeError, PlanFormatError) as error:
            raise StoreDamaged(f"Entry {number} of the run is not what a run writes: {error!r}.") from error
        raise StoreDamaged("The run has no entries.")

    @property
    def plan(self) -> Plan | None:
        """The last plan that passed its check."""
        return self.plans[-1] if self.plans else None

    @property
    def uncertain(self) -> tuple[str, ...]:
        """The steps with effects that began and did not end: a person must say whether they happened.

        A step inside one that ended does not count, until that one has to run again.
        """
        ended = {record.step.id for record in self.records}
        return tuple(
            step
            for step, begun in self.started.items()
            if begun.effects and not any(around in ended for around in _around(step))
        )

    @property
    def resumable(self) -> bool:
        """Whether it helps to resume the run.

        One that failed has to have a result that need not be made again, or a failure that time may mend. A plan that
        runs by itself has to have a step that has none.
        """
        if self.state != "failed" or self.passing:
            return self.state not in FINAL
        results = self.results
        ended = self.planner == FIXED and self.plan is not None and all(each.id in results for each in self.plan.steps)
        return bool(results) and not ended

    @property
    def results(self) -> dict[str, Any]:
        """The results of all steps that finished, by id; those inside of another as ``s1/a``."""
        return {record.step.id: record.result for record in self.records if record.error is None}

    def find(self, step_id: str) -> Step:
        """Return a step of a plan, of a plan inside a step, a call for an item, or a call of a template.

        Raises ``LookupError`` where there is none.
        """
        steps = {step.id: step for plan in self.plans for step in plan.steps} | dict(self.called)
        return _find_step(step_id, steps, self.inner)

    def failure(self, record: StepRecord) -> PlanError:
        """Return the error of a step that failed: that of the innermost step inside it, as it was raised."""
        found = record
        while (inner := self._failed_in(found)) is not None:
            found = inner
        error = PlanError(found.error)
        return error if found is record else StepFailed(found.step.id, error)

    def _failed_in(self, record: StepRecord) -> StepRecord | None:
        if record.step.each is not None and record.step.each.failed == "skip":
            return None  # The message alone says what stopped it.
        inside = (each for each in self.records if around(each.step.id) == record.step.id)
        return next((each for each in inside if each.error is not None), None)


class _Reading:
    def __init__(self, first: Mapping[str, Any]) -> None:
        if first["type"] != "pursuit":
            raise ValueError(f"a run begins with an entry of type 'pursuit', not {first['type']!r}")
        budget = first.get("budget")
        self.first = RunState(
            goal=str(first["goal"]),
            planner=str(first["planner"]),
            started_at=str(first["at"]),
            input=first.get("input"),
            context=dict(first.get("context", {})),
            budget=None if budget is None else Budget(**budget),
            functions=None if "functions" not in first else tuple(first["functions"]),
            exclude=tuple(first.get("exclude", ())),
            origin=dict(first.get("origin", {})),
        )
        self.last: Mapping[str, Any] = first
        self.planner = self.first.planner
        self.plans: list[Plan] = []
        self.steps: dict[str, Step] = {}
        self.records: dict[str, StepRecord] = {}
        self.started: dict[str, StartedStep] = {}
        self.called: dict[str, Step] = {}
        self.items: dict[str, int] = {}
        self.inner: dict[str, Plan] = {}
        self.reviewed: set[str] = set()
        self.agreed: set[tuple[str, str]] = set()
        self.read: set[str] = set()
        self.used: Mapping[str, Any] = {}
        self.warnings: list[str] = []
        self.refused: list[Refusal] = []
        self.pending = self.approved = self.reused = False
        self.proposals = 0

    def state(self) -> RunState:
        last = self.last
        ended = last["type"] == "outcome"
        name: RunStateName = "interrupted" if last["type"] == "interrupted" else "running"
        if ended:
            name = "uncertain" if last.get("uncertain") else STATES[last["kind"]]
        return replace(
            self.first,
            planner=self.planner,
            state=name,
            updated_at=str(last["at"]),
            pending=self.pending and name not in FINAL,
            approved=self.approved,
            reused=self.reused,
            plans=tuple(self.plans),
            records=tuple(self.records.values()),
            started=dict(self.started),
            called=dict(self.called),
            items=dict(self.items),
            inner=dict(self.inner),
            reviewed=frozenset(self.reviewed),
            agreed=frozenset(self.agreed),
            read=frozenset(self.read),
            **used_of(self.used),
            warnings=tuple(self.warnings),
            refused=tuple(self.refused),
            proposals=self.proposals,
            outcome=outcome_of(last),
            reason=str(last.get("reason", "")) if ended else "",
            step=last.get("step") if ended else None,
            passing=bool(last.get("passing")),
        )

    def take(self, each: Mapping[str, Any]) -> None:
        if not isinstance(each["type"], str) or not isinstance(each["at"], str):
            raise TypeError("an entry has a type and a time")
        self.last = each
        self.read.update(map(str, each.get("read", ())))
        self.used = each.get("used", self.used)
        match each["type"]:
            case "plan":
                plan = plan_from_json(each["plan"])
                if each.get("edited"):
                    self.plans.pop()
                else:
                    self.reused = bool(each.get("reused"))
                    self.proposals += not self.reused
                self.plans.append(plan)
                self.steps |= {step.id: step for step in plan.steps}
                self.warnings += map(str, each.get("warnings", ()))
                self.pending, self.approved = True, False
            case "approved" if "flow" in each:
                self.agreed.add((str(each["flow"]), str(each["value"])))
            case "approved" if "step" in each:
                self.reviewed.add(self.find_step(each["step"]).id)
            case "approved":
                self.approved = True
                self.refused.clear()
            case "refused":
                self.pending = False
                if "by" in each:
                    self.plans.pop()
                    if self.reused:  # it was not used: what was said of it does not hold
                        self.reused = False
                        self.warnings.clear()
                elif each.get("ran"):
                    self.refused.clear()
                else:
                    self.proposals += 1
                plan = plan_from_json(each["plan"]) if "plan" in each else Plan("")
                self.refused.append(Refusal(plan, tuple(Finding(**one) for one in each["findings"])))
            case "step-called":
                self.refused.clear()
                written = {name: Value(value) for name, value in each["arguments"].items()}
                step = Step(each["step"], str(each["function"]), written)
                self.steps[step.id] = self.called[step.id] = step
            case "step-started":
                self.refused.clear()
                step = self.find_step(each["step"])
                if "plan" in each:
                    self.inner[step.id] = plan_from_json(each["plan"])
                if "items" in each:
                    self.items[step.id] = int(each["items"])
                self.started[step.id] = StartedStep(step, each["arguments"], bool(each.get("effects")))
            case "step-finished" | "step-failed":
                self.end_step(each)
            case "resumed":
                self.first = replace(self.first, origin={**self.first.origin, **each.get("origin", {})})
                if self.planner != each["planner"]:
                    self.planner = str(each["planner"])
                    self.plans = [replace(plan, notes=None) for plan in self.plans]
                for step_id in each.get("retry", ()):
                    self.forget(step_id)

    def end_step(self, each: Mapping[str, Any]) -> None:
        if each.get("given"):
            self.forget(each["step"])
        begun = self.started.pop(each["step"], None)
        step = begun.step if begun is not None else self.find_step(each["step"])
        self.records.pop(step.id, None)
        if each["type"] == "step-finished":
            items = (f"{step.id}[{index}]" for index in range(each.get("items", 0)))
            result = [self.records[id].result for id in items] if "items" in each else each["result"]
            self.records[step.id] = StepRecord(
                step, result, skipped=bool(each.get("skipped")), untrusted=tuple(each.get("untrusted", ()))
            )
            self.warnings += map(str, each.get("warnings", ()))
        else:
            self.records[step.id] = StepRecord(step, error=str(each["error"]))

    def forget(self, step_id: str) -> None:
        """Let a step run again, with the failed steps inside it and around it."""
        self.started.pop(step_id, None)
        inside = [other for other in self.records if other.startswith((f"{step_id}/", f"{step_id}["))]
        for known in (step_id, *inside, *_around(step_id)):
            record = self.records.get(known)
            if record is not None and record.error is not None:
                del self.records[known]

    def find_step(self, step_id: str) -> Step:
        return _find_step(step_id, self.steps, self.inner)


def used_body(usage: Usage, services: Iterable[str]) -> dict[str, Any]:
    """Return what an entry says of the chat services that were asked up to it, without counts that are zero."""
    counts = {name: value for name, value in asdict(usage).items() if value}
    return {"used": {"services": list(dict.fromkeys(services)), **counts}}


def used_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the usage and the services of a body; counts of a newer version are ignored."""
    counts = {name: body[name] for name in Usage.__dataclass_fields__ if name in body}
    return {"usage": Usage(**counts), "services": tuple(map(str, body.get("services", ())))}


def _find_step(step_id: str, steps: MutableMapping[str, Step], inner: Mapping[str, Plan]) -> Step:
    """Return a step by its id, and add it to the ``steps``, which are those of the plans at first."""
    # Not by recursion: a damaged id may be of any depth.
    way = [step_id]
    while way[-1] not in steps:
        way.append(around(way[-1]))
        if not way[-1]:
            raise LookupError(f"no plan has a step {step_id[:100]}")
    found = steps[way.pop()]
    for id in reversed(way):
        outer, name = found, id[len(found.id) + 1 :]
        if id.endswith("]"):
            one = replace(outer, id=id, each=None, when=None) if outer.each and _INDEX.fullmatch(name) else None
        else:
            plan = inner.get(outer.id, outer.function)
            plan_steps = plan.steps if isinstance(plan, Plan) and outer.each is None else ()
            one = next((replace(step, id=id) for step in plan_steps if step.id == name), None)
        if one is None:
            raise LookupError(f"no plan has a step {step_id[:100]}")
        found = steps[id] = one
    return found


def _around(step_id: str) -> Iterator[str]:
    """Yield the ids of the steps around a step."""
    while step_id := around(step_id):
        yield step_id


def refusal_body(refusal: Refusal) -> dict[str, Any]:
    """Return what the journal says of a refused proposal."""
    findings = [
        {"message": each.message, "step": each.step, "place": each.place, "severity": each.severity, "hint": each.hint}
        for each in refusal.findings
    ]
    try:
        return {"plan": plan_to_json(refusal.plan), "findings": findings}
    except PlanFormatError:  # The findings say what JSON cannot hold.
        return {"findings": findings}
