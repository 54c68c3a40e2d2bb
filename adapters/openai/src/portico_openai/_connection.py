"""One service's client of OpenAI's SDK: made when first needed, bounded in time and bytes, closed by its owner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from importlib.metadata import version
from types import TracebackType
from typing import TYPE_CHECKING, Any

import httpx2
import openai

from portico.errors import ServiceError
from portico_openai._errors import TRANSPORT_ERRORS, Peer, invalid, retry_after, timed_out, translated
from portico_openai.config import ConnectionSettings

if TYPE_CHECKING:
    from httpx2 import AsyncClient as _AiohttpClient
else:
    from openai import DefaultAioHttpClient as _AiohttpClient

_ERROR_BYTES = 64 * 1024
_deadline: ContextVar[float] = ContextVar("_deadline")


class Connection:
    """Send requests to one service with the SDK's retries and authentication, on aiohttp.

    The client belongs to the event loop on which it was made: it is closed when that loop ends, if nobody closed
    it before, and another loop gets one of its own. An unclosed client of the SDK that is garbage-collected makes
    later requests hang, which is why each service owns one. An injected HTTP client is used as it is and not closed.
    """

    def __init__(self, settings: ConnectionSettings, kind: str, http_client: httpx2.AsyncClient | None = None) -> None:
        key = settings.api_key.reveal() if settings.api_key else ""
        self.peer = Peer(
            kind, settings.model, settings.base_url, settings.host, bool(key), tuple(_secrets(key, settings.headers))
        )
        self.settings = settings
        self._key = key
        self._injected = http_client
        self._sdk: openai.AsyncOpenAI | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._until_the_loop_ends: AsyncGenerator[None, None] | None = None
        self._closed = False
        by_header = settings.api_key_header.lower() != "authorization"
        own_scheme = any(name.lower() == "authorization" for name in settings.headers)
        unauthorized = {"Authorization": openai.Omit()} if by_header or not key else {}
        self._headers: dict[str, str | openai.Omit] = {} if own_scheme else {**unauthorized}
        self._default_headers = {
            "Content-Type": "application/json",
            "User-Agent": f"portico-openai/{version('portico-openai')} openai/{openai.__version__}",
            **({"OpenAI-Organization": settings.organization} if settings.organization else {}),
            **({"OpenAI-Project": settings.project} if settings.project else {}),
            **({settings.api_key_header: key} if by_header and key else {}),
            **settings.headers,
        }

    async def fetch(self, path: str, body: bytes) -> bytes:
        """Post ``body`` and return the whole reply.

        Raises a ``ServiceError`` for every failure, and for a reply that is longer or takes longer than the bounds.
        """
        timeout = self.settings.timeout
        received = 0
        pieces = []
        try:
            async with asyncio.timeout(timeout):
                response = await self._post(path, body, "application/json", "gzip, deflate")
                try:
                    async for piece in response.aiter_bytes():
                        received += len(piece)
                        self.check_size(received)
                        pieces.append(piece)
                finally:
                    await response.aclose()
        except TimeoutError as error:
            raise timed_out(self.peer, timeout, "timeout", received=received) from error
        except TRANSPORT_ERRORS as error:
            raise self.mapped(error, received) from self.shown(error)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    @asynccontextmanager
    async def stream(self, path: str, body: bytes) -> AsyncIterator[Incoming]:
        """Post ``body`` and give the reply to be read piece by piece; leaving closes the connection at once."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        timeout = self.settings.timeout
        try:
            async with asyncio.timeout(timeout):
                response = await self._post(path, body, "text/event-stream", "identity")
        except TimeoutError as error:
            raise timed_out(self.peer, timeout, "timeout") from error
        except TRANSPORT_ERRORS as error:
            raise self.mapped(error) from self.shown(error)
        try:
            yield Incoming(self, response, timeout - (loop.time() - started))
        finally:
            await response.aclose()

    def check_size(self, received: int) -> None:
        """Raise ``ResponseInvalid`` for more bytes than allowed."""
        limit = self.settings.max_reply_bytes
        if received > limit:
            raise invalid(self.peer, f"sent more than {limit:,} bytes (max_reply_bytes); the rest was not read.")

    def mapped(self, error: BaseException, received: int = 0) -> ServiceError:
        """Return core's error for one of the SDK's or its transport's."""
        return translated(self.peer, error, received=received)

    def shown(self, error: BaseException) -> BaseException | None:
        """Return ``error`` as a cause to keep, unless a service quoted a secret in it."""
        return error if self.peer.scrubbed(str(error)) == str(error) else None

    async def aclose(self) -> None:
        """Close the client; calls under way fail, later ones are refused. A second time does nothing."""
        self._closed = True
        await self._discard()

    async def _discard(self) -> None:
        guard, self._until_the_loop_ends, self._sdk = self._until_the_loop_ends, None, None
        if guard is not None and self._loop is asyncio.get_running_loop():
            await guard.aclose()

    async def _post(self, path: str, body: bytes, accept: str, encoding: str) -> httpx2.Response:
        sdk = self._sdk
        if sdk is None or self._loop is not asyncio.get_running_loop():
            sdk = await self._made()
        _deadline.set(asyncio.get_running_loop().time() + self.settings.timeout)
        # Asked to stream into a response of the HTTP client, the SDK hands over what came without reading it.
        return await sdk.post(
            self.settings.base_url.rstrip("/") + path,
            cast_to=httpx2.Response,  # type: ignore[type-var]
            content=body,
            options={
                "headers": {"Accept": accept, "Accept-Encoding": encoding, **self._headers},
                "follow_redirects": False,
            },
            stream=True,
            stream_cls=openai.AsyncStream[Any],
        )

    async def _made(self) -> openai.AsyncOpenAI:
        if self._closed:
            raise RuntimeError(f"{self.peer.kind} 'openai' was closed: make a new one")
        self._loop = asyncio.get_running_loop()
        settings = self.settings
        sdk = self._sdk = _Sdk(
            self._default_headers,
            # Empty words instead of None: for None the SDK looks into the environment.
            api_key=self._key,
            admin_api_key="",
            organization="",
            project="",
            webhook_secret="",
            base_url=settings.base_url,
            max_retries=settings.max_retries,
            # Silence is bounded here, by what is being waited for.
            timeout=httpx2.Timeout(None, connect=settings.connect_timeout),
            default_query=settings.query,
            http_client=self._injected or _HttpClient(event_hooks={"response": [_look_at]}),
        )
        if self._injected is None:
            # When a loop ends it closes its asynchronous generators: the one moment at which a client that
            # nobody closed can be closed properly.
            self._until_the_loop_ends = _closing(sdk)
            await anext(self._until_the_loop_ends)
        return sdk


