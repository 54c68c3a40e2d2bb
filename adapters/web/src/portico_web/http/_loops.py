"""One client for each event loop, closed before its loop ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable

import httpx

__all__ = ["LoopClients"]

_PATIENCE = 5.0


class LoopClients:
    """Make a client for an event loop when it is first needed there; connections belong to the loop that opened them.

    A loop that ends (``asyncio.run`` returns) closes the client itself, since it closes the asynchronous generators
    that it has seen begin: no socket is left to the garbage collector.
    """

    def __init__(self, make: Callable[[], httpx.AsyncClient]) -> None:
        self._make = make
        self._held: dict[asyncio.AbstractEventLoop, AsyncGenerator[httpx.AsyncClient, None]] = {}
        self._clients: dict[asyncio.AbstractEventLoop, httpx.AsyncClient] = {}
        self._lock = threading.Lock()

    async def here(self) -> httpx.AsyncClient:
        """Return the client of the running loop."""
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            # Nothing up to the end of this block gives way to another task of the loop.
            held = self._hold(loop)
            client = await anext(held)
            with self._lock:
                self._held[loop], self._clients[loop] = held, client
        return client

    async def aclose(self) -> None:
        """Close the clients of all loops that run."""
        with self._lock:
            held = dict(self._held)
        here = asyncio.get_running_loop()
        for loop, client in held.items():
            if loop is here:
                await client.aclose()
            elif loop.is_running():
                closing = asyncio.run_coroutine_threadsafe(client.aclose(), loop)
                # It may end while it is being asked, and then nobody answers.
                await asyncio.wait([asyncio.wrap_future(closing)], timeout=_PATIENCE)

    async def _hold(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[httpx.AsyncClient, None]:
        client = self._make()
        try:
            yield client
        finally:
            with self._lock:
                self._held.pop(loop, None)
                self._clients.pop(loop, None)
            await client.aclose()
