"""Carry out a run here, or follow one that a worker carries out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from portico.errors import PorticoError, StepFailed, StoreUnavailable
from portico_cli.failures import FAILED
from portico_cli.runs import host_of
from portico_cli.terminal.progress import Progress

if TYPE_CHECKING:
    from rich.console import RenderableType

    from portico import Kernel, Paused, Run
    from portico.plans import Answer, Emit, Infeasible, RunEvent
    from portico.plugins import RunState
    from portico.ports import JobQueue, JobStatus, RunStore
    from portico_cli.invocation import Invocation, RunOptions


_ENDED: frozenset[str] = frozenset({"done", "failed", "cancelled"})
# Seconds between two looks, at first and after a while.
_SOON, _LATER, _GROWTH = 0.1, 1.0, 1.3
_AT_ONCE = 1_000


class RunFailed(click.ClickException):
    """A run that was followed ended without an outcome. The message is complete."""

    exit_code = FAILED


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that ended; ``uncertain`` has its steps of which it is not known whether they happened, by id.

    ``measured`` is false if the token usage is not known, because the run was read from the journal.
    """

    run: Run
    uncertain: Mapping[str, Any]
    resumable: bool
    measured: bool = True


async def carry_out(
    invocation: Invocation,
    kernel: Kernel,
    options: RunOptions,
    start: Callable[[Emit], Awaitable[Run]],
    *,
    idle: str = "Thinking…",
    remarks: Iterable[RenderableType] = (),
) -> Ended:
    """Await the run that ``start`` begins, show its events, and ask the person as the options say.

    ``remarks`` are shown to the person first. If the run breaks off, ``invocation`` gets what resumes it.
    """
    from portico import Paused
    from portico.plans import Event
    from portico_cli.terminal.person import add_approvals

    store, name = kernel.run_store, ""
    with Progress(idle) as progress:
        person = add_approvals(kernel, invocation, options, progress.quiet)
        if person is not None:
            with progress.quiet():
                for remark in remarks:
                    person.show(remark)

        def emit(event: RunEvent) -> None:
            nonlocal name
            if isinstance(event, Event.RunStarted):
                name = event.run
            progress(event)

        try:
            run = await start(emit)
        except BaseException as error:
            if name and store is not None:
                with suppress(PorticoError):
                    invocation.run = name if await store.read(name) else None
                invocation.failed = error.step if isinstance(error, StepFailed) else None
            raise
    uncertain: Mapping[str, Any] = {}
    if store is not None and isinstance(run.outcome, Paused) and run.outcome.uncertain:
        state = await _state_of(store, run.name)
        uncertain = {} if state is None else {step: state.started[step] for step in state.uncertain}
    return Ended(run, uncertain, resumable=store is not None)


async def follow(queue: JobQueue, store: RunStore, run: str, progress: Progress) -> JobStatus:
    """Wait until a job has ended and return its status; meanwhile show the steps of its run."""
    known: RunState | None = None
    async for [status] in _looks(queue, [run]):
        with suppress(StoreUnavailable):
            state = await _state_of(store, run)
            _show_news(known, state, progress)
            known = state or known
            if status is not None and status.state == "running":
                progress.say(f"Thinking… (in the worker {host_of(status.worker)})")
            elif status is not None and status.state == "waiting":
                waits = "Waiting for a worker…"
                progress.say(
                    waits if await queue.workers() else "Waiting: no worker runs. `portico worker` starts one."
                )
        if status is not None and status.state in _ENDED:
            return status
    raise AssertionError("looking does not end by itself")


async def ended_jobs(queue: JobQueue, names: Sequence[str]) -> AsyncIterator[JobStatus]:
    """Yield each of these jobs once when it has ended, until all have."""
    left = dict.fromkeys(names)
    async for found in _looks(queue, names):
        for status in found:
            if status is not None and status.state in _ENDED and status.name in left:
                del left[status.name]
                yield status
        if not left:
            return


async def ended_run(invocation: Invocation, store: RunStore, status: JobStatus) -> Ended:
    """Return how a run ended, as its journal says.

    Raises `RunFailed` if it failed or was cancelled, and notes in ``invocation`` what resumes it.
    """
    from portico import Paused, Run
    from portico.plans import Plan

    outcome: Answer | Infeasible | Paused | None
    state = await _state_of(store, status.name)
    invocation.submitted = False
    invocation.run = status.name if state is not None else None
    if status.state == "cancelled":
        raise RunFailed(f"The run {status.name} was cancelled before it ended.")
    if state is None or status.state != "done":
        missing = f"The run {status.name} is not in the journal. Do the workers use another journal?"
        raise RunFailed(status.error or missing)
    outcome = state.outcome
    if outcome is None:
        if state.state not in ("held", "uncertain"):
            failed = [each.step.id for each in state.records if each.error is not None and "/" not in each.step.id]
            invocation.failed = failed[0] if failed else None
            raise RunFailed(state.reason or f"The run {status.name} ended without an outcome.")
        outcome = Paused(state.reason, state.step, uncertain=state.state == "uncertain")
    steps = tuple(each.step for each in state.records if each.error is None and "/" not in each.step.id)
    plan = Plan(state.goal, steps, state.plan.result if state.plan is not None else None)
    run = Run(state.goal, status.name, state.planner, outcome, plan, state.records, input=state.input)
    return Ended(run, {step: state.started[step] for step in state.uncertain}, resumable=True, measured=False)


async def _looks(queue: JobQueue, names: Sequence[str]) -> AsyncIterator[list[JobStatus | None]]:
    """Yield the status of the jobs again and again; nothing while the queue cannot be reached."""
    pause = _SOON
    while True:
        with suppress(StoreUnavailable):
            found: list[JobStatus | None] = []
            for start in range(0, len(names), _AT_ONCE):
                found += await queue.status(names[start : start + _AT_ONCE])
            yield found
        await asyncio.sleep(pause)
        pause = min(pause * _GROWTH, _LATER)


async def _state_of(store: RunStore, run: str) -> RunState | None:
    from portico.plugins import RunState

    entries = await store.read(run)
    return RunState.of(entries) if entries else None


def _show_news(before: RunState | None, after: RunState | None, emit: Emit) -> None:
    """Emit the events of the steps that began or ended between two looks."""
    from portico.plans import Event

    if after is None:
        return
    begun: Mapping[str, Any] = before.started if before is not None else {}
    ended = {record.step.id for record in before.records} if before is not None else set()
    for step, started in after.started.items():
        if step not in begun:
            emit(Event.StepStarted(started.step, started.arguments))
    for record in after.records:
        if record.step.id not in ended:
            if record.error is None:
                emit(Event.StepFinished(record.step, record.result))
            else:
                emit(Event.StepFailed(record.step, record.error))
