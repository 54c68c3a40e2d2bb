"""Carry out the jobs of a queue until told to stop."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from portico.errors import StoreUnavailable
from portico_cli.terminal.progress import called_by

if TYPE_CHECKING:
    from portico import Kernel, StepRun
    from portico.plans import RunEvent
    from portico.ports import Job, JobQueue, JobStatus


# Why a worker stops.
EMPTY, TOLD = "the queue is empty", "told to stop"
# A goal may be a book: only so many characters of it are shown.
_LONGEST_ABOUT = 500
# Seconds between two looks whether the queue is empty.
_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker takes jobs from now on. ``place`` is where its queue is, if the runner says that."""

    host: str
    pid: int
    runner: str
    place: str
    kinds: tuple[str, ...]
    concurrency: int | None


@dataclass(frozen=True, slots=True)
class JobBegun:
    """A job was taken. ``about`` is the goal of a run; ``attempt`` counts from 1, over all workers."""

    job: str
    kind: str
    about: str
    attempt: int


@dataclass(frozen=True, slots=True)
class StepBegun:
    """A step of a run began."""

    job: str
    step: str
    function: str


@dataclass(frozen=True, slots=True)
class StepEnded:
    """A step of a run ended; ``error`` says why it failed."""

    job: str
    step: str
    function: str
    seconds: float
    error: str | None = None


@dataclass(frozen=True, slots=True)
class JobEnded:
    """A job ended, or was given back: then ``state`` is "waiting".

    The state of a run is "done", "failed", "infeasible", "held" or "uncertain".
    """

    job: str
    kind: str
    state: str
    seconds: float
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Stopping:
    """The worker was told to stop; it still has ``jobs``."""

    jobs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stopped:
    """The worker has stopped: how many jobs ended in each state, and how many wait again."""

    ended: dict[str, int]
    given_back: int


WorkerEvent: TypeAlias = Ready | JobBegun | StepBegun | StepEnded | JobEnded | Stopping | Stopped
Tell: TypeAlias = Callable[[WorkerEvent], None]
_NAMES: dict[type[Any], str] = {
    Ready: "ready",
    JobBegun: "job-begun",
    StepBegun: "step-begun",
    StepEnded: "step-ended",
    JobEnded: "job-ended",
    Stopping: "stopping",
    Stopped: "stopped",
}


def event_to_json(event: WorkerEvent) -> dict[str, Any]:
    """Return an event of now as JSON values, without arguments and results.

    >>> list(event_to_json(StepBegun("r1", "s1", "Mail-Send")))
    ['event', 'at', 'job', 'step', 'function']
    """
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    return {"event": _NAMES[type(event)], "at": at, **asdict(event)}


@dataclass(slots=True)
class _TakenJob:
    kind: str
    began: float = field(default_factory=time.monotonic)
    steps: dict[str, float] = field(default_factory=dict)
    outcome: tuple[str, str | None] | None = None


class Working:
    """Carry out the jobs of a queue with a kernel, and tell what happens.

    When the worker is to stop, steps with effects have ``grace`` seconds to end. One that is broken off is uncertain,
    and its run waits for a person; any other step simply runs again.
    """

    def __init__(self, kernel: Kernel, queue: JobQueue, tell: Tell, *, grace: float) -> None:
        self._kernel = kernel
        self._queue = queue
        self._listener = tell
        self._grace = grace
        self.ended: Counter[str] = Counter()
        """How many jobs ended, by their state."""
        self.given_back = 0
        self._jobs: dict[str, _TakenJob] = {}
        self._attempts: dict[str, int] = {}
        self._effects: set[tuple[str, str]] = set()
        self._no_effects = asyncio.Event()
        self._no_effects.set()
        self._closed = False
        self._failed = asyncio.Event()
        self._problem: BaseException | None = None

    async def work(self, *, until_empty: bool = False) -> str:
        """Work until cancelled, or until the queue is empty; return why it stopped.

        Raises the errors of the queue and of the listener. A cancellation is the wish to stop, and is not raised.
        """
        kinds = self._kernel.job_handlers()
        handlers: dict[str, Callable[[Job], Awaitable[Any]]] = {
            kind: partial(self._carry_out, carry_out) for kind, carry_out in kinds.items()
        }
        self._kernel.middleware.step.append(self._gate)
        tasks: list[asyncio.Task[Any]] = [
            asyncio.create_task(self._queue.work(handlers, emit=self._heard)),
            asyncio.create_task(self._failed.wait()),
        ]
        if until_empty:
            tasks.append(asyncio.create_task(self._emptied(kinds)))
        why = EMPTY
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            why = TOLD
            self._tell(Stopping(tuple(self._jobs)))
            self._closed = True
            # A second cancellation ends the patience.
            with suppress(asyncio.CancelledError, TimeoutError):
                await asyncio.wait_for(self._no_effects.wait(), self._grace)
        finally:
            # The gate stays closed while the tasks are cancelled.
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            self._kernel.middleware.step.remove(self._gate)
        for name in list(self._jobs):
            self._end(name, "waiting")
        for task in tasks:
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error
        if self._problem is not None:
            raise self._problem
        return why

    async def _gate(self, run: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        """Let a step through; once the worker is to stop, it waits to be cancelled, and has not begun."""
        if self._closed:
            await asyncio.Event().wait()
        return await proceed()

    async def _emptied(self, kinds: Collection[str]) -> None:
        while True:
            # A queue that cannot be reached now is not empty.
            with suppress(StoreUnavailable):
                if not [kind for kind in kinds if await self._queue.jobs(kind, limit=1)]:
                    return
            await asyncio.sleep(_SECONDS)

    async def _carry_out(self, carry_out: Callable[..., Awaitable[Any]], job: Job) -> Any:
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
        self._jobs[name] = _TakenJob(kind)
        self._tell(JobBegun(name, kind, about, self._attempts.pop(name, 1)))

    def _end(self, name: str, state: str, reason: str | None = None) -> None:
        job = self._jobs.pop(name)
        for step in [step for of, step in self._effects if of == name]:
            self._effect_over(name, step)
        if state == "done" and job.outcome is not None:
            state, reason = job.outcome
        if state == "waiting":
            self.given_back += 1
        else:
            self.ended[state] += 1
        self._tell(JobEnded(name, job.kind, state, time.monotonic() - job.began, reason))

    def _event(self, name: str, event: RunEvent) -> None:
        from portico.plans import Event

        job = self._jobs.get(name)
        if job is None:
            return
        if isinstance(event, Event.StepStarted):
            step = event.step
            job.steps[step.id] = time.monotonic()
            known = self._kernel.functions.get(step.function) if isinstance(step.function, str) else None
            if known is not None and known.effects:
                self._effects.add((name, step.id))
                self._no_effects.clear()
            self._tell(StepBegun(name, step.id, called_by(step)))
        elif isinstance(event, Event.StepFinished | Event.StepFailed):
            step = event.step
            began = job.steps.pop(step.id, None)
            # The journal has its end.
            self._effect_over(name, step.id)
            error = event.error if isinstance(event, Event.StepFailed) else None
            took = 0.0 if began is None else time.monotonic() - began
            self._tell(StepEnded(name, step.id, called_by(step), took, error))

    def _effect_over(self, name: str, step: str) -> None:
        self._effects.discard((name, step))
        if not self._effects:
            self._no_effects.set()

    def _tell(self, event: WorkerEvent) -> None:
        if self._problem is not None:
            return
        try:
            self._listener(event)
        except Exception as error:  # noqa: BLE001 - a listener that fails is no failure of the job
            self._problem = error
            self._failed.set()
