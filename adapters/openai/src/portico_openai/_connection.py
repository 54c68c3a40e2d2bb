"""One service's client of OpenAI's SDK: made when first needed, bounded in time and bytes, closed by its owner."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Container, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import Any, cast

import httpx2
import openai

from portico.errors import ServiceError, ServiceUnavailable
from portico_openai._client import deadline, own_http_client, pieces_of, sdk_client
from portico_openai._errors import TRANSPORT_ERRORS, Peer, invalid, timed_out, translated
from portico_openai._loops import ClientPerLoop
from portico_openai.config import ConnectionSettings

_DRAINING = 0.05
"""Seconds that a server has to end a reply after it said that it is complete."""


_FAILURES = (*TRANSPORT_ERRORS, RuntimeError)
"""``RuntimeError`` is what a client says that was closed while it was used."""


class Connection:
    """Send requests to one service with the SDK's retries and authentication, on aiohttp.

    Each event loop has a client of its own. An unclosed client of the SDK that is garbage-collected makes later
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
                    # The SDK tries again until an answer begins. One that breaks off has reached nobody yet.
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
