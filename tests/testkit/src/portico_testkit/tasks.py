"""Whether anything goes on that was given up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

__all__ = ["no_tasks_but"]

_PATIENCE = 10.0
"""Seconds that what was given up has to come to its end."""

_PAUSE = 0.01
"""Seconds between two looks."""


async def no_tasks_but(before: set[asyncio.Task[Any]]) -> None:
    """Wait until no task runs that did not run ``before``; fail with the names of those that go on."""
    # Turns are counted, not seconds: while a busy host stops the process, its tasks come to no end.
    turns = int(_PATIENCE / _PAUSE)
    while left := {task for task in asyncio.all_tasks() if not task.done()} - before:
        if not turns:
            named = ", ".join(sorted(f"{task.get_name()} ({task.get_coro()})" for task in left))
            for task in left:
                task.cancel()
            pytest.fail(f"{len(left)} tasks go on {_PATIENCE:g} seconds after all was given up: {named}")
        turns -= 1
        await asyncio.sleep(_PAUSE)
