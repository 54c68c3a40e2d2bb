"""One service's client of OpenAI's SDK: made when first needed, bounded in time and bytes, closed by its owner."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Container,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, cast
from urllib.request import getproxies

import httpx2
import openai

from portico.errors import ServiceError, ServiceUnavailable
from portico_openai._errors import TRANSPORT_ERRORS, Peer, invalid, retry_after, timed_out, translated
from portico_openai.config import ConnectionSettings

deadline: ContextVar[float] = ContextVar("deadline")
"""The time of the event loop at which the present call ends."""

_ERROR_BYTES = 64 * 1024
_AT_ONCE = 1024 * 1024
"""Bytes of a body that is sent in one go; aiohttp warns of more."""
_PORTION = 256 * 1024


def sdk_client(
    settings: ConnectionSettings, bearer: str, headers: Mapping[str, str], http_client: httpx2.AsyncClient, *, own: bool
) -> openai.AsyncOpenAI:
    """Make a client of the SDK; an HTTP client that is not our ``own`` may have its part in each request."""
    return _Sdk(
        headers,
        copies=own,
        # Empty words instead of None: for None the SDK looks into the environment.
        api_key=bearer,
        admin_api_key="",
        organization="",
        project="",
        webhook_secret="",
        base_url=settings.base_url,
        max_retries=settings.max_retries,
        # Silence is bounded by the connection, according to what is being waited for.
        timeout=httpx2.Timeout(None, connect=settings.connect_timeout),
        default_query=settings.query,
        http_client=http_client,
    )


async def own_http_client(settings: ConnectionSettings) -> httpx2.AsyncClient:
    """Make an HTTP client on aiohttp; reading the certificates that are trusted, in a thread, takes a moment."""
    if settings.base_url.startswith("http:") and not getproxies():
        # One that trusts no one: no TLS is spoken with this address.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    else:
        context = await asyncio.to_thread(httpx2.create_ssl_context)
    return openai.DefaultAioHttpClient(verify=context, event_hooks={"response": [_look_at]})


def pieces_of(response: httpx2.Response) -> AsyncIterable[bytes]:
    """Return the body's bytes as they come, unpacked where they are packed.

    Of the HTTP client's own iterators, several stand one in another and cost as much as the reading.
    """
    if response.headers.get("content-encoding", "identity") != "identity":
        return response.aiter_bytes()
    return cast("httpx2.AsyncByteStream", response.stream)


class _Sdk(openai.AsyncOpenAI):
    """The SDK's client without what it reads from the environment and tells of this machine.

    With ``copies``, the SDK builds the first request of a kind, and those that it sends again; the others are copies of
    the first with another body. Building one costs the SDK a fifth of a call, and headers, key and address of a service
    do not change.
    """

    def __init__(self, own_headers: Mapping[str, str], *, copies: bool, **options: Any) -> None:
        self._own_headers: dict[str, str | openai.Omit] = {**own_headers}
        self._copies = copies
        self._models: dict[tuple[str, str], httpx2.Request] = {}
        super().__init__(**options)

    @property
    def default_headers(self) -> dict[str, str | openai.Omit]:
        return self._own_headers

    def _build_request(self, options: Any, **rest: Any) -> httpx2.Request:
        body = options.content
        if not self._copies or not isinstance(body, bytes):
            return super()._build_request(options, **rest)
        kind = (options.url, options.headers["Accept"])
        model = self._models.get(kind)
        if model is None or rest.get("retries_taken"):
            request = super()._build_request(options, **rest)
            if model is None:
                model = self._models[kind] = httpx2.Request(request.method, request.url, headers=request.headers)
                del model.headers["Content-Length"]
                model.extensions = request.extensions
            return request if len(body) <= _AT_ONCE else _in_portions(request, body)
        if len(body) > _AT_ONCE:
            return _in_portions(model, body)
        return httpx2.Request(model.method, model.url, headers=model.headers, content=body, extensions=model.extensions)


class _Portions(httpx2.AsyncByteStream):
    """A large body, such as one with images: sent at once it would hold up the event loop, and aiohttp warns of it."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        whole = memoryview(self._body)
        for start in range(0, len(whole), _PORTION):
            yield bytes(whole[start : start + _PORTION])


