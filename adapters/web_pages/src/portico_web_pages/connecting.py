"""Connections to addresses that were checked, and to no others."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ipaddress import ip_address
from typing import TypeAlias

import httpcore

from portico.errors import ServiceUnavailable
from portico_web_pages.addresses import Address, literal
from portico_web_pages.links import LinkRules

__all__ = ["CheckedNetwork", "Resolve", "SystemNames"]

Resolve: TypeAlias = Callable[[str, int], Awaitable[Iterable[str]]]
"""Returns the addresses of a name, the preferred first; ``OSError`` when it has none."""

_MOST_ADDRESSES = 4
_SECONDS_AN_ADDRESS = 5.0


class SystemNames:
    """Asks the system for the addresses of names, in threads of its own.

    A look-up cannot be stopped, and one whose servers do not answer takes half a minute: in the loop's own
    threads, a few of those would hold up the whole application.
    """

    def __init__(self, at_once: int) -> None:
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="portico-web-pages-names")

    async def __call__(self, host: str, port: int) -> list[str]:
        """Return the addresses, the preferred first."""
        loop = asyncio.get_running_loop()
        ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        found = await loop.run_in_executor(self._threads, ask)
        return [str(address[0]) for _, _, _, _, address in found]

    def close(self) -> None:
        """Take no more names; what is being looked up ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class CheckedNetwork(httpcore.AsyncNetworkBackend):
    """Looks a name up once, checks what it found, and connects to that.

    The name is not looked up again, so that a second answer (DNS rebinding) is never asked for. What is above,
    TLS and the Host header, goes on with the name. Every connection passes here: those of redirects and of
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
        for address in addresses[:_MOST_ADDRESSES]:
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
