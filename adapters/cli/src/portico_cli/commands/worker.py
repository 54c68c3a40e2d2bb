"""`portico worker`: carry out the jobs that others submit."""

from __future__ import annotations

import asyncio
import math
import os
import platform
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from portico_cli.failures import DONE, INTERRUPTED, Misused
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.runs import no_journal
from portico_cli.show.worker import worker_listener
from portico_cli.sources import choose_sources, run
from portico_cli.worker import Ready, Stopped, Tell, Working

if TYPE_CHECKING:
    from portico_host import Application


# Seconds; less than the ten after which container engines kill by default.
_GRACE = 8.0
# So many signals stop the worker in order; the next one breaks it off.
_GENTLE = 2


@click.command(name="worker")
@click.option("--concurrency", metavar="N", type=click.IntRange(1, 10_000), help="Carry out N jobs at a time.")
@click.option("--until-empty", is_flag=True, help="End when no job waits or runs.")
@click.option(
    "--grace",
    metavar="SECONDS",
    type=click.FloatRange(0, 86_400),
    default=_GRACE,
    show_default=True,
    help="When told to stop, let steps with effects that are under way end within this time.",
)
@click.option("--approve", is_flag=True, help="Pause each plan before it runs, for a person to approve.")
@click.option("--approve-effects", is_flag=True, help="Pause each step whose function has effects.")
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
) -> None:
    """Carry out the goals that `portico submit` hands over.

    Start as many workers as you like, on any host that reaches the database of the runner. Ctrl-C stops a worker: the
    jobs that it has not ended wait for another one.
    """
    invocation.lines = True
    if math.isnan(grace):  # it is in any range
        raise Misused("--grace: nan is not a number of seconds.")
    chosen = choose_sources(invocation)
    application = chosen.application
    if concurrency is not None:
        more = {"runner": {_runner_of(application): {"concurrency": concurrency}}}
        application = choose_sources(invocation, overrides=more).application
    tell = worker_listener(json=invocation.json)

    approvals = _Approvals(plans=approve, effects=approve_effects)
    try:
        code = run(lambda: _work(application, chosen.sources, tell, approvals, grace=grace, until_empty=until_empty))
    except asyncio.CancelledError:
        # A signal came while jobs were given back.
        code = INTERRUPTED
    click.get_current_context().exit(code)


@dataclass(frozen=True, slots=True)
class _Approvals:
    plans: bool = False
    effects: bool = False


async def _work(
    application: Application,
    sources: tuple[str, ...],
    tell: Tell,
    approvals: _Approvals,
    *,
    grace: float,
    until_empty: bool,
) -> int:
    from portico import Kernel

    runner = _runner_of(application)
    async with application.kernel(sources) as kernel:
        queue = Kernel.require_jobs(kernel.runner)
        if kernel.run_store is None:
            raise no_journal(application)
        if approvals.plans:
            kernel.approve_plans()
        if approvals.effects:
            kernel.approve_effects()
        # A queue that cannot be reached is the error, before anything is shown.
        await queue.workers()
        place, many = str(getattr(queue, "place", "")), _concurrency_of(application, runner)
        tell(Ready(platform.node(), os.getpid(), runner, place, tuple(Kernel.job_handlers()), many))
        working = Working(kernel, queue, tell, grace=grace)
        with _signals_cancel() as heard:
            await working.work(until_empty=until_empty)
        tell(Stopped(dict(working.ended), working.given_back))
    return INTERRUPTED if heard and heard[0] == signal.SIGINT else DONE


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


def _runner_of(application: Application) -> str:
    from portico_host.packages import port_named

    port = port_named("Runner")
    return application.configuration.use(port) or application.plugins.default_of(port) or "local"


def _concurrency_of(application: Application, runner: str) -> int | None:
    key = f"runner.{runner}.concurrency"
    found: list[Any] = [setting.value for setting in application.settings() if setting.key == key]
    return found[0] if found and isinstance(found[0], int) else None
