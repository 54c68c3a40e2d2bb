"""Getting the bytes of a page: redirects, robots.txt and bounds."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx

from portico.errors import (
    AccessRefused,
    LimitExceeded,
    PorticoError,
    RateLimited,
    ResponseInvalid,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
)
from portico_web._unpacking import ACCEPTED, unpacked
from portico_web.pages._errors import of_status, seconds_of
from portico_web.pages._wire import kind_of, media_type_of
from portico_web.pages.links import LinkRules, shown
from portico_web.pages.robots import MOST_BYTES, Robots


class Turns:
    """Places for requests, given in the order in which they were asked for.

    A host's place is taken before one of those for all, so that waiting for a busy host holds up no other. What
    is kept of a host goes with its last request.
    """

    def __init__(self, in_all: int, per_host: int) -> None:
        self._in_all = asyncio.Semaphore(in_all)
        self._per_host = per_host
        self._hosts: dict[str, tuple[asyncio.Semaphore, int]] = {}

    @asynccontextmanager
    async def at(self, host: str) -> AsyncIterator[None]:
        """Wait for a place at a host and hold it."""
        places, waiting = self._hosts.get(host) or (asyncio.Semaphore(self._per_host), 0)
        self._hosts[host] = (places, waiting + 1)
        try:
            async with places, self._in_all:
                yield
        finally:
            places, waiting = self._hosts.pop(host)
            if waiting > 1:
                self._hosts[host] = (places, waiting - 1)


_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_ROBOTS_REDIRECTS = 5  # RFC 9309 §2.3.1.2: at least five
_ROBOTS_KEPT = 24 * 3600.0  # §2.4: no longer than a day
_ROBOTS_MISSED = 60.0
_MOST_ROBOTS = 200
_UNBOUNDED = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Fetched:
    """What was sent for a link in the end."""

    link: str
    data: bytes
    media_type: str
    content_type: str | None


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is read of one page."""

    packed: int
    unpacked: int
    redirects: int


@dataclass(frozen=True, slots=True)
class _Hop:
    """One answer: a page, or where it has gone."""

    status: int
    location: str | None
    fetched: Fetched | None