def _in_portions(request: httpx2.Request, body: bytes) -> httpx2.Request:
    headers = request.headers.copy()
    headers["Content-Length"] = str(len(body))
    return httpx2.Request(
        request.method, request.url, headers=headers, stream=_Portions(body), extensions=request.extensions
    )


class _Beginning(httpx2.AsyncByteStream):
    """The first bytes of an error's body: the SDK reads such a body whole, however long it is."""

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


async def _look_at(response: httpx2.Response) -> None:
    """Bound what an error says, and tell the SDK not to wait for a time after the call's own end."""
    if response.status_code < 300 or not isinstance(response.stream, httpx2.AsyncByteStream):
        return
    response.stream = _Beginning(response.stream)
    wait = retry_after(response.headers)
    if wait is not None and asyncio.get_running_loop().time() + wait > deadline.get():
        response.headers["x-should-retry"] = "false"


@dataclass(slots=True)
class _Place:
    """What a service has on one event loop."""

    making: asyncio.Lock = field(default_factory=asyncio.Lock)
    sdk: openai.AsyncOpenAI | None = None
    until_the_loop_ends: AsyncGenerator[None, None] | None = None


class ClientPerLoop:
    """Make a client when a loop first needs one, and close it when that loop ends, if no one closed it before.

    A client's connections belong to the loop on which they were made. A service that scripts use from one
    ``asyncio.run`` after another, or from threads that each have a loop, needs one client for each.
    """

    def __init__(self, make: Callable[[], Awaitable[openai.AsyncOpenAI]], *, own: bool, refusal: str) -> None:
        self._make = make
        self._own = own
        self._refusal = refusal
        self._places: dict[asyncio.AbstractEventLoop, _Place] = {}
        self.closed = False

    def __len__(self) -> int:
        return sum(place.sdk is not None for place in self._places.values())

    async def here(self) -> openai.AsyncOpenAI:
        """Return the running loop's client; raises ``RuntimeError`` after closing."""
        loop = asyncio.get_running_loop()
        place = self._places.get(loop)
        if place is None:
            self._refuse_if_closed()
            for other in list(self._places):
                if other.is_closed():
                    self._places.pop(other, None)
            place = self._places[loop] = _Place()
        if place.sdk is not None and not (self._own and place.sdk.is_closed()):
            return place.sdk
        async with place.making:
            self._refuse_if_closed()
            if place.sdk is None or (self._own and place.sdk.is_closed()):
                sdk = await self._make()
                if self._own:
                    # When a loop ends it closes its asynchronous generators: the one moment at which a client
                    # that no one closed can be closed properly.
                    place.until_the_loop_ends = _closing(sdk)
                    await anext(place.until_the_loop_ends)
                    if self.closed:
                        await place.until_the_loop_ends.aclose()
                self._refuse_if_closed()
                place.sdk = sdk
            return place.sdk

    async def aclose(self) -> None:
        """Close all clients, those of other loops as soon as these come to it. A second time does nothing."""
        self.closed = True
        places, self._places = self._places, {}
        place = places.pop(asyncio.get_running_loop(), None)
        # Whoever lets go of a generator that has begun has its own loop close it.
        places.clear()
        if place is not None and place.until_the_loop_ends is not None:
            await place.until_the_loop_ends.aclose()

    def _refuse_if_closed(self) -> None:
        if self.closed:
            raise RuntimeError(self._refusal)


async def _closing(sdk: openai.AsyncOpenAI) -> AsyncGenerator[None, None]:
    # It knows nothing else: in a circle of references, a service that was forgotten would be taken apart before this
    # comes to close its client.
    try:
        yield
    finally:
        await sdk.close()


_DRAINING = 0.05
"""Seconds that a server has to end a reply after it said that it is complete."""


_FAILURES = (*TRANSPORT_ERRORS, RuntimeError)
"""``RuntimeError`` is what a client says that was closed while it was used."""


