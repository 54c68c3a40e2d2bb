"""Fetch the bytes of a page: redirects, robots.txt and limits."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from weakref import WeakValueDictionary

import httpcore
import httpx

from portico.errors import (
    AccessRefused,
    LimitExceeded,
    PorticoError,
    RateLimited,
    ResponseInvalid,
    ServiceTimeout,
    ServiceUnavailable,
)
from portico.plugins import HttpResponse, Secret
from portico_web._unpacking import ACCEPTED, unpack
from portico_web.http.client import LOGGERS
from portico_web.pages.addresses import LinkRules, show
from portico_web.pages.config import WebPagesSettings
from portico_web.pages.network import CheckedNetwork, MeteredStream, Resolve
from portico_web.pages.robots import MOST_BYTES, Robots
from portico_web.pages.worker import kind_of, media_type_of

_AGENT = "PorticoPageReader"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS = 5  # RFC 9309 §2.3.1.2 asks for at least five
_ROBOTS_SECONDS = 24 * 3600.0  # §2.4: no longer than a day
_MOST_ROBOTS = 200
_IDLE_SECONDS = 15.0
_SILENCE = 10.0


@dataclass(frozen=True, slots=True)
class Fetched:
    """The answer to a link after its redirects."""

    link: str
    data: bytes
    media_type: str
    content_type: str | None


class Fetcher:
    """Fetch pages over checked connections, each redirect checked and in its turn.

    HTTP/1.1 only; no cookies; no proxy but the one of the settings. Certificates are verified; ``context`` replaces
    how, for tests. robots.txt of a site is kept for a day.
    """

    def __init__(
        self,
        settings: WebPagesSettings,
        rules: LinkRules,
        resolve: Resolve,
        network: httpcore.AsyncNetworkBackend | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._settings = settings
        self._rules = rules
        contact = f" (+{settings.contact})" if settings.contact else ""
        self._headers: dict[bytes | str, bytes | str] = {
            "User-Agent": f"{_AGENT}/{version('portico-web')}{contact}",
            "Accept": "text/html,application/xhtml+xml,application/pdf,text/*;q=0.9,application/json;q=0.8,*/*;q=0.1",
            "Accept-Encoding": ACCEPTED,
        }
        silence = max(_SILENCE, settings.seconds / 2)
        self._timeouts = {"connect": silence, "read": silence, "write": silence, "pool": None}
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=context or httpx.create_ssl_context(),
            proxy=_proxy(settings),
            max_connections=settings.concurrency,
            keepalive_expiry=_IDLE_SECONDS,
            network_backend=CheckedNetwork(rules if settings.proxy is None else None, resolve, network),
        )
        self._places = asyncio.Semaphore(settings.concurrency)
        self._hosts: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._robots: dict[str, tuple[float, Robots]] = {}
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def fetch(self, link: str) -> Fetched:
        """Return the page that a link leads to."""
        with Secret.hiding([self._settings.proxy], LOGGERS):
            url = self._rules.check(link)
            for _ in range(_MOST_REDIRECTS + 1):
                if self._settings.robots:
                    await self._check_robots(url)
                answer = await self._get_page(url)
                if isinstance(answer, Fetched):
                    return answer
                url = self._follow(url, answer)
            raise LimitExceeded(f"The page {show(link)} redirects more than {_MOST_REDIRECTS} times.")

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()

    async def _get_page(self, url: httpx.URL) -> Fetched | str:
        """Return the page, or the location that a redirect names."""
        link = str(url)
        async with self._send(url) as (status, headers, pieces):
            if status in _REDIRECTS:
                return str(headers.get("location", ""))
            _raise_for_status(link, status, headers)
            content_type = headers.get("content-type")
            media_type = media_type_of(content_type)
            if kind_of(media_type) is None:
                raise ResponseInvalid(f"The page {show(link)} is {media_type}; HTML, PDF, text, JSON and XML are read.")
            most = self._settings.max_bytes
            length = headers.get("content-length", "")
            if length.isascii() and length.isdigit() and int(length[:18]) > most:
                raise LimitExceeded(f"The page {show(link)} has more than {most:,} bytes (max_bytes).")
            data = await unpack(pieces, headers.get("content-encoding", ""), most, f"The page {show(link)}")
        return Fetched(link, data, media_type, content_type)

    def _follow(self, url: httpx.URL, location: str) -> httpx.URL:
        """Return where a redirect leads, checked like every link."""
        if not location:
            raise ResponseInvalid(f"The server of {show(str(url))} sent a redirect without a target.")
        try:
            target = url.join(location)
        except (httpx.InvalidURL, ValueError, TypeError) as error:
            raise ResponseInvalid(f"The page {show(str(url))} redirects to {show(location)}.") from error
        if url.fragment and not target.fragment:
            target = target.copy_with(fragment=url.fragment)
        try:
            return self._rules.check(str(target))
        except AccessRefused as error:
            raise AccessRefused(f"The page {show(str(url))} redirects to another one. {error}") from error

    @asynccontextmanager
    async def _send(self, url: httpx.URL) -> AsyncIterator[tuple[int, httpx.Headers, AsyncIterator[bytes]]]:
        """Send one request in its turn, and close the connection or return it to the pool at the end."""
        target = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        # The place at the host comes first, so that waiting for a busy host delays no other.
        at_host = self._hosts.setdefault(url.host, asyncio.Semaphore(self._settings.per_host))
        async with at_host, self._places:
            with _translate_errors(str(url)):
                async with self._pool.stream(
                    "GET", target, headers=self._headers, extensions={"timeout": self._timeouts}
                ) as response:
                    stream = response.extensions.get("network_stream")
                    if isinstance(stream, MeteredStream):
                        # Chunks and their sizes may add as much again as the page.
                        stream.allow(2 * max(self._settings.max_bytes, MOST_BYTES))
                    yield response.status, httpx.Headers(response.headers), aiter(response.aiter_stream())

    async def _check_robots(self, url: httpx.URL) -> None:
        site = url.copy_with(raw_path=b"/robots.txt", fragment=None)
        # Of many reads of one site that begin together, one asks for robots.txt.
        asking = self._asking.setdefault(str(site), asyncio.Lock())
        async with asking:
            until, rules = self._robots.get(str(site), (0.0, Robots()))
            if until < time.monotonic():
                rules = await self._get_robots(site)
                if len(self._robots) >= _MOST_ROBOTS:
                    self._robots.clear()
                self._robots[str(site)] = (time.monotonic() + _ROBOTS_SECONDS, rules)
        if not rules.allows(url.raw_path.decode("ascii", "replace")):
            raise AccessRefused(
                f"The page {show(str(url))} is not read: robots.txt of its site forbids it to {_AGENT}. "
                "`robots` of [pages.web-pages] says whether that counts."
            )

    async def _get_robots(self, url: httpx.URL) -> Robots:
        """Return a site's rules. Without a file everything is allowed; a failing server forbids all (§2.3.1)."""
        for _ in range(_MOST_REDIRECTS + 1):
            async with self._send(url) as (status, headers, pieces):
                if 200 <= status < 300:
                    encoding = headers.get("content-encoding", "")
                    data = await unpack(pieces, encoding, MOST_BYTES, f"The file {show(str(url))}", truncate=True)
                    return Robots.parse(data, _AGENT)
                if status == 429:
                    _raise_for_status(str(url), status, headers)
                if 400 <= status < 500:
                    return Robots()
                if status not in _REDIRECTS:
                    raise AccessRefused(f"The page is not read, since {show(str(url))} answered {status}.")
                location = headers.get("location", "")
            url = self._follow(url, location)
        return Robots()


