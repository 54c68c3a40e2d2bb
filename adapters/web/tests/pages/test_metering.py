"""Of one answer only so much is read, in pieces small enough to leave the event loop to others."""

from __future__ import annotations

import asyncio
from typing import Any

import httpcore
import pytest

from portico.errors import LimitExceeded
from portico_web.pages.network import MeteredStream

PAGE = "http://site.example/page"


class Endless(httpcore.AsyncNetworkStream):
    """Gives as many bytes as it is asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self.asked.append(max_bytes)
        return b"x" * max_bytes

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        pass


async def read_on(stream: MeteredStream) -> int:
    size = 0
    with pytest.raises(LimitExceeded):
        while True:
            size += len(await stream.read(65_536))
            assert size < 10_000_000, "there is no end"
    return size


async def test_each_answer_has_a_bound_of_its_own() -> None:
    endless = Endless()
    stream = MeteredStream(endless)
    head = await read_on(stream)
    stream.allow(1_000_000)
    assert 1_000_000 <= await read_on(stream) < 1_010_000, "a body is bounded as it was allowed"
    await stream.write(b"GET /next")
    assert await read_on(stream) == head, "the next answer has a head of its own"
    assert max(endless.asked) <= 16_384, "a piece is so large that parsing it holds up the event loop"


async def endless(writer: asyncio.StreamWriter, start: bytes, piece: bytes) -> None:
    writer.write(start)
    while True:
        writer.write(piece)
        await writer.drain()


CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 500),
        (b"", b"HTTP/1.1 100 Continue\r\nX-Long: " + b"x" * 9_000 + b"\r\n\r\n"),
        (CHUNKED, (b"1;" + b"x" * 9_000 + b"\r\ny\r\n") * 3),
    ],
    ids=["hints", "long hints", "chunks with extensions"],
)
async def test_what_is_sent_around_a_page_without_end_is_cut(world: Any, start: bytes, piece: bytes) -> None:
    async def sends(request: Any, writer: asyncio.StreamWriter) -> None:
        await endless(writer, start, piece)

    world.site.routes["/page"] = sends
    with pytest.raises(LimitExceeded, match=r"sent more than [\d,]+ bytes in one answer"):
        await world.reader(robots=False, seconds=60.0, max_bytes=1_000).read(PAGE)


async def test_a_page_that_comes_after_a_few_hints_is_read(world: Any, answer: Any) -> None:
    world.site.routes["/page"] = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n" * 20 + answer("A page.")
    assert (await world.reader().read(PAGE)).text == "A page."


async def test_pages_over_one_connection_are_bounded_each_for_itself(world: Any) -> None:
    connections = 0

    async def keeps_alive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                body = b"A page. " * 100_000
                head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
                writer.write(head.encode() + body)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            writer.close()

    server = await asyncio.start_server(keeps_alive, "127.0.0.1", 0)
    world.network.port = server.sockets[0].getsockname()[1]
    reader = world.reader(robots=False, max_bytes=800_000)
    for _ in range(4):
        assert len((await reader.read(PAGE)).text) == 799_999
    assert connections == 1
    await reader.aclose()
    server.close()


async def test_a_tls_handshake_that_is_never_answered_ends_with_the_time(world: Any) -> None:
    from portico.errors import ServiceTimeout

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.read(1_000):
                pass
        finally:
            writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    world.network.port = server.sockets[0].getsockname()[1]
    with pytest.raises(ServiceTimeout, match=r"0\.4 seconds"):
        await world.reader(seconds=0.4).read("https://site.example/page")
    server.close()
