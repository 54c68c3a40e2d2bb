"""`portico worker`: carry out the jobs that others submit."""

from __future__ import annotations

import asyncio
import os
import platform
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from portico.errors import StoreUnavailable
from portico.plans import Event, RunEvent
from portico.ports import Job, JobQueue, JobStatus
from portico_cli.failures import DONE, INTERRUPTED
from portico_cli.invocation import Invocation, common_options, json_option, overrides_of, pass_invocation, trace_option
from portico_cli.loops import run_async
from portico_cli.runs import no_journal
from portico_cli.show.output import safe_text, show, write_json
from portico_cli.show.plans import called_name
from portico_cli.sources import choose_sources
from portico_host.packages import port_named

if TYPE_CHECKING:
    from portico import Kernel, StepRun


Listener: TypeAlias = Callable[[dict[str, Any]], None]
# Seconds; less than the ten after which container engines kill by default.
_GRACE = 8.0
# So many signals stop the worker in order; the next one breaks it off.
_GENTLE = 2
# A goal may be a book: only so many characters of it are shown.
_LONGEST_ABOUT = 500
# Seconds between two looks whether the queue is empty, and whether the steps with effects have ended.
_SECONDS = 0.5
_SECONDS_TO_END = 0.05


@click.command(name="worker")
@click.option("--concurrency", metavar="N", type=click.IntRange(1, 10_000), help="Carry out N jobs at a time.")
@click.option("--until-empty", is_flag=True, help="End when no job waits or runs.")
@click.option(
    "--grace",
    metavar="SECONDS",
    type=click.FloatRange(0, 86_400),
    default=_GRACE,
    show_default=True,
    help="After Ctrl-C or SIGTERM, let steps with effects that are under way end within this time.",
)
@click.option("--approve", is_flag=True, help="Pause each plan before it runs, for a person to approve.")
@click.option("--approve-effects", is_flag=True, help="Pause each step whose function has effects.")
@trace_option
@json_option
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    *,
    concurrency: int | None,
    until_empty: bool,
    grace: float,
    approve: bool,
    approve_effects: bool,
    trace: Path | None,
) -> None:
    """Carry out the goals that `portico submit` hands over.

    Start as many workers as you like, on any host that reaches the database of the runner. Ctrl-C stops a worker: the
    jobs that it has not ended wait for another one.
    """
    invocation.lines = True
    overrides = overrides_of(None, None, trace)
    chosen = choose_sources(invocation, overrides=overrides)
    port, configuration = port_named("Runner"), chosen.application.configuration
    runner = configuration.use(port) or chosen.application.plugins.default_of(port) or "local"
    if concurrency is not None:
        chosen = choose_sources(invocation, overrides=overrides | {"runner": {runner: {"concurrency": concurrency}}})
    application, listener = chosen.application, _listener(json=invocation.json)
    key = f"runner.{runner}.concurrency"
    many = next((setting.value for setting in application.settings() if setting.key == key), None)

    async def work() -> int:
        from portico import Kernel

        async with application.kernel(chosen.sources) as kernel:
            queue = Kernel.require_jobs(kernel.runner)
            if kernel.run_store is None:
                raise no_journal(application)
            if approve:
                kernel.approve_plans()
            if approve_effects:
                kernel.approve_effects()
            # A queue that cannot be reached is the error, before anything is shown.
            await queue.workers()
            ready = {"runner": runner, "place": str(getattr(queue, "place", "")), "kinds": list(Kernel.job_handlers())}
            working = Working(kernel, queue, listener, grace=grace)
            with _signals_cancel() as heard:
                listener(worker_event("ready", host=platform.node(), pid=os.getpid(), **ready, concurrency=many))
                await working.work(until_empty=until_empty)
            listener(worker_event("stopped", ended=dict(working.ended), given_back=working.given_back))
        return INTERRUPTED if heard and heard[0] == signal.SIGINT else DONE

    try:
        code = run_async(work)
    except asyncio.CancelledError:
        # A signal came while jobs were given back.
        code = INTERRUPTED
    click.get_current_context().exit(code)


@contextmanager
def _signals_cancel() -> Iterator[list[int]]:
    """Let Ctrl-C and SIGTERM cancel the current task; yield the list of signals.

    The second signal ends the patience with what is under way. Only the third raises ``KeyboardInterrupt``, which can
    hit anything. A process that ignores Ctrl-C, because it runs in the background, keeps ignoring it.
    """
    heard: list[int] = []
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None  # noqa: S101 - called in a coroutine
    if threading.current_thread() is not threading.main_thread():
        yield heard
        return

    def cancel(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        if len(heard) > _GENTLE:
            raise KeyboardInterrupt
        loop.call_soon_threadsafe(task.cancel)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, cancel)
    try:
        yield heard
    finally:
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)


def _listener(*, json: bool) -> Listener:
    """Return what writes each event to standard output: as JSON, or at a terminal as a line of words.

    Call it before the event loop runs: then, what a library prints goes to standard error.
    """
    stream = sys.stdout
    in_words = stream.isatty() and not json

    def write(event: dict[str, Any]) -> None:
        with redirect_stdout(stream):
            if in_words:
                show(safe_text(event_words(event)))
            else:
                write_json(event, indent=None)

    return write


