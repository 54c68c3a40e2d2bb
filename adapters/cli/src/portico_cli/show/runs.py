"""Show runs: one with its steps, many as a table, and both as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from portico_cli.invocation import short_name
from portico_cli.runs import RunEntry, host_of, time_of
from portico_cli.show.answer import function_to_json
from portico_cli.show.layout import Hanging
from portico_cli.show.output import one_line, plain, safe_text
from portico_cli.terminal.progress import called_by

if TYPE_CHECKING:
    from portico.plans import Step
    from portico.plugins import RunState


_STYLES = {
    "waiting": "blue",
    "running": "cyan",
    "done": "green",
    "failed": "red",
    "infeasible": "yellow",
    "held": "yellow",
    "uncertain": "bold yellow",
    "interrupted": "magenta",
    "cancelled": "magenta",
    "unreadable": "red",
}
_AGES = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_LONGEST = 2_000


def run_table(runs: Sequence[RunEntry]) -> RenderableType:
    """Return a table with a line for each run. A goal is cut; the name of a run is not."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    workers = any(each.worker for each in runs)
    now = datetime.now(UTC)
    for name in ("run", "state"):
        table.add_column(name, no_wrap=True, min_width=10)
    table.add_column("goal", ratio=1, no_wrap=True, overflow="ellipsis")
    for name in ("planner", "steps", *(["worker"] if workers else []), "age"):
        right = name in ("steps", "age")
        table.add_column(name, no_wrap=True, overflow="ellipsis", justify="right" if right else "left")
    for each in runs:
        state = each.run_state
        at = state.updated_at if state else each.job.submitted_at if each.job else ""
        worker = plain(host_of(each.worker)) if each.worker else ""
        table.add_row(
            safe_text(short_name(each.name), "bold"),
            Text(each.state, style=_STYLES.get(each.state, "")),
            plain(" ".join((each.goal or each.problem)[:_LONGEST].split())),
            plain(state.planner) if state else "",
            _progress(state) if state else "",
            *([worker] if workers else []),
            age(at, now) if at else "",
        )
    return table


def run_lines(each: RunEntry) -> Iterator[RenderableType]:
    """Yield everything that the journal has of a run."""
    state, now = each.run_state, datetime.now(UTC)
    yield Text.assemble("Run ", (plain(each.name), "bold"), "  ", (each.state, _STYLES.get(each.state, "")))
    if each.goal is not None:
        yield Hanging(safe_text(each.goal), "  ", "  ")
    if each.job is not None:
        words = f"submitted {_local(each.job.submitted_at)}"
        words += f", in the worker {host_of(each.worker)}" if each.worker else ""
        words += f", begun {each.job.attempts} times" if each.job.attempts > 1 else ""
        yield Hanging(safe_text(words, "dim"), "  ", "  ")
    if state is None:
        if each.problem:
            yield Hanging(safe_text(each.problem), "  ", "  ")
        return
    facts = f"planner {state.planner}, begun {_local(state.started_at)}, last entry {age(state.updated_at, now)} ago"
    yield Hanging(safe_text(facts, "dim"), "  ", "  ")
    if state.input is not None:
        yield Hanging(safe_text(one_line(state.input)), "  input = ", "    ")
    times, arguments = _times(each.entries), _arguments(each.entries)

    def step_lines(step: Step, mark: str, style: str) -> Iterator[RenderableType]:
        text = Text.assemble((f"  {mark} ", style), (plain(step.id), "bold"), f"  {plain(called_by(step))}")
        began, ended = times.get(step.id, (None, None))
        if began and ended:
            text.append(f"  {(time_of(ended) - time_of(began)).total_seconds():.1f} s", style="dim")
        yield text
        for name, value in (arguments.get(step.id) or {}).items():
            yield Hanging(safe_text(one_line(value)), f"      {plain(name)} = ", "        ", "dim")

    failed = [record.step.id for record in state.records if record.error is not None]
    for record in state.records:
        if record.error is not None:
            yield from step_lines(record.step, "✗", "red")
            yield Hanging(safe_text(record.error, "red"), "      ", "      ")
        else:
            yield from step_lines(record.step, "✓", "green")
            yield Hanging(safe_text(one_line(record.result)), "      → ", "        ")
    for begun in state.started.values():
        yield from step_lines(begun.step, "?" if begun.effects and each.state != "running" else "…", "yellow")
    for step in state.plan.steps if state.plan is not None and state.pending else ():
        if step.id not in state.results and step.id not in state.started and step.id not in failed:
            yield Text.assemble(("  · ", "dim"), (plain(step.id), "bold"), (f"  {plain(called_by(step))}", "dim"))
    if each.problem:
        yield Hanging(safe_text(each.problem, "bold"), "  ", "  ")
    if state.reason and not any(record.error and record.error in state.reason for record in state.records):
        yield Hanging(safe_text(state.reason, "bold"), "  ", "  ")
    if state.outcome is not None and hasattr(state.outcome, "text"):
        yield Hanging(safe_text(state.outcome.text), "  = ", "    ")
    if each.state in ("failed", "held", "interrupted", "uncertain", "cancelled"):
        command = f"portico resume {short_name(each.name)}"
        if each.state == "failed":
            command += "".join(f" --retry {step}" for step in failed if "/" not in step)
        told = f"`{command}` continues."
        if each.state == "uncertain":
            told = f"`{command}` says what to do about {', '.join(state.uncertain)}."
        yield Hanging(safe_text(told, "dim"), "  ", "  ")


