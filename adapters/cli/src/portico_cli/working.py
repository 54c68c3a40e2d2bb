"""A worker at work: it takes jobs until it is to stop, and gives back what it has not ended then."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from portico.errors import StoreUnavailable
from portico_cli.job_kinds import CarryOut, carry_outs
from portico_cli.worker_events import JobBegun, JobEnded, StepBegun, StepEnded, Stopping, Tell, WorkerEvent

if TYPE_CHECKING:
    from portico.jobs import Job, JobStatus
    from portico.kernel import Kernel
    from portico.middleware import StepRun
    from portico.plans.task import Event
    from portico.ports.job_queue import JobQueue

__all__ = ["EMPTY", "TOLD", "Working"]

EMPTY, TOLD = "the queue is empty", "told to stop"
"""Why a worker stops."""

_LONGEST_ABOUT = 500
"""Characters of a goal that are told; it may be a book."""
_SECONDS = 0.5
"""How long to wait before the queue is asked again whether it is empty."""


class Working:
    """Carry out the jobs of a queue with a kernel, and tell what happens.

    ``grace`` are the seconds that steps with effects have to end when the worker is to stop. One that is broken off
    is uncertain, and its run waits for a person; any other step simply runs again.
    """

    def __init__(self, kernel: Kernel, queue: JobQueue, tell: Tell, *, grace: float) -> None:
        self._kernel = kernel
        self._queue = queue
        self._listener = tell
        self._grace = grace
        self.ended: Counter[str] = Counter()
        """How many jobs ended, by their state."""
        self.given_back = 0
        self._jobs: dict[str, _UnderWay] = {}
        self._attempts: dict[str, int] = {}
        self._effects = _Effects(kernel)
        self._halted = asyncio.Event()
        self._problem: BaseException | None = None

    async def work(self, *, until_empty: bool = False) -> str:
        """Work until cancelled, or until nothing waits or runs in the queue; return why it stopped.

        Raises what the queue does, and what could not be told to whoever listens. A cancellation is taken for the
        wish to stop, so it is not raised.
        """
        kinds = carry_outs()
        handlers: dict[str, Callable[[Job], Awaitable[Any]]] = {
            kind: partial(self._carry_out, carry_out) for kind, carry_out in kinds.items()
        }
        self._kernel.middleware.step.append(self._effects.filter)
        working = asyncio.create_task(self._queue.work(handlers, emit=self._heard))
        ending: list[asyncio.Task[Any]] = [asyncio.create_task(self._halted.wait())]
        if until_empty:
            ending.append(asyncio.create_task(self._emptied(kinds)))
        why = EMPTY
        try:
            await asyncio.wait([working, *ending], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            why = TOLD
            self._tell(Stopping(tuple(self._jobs)))
            # Who says it twice does not want to wait.
            with suppress(asyncio.CancelledError):
                await self._effects.end(self._grace)
        finally:
            # Also those that are cancelled below find it there: its gate is for all that it has let in.
            await _cancelled([working, *ending])
            self._kernel.middleware.step.remove(self._effects.filter)
        for name in list(self._jobs):
            self._end(name, "waiting")
        for task in (working, *ending):
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error
        if self._problem is not None:
            raise self._problem
        return why

    async def _emptied(self, kinds: Collection[str]) -> None:
        while True:
            # What cannot be asked just now is not empty.
            with suppress(StoreUnavailable):
                if not [kind for kind in kinds if await self._queue.jobs(kind, limit=1)]:
                    return
            await asyncio.sleep(_SECONDS)

    async def _carry_out(self, carry_out: CarryOut, job: Job) -> Any:
        goal = job.body.get("goal")
        about = " ".join(goal[:_LONGEST_ABOUT].split()) if isinstance(goal, str) else ""
        self._begin(job.name, job.kind, about)
        result = await carry_out(self._kernel, job, emit=partial(self._event, job.name))
        if isinstance(result, dict) and isinstance(state := result.get("state"), str):
            reason = result.get("reason")
            self._jobs[job.name].outcome = (state, reason if isinstance(reason, str) else None)
        return result

    def _heard(self, status: JobStatus) -> None:
        if status.state == "running":
            self._attempts[status.name] = status.attempts
            return
        if status.name not in self._jobs and status.name in self._attempts:
            # It ended before anything was done about it.
            self._begin(status.name, status.kind)
        if status.name in self._jobs:
            self._end(status.name, status.state, status.error)

    def _begin(self, name: str, kind: str, about: str = "") -> None:
        self._jobs[name] = _UnderWay(kind)
        self._tell(JobBegun(name, kind, about, self._attempts.pop(name, 1)))

    def _end(self, name: str, state: str, reason: str | None = None) -> None:
        job = self._jobs.pop(name)
        self._effects.forget(name)
        if state == "done" and job.outcome is not None:
            state, reason = job.outcome
        if state == "waiting":
            self.given_back += 1
        else:
            self.ended[state] += 1
        self._tell(JobEnded(name, job.kind, state, time.monotonic() - job.began, reason))

    def _event(self, name: str, event: Event) -> None:
        from portico.plans.task import StepFailure, StepFinished, StepStarted
        from portico_cli.step_progress import called_by

        job = self._jobs.get(name)
        match event:
            case StepStarted(step=step) if job is not None:
                job.steps[step.id] = time.monotonic()
                self._effects.began(name, step.id, step.function)
                self._tell(StepBegun(name, step.id, called_by(step)))
            case StepFinished(step=step) | StepFailure(step=step) if job is not None:
                began = job.steps.pop(step.id, None)
                self._effects.over(name, step.id)
                error = event.error if isinstance(event, StepFailure) else None
                took = 0.0 if began is None else time.monotonic() - began
                self._tell(StepEnded(name, step.id, called_by(step), took, error))

    def _tell(self, event: WorkerEvent) -> None:
        if self._problem is not None:
            return
        try:
            self._listener(event)
        except Exception as error:  # noqa: BLE001 - that nobody listens is no failure of the job that is told of
            self._problem = error
            self._halted.set()


class _UnderWay:
    """A job that this worker has."""

    __slots__ = ("began", "kind", "outcome", "steps")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.began = time.monotonic()
        self.steps: dict[str, float] = {}
        self.outcome: tuple[str, str | None] | None = None


class _Effects:
    """The steps with effects that are under way, and the gate that no step passes once the worker is to stop."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._steps: set[tuple[str, str]] = set()
        self._closed = False
        self._none = asyncio.Event()
        self._none.set()

    async def filter(self, run: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        """Let a step through; once the gate is closed, it waits to be cancelled, and has not begun."""
        if self._closed:
            await asyncio.Event().wait()
        return await proceed()

    async def end(self, seconds: float) -> None:
        """Close the gate and wait until no step with effects is under way, so long at most."""
        self._closed = True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._none.wait(), seconds)

    def began(self, job: str, step: str, function: object) -> None:
        known = self._kernel.functions.get(function) if isinstance(function, str) else None
        if known is not None and known.effects:
            self._steps.add((job, step))
            self._none.clear()

    def over(self, job: str, step: str) -> None:
        """Take note that a step ended, and that the journal has it."""
        self._steps.discard((job, step))
        if not self._steps:
            self._none.set()

    def forget(self, job: str) -> None:
        for name, step in list(self._steps):
            if name == job:
                self.over(name, step)


async def _cancelled(tasks: Iterable[asyncio.Task[Any]]) -> None:
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
