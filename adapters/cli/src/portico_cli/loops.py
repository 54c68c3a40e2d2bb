"""Run asynchronous work: Ctrl-C acts at once, and a thread or task that never ends does not keep the process."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, redirect_stdout, suppress
from types import FrameType, TracebackType
from typing import Any, Generic, TypeVar

from portico_host.calling_out import is_called_out

T = TypeVar("T")
# Seconds for cancelled tasks to end, and for threads in all.
_PATIENCE = 1.0
_THREAD_PATIENCE = 2.0
# Event loops and tasks that do not end. If they were thrown away, Python would complain of them.
_left: list[object] = []


def run_alone(work: Callable[[], Awaitable[T]]) -> T:
    """Run work as `asyncio.run` does, but leave a task behind that does not end when cancelled."""
    runner = asyncio.Runner()
    try:
        return runner.run(interruptible(work))
    finally:
        stubborn = runner.run(_stubborn_tasks())
        if stubborn:
            _left.extend([runner, *stubborn])
        else:
            runner.close()


async def _stubborn_tasks() -> set[asyncio.Task[Any]]:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    return (await asyncio.wait(others, timeout=_PATIENCE))[1] if others else set()


def run_on(runner: asyncio.Runner, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run work on the loop of a runner; what a library prints meanwhile goes to standard error."""
    with redirect_stdout(sys.stderr):
        return runner.run(interruptible(work))


class KeptOpen(Generic[T]):
    """An asynchronous context that stays open between runs of the loop; one task opens and closes it."""

    def __init__(self, runner: asyncio.Runner, opening: AbstractAsyncContextManager[T]) -> None:
        self._runner = runner
        self._opening = opening
        self._end = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> T:
        return run_on(self._runner, self._start)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        run_on(self._runner, self._stop)

    async def _start(self) -> T:
        opened: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold(opened))
        waiting: list[asyncio.Future[Any]] = [self._task, opened]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._task.cancel()
            await asyncio.wait([self._task])
            raise
        if not opened.done():
            await self._task
        return opened.result()

    async def _hold(self, opened: asyncio.Future[T]) -> None:
        async with self._opening as made:
            opened.set_result(made)
            await self._end.wait()

    async def _stop(self) -> None:
        self._end.set()
        if self._task is not None:
            await self._task


async def interruptible(work: Callable[[], Awaitable[T]]) -> T:
    """Do work on the loop of an `asyncio.Runner`; the first Ctrl-C acts during an import too.

    The runner's handler of SIGINT only cancels a task, which acts when the task awaits next: after an import of
    seconds. While a package is imported and a service is made, nothing is held that must be given back, so
    ``KeyboardInterrupt`` is raised there instead.
    """
    with _imports_interrupted():
        return await work()


@contextmanager
def _imports_interrupted() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    # Only the main thread may have a handler. None, or a number, is for a process that must not be interrupted.
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    cancel = before

    def interrupted(number: int, frame: FrameType | None) -> None:
        if is_called_out(frame):
            raise KeyboardInterrupt
        cancel(number, frame)

    signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is interrupted:
            signal.signal(signal.SIGINT, before)


def end_though_threads_linger(code: int) -> None:
    """End the process with ``code`` if threads continue that Python would wait for, or a task was left behind.

    The command is done and has closed everything. Functions of ``atexit`` are not called; we have none.
    """
    threads = [each for each in threading.enumerate() if not each.daemon and each is not threading.main_thread()]
    end = time.monotonic() + _THREAD_PATIENCE
    with suppress(KeyboardInterrupt):
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
    alive = ", ".join(sorted(repr(thread.name) for thread in threads if thread.is_alive()))
    if not alive and not _left:
        return
    if alive:
        with suppress(AttributeError, OSError, ValueError):
            sys.stderr.write(f"Ended, though a thread of some package goes on: {alive}.\n")
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.flush()
    os._exit(code)