class Incoming:
    """A reply that is being read: its content type, and its bytes piece by piece, bounded."""

    def __init__(self, connection: Connection, response: httpx2.Response, seconds: float) -> None:
        self._connection = connection
        self._pieces = response.aiter_bytes()
        self._left = seconds
        self.content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        self.received = 0

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
                piece = await anext(self._pieces, b"")
        except TimeoutError as error:
            setting = "timeout" if gap == self._left else "stream_timeout"
            seconds = self._connection.settings.timeout if gap == self._left else gap
            raise timed_out(self._connection.peer, seconds, setting, received=self.received) from error
        except TRANSPORT_ERRORS as error:
            raise self._connection.mapped(error, self.received) from self._connection.shown(error)
        self._left -= loop.time() - started
        self.received += len(piece)
        self._connection.check_size(self.received)
        return piece


class _Sdk(openai.AsyncOpenAI):
    """The SDK's client without what it reads from the environment and tells of this machine."""

    def __init__(self, own_headers: Mapping[str, str], **options: Any) -> None:
        self._own_headers = dict(own_headers)
        super().__init__(**options)

    @property
    def default_headers(self) -> dict[str, str | openai.Omit]:
        return {**self.auth_headers, **self._own_headers}


class _HttpClient(_AiohttpClient):
    """The SDK's client on aiohttp, with a shorter way to a request.

    Nothing is merged into it here: no cookies, no base address, no headers but the SDK's. That saves an eighth of
    the time of a call.
    """

    def build_request(self, method: str, url: Any, **parts: Any) -> httpx2.Request:
        timeout = parts.get("timeout")
        if parts.get("params") or parts.get("files") or not isinstance(timeout, httpx2.Timeout):
            return super().build_request(method, url, **parts)
        return httpx2.Request(
            method,
            self._parsed(url),
            headers=parts.get("headers"),
            content=parts.get("content"),
            extensions={"timeout": timeout.as_dict()},
        )

    def _parsed(self, url: Any) -> httpx2.URL:
        # A service has one address for each thing it does.
        known: dict[str, httpx2.URL] = self.__dict__.setdefault("_known_addresses", {})
        return known.get(url) or known.setdefault(str(url), httpx2.URL(url))


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
    if wait is not None and asyncio.get_running_loop().time() + wait > _deadline.get():
        response.headers["x-should-retry"] = "false"


async def _closing(sdk: openai.AsyncOpenAI) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await sdk.close()


def _secrets(key: str, headers: Mapping[str, str]) -> list[str]:
    named = [
        value
        for name, value in headers.items()
        if any(word in name.lower() for word in ("authorization", "key", "token", "secret", "cookie"))
    ]
    return [secret for secret in (key, *named) if secret.strip()]
