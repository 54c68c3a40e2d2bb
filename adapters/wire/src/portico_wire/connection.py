"""One service's client of a vendor's SDK: made when first needed, bounded in time and bytes, closed by its owner."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeAlias, cast

import httpx2

from portico.errors import ServiceUnavailable
from portico.plugins import Secret
from portico_wire.errors import Peer, invalid, retry_after, timeout_error, translate_error
from portico_wire.settings import ConnectionSettings

deadline: ContextVar[float] = ContextVar("deadline")
"""The time of the event loop at which the present call ends."""

_ERROR_BYTES = 64 * 1024
_DRAINING = 0.05
"""Seconds to wait for the end of a stream after its last event."""


class _Beginning(httpx2.AsyncByteStream):
    """The first bytes of an error's body: the SDK would read all of it, however long."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = _ERROR_BYTES
        async for piece in self._stream:
            yield piece[:left]
            left -= len(piece)
            if left <= 0:
                return

    async def aclose(self) -> None:
        await self._stream.aclose()


async def look_at(response: httpx2.Response) -> None:
    """Bound the body of an error, and tell the SDK not to wait beyond the call's own end."""
    if response.status_code < 300 or not isinstance(response.stream, httpx2.AsyncByteStream):
        return
    response.stream = _Beginning(response.stream)
    wait = retry_after(response.headers)
    if wait is not None and asyncio.get_running_loop().time() + wait > deadline.get():
        response.headers["x-should-retry"] = "false"


_Life: TypeAlias = AsyncGenerator[Any, None]


class ClientPerLoop:
    """Makes a client for each event loop, and closes it when that loop ends.

    The connections of a client belong to one loop. Scripts may use a service from one ``asyncio.run`` after another, or
    from threads with a loop each.
    """

    def __init__(self, make: Callable[[], Any], *, own: bool, refusal: str) -> None:
        self._make = make
        self._own = own
        self._refusal = refusal
        self._clients: dict[asyncio.AbstractEventLoop, tuple[Any, _Life]] = {}
        self.closed = False

    async def here(self) -> Any:
        """Return the running loop's client; raises ``RuntimeError`` after closing."""
        if self.closed:
            raise RuntimeError(self._refusal)
        loop = asyncio.get_running_loop()
        known = self._clients.get(loop)
        if known is None:
            for other in list(self._clients):
                if other.is_closed():
                    self._clients.pop(other, None)
            # A loop closes its asynchronous generators when it ends: the last moment to close the client. The first
            # step of this generator does not let another task run.
            life = _life_of(self._make(), own=self._own)
            known = self._clients[loop] = (await anext(life), life)
        return known[0]

    async def aclose(self) -> None:
        """Close all clients, those of other loops when these run again. A second time does nothing."""
        self.closed = True
        clients, self._clients = self._clients, {}
        here = clients.pop(asyncio.get_running_loop(), None)
        # A loop closes a generator that is no longer referenced.
        clients.clear()
        if here is not None:
            await here[1].aclose()


async def _life_of(sdk: Any, *, own: bool) -> _Life:
    # It refers to nothing else: a circle of references would be collected before the client is closed.
    try:
        yield sdk
    finally:
        if own:
            await sdk.close()


class Connection(ABC):
    """Sends requests to one service by its vendor's SDK, with the SDK's retries and authentication, on aiohttp.

    Each event loop has its own client, which belongs to this service: an unclosed client of an SDK that is
    garbage-collected makes later requests hang. An injected HTTP client is used as it is and not closed.
    """

    def __init__(
        self, settings: ConnectionSettings, peer: Peer, make: Callable[[], Any], http_client: httpx2.AsyncClient | None
    ) -> None:
        """Take what makes the SDK's client for one event loop: it has ``close``, and ``make`` does not refer to this.

        A circle of references would be collected before the client is closed.
        """
        if http_client is not None and not isinstance(http_client, httpx2.AsyncClient):
            raise TypeError(f"http_client is an httpx2.AsyncClient, not {type(http_client).__name__}")
        self.settings = settings
        self.peer = peer
        # A client that is closed during a call raises the last one.
        self._errors: tuple[type[BaseException], ...] = (*peer.errors, RuntimeError)
        refusal = f"{peer.kind} {peer.service!r} was closed: make a new one"
        self._clients = ClientPerLoop(make, own=http_client is None, refusal=refusal)

    @abstractmethod
    async def send(self, sdk: Any, path: str, body: bytes, headers: dict[str, str]) -> httpx2.Response:
        """Post ``body`` by the SDK's client and return the response unread."""

    async def fetch(self, path: str, body: bytes) -> bytes:
        """Post ``body`` and return the whole reply.

        Raises a ``ServiceError`` for every failure, and for a reply that is longer or takes longer than the bounds.
        """
        async with self.open(path, body, "application/json", "gzip, deflate") as incoming:
            return await incoming.rest()

    @asynccontextmanager
    async def open(
        self, path: str, body: bytes, accept: str = "text/event-stream", encoding: str = "identity"
    ) -> AsyncIterator[Incoming]:
        """Post ``body`` and give the reply, to read piece by piece. Leaving closes the connection at once."""
        loop = asyncio.get_running_loop()
        timeout = self.settings.timeout
        ends = loop.time() + timeout
        deadline.set(ends)
        sdk = await self._clients.here()
        with self.failures(timeout, "timeout"):
            async with asyncio.timeout_at(ends):
                response = await self.send(sdk, path, body, {"Accept": accept, "Accept-Encoding": encoding})
        incoming = Incoming(self, response, ends - loop.time())
        try:
            yield incoming
        finally:
            await incoming.aclose()

    @contextmanager
    def failures(self, seconds: float, setting: str, incoming: Incoming | None = None) -> Iterator[None]:
        """Raise core's error for one of the SDK or its transport."""
        try:
            yield
        except self._errors as error:
            received = 0 if incoming is None else incoming.received
            if isinstance(error, TimeoutError):
                raise timeout_error(self.peer, seconds, setting, received=received) from error
            if self._clients.closed:
                raise ServiceUnavailable(self.peer.says("was closed while this call was under way.")) from error
            if isinstance(error, RuntimeError):
                raise
            raise translate_error(self.peer, error, received=received) from error

    async def aclose(self) -> None:
        """Close the client; calls under way fail, later ones are refused. A second time does nothing."""
        await self._clients.aclose()


