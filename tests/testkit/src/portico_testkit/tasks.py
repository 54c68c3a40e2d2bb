"""Whether what was begun has an end, what was given up ends, and anything of it goes on."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import pytest

__all__ = ["give_up", "in_time", "no_tasks_but", "still_answers", "with_patience"]

_T = TypeVar("_T")

_PATIENCE = 10.0
"""Seconds that what was given up has to come to its end."""

_least_patience: ContextVar[float] = ContextVar("least_patience", default=math.inf)
"""Seconds that nothing here waits longer than; tasks and threads of `asyncio` that are begun later have it too."""

_PAUSE = 0.01
"""Seconds between two looks."""

_LONGEST = 30.0
"""Seconds that a cancelled call may take to end."""

_LONGEST_ANSWER = 60.0
"""Seconds that a call has after another one was cancelled."""

_TRIES = 3
"""How often a call that ended as usual is looked at: now and then one ends in the turn in which it is cancelled."""


@contextmanager
def with_patience(seconds: float) -> Iterator[None]:
    """Have `in_time` and `no_tasks_but` wait no longer than so many seconds, within the block."""
    token = _least_patience.set(seconds)
    try:
        yield
    finally:
        _least_patience.reset(token)


async def in_time(work: Awaitable[_T], what: str, *, seconds: float = _PATIENCE) -> _T:
    """Return what the work gives; fail with ``what`` is the matter when it has no end, and cancel it then.

    >>> asyncio.run(in_time(asyncio.sleep(0, "done"), "there is no answer"))
    'done'
    >>> async def never() -> None:
    ...     await asyncio.Event().wait()
    >>> with with_patience(0.02):
    ...     asyncio.run(in_time(never(), "there is no answer"))
    Traceback (most recent call last):
    ...
    Failed: there is no answer after 0.02 seconds
    """
    call = asyncio.ensure_future(work)
    seconds = min(seconds, _least_patience.get())
    try:
        for _ in range(_turns(seconds)):
            if (await asyncio.wait([call], timeout=_PAUSE))[0]:
                return call.result()
    finally:
        call.cancel()
    await asyncio.wait([call], timeout=_LONGEST)
    pytest.fail(f"{what} after {seconds:g} seconds")


def _turns(seconds: float) -> int:
    """Return how many pauses these are. They are counted, not the seconds: a busy host stops the process at times."""
    return max(1, math.ceil(seconds / _PAUSE))


async def give_up(start: Callable[[], Awaitable[Any]], *, turns: int = 0, seconds: float = 0.0) -> None:
    """Start a call and cancel it after so many turns of the event loop and seconds; fail unless it takes notice.

    It may be done before. If not, it ends with ``CancelledError``, and with nothing else.
    """
    for _ in range(_TRIES):
        call = asyncio.ensure_future(start())
        for _ in range(turns):
            await asyncio.sleep(0)
        if seconds:
            await asyncio.sleep(seconds)
        was_going_on = call.cancel()
        await asyncio.wait([call], timeout=_LONGEST)
        assert call.done(), "a cancelled call goes on"
        if call.cancelled():
            return
        error = call.exception()
        if error is not None:
            raise AssertionError(f"a cancelled call raised {type(error).__name__}: {error}") from error
        if not was_going_on:
            return
    pytest.fail("a cancelled call returned as if it had not been cancelled")


async def still_answers(work: Awaitable[_T]) -> _T:
    """Return what a call gives after another one was cancelled; fail when it has no end, as behind a kept lock."""
    return await in_time(work, "after a cancelled call it never answers: there is nothing", seconds=_LONGEST_ANSWER)


async def no_tasks_but(before: set[asyncio.Task[Any]]) -> None:
    """Wait until no task runs that did not run ``before``; fail with the names of those that go on."""
    seconds = min(_PATIENCE, _least_patience.get())
    turns = _turns(seconds)
    while left := {task for task in asyncio.all_tasks() - before if not task.done()}:
        if not turns:
            named = ", ".join(sorted(f"{task.get_name()} ({task.get_coro()})" for task in left))
            for task in left:
                task.cancel()
            pytest.fail(f"{len(left)} tasks go on {seconds:g} seconds after all was given up: {named}")
        turns -= 1
        await asyncio.sleep(_PAUSE)