def run_to_json(each: RunEntry, *, details: bool) -> dict[str, Any]:
    """Return a run as JSON values; with its steps if ``details`` are wanted."""
    state = each.run_state
    body: dict[str, Any] = {
        "run": each.name,
        "state": each.state,
        "goal": each.goal,
        "planner": state.planner if state else None,
        "steps_done": len(_top(state.results)) if state else 0,
        "steps_planned": _planned(state) if state else 0,
        "started_at": state.started_at if state else None,
        "updated_at": state.updated_at if state else None,
        "reason": ((state.reason if state else "") or each.problem) or None,
        "submitted_at": each.job.submitted_at if each.job else None,
        "worker": each.worker,
        "attempts": each.job.attempts if each.job else None,
    }
    if details and state is not None:
        from portico.plans import plan_to_json

        times, arguments = _times(each.entries), _arguments(each.entries)
        steps = [
            (record.step, {"result": record.result} if record.error is None else {"error": record.error})
            for record in state.records
        ] + [(begun.step, {}) for begun in state.started.values()]
        body |= {
            "input": state.input,
            "step": state.step,
            "uncertain": list(state.uncertain) if each.state != "running" else [],
            "answer": getattr(state.outcome, "text", None),
            "value": getattr(state.outcome, "value", None),
            "plan": plan_to_json(state.plan) if state.plan is not None else None,
            "steps": [
                {
                    "id": step.id,
                    "function": function_to_json(step),
                    "arguments": arguments.get(step.id),
                    "started_at": times.get(step.id, (None, None))[0],
                    "ended_at": times.get(step.id, (None, None))[1],
                    **ended,
                }
                for step, ended in steps
            ],
        }
    return body


def age(at: str, now: datetime) -> str:
    """Return how long ago a time was, in its largest unit.

    >>> age("2026-01-02T10:00:00.000+00:00", datetime(2026, 1, 2, 12, 5, tzinfo=UTC))
    '2 h'
    """
    seconds = max((now - time_of(at)).total_seconds(), 0)
    return next((f"{int(seconds // size)} {unit}" for size, unit in _AGES if seconds >= size), "0 s")


def _times(entries: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str | None, str | None]]:
    """Return when each step last began and ended."""
    times: dict[str, tuple[str | None, str | None]] = {}
    for entry in entries:
        match entry["type"]:
            case "step-started":
                times[entry["step"]] = (entry["at"], None)
            case "step-finished" | "step-failed":
                times[entry["step"]] = (times.get(entry["step"], (None, None))[0], entry["at"])
    return times


def _arguments(entries: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {entry["step"]: entry["arguments"] for entry in entries if entry["type"] == "step-started"}


def _progress(state: RunState) -> str:
    done, planned = len(_top(state.results)), _planned(state)
    return f"{done}/{planned}" if planned else str(done)


def _planned(state: RunState) -> int:
    return len({step.id for plan in state.plans for step in plan.steps} | _top(state.results))


def _top(results: Mapping[str, Any]) -> set[str]:
    return {step for step in results if "/" not in step}


def _local(at: str) -> str:
    return time_of(at).astimezone().strftime("%Y-%m-%d %H:%M:%S")
