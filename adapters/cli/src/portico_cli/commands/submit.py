"""`portico submit`: hand goals over to workers, and follow them to their end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from portico.errors import StoreUnavailable
from portico.plans import Emit, Event, Plan
from portico.plugins import RunState
from portico.ports import JobQueue, JobStatus, Planner, Runner, RunStore
from portico_cli.arguments import clean_argument, load_json, read_goal, read_text, read_value
from portico_cli.execution import Ended
from portico_cli.failures import HELD, Misused, RunFailed, write_error
from portico_cli.invocation import (
    Invocation,
    common_options,
    input_option,
    json_option,
    overrides_of,
    pass_invocation,
    planner_option,
)
from portico_cli.loops import run_async
from portico_cli.runs import RunEntry, host_of, journal_of, origin_of, read_run
from portico_cli.show.answer import STATES, show_and_exit, worst_code
from portico_cli.show.output import show, write_as_it_is, write_json
from portico_cli.show.runs import run_table, run_to_json
from portico_cli.sources import choose_sources
from portico_cli.terminal.progress import Progress

if TYPE_CHECKING:
    from portico import Kernel
    from portico_host import Application


_GOALS_BYTES = 100_000_000
_ENDED: frozenset[str] = frozenset({"done", "failed", "cancelled"})
# Seconds between two looks, at first and after a while.
_SOON, _LATER, _GROWTH = 0.1, 1.0, 1.3


@click.command(name="submit")
@click.argument("goal", required=False)
@click.option("--file", metavar="FILE|-", help="Submit every goal of FILE: one on each line, or JSON.")
@input_option
@planner_option
@click.option("--run", "name", metavar="NAME", help="Call the run NAME; if there is one already, use that one.")
@click.option("--wait", is_flag=True, help="Follow it to its end, and end as `portico ask` does.")
@json_option
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    *,
    goal: str | None,
    file: str | None,
    given: str | None,
    planner: str | None,
    name: str | None,
    wait: bool,
) -> None:
    """Hand GOAL over to the workers, and print the name of its run.

    GOAL is in words; `-` reads it from standard input. When this ends, the goal is in the queue, and waits there until
    a `portico worker` takes it.
    """
    if file is not None and (goal, given, name) != (None, None, None):
        raise Misused("--file takes its goals from the file: leave out GOAL, --input and --run.")
    if file is not None:
        goals = _read_goals(file)
    elif goal is None:
        raise Misused("There is nothing to submit. Give a goal, `-` to read it from standard input, or --file.")
    elif goal == "-" and given == "-":
        raise Misused("The goal and --input cannot both be read from standard input.")
    else:
        goals = [(read_goal(goal), None if given is None else read_value(given, "--input"))]
    application = choose_sources(invocation, overrides=overrides_of(planner, None)).application
    work = _Work(invocation, application, goals, planner, None if name is None else _check_name(name))
    names = run_async(work.submit)
    # With --wait there is one object at the end, which has the names too.
    if not (wait and invocation.json):
        _show_submitted(work, names, several=file is not None)
    if not wait:
        return
    invocation.submitted = True
    if file is not None:
        click.get_current_context().exit(_show_ended(invocation, run_async(lambda: work.follow_all(names))))
    invocation.run = names[0]
    show_and_exit(invocation, run_async(lambda: work.follow(names[0])))


def _read_goals(name: str) -> list[tuple[str, Any]]:
    """Return the goals of a file, or of standard input for ``-``, each with its input."""
    place = f"--file: {'standard input' if name == '-' else name}"
    text = read_text(name, _GOALS_BYTES, place)
    # Not splitlines: a line of JSON may contain U+2028.
    lines = [line.strip() for line in text.split("\n")]
    goals = [_goal(line, f"{place}, line {number}") for number, line in enumerate(lines, 1) if line]
    if not goals:
        raise Misused(f"{place}: the file has no goal. Write one on each line.")
    return goals


def _goal(line: str, place: str) -> tuple[str, Any]:
    if not line.startswith("{"):
        return line, None
    made = load_json(line, place)
    goal = made.get("goal")
    if not isinstance(goal, str) or not goal.strip() or made.keys() - {"goal", "input"}:
        raise Misused(f"{place}: an object has a text `goal`, may have an `input`, and nothing else.")
    return goal.strip(), made.get("input")


def _check_name(name: str) -> str:
    from portico import Run

    try:
        return Run.check_name(clean_argument(name))
    except ValueError as error:
        raise Misused(f"--run: {error}.") from error


@dataclass(frozen=True, slots=True)
class _Work:
    invocation: Invocation
    application: Application
    goals: list[tuple[str, Any]]
    planner: str | None
    name: str | None

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[tuple[Kernel, JobQueue, RunStore]]:
        """Open what submitting needs; no source and no function of the configuration is opened."""
        from portico import Kernel

        async with self.application.services(()) as services:
            kernel = Kernel(services, runner=services.get(Runner) if services.names(Runner) else None)
            queue = Kernel.require_jobs(kernel.runner)
            if self.planner is not None:
                services.prepare(Planner.__name__, self.planner)
            kernel.origin = origin_of((), (), None)
            # A worker can do nothing without a journal.
            yield kernel, queue, journal_of(self.application, services)

    async def submit(self) -> list[str]:
        """Submit the goals; return the names of their runs."""
        async with self._open() as (kernel, _, _):
            if self.name is None:
                return list(await kernel.submit_all(self.goals, planner=self.planner))
            (goal, given), *_ = self.goals
            return [await kernel.submit(goal, planner=self.planner, input=given, run=self.name)]

    async def follow(self, name: str) -> Ended:
        """Follow a run to its end."""
        async with self._open() as (_, queue, store):
            with Progress("Waiting for a worker…") as progress:
                status = await follow(queue, store, name, progress)
            return await read_outcome(self.invocation, store, status)

    async def follow_all(self, names: list[str]) -> list[RunEntry]:
        """Follow runs until all have ended."""
        async with self._open() as (_, queue, store):
            entries: dict[str, RunEntry] = {}
            left = dict.fromkeys(names)
            with Progress(f"0 of {len(names):,} runs ended") as progress:
                async for found in _look(queue, left):
                    for status in found:
                        if status is not None and status.state in _ENDED:
                            entries[status.name] = await read_run(store, status.name, status)
                            del left[status.name]
                    progress.say(f"{len(entries):,} of {len(names):,} runs ended")
                    if not left:
                        break
            return [entries[name] for name in names]


async def follow(queue: JobQueue, store: RunStore, run: str, progress: Progress) -> JobStatus:
    """Wait until a job has ended and return its status; meanwhile show the steps of its run."""
    shown: set[str] = set()
    async for [status] in _look(queue, [run]):
        with suppress(StoreUnavailable):
            _show_news(await _state_of(store, run), shown, progress)
            if status is not None and status.state == "running":
                progress.say(f"Thinking… (in the worker {host_of(status.worker)})")
            elif status is not None and status.state == "waiting":
                progress.say("Waiting for a worker…")
        if status is not None and status.state in _ENDED:
            return status
    raise AssertionError("looking does not end by itself")


async def _look(queue: JobQueue, names: Iterable[str]) -> AsyncIterator[list[JobStatus | None]]:
    """Yield the status of the jobs again and again, while the queue can be reached; say it if they have no worker."""
    pause, told = _SOON, False
    while True:
        with suppress(StoreUnavailable):
            found = await queue.status(list(names), body=True)
            waits = not told and any(each is not None and each.state == "waiting" for each in found)
            if waits and not await queue.workers():
                write_error("No worker is running. This waits until `portico worker` starts one.")
            told = True
            yield found
        await asyncio.sleep(pause)
        pause = min(pause * _GROWTH, _LATER)


async def read_outcome(invocation: Invocation, store: RunStore, status: JobStatus) -> Ended:
    """Return how a run ended, as its journal says.

    Raises `RunFailed` if it failed or was cancelled, and notes in ``invocation`` what resumes it.
    """
    from portico import Paused, Run

    state = await _state_of(store, status.name)
    invocation.submitted = False
    invocation.run = status.name if state is not None else None
    if status.state == "cancelled":
        raise RunFailed(f"The run {status.name} was cancelled before it ended.")
    if state is None or status.state != "done":
        missing = f"The run {status.name} is not in the journal. Do the workers use another journal?"
        raise RunFailed(status.error or missing)
    outcome: Any = state.outcome
    records = [record for record in state.records if record.step.own]
    if outcome is None:
        if STATES[state.state].code != HELD:
            invocation.resumable = state.resumable
            invocation.failed = next((record.step.id for record in records if record.error is not None), None)
            raise RunFailed(state.reason or f"The run {status.name} ended without an outcome.")
        outcome = Paused(state.reason, state.step, uncertain=state.state == "uncertain")
    steps = tuple(record.step for record in records if record.error is None)
    plan = Plan(state.goal, steps, state.plan.result if state.plan is not None else None)
    run = Run(state.goal, status.name, state.planner, outcome, plan, state.records, input=state.input)
    return Ended(run, {step: state.started[step] for step in state.uncertain}, resumable=True, measured=False)


async def _state_of(store: RunStore, run: str) -> RunState | None:
    entries = await store.read(run)
    return RunState.of(entries) if entries else None


def _show_news(state: RunState | None, shown: set[str], emit: Emit) -> None:
    """Emit the events of the steps that began or ended since the last look."""
    if state is None:
        return
    for step, started in state.started.items():
        if f"began {step}" not in shown:
            shown.add(f"began {step}")
            emit(Event.StepStarted(started.step, started.arguments))
    for record in state.records:
        if record.step.id not in shown:
            shown.add(record.step.id)
            if record.skipped:
                emit(Event.StepSkipped(record.step))
            elif record.error is None:
                emit(Event.StepFinished(record.step, record.result))
            else:
                emit(Event.StepFailed(record.step, record.error))


def _show_submitted(work: _Work, names: list[str], *, several: bool) -> None:
    if work.invocation.json:
        submitted = [{"run": name, "goal": goal} for name, (goal, _) in zip(names, work.goals, strict=True)]
        write_json({"runs": submitted} if several else submitted[0])
    else:
        write_as_it_is("\n".join(names))


def _show_ended(invocation: Invocation, runs: list[RunEntry]) -> int:
    """Show how runs ended, and return the exit code of the worst."""
    if invocation.json:
        write_json({"runs": [run_to_json(each, details=True) for each in runs]})
    else:
        show(run_table(runs))
    return worst_code(each.state for each in runs)
