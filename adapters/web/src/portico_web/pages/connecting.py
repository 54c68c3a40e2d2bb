"""Connect to checked addresses only, and read a bounded number of bytes from them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import chain, zip_longest
from typing import Any, TypeAlias

import httpcore
import httpx

from portico.errors import LimitExceeded, ServiceTimeout, ServiceUnavailable
from portico_web.pages._errors import translated
from portico_web.pages.addresses import Address, literal
from portico_web.pages.links import LinkRules, shown

Resolve: TypeAlias = Callable[[str, int], Awaitable[Iterable[str]]]
"""Returns the addresses of a name, the preferred first; ``OSError`` when it has none."""

_MOST_ADDRESSES = 4
_SECONDS_AN_ADDRESS = 5.0
_MOST_LOOK_UPS = 64


class SystemNames:
    """Asks the system for the addresses of names, each in its own thread.

    A look-up cannot be stopped, and one whose servers do not answer takes half a minute: in the loop's own
    threads, a few of those would hold up the whole application, and in those of any pool its end, since Python
    waits for them. At most 64 run at one time.
    """

    def __init__(self) -> None:
        self._running = threading.BoundedSemaphore(_MOST_LOOK_UPS)

    async def __call__(self, host: str, port: int) -> list[str]:
        """Return the addresses, the preferred first."""
        if not self._running.acquire(blocking=False):
            raise OSError(f"{_MOST_LOOK_UPS} other names are being looked up, and none has been answered")
        loop = asyncio.get_running_loop()
        found: asyncio.Future[list[str]] = loop.create_future()
        thread = threading.Thread(
            target=self._look_up, args=(host, port, loop, found), name="portico-web-name", daemon=True
        )
        try:
            thread.start()
        except BaseException:
            self._running.release()
            raise
        return await found

    def _look_up(self, host: str, port: int, loop: asyncio.AbstractEventLoop, found: asyncio.Future[list[str]]) -> None:
        try:
            addresses = [str(one[4][0]) for one in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
            settle = _Settle(found, addresses)
        except Exception as error:  # noqa: BLE001 - raised where the name was asked for
            settle = _Settle(found, error)
        finally:
            self._running.release()
        # The loop may have ended: no one waits any more.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle)


@dataclass(frozen=True, slots=True)
class _Settle:
    found: asyncio.Future[list[str]]
    outcome: list[str] | Exception

    def __call__(self) -> None:
        if self.found.done():
            return
        if isinstance(self.outcome, Exception):
            self.found.set_exception(self.outcome)
        else:
            self.found.set_result(self.outcome)


class CheckedNetwork(httpcore.AsyncNetworkBackend):
    """Looks a name up once, checks what it found, and connects to that.

    The name is not looked up again, so that a second answer (DNS rebinding) is never asked for. What is above,
    TLS and the Host header, continues with the name. Every connection passes here: those of redirects and of
    robots.txt too. Raises ``AccessRefused``, or ``ServiceUnavailable`` for a name without addresses.
    """

    def __init__(self, rules: LinkRules, resolve: Resolve, network: httpcore.AsyncNetworkBackend | None = None) -> None:
        self._rules = rules
        self._resolve = resolve
        self._network = network or httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's own interface
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first of the name's addresses that answers."""
        addresses = await self._addresses(host, port)
        self._rules.check_addresses(host, port, addresses)
        failure: Exception | None = None
        seconds = _SECONDS_AN_ADDRESS if timeout is None else min(timeout, _SECONDS_AN_ADDRESS)
        for address in _by_turns(addresses)[:_MOST_ADDRESSES]:
            try:
                return await self._network.connect_tcp(
                    str(address), port, timeout=seconds, local_address=local_address, socket_options=socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore.ConnectError(f"{host} has no address")

    async def _addresses(self, host: str, port: int) -> list[Address]:
        bare = host.strip("[]")
        try:
            spelt_out = literal(bare)
            if spelt_out is not None:
                return [spelt_out]
            found = await self._resolve(bare, port)
            # An address with a zone keeps it here and is then refused as link-local.
            addresses = [ip_address(address) for address in found]
        except (OSError, ValueError) as error:
            raise ServiceUnavailable(f"The host {bare!r} has no address ({error}).") from error
        if not addresses:
            raise ServiceUnavailable(f"The host {bare!r} has no address.")
        return list(dict.fromkeys(addresses))

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's own interface
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Refuse: no link leads to one."""
        raise httpcore.ConnectError(f"{path} is no address of a page")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


def _by_turns(addresses: list[Address]) -> list[Address]:
    """Return addresses of both families by turns, the preferred first: often all of one family lead nowhere."""
    first = [address for address in addresses if address.version == addresses[0].version]
    second = [address for address in addresses if address.version != addresses[0].version]
    return [address for address in chain.from_iterable(zip_longest(first, second)) if address is not None]


# What a parser makes of one piece keeps the event loop from everything else: of 64 KB, ten thousand chunks of one
# byte or four thousand hints (103) take it a quarter of a second.
_PIECE = 8_192
# h11 takes no head beyond 100 KB; what comes before the head (answers of 1xx) has no bound.
_HEAD = 256_000


class MeteredStream(httpcore.AsyncNetworkStream):
    """A stream of which so many bytes are read after what was last written; then it raises ``LimitExceeded``.

    That is enough for the head of an answer. Whoever has the head and wants the body calls `allow`.
    """

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._most = self._left = _HEAD

    def allow(self, size: int) -> None:
        """Let so many bytes be read from here on."""
        self._most = self._left = size

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore's own
        """Return what is there, in a small piece."""
        if self._left <= 0:
            raise LimitExceeded(f"sent more than {self._most:,} bytes in one answer")
        data = await self._stream.read(min(max_bytes, _PIECE), timeout=timeout)
        self._left -= len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - httpcore's own
        """Send; what is read next is another answer."""
        self._most = self._left = _HEAD
        await self._stream.write(buffer, timeout=timeout)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's own interface
    ) -> httpcore.AsyncNetworkStream:
        """Return the same over TLS."""
        try:
            return MeteredStream(await self._stream.start_tls(ssl_context, server_hostname, timeout))
        except BaseException:
            # A caller who is cancelled in the handshake has nothing to close yet, and httpcore does not.
            await self._stream.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        """Return what is known of the connection."""
        return self._stream.get_extra_info(info)


class MeteredNetwork(httpcore.AsyncNetworkBackend):
    """Opens metered streams."""

    def __init__(self, network: httpcore.AsyncNetworkBackend) -> None:
        self._network = network

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's own interface
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect."""
        return MeteredStream(
            await self._network.connect_tcp(
                host, port, timeout=timeout, local_address=local_address, socket_options=socket_options
            )
        )

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's own interface
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect, if the network beneath does."""
        return MeteredStream(await self._network.connect_unix_socket(path, timeout, socket_options))

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await self._network.sleep(seconds)


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
