"""Show runs: one with its steps, many as a table, and both as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from shlex import quote
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from portico.plans import Answer, Step, plan_to_json
from portico.plugins import RunState
from portico_cli.invocation import short_name
from portico_cli.runs import RunEntry, host_of, parse_time
from portico_cli.show.answer import STATES, cost_words, usage_to_json
from portico_cli.show.layout import Hanging
from portico_cli.show.output import one_line, plain, safe_text
from portico_cli.show.plans import argument_lines, function_to_json, outcome_to_json

_AGES = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_LONGEST = 2_000


def run_table(runs: Sequence[RunEntry]) -> RenderableType:
    """Return a table with a line for each run. A goal is cut; the name of a run is not."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    workers = any(each.worker for each in runs)
    for name in ("run", "state"):
        table.add_column(name, no_wrap=True, min_width=10)
    table.add_column("goal", ratio=1, no_wrap=True, overflow="ellipsis")
    for name in ("planner", "steps", *(["worker"] if workers else []), "age"):
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for each in runs:
        state = each.run_state
        at = state.updated_at if state else each.job.submitted_at if each.job else ""
        table.add_row(
            safe_text(short_name(each.name), "bold"),
            Text(each.state, style=STATES[each.state].style),
            plain(" ".join((each.goal or each.problem)[:_LONGEST].split())),
            plain(state.planner) if state else "",
            f"{len(_top(state))}/{_count_planned(state)}" if state else "",
            *([plain(host_of(each.worker or ""))] if workers else []),
            age(at, datetime.now(UTC)) if at else "",
        )
    return table


def run_lines(each: RunEntry) -> Iterator[RenderableType]:
    """Yield everything that the journal has of a run."""
    body, state = run_to_json(each, details=True), each.run_state
    yield Text.assemble("Run ", (plain(each.name), "bold"), "  ", (each.state, STATES[each.state].style))
    yield Hanging(safe_text(each.goal or ""), "  ")
    facts = {"planner": "planner", "worker": "worker", "attempts": "attempts"}
    words = [f"{word} {body[key]}" for key, word in facts.items() if body[key]]
    times = {"submitted": "submitted_at", "begun": "started_at", "last entry": "updated_at"}
    words += [f"{word} {age(body[key], datetime.now(UTC))} ago" for word, key in times.items() if body[key]]
    words += [f"asked {', '.join(state.services)}{cost_words(state.usage)}"] if state and state.services else []
    yield Hanging(safe_text(", ".join(words), "dim"), "  ")
    if body.get("input") is not None:
        yield from argument_lines({"input": body["input"]})
    items: dict[str, list[Mapping[str, Any]]] = {}
    for step in body.get("steps", ()):
        items.setdefault(step["id"].rpartition("[")[0] if step["id"].endswith("]") else "", []).append(step)
        # Of an item that is done, the list of results is enough.
        if "[" not in step["id"] or "result" not in step:
            yield from _step_lines(step, items.get(step["id"], ()), uncertain=step["id"] in body["uncertain"])
    listed = {step["id"] for step in body.get("steps", ())}
    for step in state.plan.steps if state is not None and state.plan is not None and state.pending else ():
        if step.id not in listed:
            yield Text.assemble(("  · ", "dim"), plain(step.id))
    if body["reason"]:
        yield Hanging(safe_text(body["reason"], "bold"), "  ")
    if body.get("answer") is not None:
        yield Hanging(safe_text(body["answer"]), "  = ")
    if state is not None and STATES[each.state].resumable and (each.state != "failed" or state.resumable):
        command = f"portico resume {short_name(each.name)}"
        if each.state == "failed":
            failed = (each.step.id for each in state.records if each.error is not None and each.step.own)
            command += "".join(f" --retry {quote(step)}" for step in failed)
        does = f"says what to do about {', '.join(state.uncertain)}" if each.state == "uncertain" else "continues"
        yield Hanging(safe_text(f"`{command}` {does}.", "dim"), "  ")


