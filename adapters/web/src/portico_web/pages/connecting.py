"""Connections to addresses that were checked, and to no others."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import chain, zip_longest
from typing import TypeAlias

import httpcore

from portico.errors import ServiceUnavailable
from portico_web.pages.addresses import Address, literal
from portico_web.pages.links import LinkRules

__all__ = ["CheckedNetwork", "Resolve", "SystemNames"]

Resolve: TypeAlias = Callable[[str, int], Awaitable[Iterable[str]]]
"""Returns the addresses of a name, the preferred first; ``OSError`` when it has none."""

_MOST_ADDRESSES = 4
_SECONDS_AN_ADDRESS = 5.0
_MOST_LOOK_UPS = 64


class SystemNames:
    """Asks the system for the addresses of names, each in a thread of its own.

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
        # The loop may have ended: nobody waits any more.
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
