"""The whole of `portico serve` behind a real server on loopback: guard, API and pages, as the command serves them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from tests.support.desks import PATIENCE, open_desk

from portico_serve import _desk
from portico_serve._app import STATIC, make_app
from portico_serve._guard.addresses import Addresses
from portico_serve._guard.limits import Limits
from portico_serve._guard.security import Guard
from portico_serve._guard.sessions import Sessions
from portico_serve._listening import open_socket, serving

TOKEN = "a-token-of-programs-0123456789"


@dataclass
class Served:
    """A server, the tokens that it has announced, and the errors that it has reported."""

    desk: _desk.Desk
    port: int
    announced: list[str] = field(default_factory=list)
    reported: list[Exception] = field(default_factory=list)
    guard: Guard | None = None

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def origin(self) -> dict[str, str]:
        """The header with which a page of ours posts."""
        return {"origin": self.url}

    def client(self, **headers: str) -> httpx.AsyncClient:
        """Return a client without a session."""
        limits = httpx.Limits(max_connections=None)
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=PATIENCE, limits=limits)

    def program(self) -> httpx.AsyncClient:
        """Return a client with the token of programs."""
        return self.client(authorization=f"Bearer {TOKEN}")

    async def log_in(self, client: httpx.AsyncClient) -> httpx.Response:
        """Begin a session with the newest token."""
        response = await client.get("/", params={"token": self.announced[-1]})
        assert response.status_code == 303, response.text
        return response

    @asynccontextmanager
    async def browser(self, **headers: str) -> AsyncIterator[httpx.AsyncClient]:
        """Yield a client with a session, which sends our origin as a page of ours does."""
        async with self.client(**{**self.origin, **headers}) as client:
            await self.log_in(client)
            yield client

    async def runs(self) -> int:
        """Return how many runs the journal has."""
        store: Any = self.desk.kernel.run_store
        return len(await store.runs())

    async def say(self, *lines: str, body: bytes = b"") -> tuple[int, bytes]:
        """Send a request as it is, and return the status and all that comes until the connection closes."""
        head = "\r\n".join([*lines, "connection: close", "", ""])
        return await self.say_bytes(head.encode("latin-1") + body)

    async def say_bytes(self, data: bytes) -> tuple[int, bytes]:
        """Send bytes, and return the status and all that comes until the connection closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(data)
            async with asyncio.timeout(PATIENCE):
                answer = await reader.read()
        finally:
            writer.close()
        return int(answer.split(b" ", 2)[1]), answer


@asynccontextmanager
async def guarded(
    folder: Path,
    *,
    token: str | None = TOKEN,
    limits: Limits | None = None,
    static: Path = STATIC,
    further: tuple[str, ...] = (),
) -> AsyncIterator[Served]:
    """Open the desk of a folder and serve it as the command does."""
    async with open_desk(folder) as opened:
        desk = _desk.Desk(opened.application, opened.kernel, opened.runs, opened.chats, opened.sources, None)
        with open_socket("127.0.0.1", 0) as listening:
            served = Served(desk, listening.getsockname()[1])
            sessions = Sessions(token, served.announced.append)
            at = Addresses.of("127.0.0.1", served.port, further)
            app = make_app(desk, at, sessions, limits=limits, report=served.reported.append, static=static)
            served.guard = app
            sessions.renew()
            async with serving(app, listening):
                yield served