class Connection:
    """Send requests to one service with the SDK's retries and authentication, on aiohttp.

    Each event loop has its own client. An unclosed client of the SDK that is garbage-collected makes later
    requests hang, which is why each service owns its clients. An injected HTTP client is used as it is and not closed.
    """

    def __init__(self, settings: ConnectionSettings, kind: str, http_client: httpx2.AsyncClient | None = None) -> None:
        if http_client is not None and not isinstance(http_client, httpx2.AsyncClient):
            raise TypeError(f"http_client is an httpx2.AsyncClient, not {type(http_client).__name__}")
        key = settings.api_key.reveal() if settings.api_key else ""
        headers = {**settings.headers, **{name: secret.reveal() for name, secret in settings.secret_headers.items()}}
        secrets = [key, *_secret_values(headers, settings.secret_headers)]
        self.peer = Peer(kind, settings.model, settings.base_url, settings.host, bool(key), _pattern(secrets))
        self.settings = settings
        by_header = settings.api_key_header.lower() != "authorization"
        own_scheme = any(name.lower() == "authorization" for name in headers)
        bearer = "" if by_header else key
        # The SDK insists on this header until it is told that there is none.
        self._headers = {} if bearer or own_scheme else {"Authorization": openai.Omit()}
        default_headers = {
            "Content-Type": "application/json",
            "User-Agent": f"portico-openai/{version('portico-openai')} openai/{openai.__version__}",
            **({"OpenAI-Organization": settings.organization} if settings.organization else {}),
            **({"OpenAI-Project": settings.project} if settings.project else {}),
            **({settings.api_key_header: key} if by_header and key else {}),
            **headers,
        }
        own = http_client is None

        async def make() -> openai.AsyncOpenAI:
            client = http_client or await own_http_client(settings)
            return sdk_client(settings, bearer, default_headers, client, own=own)

        self._clients = ClientPerLoop(make, own=own, refusal=f"{kind} 'openai' was closed: make a new one")

    async def fetch(self, path: str, body: bytes) -> bytes:
        """Post ``body`` and return the whole reply.

        Raises a ``ServiceError`` for every failure, and for a reply that is longer or takes longer than the bounds.
        """
        timeout = self.settings.timeout
        pieces: list[bytes] = []
        sdk = await self._clients.here()
        try:
            async with asyncio.timeout(timeout):
                try:
                    await self._read_whole(sdk, path, body, pieces)
                except httpx2.NetworkError:
                    # The SDK tries again until an answer begins. One that breaks off has reached no one yet.
                    if not self.settings.max_retries:
                        raise
                    pieces.clear()
                    await self._read_whole(sdk, path, body, pieces)
        except TimeoutError as error:
            raise timed_out(self.peer, timeout, "timeout", received=sum(map(len, pieces))) from error
        except _FAILURES as error:
            raise self.mapped(error, sum(map(len, pieces))) from self.shown(error)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _read_whole(self, sdk: openai.AsyncOpenAI, path: str, body: bytes, pieces: list[bytes]) -> None:
        response = await self._post(sdk, path, body, "application/json", "gzip, deflate")
        received = 0
        try:
            async for piece in pieces_of(response):
                received += len(piece)
                self.check_size(received)
                pieces.append(piece)
        finally:
            with suppress(*TRANSPORT_ERRORS):
                await response.aclose()

    @asynccontextmanager
    async def stream(self, path: str, body: bytes) -> AsyncIterator[Incoming]:
        """Post ``body`` and give the reply to be read piece by piece; leaving closes the connection at once."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        timeout = self.settings.timeout
        sdk = await self._clients.here()
        try:
            async with asyncio.timeout(timeout):
                response = await self._post(sdk, path, body, "text/event-stream", "identity")
        except TimeoutError as error:
            raise timed_out(self.peer, timeout, "timeout") from error
        except _FAILURES as error:
            raise self.mapped(error) from self.shown(error)
        incoming = Incoming(self, response, timeout - (loop.time() - started))
        try:
            yield incoming
        finally:
            await incoming.aclose()

    def check_size(self, received: int) -> None:
        """Raise ``ResponseInvalid`` for more bytes than allowed."""
        limit = self.settings.max_reply_bytes
        if received > limit:
            raise invalid(self.peer, f"sent more than {limit:,} bytes (max_reply_bytes); the rest was not read.")

    def mapped(self, error: BaseException, received: int = 0) -> ServiceError:
        """Return core's error for one of the SDK's or its transport's; what is a mistake of ours is raised as it is."""
        if self._clients.closed:
            return ServiceUnavailable(self.peer.says("was closed while this call was under way."))
        if isinstance(error, RuntimeError):
            raise error
        return translated(self.peer, error, received=received)

    def shown(self, error: BaseException) -> BaseException | None:
        """Return ``error`` as a cause to keep, unless a service quoted a secret in it."""
        return error if self.peer.scrubbed(str(error)) == str(error) else None

    async def aclose(self) -> None:
        """Close the client; calls under way fail, later ones are refused. A second time does nothing."""
        await self._clients.aclose()

    async def _post(
        self, sdk: openai.AsyncOpenAI, path: str, body: bytes, accept: str, encoding: str
    ) -> httpx2.Response:
        deadline.set(asyncio.get_running_loop().time() + self.settings.timeout)
        # Asked to stream into a response of the HTTP client, the SDK hands over that response without reading it;
        # its own hints do not say so.
        response: Any = await sdk.post(
            self.settings.base_url.rstrip("/") + path,
            cast_to=httpx2.Response,
            content=body,
            options={
                "headers": {"Accept": accept, "Accept-Encoding": encoding, **self._headers},
                "follow_redirects": False,
            },
            stream=True,
            stream_cls=openai.AsyncStream[Any],
        )
        return cast("httpx2.Response", response)