def _step_lines(
    step: Mapping[str, Any], items: Sequence[Mapping[str, Any]], *, uncertain: bool
) -> Iterator[RenderableType]:
    """Yield the lines of a step, which ran for the ``items`` of a list so far."""
    mark, style = ("?" if uncertain else "…"), "yellow"
    if "error" in step:
        mark, style = "✗", "red"
    elif step.get("skipped"):
        mark, style = "–", "dim"
    elif "result" in step:
        mark, style = "✓", "green"
    called = step["function"]
    called = called if isinstance(called, str) else "a template" if "template" in called else "a nested plan"
    text = Text.assemble((f"  {mark} ", style), (plain(step["id"]), "bold"), f"  {plain(called)}")
    if step["started_at"] and step["ended_at"]:
        seconds = (parse_time(step["ended_at"]) - parse_time(step["started_at"])).total_seconds()
        text.append(f"  {seconds:.1f} s", style="dim")
    if "items" in step:
        done, skipped = (sum(key in each for each in items) for key in ("result", "skipped"))
        words = f"{done} of {step['items']}" if done < step["items"] else str(done)
        text.append(f"  {words} items{f', {skipped} skipped' if skipped else ''}", style="dim")
    elif step.get("skipped"):
        text.append("  skipped", style="dim")
    yield text
    yield from argument_lines(step["arguments"] or {}, "      ")
    if "error" in step and not step["error"].startswith(f"Step {step['id']}["):
        yield Hanging(safe_text(step["error"], "red"), "      ")
    elif "result" in step and "skipped" not in step:
        yield Hanging(safe_text(one_line(step["result"])), "      → ")


def run_to_json(each: RunEntry, *, details: bool) -> dict[str, Any]:
    """Return a run as JSON values; with its steps if ``details`` are wanted."""
    state = each.run_state
    body: dict[str, Any] = {
        "run": each.name,
        "state": each.state,
        "goal": each.goal,
        "planner": state.planner if state else None,
        "steps_done": len(_top(state)) if state else 0,
        "steps_planned": _count_planned(state) if state else 0,
        "started_at": state.started_at if state else None,
        "updated_at": state.updated_at if state else None,
        "reason": ((state.reason if state else "") or each.problem) or None,
        "submitted_at": each.job.submitted_at if each.job else None,
        "worker": each.worker,
        "attempts": each.job.attempts if each.job else None,
    }
    if details and state is not None:
        body |= {
            "usage": usage_to_json(state.usage),
            "services": list(state.services),
            "input": state.input,
            "step": state.step,
            "uncertain": list(state.uncertain) if each.state != "running" else [],
            "answer": state.outcome.text if isinstance(state.outcome, Answer) else None,
            "value": getattr(state.outcome, "value", None),
            "plan": plan_to_json(state.plan) if state.plan is not None else None,
            "steps": _steps_to_json(each, state),
        }
    return body


def _steps_to_json(each: RunEntry, state: RunState) -> list[dict[str, Any]]:
    starts: dict[str, Mapping[str, Any]] = {}
    ends: dict[str, str] = {}
    for entry in each.entries:
        if entry["type"] == "step-started":
            starts[entry["step"]] = entry
            ends.pop(entry["step"], None)
        elif entry["type"] in ("step-finished", "step-failed"):
            ends[entry["step"]] = entry["at"]
    steps: list[tuple[Step, dict[str, Any]]] = [(record.step, outcome_to_json(record)) for record in state.records]
    steps += [(begun.step, {}) for begun in state.started.values()]
    return [
        {
            "id": step.id,
            "function": function_to_json(step),
            "arguments": starts.get(step.id, {}).get("arguments"),
            "started_at": starts.get(step.id, {}).get("at"),
            "ended_at": ends.get(step.id),
            **({"items": starts[step.id]["items"]} if "items" in starts.get(step.id, {}) else {}),
            **outcome,
        }
        for step, outcome in steps
    ]


def age(at: str, now: datetime) -> str:
    """Return how long ago a time was, in its largest unit."""
    seconds = max((now - parse_time(at)).total_seconds(), 0)
    return next((f"{int(seconds // size)} {unit}" for size, unit in _AGES if seconds >= size), "0 s")


def _count_planned(state: RunState) -> int:
    return len({step.id for plan in state.plans for step in plan.steps} | _top(state))


def _top(state: RunState) -> set[str]:
    return {record.step.id for record in state.records if record.error is None and record.step.own}