def event_words(event: Mapping[str, Any]) -> str:
    """Return an event on one line for people."""
    said = {key: value for key, value in event.items() if key not in ("event", "at") and value not in (None, "")}
    words = (f"{key}: {f'{value:.1f}' if isinstance(value, float) else value}" for key, value in said.items())
    return " ".join("  ".join((event["event"], *words)).split("\n"))


def worker_event(name: str, **values: Any) -> dict[str, Any]:
    """Return an event of now as JSON values; docs/reference/command-line.md lists them."""
    return {"event": name, "at": datetime.now(UTC).isoformat(timespec="milliseconds"), **values}


@dataclass(slots=True)
class _TakenJob:
    kind: str
    began: float = field(default_factory=time.monotonic)
    steps: dict[str, float] = field(default_factory=dict)
    effects: set[str] = field(default_factory=set)
    """The steps with effects that are under way."""
    outcome: tuple[str, str | None] | None = None


class Working:
    """Carry out the jobs of a queue with a kernel, and give each event to a listener.

    When the worker is to stop, steps with effects have ``grace`` seconds to end. One that is interrupted is uncertain,
    and its run waits for a person; any other step simply runs again.
    """

    def __init__(self, kernel: Kernel, queue: JobQueue, listener: Listener, *, grace: float) -> None:
        self._kernel = kernel
        self._queue = queue
        self._listener = listener
        self._grace = grace
        self.ended: Counter[str] = Counter()
        """How many jobs ended, by their state."""
        self.given_back = 0
        self._jobs: dict[str, _TakenJob] = {}
        self._attempts: dict[str, int] = {}
        self._stopping = False
        self._failed: asyncio.Future[None] | None = None

    async def work(self, *, until_empty: bool = False) -> None:
        """Work until cancelled, or until the queue is empty.

        Raises the errors of the queue and of the listener. A cancellation is the wish to stop, and is not raised.
        """
        kinds = self._kernel.job_handlers()
        handlers: dict[str, Callable[[Job], Awaitable[Any]]] = {
            kind: partial(self._carry_out, carry_out) for kind, carry_out in kinds.items()
        }
        self._kernel.middleware.step.append(self._gate)
        self._failed = asyncio.get_running_loop().create_future()
        tasks: list[asyncio.Task[Any]] = [asyncio.create_task(self._queue.work(handlers, emit=self._note_status))]
        if until_empty:
            tasks.append(asyncio.create_task(self._wait_until_empty(kinds)))
        try:
            await asyncio.wait((*tasks, self._failed), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._tell("stopping", jobs=list(self._jobs))
            self._stopping = True
            # A second cancellation ends the patience.
            with suppress(asyncio.CancelledError):
                end = time.monotonic() + self._grace
                while any(job.effects for job in self._jobs.values()) and time.monotonic() < end:  # noqa: ASYNC110
                    await asyncio.sleep(_SECONDS_TO_END)
        finally:
            # The gate stays closed while the tasks are cancelled.
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            self._kernel.middleware.step.remove(self._gate)
        for name in list(self._jobs):
            self._end(name, "waiting")
        for each in (*tasks, self._failed):
            if each.done() and not each.cancelled() and (error := each.exception()) is not None:
                raise error

    async def _gate(self, run: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        """Let a step through; once the worker is to stop, it waits to be cancelled, and has not begun."""
        if self._stopping:
            await asyncio.Event().wait()
        return await proceed()

    async def _wait_until_empty(self, kinds: Collection[str]) -> None:
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

    def _note_status(self, status: JobStatus) -> None:
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
        self._tell("job-begun", job=name, kind=kind, about=about, attempt=self._attempts.pop(name, 1))

    def _end(self, name: str, state: str, reason: str | None = None) -> None:
        job = self._jobs.pop(name)
        if state == "done" and job.outcome is not None:
            state, reason = job.outcome
        if state == "waiting":
            self.given_back += 1
        else:
            self.ended[state] += 1
        seconds = time.monotonic() - job.began
        self._tell("job-ended", job=name, kind=job.kind, state=state, seconds=seconds, reason=reason)

    def _event(self, name: str, event: RunEvent) -> None:
        job = self._jobs.get(name)
        if job is None:
            return
        if isinstance(event, Event.StepStarted):
            step = event.step
            job.steps[step.id] = time.monotonic()
            known = self._kernel.functions.get(step.function) if isinstance(step.function, str) else None
            if known is not None and known.effects:
                job.effects.add(step.id)
            self._tell("step-begun", job=name, step=step.id, function=called_name(step))
        elif isinstance(event, Event.StepFinished | Event.StepFailed):
            step = event.step
            seconds = time.monotonic() - job.steps.pop(step.id, time.monotonic())
            # The journal has its end.
            job.effects.discard(step.id)
            error = event.error if isinstance(event, Event.StepFailed) else None
            function = called_name(step)
            self._tell("step-ended", job=name, step=step.id, function=function, seconds=seconds, error=error)

    def _tell(self, name: str, **values: Any) -> None:
        if self._failed is not None and self._failed.done():
            return
        try:
            self._listener(worker_event(name, **values))
        except Exception as error:  # noqa: BLE001 - a listener that fails is no failure of the job
            assert self._failed is not None  # noqa: S101 - events come while it works
            self._failed.set_exception(error)
