"""An httpx transport on connections that are checked."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator

import httpcore
import httpx

from portico.errors import ServiceTimeout, ServiceUnavailable
from portico_web.pages._errors import translated
from portico_web.pages.connecting import CheckedNetwork
from portico_web.pages.links import shown
from portico_web.pages.metering import MeteredNetwork, MeteredStream

__all__ = ["BorrowedTransport", "CheckedTransport"]

_IDLE_SECONDS = 15.0


class CheckedTransport(httpx.AsyncBaseTransport):
    """Sends requests over httpcore; its errors come out as Portico's.

    httpx's own transport takes no network, which is where addresses are checked. HTTP/1.1 only; no proxy but the
    one given, none from the environment. Certificates are verified; ``context`` replaces how, for tests.
    Of one answer, at most ``most`` bytes are read after its head, those between the chunks of its body included.
    """

    def __init__(
        self,
        network: CheckedNetwork,
        *,
        connections: int,
        most: int,
        proxy: str | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._network = network
        self._connections = connections
        self._most = most
        self._proxy = proxy
        self._context = context
        self._pool: httpcore.AsyncConnectionPool | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return the response with its body still to be read."""
        asked = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        link = str(request.url)
        with translated(link):
            response = await self._opened().handle_async_request(asked)
        stream = response.extensions.get("network_stream")
        if isinstance(stream, MeteredStream):
            stream.allow(self._most)
        return httpx.Response(
            response.status, headers=response.headers, stream=_Body(response, link), extensions=response.extensions
        )

    async def aclose(self) -> None:
        """Close every connection."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.aclose()

    def _opened(self) -> httpcore.AsyncConnectionPool:
        if self._pool is None:
            # Loading certificates takes long enough to be left to the first request.
            context = self._context or httpx.create_ssl_context()
            if self._proxy is None:
                self._pool = httpcore.AsyncConnectionPool(
                    ssl_context=context,
                    max_connections=self._connections,
                    keepalive_expiry=_IDLE_SECONDS,
                    network_backend=MeteredNetwork(self._network),
                )
            else:
                proxy = httpx.URL(self._proxy)
                self._pool = httpcore.AsyncHTTPProxy(
                    proxy_url=httpcore.URL(scheme=proxy.raw_scheme, host=proxy.raw_host, port=proxy.port, target=b"/"),
                    proxy_auth=(proxy.username, proxy.password) if proxy.userinfo else None,
                    ssl_context=context,
                    max_connections=self._connections,
                    keepalive_expiry=_IDLE_SECONDS,
                    network_backend=MeteredNetwork(httpcore.AnyIOBackend()),
                )
        return self._pool


class _Body(httpx.AsyncByteStream):
    def __init__(self, response: httpcore.Response, link: str) -> None:
        self._response = response
        self._link = link

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with translated(self._link):
            async for part in self._response.aiter_stream():
                yield part

    async def aclose(self) -> None:
        await self._response.aclose()


class BorrowedTransport(httpx.AsyncBaseTransport):
    """A transport that somebody else closes."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Pass the request on; httpx's errors come out as Portico's."""
        try:
            return await self._transport.handle_async_request(request)
        except httpx.TimeoutException as error:
            raise ServiceTimeout(f"The server of {shown(str(request.url))} did not answer in time.") from error
        except httpx.HTTPError as error:
            raise ServiceUnavailable(f"The server of {shown(str(request.url))} is not read: {error}.") from error
