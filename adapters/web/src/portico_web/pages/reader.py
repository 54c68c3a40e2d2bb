"""The PageReader on httpx, trafilatura and pypdf."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from portico.errors import PluginNotInstalled, PorticoError, ResponseInvalid, ServiceTimeout, ServiceUnavailable
from portico.plugins import Services
from portico.ports import Page, PageReader, TextSearch
from portico.search import SearchConnector, SearchResults, TextSearchOptions, TextSearchResult
from portico_web.pages._wire import kind_of
from portico_web.pages.addresses import Allowed
from portico_web.pages.config import FullPagesSettings, WebPagesSettings
from portico_web.pages.extraction import Extractors, Job
from portico_web.pages.links import LinkRules, shown
from portico_web.pages.robots import MOST_BYTES

if TYPE_CHECKING:
    import httpcore
    import httpx

    from portico_web.pages.connecting import Resolve
    from portico_web.pages.fetching import Fetcher


@dataclass(frozen=True, slots=True)
class FullPage:
    """One result: the passage that the search found, and the page that its link leads to.

    ``page`` is None where ``reason`` says why the snippet stays. ``text`` is the page's main text, or the snippet.
    ``cut`` says which limit left out the rest of a page's text; it is None for the whole text.
    """

    result: TextSearchResult
    text: str
    page: Page | None = None
    reason: str | None = None
    cut: str | None = None


class FullPages(SearchConnector[FullPage]):
    """Return the main text of each page that a search finds, and the snippet where the page cannot be read.

    >>> import asyncio
    >>> from portico_testkit.fakes.page_reader import ShelfReader
    >>> from portico_testkit.fakes.text_search import ListEntry, ListSearch
    >>> web = ListSearch([ListEntry("a door …", link="https://a.example/"), ListEntry("door", link="https://b.example/")])
    >>> pages = FullPages(web, ShelfReader({"https://a.example/": "There is a door behind the stairs."}))
    >>> async def texts(query):
    ...     return await (await pages.search(query)).list()
    >>> asyncio.run(texts("a door"))
    ['There is a door behind the stairs.', 'door']

    Name, capabilities, index and filters are those of ``search``, and results keep their order. One search reads at
    most ``max_pages`` pages, ``concurrency`` at a time and ahead of the caller. The caller waits for pages at most
    ``seconds`` in all. A page's text is cut at ``max_characters``, between words. The reader limits bytes.

    A page that fails does not stop a search: the result keeps its snippet. `get_search_results` returns `FullPage`
    records, which give the reason. ``metadata["snippets"]`` is a list of link and reason, complete when the results are
    read. Closing the results stops the readers. Raises ``ValueError`` for a limit below 1, and what the search raises.
    """

    def __init__(
        self,
        search: TextSearch,
        reader: PageReader,
        *,
        max_pages: int = 5,
        seconds: float = 10.0,
        max_characters: int = 20_000,
        concurrency: int = 5,
    ) -> None:
        limits = {"max_pages": max_pages, "max_characters": max_characters, "concurrency": concurrency}
        for limit, value in limits.items():
            if value < 1:
                raise ValueError(f"{limit} is {value}; it must be at least 1")
        if not seconds > 0:
            raise ValueError(f"seconds is {seconds}; it must be more than 0")
        self.name, self.capabilities, self.index = search.name, search.capabilities, search.index
        self._search = search
        self._limits = _Limits(reader, max_pages, seconds, max_characters, concurrency)

    async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[FullPage]:
        """Search, and read the pages as the results are read."""
        found = await self._search.get_text_search_results(query, options)
        snippets: list[dict[str, Any]] = []
        return SearchResults(
            _pages(_ReadAhead(found, self._limits), snippets),
            total_count=found.total_count,
            metadata={**found.metadata, "snippets": snippets},
            inner=found,
        )

    def to_text(self, record: FullPage) -> str:
        """Return the text of the page, or the snippet."""
        return record.text

    def to_result(self, record: FullPage) -> TextSearchResult:
        """Return the text with name and link; the link is the page's address after redirects."""
        if record.page is None:
            return record.result
        return TextSearchResult(record.text, record.result.name or record.page.title, record.page.link)