class Incoming:
    """A reply that is being read: its content type, and its bytes piece by piece, bounded."""

    def __init__(self, connection: Connection, response: httpx2.Response, seconds: float) -> None:
        self._connection = connection
        self._response = response
        self._pieces = aiter(pieces_of(response))
        self._left = seconds
        self.peer = connection.peer
        self.content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        self.received = 0
        self.beginning = b""
        """The first piece, for messages on what is no stream of events."""

    async def read(self, silence: float | None = None) -> bytes:
        """Return the next piece, ``b""`` at the end.

        ``silence`` bounds the wait in seconds once something has come. Only waiting counts, not what the reader
        does in between. Raises a ``ServiceError``.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()
        gap = self._left if silence is None or not self.received else min(self._left, silence)
        try:
            async with asyncio.timeout(gap):
                piece: bytes | None = b""
                while piece == b"":
                    piece = await anext(self._pieces, None)
        except TimeoutError as error:
            setting = "timeout" if gap == self._left else "stream_timeout"
            seconds = self._connection.settings.timeout if gap == self._left else gap
            raise timed_out(self._connection.peer, seconds, setting, received=self.received) from error
        except _FAILURES as error:
            raise self._connection.mapped(error, self.received) from self._connection.shown(error)
        if piece is None:
            return b""
        self._left -= loop.time() - started
        self.beginning = self.beginning or piece
        self.received += len(piece)
        self._connection.check_size(self.received)
        return piece

    async def rest(self) -> bytes:
        """Return everything that is still to come."""
        pieces = []
        while piece := await self.read():
            pieces.append(piece)
        return b"".join(pieces)

    async def drain(self) -> None:
        """Take the end of a reply that is complete, so that its connection can be used again."""
        with suppress(TimeoutError, *_FAILURES):
            async with asyncio.timeout(_DRAINING):
                await anext(self._pieces, None)

    async def aclose(self) -> None:
        """Close the connection, unless the reply was read to its end."""
        with suppress(*TRANSPORT_ERRORS):
            if isinstance(self._pieces, AsyncGenerator):
                await self._pieces.aclose()
            await self._response.aclose()


def _secret_values(headers: Mapping[str, str], secret: Container[str]) -> Iterator[str]:
    """Yield what may not show of headers: the ``secret`` ones, and those that are named as if they were."""
    for name, value in headers.items():
        if name in secret or any(sign in name.lower() for sign in ("auth", "key", "token", "secret", "cookie")):
            yield value
            yield value.rpartition(" ")[2]


def _pattern(secrets: Iterable[str]) -> re.Pattern[str] | None:
    longest_first = sorted({secret for secret in secrets if secret.strip()}, key=len, reverse=True)
    # Whole words: a local server's key may be no more than "x".
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)") if longest_first else None
