"""The runner of this process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from portico.plugins import Services
from portico.ports import Runner
from portico_basics.config import LocalRunnerSettings


class LocalRunner(Runner):
    """Execute actions in this process, at most ``concurrency`` at a time. The others wait in their order.

    >>> runner = LocalRunner(LocalRunnerSettings(concurrency=2))
    >>> async def work():
    ...     return "done"
    >>> asyncio.run(runner.execute("r1", "s1", work))
    'done'

    An action that executes another one, such as a function that runs a plan, shares its place with it: otherwise both
    could wait forever. Nothing is recorded. A function that blocks without ``blocking=True`` stops all others.
    """

    name = "local"

    def __init__(self, settings: LocalRunnerSettings, services: Services | None = None) -> None:
        self._concurrency = settings.concurrency
        self._places: asyncio.Semaphore | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._inside: ContextVar[bool] = ContextVar("portico_local_runner_inside", default=False)

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        """Execute ``action`` as soon as a place is free."""
        if self._inside.get():
            return await action()
        async with self._free_places():
            token = self._inside.set(True)
            try:
                return await action()
            finally:
                self._inside.reset(token)

    def _free_places(self) -> asyncio.Semaphore:
        # A semaphore belongs to one event loop, and scripts run one after the other.
        loop = asyncio.get_running_loop()
        if self._places is None or self._loop is not loop:
            self._places = asyncio.Semaphore(self._concurrency)
            self._loop = loop
        return self._places
