"""`portico worker`: carry out the jobs that others submit."""

from __future__ import annotations

import asyncio
import math
import os
import platform
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from portico_cli.failures import DONE, INTERRUPTED, Misused
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.sources import choose_sources, run

if TYPE_CHECKING:
    from portico_cli.sources import Chosen
    from portico_cli.worker_events import Tell
    from portico_host import Application

__all__ = ["command"]

_GRACE = 8.0
"""Seconds; less than the ten after which container engines kill by default."""
_GENTLE = 2
"""How many signals are a wish."""


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
@click.option("--approve", is_flag=True, help="Hold each plan before it runs, for a person to approve.")
@click.option("--approve-effects", is_flag=True, help="Hold each step whose function has effects.")
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

    Start as many workers as you like, on any host that reaches the runner's database. Ctrl-C stops one: what it has
    not ended waits for another worker.
    """
    invocation.lines = True
    if math.isnan(grace):  # it is in any range
        raise Misused("--grace: nan is no number of seconds.")
    chosen = choose_sources(invocation)
    if concurrency is not None:
        more = {"runner": {_runner_of(chosen.application): {"concurrency": concurrency}}}
        chosen = choose_sources(invocation, overrides=more)
    from portico_cli.worker_log import WorkerLog
    from portico_cli.worker_view import WorkerView

    shown = WorkerLog() if invocation.json or not sys.stdout.isatty() else WorkerView()
    wanted = _Wanted(chosen, until_empty, grace, approve, approve_effects)
    try:
        with shown:
            code = run(lambda: _work(wanted, shown))
    except asyncio.CancelledError:
        # Told again, while jobs were given back.
        code = INTERRUPTED
    click.get_current_context().exit(code)


@dataclass(frozen=True, slots=True)
class _Wanted:
    chosen: Chosen
    until_empty: bool
    grace: float
    approve: bool
    approve_effects: bool


async def _work(wanted: _Wanted, tell: Tell) -> int:
    from portico.approval import approve_effects, approve_plans
    from portico.runners import require_jobs
    from portico_cli.job_kinds import KINDS
    from portico_cli.run_names import no_journal
    from portico_cli.worker_events import Ready, Stopped
    from portico_cli.working import Working

    application = wanted.chosen.application
    async with application.kernel(wanted.chosen.sources) as kernel:
        queue = require_jobs(kernel.runner)
        if kernel.run_store is None:
            # Every pursuit would fail.
            raise no_journal(application)
        if wanted.approve:
            kernel.middleware.plan.append(approve_plans())
        if wanted.approve_effects:
            kernel.middleware.step.append(approve_effects(kernel))
        # A queue that cannot be reached is told of before anything else is.
        await queue.workers()
        runner, place = _runner_of(application), str(getattr(queue, "place", ""))
        tell(Ready(platform.node(), os.getpid(), runner, place, tuple(KINDS), _concurrency_of(application, runner)))
        working = Working(kernel, queue, tell, grace=wanted.grace)
        with _told_by_signals() as heard:
            await working.work(until_empty=wanted.until_empty)
        tell(Stopped(dict(working.ended), working.given_back))
    return INTERRUPTED if heard and heard[0] == signal.SIGINT else DONE


@contextmanager
def _told_by_signals() -> Iterator[list[int]]:
    """Have Ctrl-C and SIGTERM cancel the task that this is done in; what is yielded gets the signals.

    So does the second, which leaves no time to what is under way. Only the third is raised where it comes, as Ctrl-C
    otherwise is the second time: there it hits anything. Who starts a process in the background may have it ignore
    Ctrl-C, and that is left so.
    """
    heard: list[int] = []
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None  # noqa: S101 - called in a coroutine
    if threading.current_thread() is not threading.main_thread():
        yield heard
        return

    def told(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        if len(heard) > _GENTLE:
            raise KeyboardInterrupt
        loop.call_soon_threadsafe(task.cancel)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, told)
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
