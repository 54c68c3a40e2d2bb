"""OpenAI's SDK on aiohttp, without what it reads from the environment, and with shorter ways where they are public."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextvars import ContextVar
from typing import Any, cast
from urllib.request import getproxies

import httpx2
import openai

from portico_openai._errors import retry_after
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
        # One that trusts nobody: no TLS is spoken with this address.
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