@dataclass(frozen=True, slots=True)
class _Limits:
    reader: PageReader
    max_pages: int
    seconds: float
    max_characters: int
    concurrency: int


@dataclass(slots=True)
class _Pending:
    """A result whose page is being read, or which keeps its snippet for a reason."""

    result: TextSearchResult
    reading: asyncio.Task[Page] | None = None
    reason: str = ""


_Item: TypeAlias = "_Pending | Exception | None"


async def _pages(ahead: _ReadAhead, snippets: list[dict[str, Any]]) -> AsyncIterator[FullPage]:
    try:
        ahead.start()
        while (item := await ahead.queue.get()) is not None:
            if isinstance(item, Exception):
                raise item
            record = await ahead.settle(item)
            if record.reason is not None:
                snippets.append({"link": record.result.link, "reason": record.reason})
            yield record
    finally:
        await ahead.stop()


@dataclass(slots=True)
class _ReadAhead:
    """Reads pages ahead of the caller, within the limits of one search."""

    found: SearchResults[TextSearchResult]
    limits: _Limits
    queue: asyncio.Queue[_Item] = field(init=False)
    _places: asyncio.Semaphore = field(init=False)
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    _numbers: dict[str, int] = field(default_factory=dict)
    _seen: int = 0
    _left: float = 0.0

    def start(self) -> None:
        """Begin to take results from the search."""
        self._left = self.limits.seconds
        self.queue = asyncio.Queue(self.limits.concurrency)
        self._places = asyncio.Semaphore(self.limits.concurrency)
        self._tasks.add(asyncio.create_task(self._collect()))

    async def stop(self) -> None:
        """Stop all readers, and close the search."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.found.aclose()

    async def settle(self, pending: _Pending) -> FullPage:
        """Return a result with its page, as far as time is left."""
        reading = pending.reading
        snippet = FullPage(pending.result, pending.result.value, reason=pending.reason)
        if reading is None:
            return snippet
        if not reading.done():
            began = time.monotonic()
            await asyncio.wait({reading}, timeout=max(self._left, 0.0))
            self._left -= time.monotonic() - began
        if not reading.done():
            reading.cancel()  # `stop` waits for it
            return replace(snippet, reason=self._too_late())
        self._tasks.discard(reading)
        try:
            page = reading.result()
        except PorticoError as error:
            return replace(snippet, reason=str(error) or type(error).__name__)
        except asyncio.CancelledError:
            return replace(snippet, reason="Its reading was cancelled.")
        if not page.text.strip():
            return replace(snippet, reason="Its page has no text.")
        text = _shortened(page.text, self.limits.max_characters)
        if text is page.text:
            return FullPage(pending.result, text, page, cut=page.cut)
        cut = f"the first {len(text):,} of {len(page.text):,} characters (max_characters)"
        return FullPage(pending.result, text, page, cut=cut)

    async def _collect(self) -> None:
        """Take results from the search; the caller gets its error after the results before it."""
        try:
            async for result in self.found:
                await self.queue.put(self._pending(result))
        except Exception as error:  # noqa: BLE001 - raised where the results are consumed
            await self.queue.put(error)
        else:
            await self.queue.put(None)

    def _pending(self, result: TextSearchResult) -> _Pending:
        self._seen += 1
        link = result.link or ""
        if not link.lower().startswith(("http://", "https://")):
            return _Pending(result, reason="It has no http or https link.")
        page = link.partition("#")[0]
        if page in self._numbers:
            return _Pending(result, reason=f"Its page is the one of result {self._numbers[page]}.")
        if len(self._numbers) >= self.limits.max_pages:
            return _Pending(result, reason=f"{self.limits.max_pages} pages of one search are read (max_pages).")
        if self._left <= 0:
            return _Pending(result, reason=self._too_late())
        self._numbers[page] = self._seen
        reading = asyncio.create_task(self._read(link))
        self._tasks.add(reading)
        return _Pending(result, reading)

    async def _read(self, link: str) -> Page:
        async with self._places:
            return await self.limits.reader.read(link)

    def _too_late(self) -> str:
        return f"Its page was not there when {self.limits.seconds:g} seconds were up (seconds)."


def _shortened(text: str, limit: int) -> str:
    """Return the beginning of a text, cut at white space where there is some in its last fifth."""
    if len(text) <= limit:
        return text
    end = max(text.rfind(space, limit - limit // 5, limit + 1) for space in " \n\t")
    return text[: end if end > 0 else limit].rstrip() or text[:limit]


_SILENCE = 10.0


class WebPagesPageReader:
    """Read the main text of pages at public addresses.

    >>> import asyncio
    >>> async def refused(link):
    ...     reader = WebPagesPageReader()
    ...     try:
    ...         await reader.read(link)
    ...     except PorticoError as error:
    ...         return str(error)
    ...     finally:
    ...         await reader.aclose()
    >>> print(asyncio.run(refused("http://169.254.169.254/latest/meta-data/")).partition(";")[0])
    The link 'http://169.254.169.254/latest/meta-data/' is not read: the address 169.254.169.254 is not public \
