"""Whole pages in place of snippets, for any text search."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from portico.errors import PorticoError
from portico.ports.page_reader import Page
from portico.search import SearchResults, TextSearchOptions, TextSearchResult

if TYPE_CHECKING:
    from portico.ports.page_reader import PageReader
    from portico.ports.search_index import SearchIndex
    from portico.ports.text_search import TextSearch
    from portico.search import SearchCapabilities

__all__ = ["FullPage", "FullPages"]

Mapped = TypeVar("Mapped")


@dataclass(frozen=True, slots=True)
class FullPage:
    """One result: what the search found, and the page that its link leads to.

    Either ``page`` is there, or ``reason`` says why the snippet stays. ``text`` is what counts: the page's main
    text, or the snippet; ``cut`` says which bound left out the rest of a page's text, None when it is whole.
    """

    result: TextSearchResult
    text: str
    page: Page | None = None
    reason: str | None = None
    cut: str | None = None


class FullPages:
    """Give the main text of each page that a search finds, and the snippet where that cannot be had.

    >>> import asyncio
    >>> from portico_testkit.fakes.page_reader import ShelfReader
    >>> from portico_testkit.fakes.text_search import ListEntry, ListSearch
    >>> web = ListSearch([ListEntry("a door …", link="https://a.example/"), ListEntry("door", link="https://b.example/")])
    >>> pages = FullPages(web, ShelfReader({"https://a.example/": "There is a door behind the stairs."}))
    >>> async def texts(query):
    ...     return await (await pages.search(query)).list()
    >>> asyncio.run(texts("a door"))
    ['There is a door behind the stairs.', 'door']

    It is a TextSearch: name, capabilities, index and filters are those of ``search``. Results keep their order.
    Of one search, at most ``max_pages`` pages are read, ``concurrency`` at a time and ahead of what is consumed;
    the caller waits for pages ``seconds`` in all, after which what is not there keeps its snippet. A page's text is
    cut at ``max_characters``, between words. What is read is bounded in bytes by the reader.

    No page that fails stops a search: the result's snippet stays. `get_search_results` gives `FullPage` records,
    which say why; so does ``metadata["snippets"]``, a list of link and reason, complete when the results are read.
    Closing the results stops the readers. Raises ``ValueError`` for a bound below 1, and what the search raises.
    """

    record_type = FullPage

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
        bounds = {"max_pages": max_pages, "max_characters": max_characters, "concurrency": concurrency}
        for bound, value in bounds.items():
            if value < 1:
                raise ValueError(f"{bound} is {value}; it must be at least 1")
        if not seconds > 0:
            raise ValueError(f"seconds is {seconds}; it must be more than 0")
        self._search = search
        self._bounds = _Bounds(reader, max_pages, seconds, max_characters, concurrency)

    @property
    def name(self) -> str:
        """The name of the search that is wrapped."""
        return self._search.name

    @property
    def capabilities(self) -> SearchCapabilities:
        """What the search that is wrapped can do."""
        return self._search.capabilities

    @property
    def index(self) -> SearchIndex | None:
        """What brings the search that is wrapped up to date."""
        return self._search.index

    async def search(self, query: str, options: TextSearchOptions | None = None) -> SearchResults[str]:
        """Search and return the pages' texts."""
        return await self._found(query, options, _to_text)

    async def get_text_search_results(
        self, query: str, options: TextSearchOptions | None = None
    ) -> SearchResults[TextSearchResult]:
        """Search and return the pages' texts with name and link; the link is where the page was in the end."""
        return await self._found(query, options, _to_result)

    async def get_search_results(self, query: str, options: TextSearchOptions | None = None) -> SearchResults[FullPage]:
        """Search and return what was found with the pages, or with the reasons why there are none."""
        return await self._found(query, options, _to_record)

    async def _found(
        self, query: str, options: TextSearchOptions | None, convert: Callable[[FullPage], Mapped]
    ) -> SearchResults[Mapped]:
        found = await self._search.get_text_search_results(query, options)
        snippets: list[dict[str, Any]] = []
        return SearchResults(
            _Pages(found, _ReadAhead(found, self._bounds, snippets), convert),
            total_count=found.total_count,
            metadata={**found.metadata, "snippets": snippets},
        )


def _to_text(record: FullPage) -> str:
    return record.text


def _to_record(record: FullPage) -> FullPage:
    return record


def _to_result(record: FullPage) -> TextSearchResult:
    if record.page is None:
        return record.result
    return TextSearchResult(record.text, record.result.name or record.page.title, record.page.link)


@dataclass(frozen=True, slots=True)
class _Bounds:
    reader: PageReader
    max_pages: int
    seconds: float
    max_characters: int
    concurrency: int


