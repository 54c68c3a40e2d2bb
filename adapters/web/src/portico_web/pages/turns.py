"""Who may send a request now: so many at one time to one host, and so many in all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

__all__ = ["Turns"]


class Turns:
    """Places for requests, given in the order in which they were asked for.

    A host's place is taken before one of those for all, so that waiting for a busy host holds up no other. What
    is kept of a host goes with its last request.
    """

    def __init__(self, in_all: int, per_host: int) -> None:
        self._in_all = asyncio.Semaphore(in_all)
        self._per_host = per_host
        self._hosts: dict[str, tuple[asyncio.Semaphore, int]] = {}

    @asynccontextmanager
    async def at(self, host: str) -> AsyncIterator[None]:
        """Wait for a place at a host and hold it."""
        places, waiting = self._hosts.get(host) or (asyncio.Semaphore(self._per_host), 0)
        self._hosts[host] = (places, waiting + 1)
        try:
            async with places, self._in_all:
                yield
        finally:
            places, waiting = self._hosts.pop(host)
            if waiting > 1:
                self._hosts[host] = (places, waiting - 1)
