"""Following runs that workers carry out, to their end: as the queue and the journal tell."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import click

from portico.errors import StoreUnavailable
from portico_cli.carrying_out import Ended
from portico_cli.failures import FAILED
from portico_cli.job_places import host_of
from portico_cli.step_progress import StepProgress

if TYPE_CHECKING:
    from portico.jobs import JobState, JobStatus
    from portico.plans.task import Answer, Event, Infeasible
    from portico.ports.job_queue import JobQueue
    from portico.ports.run_store import RunStore
    from portico.pursuits.journal import RunState
    from portico_cli.invocation import Invocation

__all__ = ["ENDED", "RunFailed", "ended_jobs", "ended_run", "follow"]

ENDED: frozenset[JobState] = frozenset({"done", "failed", "cancelled"})
_SOON, _LATER = 0.1, 1.0
"""Seconds between two looks, at first and after a while."""
_GROWTH = 1.3
_AT_ONCE = 1_000
"""How many jobs are asked for at once."""


class RunFailed(click.ClickException):
    """A run that was followed ended without an outcome; what it says is the whole message."""

    exit_code = FAILED


async def follow(queue: JobQueue, store: RunStore, run: str, line: StepProgress) -> JobStatus:
    """Wait until a job has ended and return how; meanwhile the line shows the steps of its run."""
    known: RunState | None = None
    async for status in _looks(queue, [run]):
        with suppress(StoreUnavailable):
            state = await _state_of(store, run)
            for event in _events_between(known, state):
                line(event)
            known = state or known
            if status[0] is not None and status[0].state not in ENDED:
                line.say(await _idle(queue, status[0]))
        if status[0] is not None and status[0].state in ENDED:
            return status[0]
    raise AssertionError("looking does not end by itself")


async def ended_jobs(queue: JobQueue, names: Sequence[str]) -> AsyncIterator[JobStatus]:
    """Yield the jobs of these names as they end, each once, until all have."""
    left = dict.fromkeys(names)
    async for found in _looks(queue, names):
        for status in found:
            if status is not None and status.state in ENDED and status.name in left:
                del left[status.name]
                yield status
        if not left:
            return


async def ended_run(invocation: Invocation, store: RunStore, status: JobStatus) -> Ended:
    """Return how a run ended that is at its end, as its journal tells.

    Raises `RunFailed` for one that failed or was cancelled, with what resumes it noted in ``invocation``.
    """
    from portico.plans.plan import Plan
    from portico.pursuit import Held, Pursuit

    outcome: Answer | Infeasible | Held | None
    state = await _state_of(store, status.name)
    invocation.submitted = False
    invocation.run = status.name if state is not None else None
    if state is None or status.state != "done":
        _raise_ended(status)
    outcome = state.outcome
    if outcome is None:
        if state.state not in ("held", "uncertain"):
            failed = [each.step.id for each in state.records if each.error is not None and "/" not in each.step.id]
            invocation.failed = failed[0] if failed else None
            raise RunFailed(state.reason or f"The run {status.name} ended without an outcome.")
        outcome = Held(state.reason, state.step, uncertain=state.state == "uncertain")
    steps = tuple(each.step for each in state.records if each.error is None and "/" not in each.step.id)
    plan = Plan(state.goal, steps, state.plan.result if state.plan is not None else None)
    pursuit = Pursuit(state.goal, status.name, state.planner, outcome, plan, state.records, input=state.input)
    return Ended(pursuit, {step: state.started[step] for step in state.uncertain}, resumable=True, measured=False)


def _raise_ended(status: JobStatus) -> NoReturn:
    if status.state == "cancelled":
        raise RunFailed(f"The run {status.name} was cancelled before it ended.")
    raise RunFailed(status.error or f"The run {status.name} is not in the journal: do the workers keep another one?")


async def _looks(queue: JobQueue, names: Sequence[str]) -> AsyncIterator[list[JobStatus | None]]:
    """Yield how the jobs are, again and again; where the queue is away for now, nothing."""
    pause = _SOON
    while True:
        with suppress(StoreUnavailable):
            found = [
                each
                for start in range(0, len(names), _AT_ONCE)
                for each in await queue.status(names[start : start + _AT_ONCE])
            ]
            yield found
        await asyncio.sleep(pause)
        pause = min(pause * _GROWTH, _LATER)


async def _state_of(store: RunStore, run: str) -> RunState | None:
    from portico.pursuits.journal import RunState

    entries = await store.read(run)
    return RunState.of(entries) if entries else None


def _events_between(before: RunState | None, after: RunState | None) -> Iterator[Event]:
    """Yield the events of the steps that began or ended between two looks."""
    from portico.plans.task import StepFailure, StepFinished, StepStarted

    if after is None:
        return
    begun: Mapping[str, Any] = before.started if before is not None else {}
    ended = {record.step.id for record in before.records} if before is not None else set()
    for step, started in after.started.items():
        if step not in begun:
            yield StepStarted(started.step, started.arguments)
    for record in after.records:
        if record.step.id not in ended:
            if record.error is None:
                yield StepFinished(record.step, record.result)
            else:
                yield StepFailure(record.step, record.error)


async def _idle(queue: JobQueue, status: JobStatus) -> str:
    if status.state == "running":
        return f"Thinking… (in the worker {host_of(status.worker)})"
    if await queue.workers():
        return "Waiting for a worker…"
    return "Waiting: no worker is at work. `portico worker` starts one."
