"""Connect to checked addresses only, and read a limited number of bytes from them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterable
from ipaddress import ip_address
from typing import Any, TypeAlias

import httpcore

from portico.errors import LimitExceeded, ServiceUnavailable
from portico_web.pages.addresses import Address, LinkRules, parse_address

Resolve: TypeAlias = Callable[[str, int], Awaitable[Iterable[str]]]
"""Returns the addresses of a name, the preferred first; ``OSError`` when it has none."""

_MOST_ADDRESSES = 4
_SECONDS_AN_ADDRESS = 5.0
# Parsing one piece blocks the event loop: 64 KB in chunks of one byte take a quarter of a second.
_PIECE = 8_192
# h11 limits a head to 100 KB, but not the answers of 1xx before it.
_HEAD = 256_000


async def resolve_name(host: str, port: int) -> list[str]:
    """Ask the system for the addresses of a name, the preferred first.

    A look-up cannot be stopped and may take half a minute. Each has its own daemon thread, so that neither other
    work nor the end of Python waits for it.
    """
    found: concurrent.futures.Future[list[str]] = concurrent.futures.Future()
    found.set_running_or_notify_cancel()

    def look_up() -> None:
        try:
            found.set_result([str(each[4][0]) for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)])
        except Exception as error:  # noqa: BLE001 - raised where the name was asked for
            found.set_exception(error)

    threading.Thread(target=look_up, name="portico-web-name", daemon=True).start()
    return await asyncio.wrap_future(found)


class MeteredStream(httpcore.AsyncNetworkStream):
    """A stream that raises ``LimitExceeded`` when one answer is too long.

    Writing begins a new answer, whose head may have 256 KB. `allow` sets the limit for its body.
    """

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._most = self._left = _HEAD

    def allow(self, size: int) -> None:
        """Allow so many bytes to be read from here on."""
        self._most = self._left = size

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore's own
        """Return what has arrived, in a small piece."""
        if self._left <= 0:
            raise LimitExceeded(f"The server sent more than {self._most:,} bytes in one answer, headers included.")
        data = await self._stream.read(min(max_bytes, _PIECE), timeout=timeout)
        self._left -= len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - httpcore's own
        """Send a part of a request."""
        self.allow(_HEAD)
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
        """Return the same stream over TLS."""
        try:
            return MeteredStream(await self._stream.start_tls(ssl_context, server_hostname, timeout))
        except BaseException:
            # httpcore does not close the stream when the handshake is cancelled.
            await self._stream.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        """Return what is known of the connection."""
        return self._stream.get_extra_info(info)


class CheckedNetwork(httpcore.AsyncNetworkBackend):
    """Look up a name once, check all its addresses, and connect to one of them.

    The name is not looked up again, so DNS rebinding gains nothing. TLS and the Host header use the name. Every
    connection passes here, those of redirects and of robots.txt too. Without ``rules``, which is for a proxy, the
    connection goes to the host as it is. Raises ``AccessRefused``, or ``ServiceUnavailable`` for a name without
    addresses.
    """

    def __init__(
        self, rules: LinkRules | None, resolve: Resolve, network: httpcore.AsyncNetworkBackend | None = None
    ) -> None:
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
        """Connect to the first address that answers."""
        targets = [host]
        if self._rules is not None:
            addresses = await self._look_up(host, port)
            self._rules.check_addresses(host, port, addresses)
            targets = list(map(str, addresses[:_MOST_ADDRESSES]))
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        seconds = _SECONDS_AN_ADDRESS if timeout is None else min(timeout, _SECONDS_AN_ADDRESS)
        for target in targets:
            try:
                stream = await self._network.connect_tcp(
                    target, port, timeout=seconds, local_address=local_address, socket_options=socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return MeteredStream(stream)
        raise failure

    async def _look_up(self, host: str, port: int) -> list[Address]:
        name = host.strip("[]")
        try:
            address = parse_address(name)
            # A link-local address with a zone keeps the zone here and is then refused.
            found = [address] if address else [ip_address(each) for each in await self._resolve(name, port)]
        except (OSError, ValueError) as error:
            raise ServiceUnavailable(f"The host {name!r} has no address ({error}).") from error
        if not found:
            raise ServiceUnavailable(f"The host {name!r} has no address.")
        return list(dict.fromkeys(found))
