"""Whether what was given up ends, and anything of it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

__all__ = ["give_up", "no_tasks_but"]

_PATIENCE = 10.0
"""Seconds that what was given up has to come to its end."""

_PAUSE = 0.01
"""Seconds between two looks."""

_LONGEST = 30.0
"""Seconds that a cancelled call has, before nobody believes that it ends."""

_TRIES = 3
"""How often a call that ended as usual is looked at: now and then one ends in the turn in which it is cancelled."""


async def give_up(start: Callable[[], Awaitable[Any]], *, turns: int = 0, seconds: float = 0.0) -> None:
    """Start a call and cancel it after so many turns of the event loop and seconds; fail unless it takes notice.

    It may be done before. If not, it ends with ``CancelledError``: one that goes on holds up who gave it up, one that
    raises another error is taken for a failure, and one that returns makes a time-out of the caller's have no effect.
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
    pytest.fail("a cancelled call returned as if nobody had cancelled it")


async def no_tasks_but(
    before: set[asyncio.Task[Any]], counts: Callable[[asyncio.Task[Any]], bool] = lambda task: True
) -> None:
    """Wait until no task runs that did not run ``before``; fail with the names of those that go on.

    ``counts`` leaves out those of others, such as a server of the test.
    """
    # Turns are counted, not seconds: while a busy host stops the process, its tasks come to no end.
    turns = int(_PATIENCE / _PAUSE)
    while left := {task for task in asyncio.all_tasks() - before if not task.done() and counts(task)}:
        if not turns:
            named = ", ".join(sorted(f"{task.get_name()} ({task.get_coro()})" for task in left))
            for task in left:
                task.cancel()
            pytest.fail(f"{len(left)} tasks go on {_PATIENCE:g} seconds after all was given up: {named}")
        turns -= 1
        await asyncio.sleep(_PAUSE)
