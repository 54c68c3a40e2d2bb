"""Runs as the journal and the queue have them, for people with all their steps, and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from portico.pursuits.journal import RunState
from portico_cli.answer_text import Hanging
from portico_cli.answers import one_line
from portico_cli.invocation import short_name
from portico_cli.job_places import host_of
from portico_cli.output import plain, safe_text
from portico_cli.pursuits import function_to_json
from portico_cli.step_progress import called_by

if TYPE_CHECKING:
    from rich.console import RenderableType

    from portico.jobs import JobStatus
    from portico.plans.plan import Step
    from portico.ports.run_store import RunStore

__all__ = ["STYLES", "RunEntry", "age", "progress", "read_run", "run_lines", "run_to_json", "time_of"]

STYLES = {
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
"""How each state of a run is shown."""
_AGES = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


@dataclass(frozen=True, slots=True)
class RunEntry:
    """A run as its journal has it; ``run_state`` is None, and ``problem`` says why, where that cannot be read.

    ``job`` is how its job is in the queue, where the run was submitted, and ``submitted`` the goal that the job has.
    """

    name: str
    state: str
    entries: Sequence[Mapping[str, Any]] = ()
    run_state: RunState | None = None
    problem: str = ""
    job: JobStatus | None = None
    submitted: str = ""

    @property
    def goal(self) -> str | None:
        """The goal, where it is known."""
        return self.run_state.goal if self.run_state is not None else self.submitted or None

    @property
    def worker(self) -> str | None:
        """The worker that has the run just now."""
        return self.job.worker or None if self.job is not None and self.state == "running" else None


async def read_run(store: RunStore, name: str) -> RunEntry:
    """Read a run. One whose process is gone without an end is interrupted; a damaged one is no reason to stop."""
    from portico.errors import StoreBusy, StoreError

    try:
        entries = await store.read(name)
        if not entries:
            return RunEntry(name, "interrupted", problem="it was broken off before its first entry")
        state = RunState.of(entries)
    except StoreBusy:
        raise
    except StoreError as error:
        return RunEntry(name, "unreadable", problem=str(error))
    shown: str = state.state
    if shown == "running" and not await store.held(name):
        shown = "interrupted"
    if shown == "interrupted" and state.uncertain:
        shown = "uncertain"
    return RunEntry(name, shown, entries, state)


def run_lines(each: RunEntry, now: datetime) -> Iterator[RenderableType]:
    """Yield everything that the journal has of a run."""
    from rich.text import Text

    state = each.run_state
    yield Text.assemble(("Run ", ""), (plain(each.name), "bold"), ("  ", ""), (each.state, STYLES.get(each.state, "")))
    if each.goal is not None:
        yield Hanging(safe_text(each.goal), "  ", "  ")
    if each.job is not None:
        yield Hanging(safe_text(_job_words(each, each.job), "dim"), "  ", "  ")
    if state is None:
        if each.problem:
            yield Hanging(safe_text(each.problem), "  ", "  ")
        return
    facts = f"planner {state.planner}, begun {_local(state.started_at)}, last entry {age(state.updated_at, now)} ago"
    yield Hanging(safe_text(facts, "dim"), "  ", "  ")
    if state.input is not None:
        yield Hanging(safe_text(one_line(state.input)), "  input = ", "    ")
    times = _times(each.entries)
    for record in state.records:
        mark, style = ("✗", "red") if record.error is not None else ("✓", "green")
        yield from _step_lines(record.step, mark, style, times, each.entries)
        if record.error is not None:
            yield Hanging(safe_text(record.error, "red"), "      ", "      ")
        else:
            yield Hanging(safe_text(one_line(record.result)), "      → ", "        ")
    for begun in state.started.values():
        uncertain = begun.effects and each.state != "running"
        yield from _step_lines(begun.step, "?" if uncertain else "…", "yellow", times, each.entries)
    for step in state.plan.steps if state.plan is not None and state.pending else ():
        if step.id not in state.results and step.id not in state.started and not _failed(state, step.id):
            yield Text.assemble(("  · ", "dim"), (plain(step.id), "bold"), (f"  {plain(called_by(step))}", "dim"))
    if each.problem:
        yield Hanging(safe_text(each.problem, "bold"), "  ", "  ")
    if state.reason and not any(record.error and record.error in state.reason for record in state.records):
        yield Hanging(safe_text(state.reason, "bold"), "  ", "  ")
    if state.outcome is not None and hasattr(state.outcome, "text"):
        yield Hanging(safe_text(state.outcome.text), "  = ", "    ")
    if each.state in ("failed", "held", "interrupted", "uncertain", "cancelled"):
        command = f"portico resume {short_name(each.name)}"
        again = [record.step.id for record in state.records if record.error is not None and "/" not in record.step.id]
        if each.state == "failed" and again:
            command += "".join(f" --retry {step}" for step in again)
        told = f"`{command}` goes on."
        if each.state == "uncertain":
            told = f"`{command}` says what to do about {', '.join(state.uncertain)}."
        yield Hanging(safe_text(told, "dim"), "  ", "  ")


def run_to_json(each: RunEntry, *, details: bool) -> dict[str, Any]:
    """Return a run as JSON values; with its steps where ``details`` are wanted."""
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
        from portico.plans.json_form import plan_to_json

        body["input"] = state.input
        body["step"] = state.step
        body["uncertain"] = list(state.uncertain) if each.state != "running" else []
        body["answer"] = getattr(state.outcome, "text", None)
        body["value"] = getattr(state.outcome, "value", None)
        body["plan"] = plan_to_json(state.plan) if state.plan is not None else None
        times, arguments = _times(each.entries), _arguments(each.entries)
        steps = [
            (record.step, {"result": record.result} if record.error is None else {"error": record.error})
            for record in state.records
        ] + [(begun.step, {}) for begun in state.started.values()]
        body["steps"] = [
            {
                "id": step.id,
                "function": function_to_json(step),
                "arguments": arguments.get(step.id),
                "started_at": times.get(step.id, (None, None))[0],
                "ended_at": times.get(step.id, (None, None))[1],
                **ended,
            }
            for step, ended in steps
        ]
    return body


def age(at: str, now: datetime) -> str:
    """Return how long ago a time was, in its largest unit.

    >>> age("2026-01-02T10:00:00.000+00:00", datetime(2026, 1, 2, 12, 5, tzinfo=UTC))
    '2 h'
    """
    seconds = max((now - time_of(at)).total_seconds(), 0)
    for size, unit in _AGES:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "0 s"


def _step_lines(
    step: Step,
    mark: str,
    style: str,
    times: Mapping[str, tuple[str | None, str | None]],
    entries: Sequence[Mapping[str, Any]],
) -> Iterator[RenderableType]:
    from rich.text import Text

    text = Text.assemble((f"  {mark} ", style), (plain(step.id), "bold"), f"  {plain(called_by(step))}")
    began, ended = times.get(step.id, (None, None))
    if began and ended:
        text.append(f"  {(time_of(ended) - time_of(began)).total_seconds():.1f} s", style="dim")
    yield text
    for name, value in (_arguments(entries).get(step.id) or {}).items():
        yield Hanging(safe_text(one_line(value)), f"      {plain(name)} = ", "        ", "dim")


def _job_words(each: RunEntry, job: JobStatus) -> str:
    words = f"submitted {_local(job.submitted_at)}"
    if each.worker:
        words += f", in the worker {host_of(each.worker)}"
    return words if job.attempts < 2 else f"{words}, begun {job.attempts} times"


def _times(entries: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str | None, str | None]]:
    """Return when each step began and ended, the last time that it did."""
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


def progress(state: RunState) -> str:
    """Return how many steps are done, of how many."""
    done, planned = len(_top(state.results)), _planned(state)
    return f"{done}/{planned}" if planned else str(done)


def _planned(state: RunState) -> int:
    return len({step.id for plan in state.plans for step in plan.steps} | _top(state.results))


def _top(results: Mapping[str, Any]) -> set[str]:
    return {step for step in results if "/" not in step}


def _failed(state: RunState, id: str) -> bool:
    return any(record.step.id == id and record.error is not None for record in state.records)


def time_of(at: str) -> datetime:
    """Return a time of the journal or of a queue; 1970 for what is none."""
    try:
        made = datetime.fromisoformat(at)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
    return made if made.tzinfo is not None else made.replace(tzinfo=UTC)


def _local(at: str) -> str:
    return time_of(at).astimezone().strftime("%Y-%m-%d %H:%M:%S")
