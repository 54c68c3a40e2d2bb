"""Run asynchronous work, and end the process even if a thread of a package does not end."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, redirect_stdout, suppress
from typing import Any, TypeVar

T = TypeVar("T")
# Seconds for all threads together.
_THREAD_PATIENCE = 2.0


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
def kept_open(runner: asyncio.Runner, opening: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """Keep an asynchronous context open between runs of the loop; one task opens and closes it."""
    end = asyncio.Event()

    async def start() -> tuple[asyncio.Task[None], T]:
        opened: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def hold() -> None:
            async with opening as made:
                opened.set_result(made)
                await end.wait()

        holding = asyncio.create_task(hold())
        try:
            await asyncio.wait((holding, opened), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            holding.cancel()
            await asyncio.wait((holding,))
            raise
        if not opened.done():
            await holding
        return holding, opened.result()

    async def stop() -> None:
        end.set()
        await holding

    holding, made = run_async(start, runner)
    try:
        yield made
    finally:
        run_async(stop, runner)


def end_though_threads_linger(code: int) -> None:
    """End the process with ``code`` if threads continue that Python would wait for.

    The command is done and has closed everything. Functions of ``atexit`` are not called; we have none.
    """
    threads = [each for each in threading.enumerate() if not each.daemon and each is not threading.main_thread()]
    end = time.monotonic() + _THREAD_PATIENCE
    with suppress(KeyboardInterrupt):
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
    alive = ", ".join(sorted(repr(thread.name) for thread in threads if thread.is_alive()))
    if alive:
        with suppress(AttributeError, OSError, ValueError):
            sys.stderr.write(f"Ended, though a thread of a package continues: {alive}.\n")
            sys.stderr.flush()
            sys.stdout.flush()
        os._exit(code)
