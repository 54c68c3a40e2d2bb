"""Requests to addresses that a vendor's SDK builds: posted with aiohttp, and tried again as the settings say."""

from __future__ import annotations

import asyncio
import random
from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
from yarl import URL

from portico_wire.connection import Connection, deadline, look_at
from portico_wire.errors import TRANSPORT_ERRORS, wait_asked

AT_ONCE = 1024 * 1024
"""Bytes of a body that is sent at once; aiohttp warns of more."""
_PORTION = 256 * 1024
_FIRST_PAUSE, _LONGEST_PAUSE, _LONGEST_WAIT = 0.5, 8.0, 120.0
"""Seconds: before the first repetition, before any, and that a service may ask for; as Stainless's SDKs have them."""


class Portions(httpx2.AsyncByteStream):
    """A large body in portions, so that it does not block the event loop."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._body), _PORTION):
            yield self._body[start : start + _PORTION]


class _Body(httpx2.AsyncByteStream):
    """The body of aiohttp's response."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._response.content.iter_any():
            yield piece

    async def aclose(self) -> None:
        # A connection whose response was read to its end is no longer the response's.
        self._response.close()


class Poster:
    """Posts from one event loop, with aiohttp or with an injected HTTP client, which stays open."""

    def __init__(self, connect_timeout: float, http_client: httpx2.AsyncClient | None = None) -> None:
        self._timeout = connect_timeout
        self._client: httpx2.AsyncClient | aiohttp.ClientSession = http_client or aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=1_000, ssl=httpx2.create_ssl_context()),
            # `Incoming` bounds the waiting.
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_timeout),
            auto_decompress=False,
        )
        self._proxies: dict[str, dict[str, Any]] = {}

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> httpx2.Response:
        """Post ``body`` and return the response unread, whatever its status; redirects are not followed."""
        client = self._client
        if isinstance(client, httpx2.AsyncClient):
            timeout = httpx2.Timeout(None, connect=self._timeout)
            request = client.build_request("POST", url, headers=headers, content=body, timeout=timeout)
            return await client.send(request, stream=True, follow_redirects=False)
        data: bytes | Portions = body
        if len(body) > AT_ONCE:
            data, headers = Portions(body), {**headers, "Content-Length": str(len(body))}
        proxy = self._proxies.get(url)
        if proxy is None:
            # aiohttp would look in a thread, each time, and read the user's .netrc too.
            proxy = self._proxies[url] = _proxy_of(url)
        try:
            response = await client.post(url, headers=headers, data=data, allow_redirects=False, **proxy)
        except aiohttp.ServerTimeoutError as error:
            # It is a ``TimeoutError``, which is what ends a whole call.
            raise httpx2.ConnectTimeout("the connection was not made in time") from error
        return httpx2.Response(response.status, headers=response.raw_headers, stream=_Body(response))

    async def close(self) -> None:
        """Close the connections; a second time does nothing."""
        if isinstance(self._client, aiohttp.ClientSession):
            await self._client.close()


def _proxy_of(url: str) -> dict[str, Any]:
    """Return aiohttp's options for the proxy that the environment has for a URL."""
    parts = urlsplit(url)
    address = None if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme)
    if not address:
        return {}
    proxy = URL(address)
    if proxy.user is None:
        return {"proxy": proxy}
    return {"proxy": proxy.with_user(None), "proxy_auth": aiohttp.BasicAuth(proxy.user, proxy.password or "")}


class PostingConnection(Connection):
    """Posts by a `Poster` where an SDK says, for SDKs that cannot keep ``Retry-After`` or bound what they read.

    A failed connection, 408, 409, 429 and 5xx are tried again, after the time that the service asks for or after
    half a second, then twice as long each time. What the call's own end does not leave time for is not begun.
    """

    @abstractmethod
    async def address(self, path: str) -> tuple[str, Mapping[str, str]]:
        """Return the URL of ``path`` and the headers of a request to it, the key among them."""

    async def send(self, sdk: Poster, path: str, body: bytes, headers: dict[str, str]) -> httpx2.Response:
        """Post ``body`` and return the response unread; raises an ``HTTPStatusError`` for a status other than 2xx."""
        tries = 0
        while True:
            url, own = await self.address(path)
            wait: float | None = None
            again = tries < self.settings.max_retries
            try:
                response = await sdk.post(url, {**headers, **own}, body)
                if response.status_code < 300:
                    return response
                await look_at(response)
                try:
                    await response.aread()
                finally:
                    await response.aclose()
            except TRANSPORT_ERRORS as error:
                failure: BaseException = error
            else:
                request = httpx2.Request("POST", url)
                failure = httpx2.HTTPStatusError(f"status {response.status_code}", request=request, response=response)
                wait = wait_asked(response.content, response.headers)
                again = again and _is_passing(response) and (wait or 0) <= _LONGEST_WAIT
            pause = wait or min(_FIRST_PAUSE * 2**tries, _LONGEST_PAUSE) * (1 - random.random() / 4)
            if not again or asyncio.get_running_loop().time() + pause > deadline.get():
                raise failure
            await asyncio.sleep(pause)
            tries += 1


def _is_passing(response: httpx2.Response) -> bool:
    """Tell whether the same request may be answered otherwise later."""
    status = response.status_code
    passing = status in {408, 409, 429} or status >= 500
    return passing and response.headers.get("x-should-retry") != "false"