(link-local, where clouds keep their metadata)

    A name is looked up once; every address that it has is checked, and one of these is connected to, under the
    name's certificate and Host. So it is for each redirect. HTML, PDF, plain text, Markdown, JSON and the like are
    read, in their own processes that end when they take too long. Use one reader in one event loop, and close it.

    ``resolve`` and ``network`` replace how names are looked up and connections made, ``context`` how certificates
    are verified; ``transport`` replaces all three, and with them every check of an address.
    Raises ``AccessRefused``, ``LimitExceeded``, ``RateLimited``, ``ServiceUnavailable``, ``ServiceTimeout``,
    ``ResponseInvalid`` for a page without text, ``StoreError`` for a cache folder that cannot be used;
    ``PluginNotInstalled`` without the extra `pages`.
    """

    def __init__(
        self,
        settings: WebPagesSettings | None = None,
        services: Services | None = None,
        *,
        resolve: Resolve | None = None,
        network: httpcore.AsyncNetworkBackend | None = None,
        context: ssl.SSLContext | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        if find_spec("trafilatura") is None:
            raise PluginNotInstalled("Reading web pages needs more packages. Run `pip install 'portico-web[pages]'`.")
        self._settings = settings or WebPagesSettings()
        self._given = (resolve, network, context, transport)
        self._rules = LinkRules(
            Allowed.of(self._settings.allow), self._settings.ports, looks_up=self._settings.proxy is None
        )
        self._fetcher: Fetcher | None = None
        self._transport: httpx.AsyncBaseTransport | None = None
        self._extractors: Extractors | None = None
        self._closed = False
        self.name = "web-pages"

    async def read(self, link: str) -> Page:
        """Return the main text of the page at ``link``."""
        if not isinstance(link, str):
            raise TypeError(f"a link is a str, not {type(link).__name__}")
        if self._closed:
            raise RuntimeError("the page reader 'web-pages' is closed")
        seconds = self._settings.seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._read(link)
        except TimeoutError as error:
            raise ServiceTimeout(
                f"The page {shown(link)} was not read within {seconds:g} seconds (seconds)."
            ) from error
        except PorticoError:
            raise
        except Exception as error:
            # What a stranger's server sends goes through several libraries; none of their errors is the caller's.
            raise ResponseInvalid(f"The page {shown(link)} cannot be read: {type(error).__name__}: {error}.") from error

    async def aclose(self) -> None:
        """Close connections, end processes; a second call does nothing."""
        self._closed = True
        transport, self._transport, self._fetcher = self._transport, None, None
        extractors, self._extractors = self._extractors, None
        if transport is not None:
            await transport.aclose()
        if extractors is not None:
            await extractors.aclose()

    async def _read(self, link: str) -> Page:
        self._rules.checked(link)
        fetched = await self._opened().fetch(link)
        kind = kind_of(fetched.media_type, fetched.data[:2048]) or "text"
        job = Job(
            kind,
            fetched.data,
            fetched.content_type,
            characters=self._settings.max_characters,
            pages=self._settings.max_pdf_pages,
            seconds=self._settings.extract_seconds,
        )
        if self._closed:
            raise ServiceUnavailable(f"The page {shown(link)} was not read: the reader was closed meanwhile.")
        if self._extractors is None:
            self._extractors = Extractors(self._settings.processes)
        found = await self._extractors.extract(job, shown(fetched.link))
        media_type = {"html": "text/html", "pdf": "application/pdf", "text": "text/plain"}[kind]
        own = fetched.media_type if kind_of(fetched.media_type) == kind and fetched.media_type else media_type
        return Page(found.text, fetched.link, found.title, own, found.cut)

    def _opened(self) -> Fetcher:
        if self._fetcher is None:
            from portico_web.pages.fetching import Bounds, Fetcher, Turns

            settings = self._settings
            plain = self._checked_transport()
            self._transport = self._keeping(plain)
            self._fetcher = Fetcher(
                self._transport,
                plain,
                rules=self._rules,
                bounds=Bounds(settings.max_bytes, settings.max_unpacked_bytes, settings.max_redirects),
                turns=Turns(settings.concurrency, settings.per_host),
                agent=settings.agent,
                user_agent=_user_agent(settings),
                silence=max(_SILENCE, settings.seconds / 2),
                robots=settings.robots,
            )
        return self._fetcher

    def _checked_transport(self) -> httpx.AsyncBaseTransport:
        from portico_web.pages.connecting import BorrowedTransport, CheckedNetwork, CheckedTransport, SystemNames

        resolve, network, context, transport = self._given
        if transport is not None:
            return BorrowedTransport(transport)
        if resolve is None:
            resolve = SystemNames()
        proxy = self._settings.proxy
        return CheckedTransport(
            CheckedNetwork(self._rules, resolve, network),
            connections=self._settings.concurrency,
            # Chunks and their sizes may come to as much again as the page.
            most=2 * max(self._settings.max_bytes, MOST_BYTES),
            proxy=proxy.reveal() if proxy is not None else None,
            context=context,
        )

    def _keeping(self, transport: httpx.AsyncBaseTransport) -> httpx.AsyncBaseTransport:
        """Put hishel's cache before a transport, unless there is to be none."""
        settings = self._settings
        if not settings.cache:
            return transport
        from hishel import CacheOptions
        from hishel.httpx import AsyncCacheTransport

        from portico_web.pages.cache import PageStorage

        storage = PageStorage(_cache_file(settings), most=settings.cache_bytes, most_of_one=settings.max_bytes)
        # What is kept serves every user of the application: "private" answers are not kept.
        return AsyncCacheTransport(transport, storage, rfc=CacheOptions(shared=True))


def _cache_file(settings: WebPagesSettings) -> Path | None:
    """Return where pages are kept: what was read because it was allowed, or over a proxy, does not outlive that."""
    if settings.cache_folder is None:
        return None
    rules = [*sorted(settings.allow), *(["proxy"] if settings.proxy is not None else [])]
    named = hashlib.sha256("\n".join(rules).encode()).hexdigest()[:16]
    return Path(settings.cache_folder).expanduser() / f"pages-{named}.db"


def _user_agent(settings: WebPagesSettings) -> str:
    try:
        number = version("portico-web")
    except PackageNotFoundError:
        number = "0"
    contact = f" (+{settings.contact})" if settings.contact else ""
    return f"{settings.agent}/{number}{contact}"


def full_pages(settings: FullPagesSettings, services: Services) -> FullPages:
    """Wrap the source that the settings name in `FullPages`, over the configured page reader."""
    return FullPages(
        services.get(TextSearch, settings.source),
        services.get(PageReader),
        max_pages=settings.max_pages,
        seconds=settings.seconds,
        max_characters=settings.max_characters,
        concurrency=settings.concurrency,
    )
