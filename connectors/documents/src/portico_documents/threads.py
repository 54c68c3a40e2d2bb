"""Work in threads that is never left running behind the caller's back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call ``function`` in a thread; when cancelled, wait for it to end first.

    `asyncio.to_thread` alone lets go of a thread that cannot be stopped, which would go on using a connection
    that is being closed, or write after its lock is released.
    """
    task = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        # Whatever it raised is less than the wish to stop; asking marks it as seen.
        task.exception()
        raise cancelled
    return task.result()