def _proxy(settings: WebPagesSettings) -> httpcore.Proxy | None:
    if settings.proxy is None:
        return None
    url = httpx.URL(settings.proxy.reveal())
    address = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=b"/")
    return httpcore.Proxy(address, auth=(url.username, url.password) if url.userinfo else None)


def _raise_for_status(link: str, status: int, headers: httpx.Headers) -> None:
    """Raise the error that a status stands for; return for one that comes with a page."""
    if 200 <= status < 300 and status not in {204, 205, 206}:
        return
    answered = f"The server of {show(link)} answered {status}"
    if status in {401, 402, 403, 407, 451}:
        raise AccessRefused(f"{answered}: it keeps this page back.")
    if status == 429:
        seconds = HttpResponse.retry_after(headers)
        advice = f" and asks to wait {seconds:g} seconds" if seconds is not None else ""
        raise RateLimited(f"{answered}{advice}.", retry_after=seconds)
    if 400 <= status < 600:
        raise ServiceUnavailable(f"{answered}.")
    raise ResponseInvalid(f"{answered} without a page.")


@contextmanager
def _translate_errors(link: str) -> Iterator[None]:
    try:
        yield
    except PorticoError:
        raise
    except httpcore.TimeoutException as error:
        raise ServiceTimeout(f"The server of {show(link)} did not answer in time.") from error
    except httpcore.ProtocolError as error:
        raise ResponseInvalid(f"The server of {show(link)} does not speak HTTP properly: {error}.") from error
    except (httpcore.NetworkError, httpcore.ProxyError, httpcore.UnsupportedProtocol, OSError) as error:
        # The words of a certificate's error say that it is one.
        raise ServiceUnavailable(f"The server of {show(link)} cannot be reached ({error}).") from error