@dataclass(slots=True)
class _Pending:
    """A result on its way: its page is being read, or it is settled."""

    result: TextSearchResult
    reading: asyncio.Task[Page] | None = None
    reason: str = ""


_Item: TypeAlias = "_Pending | Exception | None"


class _Pages(Generic[Mapped]):
    """The stream of results; closing it lets go of the search too, even before anything was read.

    The generator inside it is what an event loop closes when a stream is dropped half read.
    """

    def __init__(
        self, found: SearchResults[TextSearchResult], ahead: _ReadAhead, convert: Callable[[FullPage], Mapped]
    ) -> None:
        self._found = found
        self._records = _converted(ahead, convert)

    def __aiter__(self) -> AsyncIterator[Mapped]:
        return self

    async def __anext__(self) -> Mapped:
        return await anext(self._records)

    async def aclose(self) -> None:
        await self._records.aclose()
        await self._found.aclose()


async def _converted(ahead: _ReadAhead, convert: Callable[[FullPage], Mapped]) -> AsyncGenerator[Mapped, None]:
    try:
        while (record := await ahead.next()) is not None:
            yield convert(record)
    finally:
        await ahead.stop()


@dataclass(slots=True)
class _ReadAhead:
    """Reads pages ahead of the results that are consumed, within the bounds of one search."""

    found: SearchResults[TextSearchResult]
    bounds: _Bounds
    snippets: list[dict[str, Any]]
    _queue: asyncio.Queue[_Item] = field(init=False)
    _places: asyncio.Semaphore = field(init=False)
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    _numbers: dict[str, int] = field(default_factory=dict)
    _seen: int = 0
    _left: float = 0.0
    _started: bool = False

    async def next(self) -> FullPage | None:
        """Return the next result with its page, or None after the last."""
        if not self._started:
            self._start()
        item = await self._queue.get()
        if isinstance(item, Exception):
            raise item
        if item is None:
            return None
        record = await self._settled(item)
        if record.reason is not None:
            self.snippets.append({"link": record.result.link, "reason": record.reason})
        return record

    async def stop(self) -> None:
        """Stop everything that was started, and let go of the search."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for task in self._tasks:
            if not task.cancelled():
                task.exception()  # seen: nobody waits for this page any more
        await self.found.aclose()

    def _start(self) -> None:
        self._started = True
        self._left = self.bounds.seconds
        self._queue = asyncio.Queue(self.bounds.concurrency)
        self._places = asyncio.Semaphore(self.bounds.concurrency)
        self._tasks.add(asyncio.create_task(self._collect()))

    async def _collect(self) -> None:
        """Take results from the search; what it raises comes out after the results before."""
        try:
            async for result in self.found:
                await self._queue.put(self._pending(result))
        except Exception as error:  # noqa: BLE001 - raised where the results are consumed
            await self._queue.put(error)
        else:
            await self._queue.put(None)

    def _pending(self, result: TextSearchResult) -> _Pending:
        self._seen += 1
        link = result.link or ""
        if not link.lower().startswith(("http://", "https://")):
            return _Pending(result, reason="It has no http or https link.")
        page = link.partition("#")[0]
        if page in self._numbers:
            return _Pending(result, reason=f"Its page is the one of result {self._numbers[page]}.")
        if len(self._numbers) >= self.bounds.max_pages:
            return _Pending(result, reason=f"{self.bounds.max_pages} pages of one search are read (max_pages).")
        if self._left <= 0:
            return _Pending(result, reason=self._too_late())
        self._numbers[page] = self._seen
        reading = asyncio.create_task(self._read(link))
        self._tasks.add(reading)
        return _Pending(result, reading)

    async def _read(self, link: str) -> Page:
        async with self._places:
            return await self.bounds.reader.read(link)

    async def _settled(self, pending: _Pending) -> FullPage:
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
        text = _shortened(page.text, self.bounds.max_characters)
        if text is page.text:
            return FullPage(pending.result, text, page, cut=page.cut)
        cut = f"the first {len(text):,} of {len(page.text):,} characters (max_characters)"
        return FullPage(pending.result, text, page, cut=cut)

    def _too_late(self) -> str:
        return f"Its page was not there when {self.bounds.seconds:g} seconds were up (seconds)."


def _shortened(text: str, limit: int) -> str:
    """Return the beginning of a text, ended between words where there is white space in its last fifth."""
    if len(text) <= limit:
        return text
    end = max(text.rfind(space, limit - limit // 5, limit + 1) for space in " \n\t")
    return text[: end if end > 0 else limit].rstrip() or text[:limit]
