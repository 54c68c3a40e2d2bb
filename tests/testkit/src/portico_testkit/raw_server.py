"""A server on loopback that says any bytes, HTTP or not, and keeps what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TypeAlias
from urllib.parse import parse_qsl

__all__ = ["Play", "RawRequest", "RawServer", "whole"]

# Of the event loop, by which a connection that it has accepted is one of ours.
_TURNS = 4

Play: TypeAlias = bytes | Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""What is said to a request: bytes, none of which close the connection; or what a function does."""


@dataclass(frozen=True, slots=True)
class RawRequest:
    """A request as it came; the names of headers in lower case."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    @property
    def params(self) -> list[tuple[str, str]]:
        """The query, decoded."""
        return parse_qsl(self.target.partition("?")[2], keep_blank_values=True, strict_parsing="?" in self.target)

    def header(self, name: str) -> list[str]:
        """Return every value of a header."""
        return [value for known, value in self.headers if known == name.lower()]


def whole(status: int = 200, body: bytes = b"{}", headers: Mapping[str, str] | None = None) -> bytes:
    """Return an answer with its length.

    >>> whole(404, b"no", {"X-Why": "gone"})
    b'HTTP/1.1 404 Said\\r\\nX-Why: gone\\r\\nContent-Length: 2\\r\\n\\r\\nno'
    """
    fields = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    length = "" if status == 204 else f"Content-Length: {len(body)}\r\n"
    return f"HTTP/1.1 {status} Said\r\n{fields}{length}\r\n".encode("latin-1") + body


class RawServer:
    """Say ``plays`` one after another, the last of them again and again. Use it as an async context manager.

    >>> async def ask():
    ...     async with RawServer(whole(200, b"hello")) as server:
    ...         reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    ...         writer.write(b"GET /find?q=a%20b HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    ...         answer = await reader.readuntil(b"hello")
    ...         writer.close()
    ...         return answer.splitlines()[0], server.requests[0].params
    >>> asyncio.run(ask())
    (b'HTTP/1.1 200 Said', [('q', 'a b')])

    ``requests`` are those that came, ``connections`` counts how often one was opened. At the end of the block what
    is still being said is given up.
    """

    def __init__(self, *plays: Play) -> None:
        self.plays = plays
        self.requests: list[RawRequest] = []
        self.connections = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    @property
    def open(self) -> int:
        """How many connections are open."""
        return len(self._tasks)

    @property
    def url(self) -> str:
        """The address without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> RawServer:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=256)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._server is not None
        # What comes is not accepted any more; what is accepted comes to `_connected` first, or asyncio would lose it.
        for listening in self._server.sockets:
            asyncio.get_running_loop().remove_reader(listening.fileno())
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()

        # Not in the task: one that is given up before it has begun does nothing at all.
        task.add_done_callback(ended)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while not writer.is_closing():
                self.requests.append(await _request(reader))
                play = self.plays[min(len(self.requests), len(self.plays)) - 1]
                if isinstance(play, bytes):
                    writer.write(play)
                    await writer.drain()
                    if not play:
                        break
                else:
                    await play(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # The client went away.


async def _request(reader: asyncio.StreamReader) -> RawRequest:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("utf-8").rstrip("\r\n").split("\r\n")
    method, target, _ = head[0].split(" ")
    pairs = tuple((name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in head[1:]))
    length = int(dict(pairs).get("content-length", 0))
    return RawRequest(method, target, pairs, await reader.readexactly(length))
