"""Run asynchronous work; what libraries print meanwhile goes to standard error."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, redirect_stdout
from typing import Any, TypeVar

T = TypeVar("T")


def run_async(work: Callable[[], Coroutine[Any, Any, T]], runner: asyncio.Runner | None = None) -> T:
    """Run asynchronous work to its end; what a library prints meanwhile goes to standard error.

    With a ``runner`` the work uses its loop, which continues afterwards. Without one, the work gets a new loop.
    """
    with redirect_stdout(sys.stderr):
        if runner is not None:
            return runner.run(work())
        with asyncio.Runner() as own:
            return own.run(work())


@contextmanager
def keep_open(runner: asyncio.Runner, opening: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """Keep an asynchronous context open between runs of the loop."""

    async def enter() -> T:
        return await opening.__aenter__()

    async def leave() -> None:
        await opening.__aexit__(*sys.exc_info())

    made = run_async(enter, runner)
    try:
        yield made
    finally:
        run_async(leave, runner)
