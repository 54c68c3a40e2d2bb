"""The Runner port: who executes a pursuit's actions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

__all__ = ["Runner"]


class Runner(Protocol):
    """Executes the actions of a pursuit: each step is one.

    Behaviour: an action's result is JSON; a durable runner returns the recorded result of an action of the
    same run and name instead of executing it again. Cancelling the call cancels the action.
    Errors: those of the action, unchanged.
    """

    name: str

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        """Execute ``action`` and return its result; ``name`` is unique in ``run``."""
        ...
