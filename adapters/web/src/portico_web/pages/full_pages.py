"""Whole pages in place of snippets, for any text search."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from portico.errors import PorticoError
from portico.ports import Page
from portico.search import SearchConnector, SearchResults, TextSearchOptions, TextSearchResult

if TYPE_CHECKING:
    from portico.ports import PageReader, TextSearch


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