class Incoming:
    """A reply that is being read: its content type, and its bytes piece by piece, bounded."""

    def __init__(self, connection: Connection, response: httpx2.Response, seconds: float) -> None:
        self._connection = connection
        self._response = response
        self._pieces = aiter(_pieces_of(response))
        self._left = seconds
        self.content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        self.received = 0
        self.beginning = b""
        """The first piece, for messages about a reply that is not a stream of events."""

    async def read(self, silence: float | None = None) -> bytes:
        """Return the next piece, ``b""`` at the end.

        ``silence`` bounds the wait in seconds after the first piece. Only waiting counts, not the time between reads.
        Raises a ``ServiceError``.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()
        gap = self._left if silence is None or not self.received else min(self._left, silence)
        whole = gap == self._left
        limit, setting = (self._connection.settings.timeout, "timeout") if whole else (gap, "stream_timeout")
        with self._connection.failures(limit, setting, self):
            async with asyncio.timeout(gap):
                piece: bytes | None = b""
                while piece == b"":
                    piece = await anext(self._pieces, None)
        if piece is None:
            return b""
        self._left -= loop.time() - started
        self.beginning = self.beginning or piece
        self._count(piece)
        return piece

    async def rest(self) -> bytes:
        """Return the rest of the reply, under one time limit."""
        pieces = []
        with self._connection.failures(self._connection.settings.timeout, "timeout", self):
            async with asyncio.timeout(self._left):
                async for piece in self._pieces:
                    self._count(piece)
                    pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _count(self, piece: bytes) -> None:
        self.received += len(piece)
        most = self._connection.settings.max_reply_bytes
        if self.received > most:
            limit = f"{most:,} bytes (max_reply_bytes)"
            raise invalid(self._connection.peer, f"sent more than {limit}; the rest was not read.")

    async def drain(self) -> None:
        """Read the end of a complete stream, so that its connection can be used again."""
        with suppress(TimeoutError, RuntimeError, *self._connection.peer.errors):
            async with asyncio.timeout(_DRAINING):
                await anext(self._pieces, None)

    async def aclose(self) -> None:
        """Close the connection, unless the reply was read to its end."""
        with suppress(*self._connection.peer.errors):
            if isinstance(self._pieces, AsyncGenerator):
                await self._pieces.aclose()
            await self._response.aclose()


def _pieces_of(response: httpx2.Response) -> AsyncIterable[bytes]:
    """Return the body's bytes, decompressed. The HTTP client's own iterator is slow, so it is used only if needed."""
    if response.headers.get("content-encoding", "identity") != "identity":
        return response.aiter_bytes()
    return cast("httpx2.AsyncByteStream", response.stream)


def headers_of(settings: ConnectionSettings) -> dict[str, str]:
    """Return the further headers of every request, secret ones among them."""
    return {**settings.headers, **{name: secret.reveal() for name, secret in settings.secret_headers.items()}}


def secrets_of(settings: ConnectionSettings) -> Iterator[Secret | None]:
    """Yield the key, the secret headers, and the headers and parameters that have a secret's name."""
    yield from (settings.api_key, *settings.secret_headers.values())
    for name, value in (*settings.headers.items(), *settings.query.items()):
        if value and any(sign in name.lower() for sign in ("auth", "key", "token", "secret", "cookie")):
            yield Secret(value)
