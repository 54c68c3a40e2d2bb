"""Event loops: one for a command, and one that runs now and then, with what stays open between its runs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, redirect_stdout
from types import TracebackType
from typing import Any, Generic, TypeVar

from portico_cli.interrupts import interruptible
from portico_cli.lingering import leave_behind

__all__ = ["KeptOpen", "run_alone", "run_on"]

T = TypeVar("T")
_PATIENCE = 1.0
"""Seconds for tasks that are cancelled to end."""


def run_alone(work: Callable[[], Awaitable[T]]) -> T:
    """Run work on a loop of its own, as `asyncio.run` does; a task that does not end when cancelled is left behind."""
    runner = asyncio.Runner()
    try:
        return runner.run(interruptible(work))
    finally:
        stubborn = runner.run(_tasks_that_go_on())
        if stubborn:
            leave_behind(runner, *stubborn)
        else:
            runner.close()


async def _tasks_that_go_on() -> set[asyncio.Task[Any]]:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    return (await asyncio.wait(others, timeout=_PATIENCE))[1] if others else set()


def run_on(runner: asyncio.Runner, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run work on the loop of the conversation; what a library prints meanwhile goes to standard error."""
    with redirect_stdout(sys.stderr):
        return runner.run(interruptible(work))


class KeptOpen(Generic[T]):
    """Something asynchronous that stays open between runs of the loop: one task opens it and closes it again."""

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
