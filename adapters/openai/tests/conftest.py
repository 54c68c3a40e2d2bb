"""A server on loopback that answers with bytes that a test gives it, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from llmock.testing import LLMockServer

from portico.plugins import Secret
from portico_openai.chat import OpenAIChat
from portico_openai.config import OpenAIChatSettings, OpenAIEmbeddingsSettings
from portico_openai.embeddings import OpenAIEmbeddings

STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
KEY = "sk-test-0123456789"

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


class Loopback:
    """Answer each request with the next answer; the last one is given again and again."""

    stream_head = STREAM_HEAD
    exchanges = Path(__file__).parent / "exchanges"
    key = KEY

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.visits: list[Visit] = []
        self.connections = 0
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

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

    @staticmethod
    def event(delta: dict[str, Any] | None = None, finish: str | None = None, **further: Any) -> bytes:
        """Write one chunk of a streamed completion."""
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
        return b"data: " + json.dumps({"model": "m-1", "choices": choices, **further}).encode() + b"\n\n"

    @staticmethod
    def completion(text: str | None = "Hello.", finish: str = "stop", **message: Any) -> dict[str, Any]:
        """Return the body of a completion."""
        return {
            "model": "m-1",
            "choices": [
                {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
            ],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
        }

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


@pytest.fixture
async def loopback() -> AsyncIterator[Loopback]:
    server = Loopback()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def make_chat(loopback: Loopback) -> AsyncIterator[Callable[..., OpenAIChat]]:
    """Make chat services on the loopback server; they are closed at the end."""
    made: list[OpenAIChat] = []

    def make(**settings: Any) -> OpenAIChat:
        given = {"model": "m-1", "base_url": loopback.base_url, "api_key": Secret(KEY), "max_retries": 0, **settings}
        made.append(OpenAIChat(OpenAIChatSettings(**given)))
        return made[-1]

    yield make
    for chat in made:
        await chat.aclose()


@pytest.fixture
async def make_embeddings(loopback: Loopback) -> AsyncIterator[Callable[..., OpenAIEmbeddings]]:
    """Make embedding generators on the loopback server; they are closed at the end."""
    made: list[OpenAIEmbeddings] = []

    def make(**settings: Any) -> OpenAIEmbeddings:
        given = {"model": "e-1", "base_url": loopback.base_url, "api_key": Secret(KEY), "max_retries": 0, **settings}
        made.append(OpenAIEmbeddings(OpenAIEmbeddingsSettings(**given)))
        return made[-1]

    yield make
    for embeddings in made:
        await embeddings.aclose()


@pytest.fixture(scope="session")
def llmock_url() -> Iterator[str]:
    """Run llmock, a fake of OpenAI's service, on loopback for all tests of the session."""
    with LLMockServer() as server:
        yield server.base_url("openai")
