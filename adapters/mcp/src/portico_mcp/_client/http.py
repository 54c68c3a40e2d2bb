"""The HTTP client for a server that is reached by a URL: with its headers, and bounded in every answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import httpx2
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR

from portico_mcp._client.words import LOST
from portico_mcp.config import MCPSettings

_LATER = 30.0
"""Seconds that the client waits longer than a call does, whose end is said better."""


def open_client(settings: MCPSettings) -> httpx2.AsyncClient:
    """Return a client with the headers of the settings. It is closed on leaving its context.

    An answer may have `maximum_result_bytes`. None may be packed, since it would be unpacked before it is counted.
    """

    async def bound(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.DecodingError("the server packs its answer although it was asked not to")
        # A stream of events has a bound for each event.
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _Bounded(response.stream, settings.maximum_result_bytes)

    headers = {name: secret.reveal() for name, secret in settings.headers.items()}
    return _Client(
        headers={**headers, "Accept-Encoding": "identity"},
        timeout=httpx2.Timeout(30.0, read=settings.timeout + _LATER),
        event_hooks={"response": [bound]},
    )


class _Client(httpx2.AsyncClient):
    """Makes an answer of what goes wrong with one request: raised, it would end all that are under way."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            response = await super().send(request, **options)
            if isinstance(response.stream, _Bounded):
                await response.aread()
        except (httpx2.RequestError, httpx2.StreamError) as error:
            if request.method != "POST":
                raise
            return _failure(request, CONNECTION_CLOSED, str(error) or type(error).__name__)
        if request.method == "POST" and await _forgot_session(response):
            await response.aclose()
            return _failure(request, CONNECTION_CLOSED, "the server has ended the session")
        status = response.status_code
        # The SDK knows what 404 means, and reads errors of the protocol.
        json = response.headers.get("content-type", "").startswith("application/json")
        if request.method != "POST" or status < 400 or status == 404 or (json and status not in (401, 403)):
            return response
        await response.aclose()
        return _failure(request, INTERNAL_ERROR, f"the server answers {status}")


async def _forgot_session(response: httpx2.Response) -> bool:
    """Tell whether a server does not know the session any more: 404, and 400 of some that say so in words."""
    if "mcp-session-id" not in response.request.headers or response.status_code not in (400, 404):
        return False
    if response.status_code == 400:
        with suppress(httpx2.StreamError):
            return b"session" in (await response.aread()).lower()
    return response.status_code == 404


def _failure(request: httpx2.Request, code: int, message: str) -> httpx2.Response:
    error = {"code": code, "message": message, "data": LOST}
    return httpx2.Response(502, json={"jsonrpc": "2.0", "id": None, "error": error}, request=request)


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: object, most: int) -> None:
        assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - the client is asynchronous
        self._stream, self._left, self._most = stream, most, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            self._left -= len(part)
            if self._left < 0:
                raise httpx2.StreamError(f"the server sent a message of more than {self._most:,} bytes")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()
