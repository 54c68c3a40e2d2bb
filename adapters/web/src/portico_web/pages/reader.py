"""The page reader, and the search that gives whole pages."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import httpcore

from portico.errors import PluginNotInstalled, PorticoError, ResponseInvalid, ServiceTimeout
from portico.plugins import Services
from portico.ports import Page, PageReader, TextSearch
from portico.search import SearchConnector, SearchResults, TextSearchOptions, TextSearchResult
from portico_web.pages.addresses import Allowed, LinkRules, show
from portico_web.pages.config import FullPagesSettings, WebPagesSettings
from portico_web.pages.extraction import Extractors, Job
from portico_web.pages.fetching import Fetcher
from portico_web.pages.network import Resolve, resolve_name
from portico_web.pages.worker import kind_of


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
    most ``max_pages`` pages, ``concurrency`` at a time and ahead of the caller, for at most ``seconds`` after the first
    result is asked for. A page's text is cut at ``max_characters``. The reader limits bytes.

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
        self._limits = FullPagesSettings(search.name, max_pages, seconds, max_characters, concurrency)
        self.name, self.capabilities, self.index = search.name, search.capabilities, search.index
        self._search = search
        self._reader = reader

    async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[FullPage]:
        """Search, and read the pages as the results are read."""
        found = await self._search.get_text_search_results(query, options)
        snippets: list[dict[str, Any]] = []
        return SearchResults(
            self._read_pages(found, snippets),
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

    async def _read_pages(
        self, found: SearchResults[TextSearchResult], snippets: list[dict[str, Any]]
    ) -> AsyncIterator[FullPage]:
        """Yield a record for each result, while the pages of the next results are read."""
        ahead: deque[asyncio.Task[FullPage]] = deque()
        started: list[asyncio.Task[FullPage]] = []
        pages: set[str] = set()
        end = asyncio.get_running_loop().time() + self._limits.seconds

        async def next_record() -> FullPage:
            record = await ahead.popleft()
            if record.reason is not None:
                snippets.append({"link": record.result.link, "reason": record.reason})
            return record

        failure: Exception | None = None
        try:
            try:
                async for result in found:
                    started.append(asyncio.create_task(self._read_page(result, pages, end)))
                    ahead.append(started[-1])
                    if len(ahead) == self._limits.concurrency:
                        yield await next_record()
            except Exception as error:  # noqa: BLE001 - raised after the results before it
                failure = error
            while ahead:
                yield await next_record()
            if failure is not None:
                raise failure
        finally:
            for reading in started:
                reading.cancel()
            await asyncio.gather(*started, return_exceptions=True)
            await found.aclose()

    async def _read_page(self, result: TextSearchResult, pages: set[str], end: float) -> FullPage:
        """Read the page of a result, unless it is among ``pages`` already or there are enough of them."""
        link = result.link or ""
        address = link.partition("#")[0]
        if not link.lower().startswith(("http://", "https://")):
            reason = "It has no http or https link."
        elif address in pages:
            reason = "Its page is the one of an earlier result."
        elif len(pages) >= self._limits.max_pages:
            reason = f"{self._limits.max_pages} pages of one search are read (max_pages)."
        else:
            pages.add(address)
            reason = "Its page has no text."
            try:
                async with asyncio.timeout_at(end):
                    page = await self._reader.read(link)
                if page.text.strip():
                    text, cut = _shorten(page.text, self._limits.max_characters), page.cut
                    if text is not page.text:
                        cut = f"the first {len(text):,} of {len(page.text):,} characters (max_characters)"
                    return FullPage(result, text, page, cut=cut)
            except PorticoError as error:
                reason = str(error) or type(error).__name__
            except TimeoutError:
                reason = f"Its page was not there when {self._limits.seconds:g} seconds were up (seconds)."
        return FullPage(result, result.value, reason=reason)


def _shorten(text: str, limit: int) -> str:
    """Return the beginning of a text, cut at white space where there is some in its last fifth."""
    if len(text) <= limit:
        return text
    end = max(text.rfind(space, limit - limit // 5, limit + 1) for space in " \n\t")
    return text[: end if end > 0 else limit].rstrip() or text[:limit]


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
    The link 'http://169.254.169.254/latest/meta-data/' is not read: the address 169.254.169.254 is not public

    A name is looked up once, every address that it has is checked, and the reader connects to one of them under the
    name's certificate and Host. The same holds for each redirect. HTML, PDF, plain text, Markdown, JSON and the like
    are read, in processes that end when they take too long. Use one reader in one event loop, and close it.

    ``resolve`` and ``network`` replace how names are looked up and connections made, ``context`` how certificates
    are verified. Raises ``AccessRefused``, ``LimitExceeded``, ``RateLimited``, ``ServiceUnavailable``,
    ``ServiceTimeout``, ``ResponseInvalid`` for a page without text; ``PluginNotInstalled`` without the extra `pages`.
    """

    name = "web-pages"

    def __init__(
        self,
        settings: WebPagesSettings | None = None,
        services: Services | None = None,
        *,
        resolve: Resolve = resolve_name,
        network: httpcore.AsyncNetworkBackend | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        if find_spec("trafilatura") is None:
            raise PluginNotInstalled("Reading web pages needs more packages. Run `pip install 'portico-web[pages]'`.")
        self._settings = settings or WebPagesSettings()
        self._network = (resolve, network, context)
        self._rules = LinkRules(
            Allowed.parse(self._settings.allow), self._settings.ports, looks_up=self._settings.proxy is None
        )
        self._fetcher: Fetcher | None = None
        self._extractors = Extractors()
        self._closed = False

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
            raise ServiceTimeout(f"The page {show(link)} was not read within {seconds:g} seconds (seconds).") from error
        except PorticoError:
            raise
        except Exception as error:
            # What a stranger's server sends goes through several libraries; none of their errors is the caller's.
            raise ResponseInvalid(f"The page {show(link)} cannot be read: {type(error).__name__}: {error}.") from error

    async def aclose(self) -> None:
        """Close connections, end processes; a second call does nothing."""
        self._closed = True
        fetcher, self._fetcher = self._fetcher, None
        if fetcher is not None:
            await fetcher.aclose()
        await self._extractors.aclose()

    async def _read(self, link: str) -> Page:
        self._rules.check(link)
        if self._fetcher is None:
            # Reading the certificates takes long enough to be left to the first request.
            self._fetcher = Fetcher(self._settings, self._rules, *self._network)
        fetched = await self._fetcher.fetch(link)
        kind = kind_of(fetched.media_type, fetched.data[:2048]) or "text"
        job = Job(kind, fetched.content_type, self._settings.max_characters, self._settings.seconds / 2)
        text, title, cut = await self._extractors.extract(job, fetched.data, show(fetched.link))
        media_type = {"html": "text/html", "pdf": "application/pdf", "text": "text/plain"}[kind]
        if fetched.media_type and kind_of(fetched.media_type) == kind:
            media_type = fetched.media_type
        return Page(text, fetched.link, title, media_type, cut)


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
