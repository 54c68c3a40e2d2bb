"""Whether anything goes on that was given up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

__all__ = ["no_tasks_but"]

_PATIENCE = 10.0
"""Seconds that what was given up has to come to its end."""


async def no_tasks_but(before: set[asyncio.Task[Any]]) -> None:
    """Wait until no task runs that did not run ``before``; fail with the names of those that go on."""
    loop = asyncio.get_running_loop()
    end = loop.time() + _PATIENCE
    while left := {task for task in asyncio.all_tasks() if not task.done()} - before:
        if loop.time() > end:
            named = ", ".join(sorted(f"{task.get_name()} ({task.get_coro()})" for task in left))
            for task in left:
                task.cancel()
            pytest.fail(f"{len(left)} tasks go on {_PATIENCE:g} seconds after all was given up: {named}")
        await asyncio.sleep(0.01)
