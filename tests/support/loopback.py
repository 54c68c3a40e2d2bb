"""A server on loopback that answers with bytes that a test gives it, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from portico.plugins import Secret

STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
KEY = "sk-test-0123456789"
"""The key of the services under test."""

Answer = bytes | Callable[["Visit"], Awaitable[None]]


@dataclass
class Visit:
    """One request, and the connection on which it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def reset(self) -> None:
        """End the connection as a process that is killed does."""
        self.writer.transport.abort()

    async def until_gone(self) -> None:
        """Wait until the other side closes the connection."""
        try:
            while await self.reader.read(1000):
                pass
        except ConnectionError:
            pass
        self.gone.set()


class Form(ABC):
    """How one service writes what it answers, for the tests that all services over HTTP have."""

    name: str
    """The service's registered name."""
    base = "/v1"
    """What the path of ``base_url`` is."""
    path: str
    """What follows it."""
    key_header = ("authorization", "Bearer ")
    """The header of the key, and what precedes the key in it."""
    begin = b""
    """The events before the first piece."""
    end: bytes
    """The events after the last piece."""
    strange: tuple[tuple[bytes, str], ...] = ()
    """Bodies of replies that are JSON and not a reply, and what the error says."""
    environment: ClassVar[Mapping[str, str]] = {}
    """Variables of the environment that the vendor's SDK reads."""
    headers: frozenset[str] = frozenset()
    """The headers that every request has, besides those of HTTP and of the key."""

    @abstractmethod
    def reply(self, text: str = "Hello.") -> Any:
        """Return the body of a whole reply."""

    @abstractmethod
    def piece(self, text: str) -> bytes:
        """Write the event of a piece of text."""

    @abstractmethod
    def question(self, body: Any) -> str:
        """Return the text of the one message in a request."""

    def events(self, *texts: str) -> bytes:
        """Write the events of a whole reply."""
        return b"".join((self.begin, *map(self.piece, texts), self.end))


class Loopback:
    """Answer each request with the next answer; the last one is given again and again."""

    stream_head = STREAM_HEAD
    key = KEY

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.visits: list[Visit] = []
        self.connections = 0
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def will(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.visits.clear()

    @staticmethod
    def whole(body: Any, *, status: str = "200 OK", kind: str = "application/json", **headers: str) -> bytes:
        """Write an answer with a body: bytes as they are, anything else as JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        further = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{further}content-length: {len(data)}\r\n\r\n"
        return head.encode() + data

    @staticmethod
    def chunk(data: bytes) -> bytes:
        return b"%x\r\n%s\r\n" % (len(data), data)

    @staticmethod
    def streamed(events: bytes) -> bytes:
        """Write an answer that is a stream of events, whole."""
        return STREAM_HEAD + Loopback.chunk(events) + b"0\r\n\r\n"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        self.connections += 1
        try:
            while True:
                visit = await self._read(reader, writer)
                if visit is None:
                    return
                self.visits.append(visit)
                answer = self.answers[min(len(self.visits), len(self.answers)) - 1]
                if isinstance(answer, bytes):
                    await visit.send(answer)
                    if b"connection: close" in answer[:2000].lower():
                        return
                else:
                    await answer(visit)
        except ConnectionError:
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Visit | None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except asyncio.IncompleteReadError:
            return None
        first, *lines = head.rstrip("\r\n").split("\r\n")
        method, path, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        return Visit(method, path, headers, body, reader, writer)


@asynccontextmanager
async def making(kind: Any, settings: Any, base_url: str) -> AsyncIterator[Callable[..., Any]]:
    """Give what makes services from settings; they are closed at the end, unless they are ``forgotten``."""
    made = []

    def make(*, forgotten: bool = False, **given: Any) -> Any:
        service = kind(
            settings(**{"model": "m-1", "base_url": base_url, "api_key": Secret(KEY), "max_retries": 0, **given})
        )
        if not forgotten:
            made.append(service)
        return service

    yield make
    for service in made:
        await service.aclose()