class Fetcher:
    """Fetches pages over one transport, each hop checked and in its turn.

    ``transport`` may keep pages; robots.txt goes over ``plain``, which does not, and is kept here for a day.
    ``silence`` is after how many seconds without a byte a server counts as gone. Nothing is kept of cookies.
    """

    def __init__(
        self,
        transport: httpx.AsyncBaseTransport,
        plain: httpx.AsyncBaseTransport,
        *,
        rules: LinkRules,
        bounds: Bounds,
        turns: Turns,
        agent: str,
        user_agent: str,
        silence: float,
        robots: bool,
    ) -> None:
        self._transport = transport
        self._plain = plain
        self._rules = rules
        self._bounds = bounds
        self._turns = turns
        self._agent = agent
        self._headers = {
            "User-Agent": user_agent,
            "Accept": "text/html,application/xhtml+xml,application/pdf,text/*;q=0.9,application/json;q=0.8,*/*;q=0.1",
            "Accept-Encoding": ACCEPTED,
        }
        self._timeouts = {"connect": silence, "read": silence, "write": silence, "pool": None}
        self._honours_robots = robots
        self._robots: OrderedDict[str, tuple[float, Robots | PorticoError]] = OrderedDict()
        # Of many reads of one site that begin together, one asks for its robots.txt.
        self._asking = Turns(_UNBOUNDED, 1)

    async def fetch(self, link: str) -> Fetched:
        """Return the page that a link leads to after its redirects."""
        seen: list[str] = []
        url = self._rules.checked(link)
        while True:
            if self._honours_robots:
                await self._check_robots(url)
            hop = await self._page_hop(url)
            if hop.fetched is not None:
                return hop.fetched
            seen.append(str(url.copy_with(fragment=None)))
            url = self._next(url, hop, seen, self._bounds.redirects)

    def _next(self, url: httpx.URL, hop: _Hop, seen: list[str], most: int) -> httpx.URL:
        """Return where a redirect leads, checked like any link."""
        start = shown(seen[0])
        if hop.location is None:
            raise ResponseInvalid(f"The server of {start} answered {hop.status} without saying where the page is.")
        try:
            target = url.join(hop.location)
            if url.fragment and not target.fragment:
                target = target.copy_with(fragment=url.fragment)
        except (httpx.InvalidURL, ValueError, TypeError) as error:
            raise ResponseInvalid(
                f"The page {start} is redirected to {shown(hop.location)}, which is no URL."
            ) from error
        try:
            target = self._rules.checked(str(target))
        except AccessRefused as error:
            raise AccessRefused(f"The page {start} is redirected. {error}") from error
        if str(target.copy_with(fragment=None)) in seen:
            raise ResponseInvalid(f"The page {start} is redirected in a circle, back to {shown(str(target))}.")
        if len(seen) > most:
            raise LimitExceeded(f"The page {start} is redirected more than {most} times (max_redirects).")
        return target

    async def _page_hop(self, url: httpx.URL) -> _Hop:
        link = str(url)
        async with self._answer(self._transport, url) as response:
            status, headers = response.status_code, response.headers
            if status in _REDIRECTS:
                return _Hop(status, _header(headers, "location"), None)
            error = of_status(link, status, _header(headers, "retry-after"))
            if error is not None:
                raise error
            content_type = _header(headers, "content-type")
            media_type = media_type_of(content_type)
            if kind_of(media_type) is None:
                raise _not_text(link, media_type)
            data = await self._body(response, link, self._bounds.packed, self._bounds.unpacked)
        return _Hop(status, None, Fetched(link, data, media_type, content_type))

    async def _body(self, response: httpx.Response, link: str, packed: int, most: int) -> bytes:
        length = _header(response.headers, "content-length") or ""
        if length.isascii() and length.isdigit() and int(length[:18]) > packed:
            raise LimitExceeded(f"The page {shown(link)} has more than {packed:,} bytes (max_bytes).")
        encoding = _header(response.headers, "content-encoding") or ""
        return await unpacked(
            _pieces(response),
            encoding,
            packed=packed,
            most=most,
            whose=f"The page {shown(link)}",
            setting="max_unpacked_bytes",
        )

    @asynccontextmanager
    async def _answer(self, transport: httpx.AsyncBaseTransport, url: httpx.URL) -> AsyncIterator[httpx.Response]:
        """Send one request in its turn; the connection is let go of whatever happens to the answer."""
        request = httpx.Request("GET", url, headers=self._headers, extensions={"timeout": self._timeouts})
        async with self._turns.at(url.host):
            response = await transport.handle_async_request(request)
            try:
                yield response
            finally:
                await response.aclose()

    async def _check_robots(self, url: httpx.URL) -> None:
        path = url.raw_path.decode("ascii", "replace")
        site = str(url.copy_with(raw_path=b"/robots.txt", fragment=None))
        async with self._asking.at(site):
            rules = await self._robots_of(site)
        if isinstance(rules, ServiceUnavailable | ServiceTimeout):
            # The server is not there: its page would not be, either.
            raise type(rules)(f"The page {shown(str(url))} is not read. {rules}") from rules
        if isinstance(rules, PorticoError):
            told = f"The page {shown(str(url))} is not read, since robots.txt of its site could not be had. {rules}"
            if isinstance(rules, RateLimited):
                raise RateLimited(told, retry_after=rules.retry_after) from rules
            # RFC 9309 §2.3.1.4: a server that fails has everything forbidden.
            raise AccessRefused(told) from rules
        if not rules.allows(path):
            raise AccessRefused(
                f"The page {shown(str(url))} is not read: robots.txt of its site forbids it to {self._agent}. "
                "`robots` of [pages.web-pages] says whether that counts."
            )

    async def _robots_of(self, site: str) -> Robots | PorticoError:
        kept = self._robots.get(site)
        if kept is not None and kept[0] > time.monotonic():
            self._robots.move_to_end(site)
            return kept[1]
        seconds = _ROBOTS_KEPT
        rules: Robots | PorticoError
        try:
            rules = await self._read_robots(site)
        except AccessRefused:
            # Of an address that is not read there is nothing to keep: the page itself is refused the same way.
            raise
        except PorticoError as error:
            rules, seconds = error, _ROBOTS_MISSED
        self._robots[site] = (time.monotonic() + seconds, rules)
        if len(self._robots) > _MOST_ROBOTS:
            self._robots.popitem(last=False)
        return rules

    async def _read_robots(self, site: str) -> Robots:
        """Return a site's rules: all is allowed without a file, and nothing when the server fails (§2.3.1)."""
        url = httpx.URL(site)
        seen: list[str] = []
        while True:
            async with self._answer(self._plain, url) as response:
                status, headers = response.status_code, response.headers
                if status not in _REDIRECTS:
                    if status == 429:
                        raise RateLimited(
                            f"The server of {shown(site)} answered 429.",
                            retry_after=seconds_of(_header(headers, "retry-after")),
                        )
                    if 400 <= status < 500:
                        return Robots()
                    if not 200 <= status < 300:
                        raise ServiceError(f"The server of {shown(site)} answered {status}.")
                    data = await self._start_of_body(response, site)
                    return Robots.read(data, self._agent)
                hop = _Hop(status, _header(headers, "location"), None)
            seen.append(str(url))
            try:
                url = self._next(url, hop, seen, _ROBOTS_REDIRECTS)
            except (LimitExceeded, ResponseInvalid):
                return Robots()  # §2.3.1.2: counts as a file that is not there

    async def _start_of_body(self, response: httpx.Response, link: str) -> bytes:
        """Return as much of a robots.txt as is read; what is beyond does not count."""
        encoding = _header(response.headers, "content-encoding") or ""
        return await unpacked(
            _pieces(response),
            encoding,
            packed=MOST_BYTES,
            most=MOST_BYTES,
            whose=f"The page {shown(link)}",
            setting="robots.txt",
            cut=True,
        )


def _not_text(link: str, media_type: str) -> ResponseInvalid:
    return ResponseInvalid(
        f"The page {shown(link)} is {media_type or 'of no type'}; HTML, PDF, text and JSON or XML are read."
    )


def _header(headers: Mapping[str, str], name: str) -> str | None:
    value = headers.get(name)
    return value[:8_000] if value is not None else None


async def _pieces(response: httpx.Response) -> AsyncIterator[bytes]:
    stream = response.stream
    if not isinstance(stream, httpx.AsyncByteStream):
        raise ServiceTimeout("The transport gave no stream.")
    async for piece in stream:
        yield piece
