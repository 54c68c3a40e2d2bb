"""A server on this machine that says whatever bytes it is told to, and a network in which it has public addresses."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import httpcore
import pytest
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from portico_web.pages.config import WebPagesSettings
from portico_web.pages.extraction import Extractors
from portico_web.pages.reader import WebPagesPageReader

PUBLIC = "93.184.215.14"
OPENS_WITH = Path(__file__).parent / "site.example.pem"

Route = bytes | Callable[["Request", asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Request:
    """What the server was asked."""

    path: str
    headers: dict[str, str]


def answer(
    body: bytes | str = b"", content_type: str | None = "text/plain", status: str = "200 OK", **headers: str
) -> bytes:
    """Write an HTTP response."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(data)}", "Connection: close"]
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + data


def moved(location: str, status: str = "302 Found") -> bytes:
    return answer(b"", None, status, Location=location)


@dataclass
class Site:
    """Routes by path, and the requests that came; what has no route is not there, robots.txt too."""

    routes: dict[str, Route] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    open_connections: int = 0
    most_connections: int = 0
    port: int = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open_connections += 1
        self.most_connections = max(self.most_connections, self.open_connections)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {
                name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])
            }
            request = Request(head[0].split()[1], headers)
            self.requests.append(request)
            route = self.routes.get(request.path, answer("There is nothing.", status="404 Not Found"))
            if isinstance(route, bytes):
                writer.write(route)
                await writer.drain()
            else:
                await route(request, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the reader has what it wants
        finally:
            self.open_connections -= 1
            writer.close()

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.requests if request.path != "/robots.txt"]

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"


class PretendedNetwork(httpcore.AsyncNetworkBackend):
    """Connects to the server of the test whatever the address, and remembers the address."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.connected: list[tuple[str, int]] = []
        self.dead: set[str] = set()
        self._real = httpcore.AnyIOBackend()

    async def connect_tcp(self, host: str, port: int, timeout: float | None = None, **options: Any) -> Any:
        self.connected.append((host, port))
        if host in self.dead:
            raise httpcore.ConnectError("nobody is there")
        return await self._real.connect_tcp("127.0.0.1", self.port, timeout=timeout)

    async def connect_unix_socket(self, path: str, timeout: float | None = None, **options: Any) -> Any:
        raise AssertionError("no page is behind a socket file")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Names:
    """Looks names up in a table: each name has answers, one for each time it is asked; the last one stays."""

    def __init__(self, **answers: list[list[str]]) -> None:
        self.answers = {"site.example": [[PUBLIC]], "other.example": [["93.184.215.15"]]}
        self.asked: list[str] = []

    def __setitem__(self, name: str, answers: list[list[str]]) -> None:
        self.answers[name] = answers

    async def __call__(self, host: str, port: int) -> Iterable[str]:
        self.asked.append(host)
        if host not in self.answers:
            raise OSError("name not known")
        times = self.asked.count(host)
        given = self.answers[host]
        return given[min(times, len(given)) - 1]


class WarmExtractors(Extractors):
    """Keeps its processes for the next test: starting one and importing its libraries takes half a second."""

    def __init__(self, kept: list[Any]) -> None:
        super().__init__()
        self._idle = kept

    async def aclose(self) -> None:
        pass


@pytest.fixture(scope="session")
def warm() -> Iterator[list[Any]]:
    """Processes for all tests."""
    kept: list[Any] = []
    yield kept
    for process in kept:
        process.close()


@dataclass
class World:
    """The server, the network and the names, and readers that live in them."""

    site: Site
    network: PretendedNetwork
    names: Names
    stack: AsyncExitStack
    warm: list[Any]

    def reader(self, *, context: ssl.SSLContext | None = None, **settings: Any) -> WebPagesPageReader:
        settings = {"seconds": 20.0, **settings}
        reader = WebPagesPageReader(
            WebPagesSettings(**settings), None, resolve=self.names, network=self.network, context=context
        )
        reader._extractors = WarmExtractors(self.warm)
        self.stack.push_async_callback(reader.aclose)
        return reader

    def serve(self, path: str, body: bytes | str = b"", content_type: str | None = "text/plain", **options: str) -> str:
        """Put a page up and return its link."""
        self.site.routes[path] = answer(body, content_type, **options)
        return f"http://site.example{path}"


def pdf(texts: list[str], *, title: str | None = None, password: str | None = None, user: str | None = None) -> bytes:
    """Return a document with a line of text on each page."""
    writer = PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    fonts = DictionaryObject({NameObject("/F1"): writer._add_object(font)})
    for text in texts:
        page = writer.add_blank_page(612, 792)
        content = DecodedStreamObject()
        content.set_data(f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET".encode())
        page[NameObject("/Contents")] = writer._add_object(content)
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    if title is not None:
        writer.add_metadata({"/Title": title})
    if password is not None or user is not None:
        writer.encrypt(user or "", password, algorithm="RC4-128")
    data = BytesIO()
    writer.write(data)
    return data.getvalue()


@pytest.fixture(name="pdf")
def pdf_fixture() -> Callable[..., bytes]:
    return pdf


@pytest.fixture(name="answer")
def answer_fixture() -> Callable[..., bytes]:
    return answer


@pytest.fixture(name="moved")
def moved_fixture() -> Callable[..., bytes]:
    return moved


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    made = Site()
    server = await asyncio.start_server(made.handle, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()


@pytest.fixture
async def world(site: Site, warm: list[Any]) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        yield World(site, PretendedNetwork(site.port), Names(), stack, warm)


@pytest.fixture
async def secure_world(warm: list[Any]) -> AsyncIterator[World]:
    """The same over TLS, with a certificate for site.example."""
    made = Site()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(OPENS_WITH)
    names: list[str | None] = []
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    server = await asyncio.start_server(made.handle, "127.0.0.1", 0, ssl=context)
    made.port = server.sockets[0].getsockname()[1]
    async with AsyncExitStack() as stack:
        opened = World(made, PretendedNetwork(made.port), Names(), stack, warm)
        opened.network.server_names = names
        yield opened
    server.close()
