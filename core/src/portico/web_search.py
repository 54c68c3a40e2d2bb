"""Connectors of search services that answer over HTTP in JSON, page by page.

The author of one says how to ask for a page and how to read the answer. Pages, limits, filters, errors and the
lazy stream are done here.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Literal, TypeVar

from portico.errors import PorticoError, ResponseInvalid, ServiceError
from portico.filter import Scalar, Wanted, wanted
from portico.http import HttpRequest, HttpResponse, service_error
from portico.ports.http_client import HttpClient
from portico.registration import Secret, Services
from portico.search import SearchConnector, SearchResults, TextSearchOptions

__all__ = ["AskedPage", "FoundPage", "WebSearchConnector", "query_operator"]

Record = TypeVar("Record")
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class AskedPage:
    """The page to ask a service for.

    ``start`` is the number of the first result wanted, from 0 on; ``size`` how many; ``number`` the page's own, from 0
    on, for services that count pages. ``wanted`` is the filter, field by field.
    """

    query: str
    start: int
    size: int
    number: int
    wanted: Wanted
    include_total_count: bool = False

    def value(self, field: str, default: Scalar | None = None) -> Any:
        """Return the first value that the filter wants of a field, or ``default``."""
        return next(iter(self.wanted.values.get(field, ())), default)


@dataclass(frozen=True, slots=True)
class FoundPage(Generic[Record]):
    """What an answer holds: records in order, and what the service says of all of them.

    ``more`` tells whether there is another page; None leaves it to the number of records.
    """

    records: Sequence[Record]
    total_count: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    more: bool | None = None


class WebSearchConnector(SearchConnector[Record]):
    """The TextSearch port over HTTP, given a request, a reading of the answer and two mappers.

    >>> class Acme(WebSearchConnector[dict]):
    ...     name = "acme"
    ...     page_size = 20
    ...
    ...     def request(self, page):
    ...         return HttpRequest("https://acme.example/find", {"q": page.query, "from": page.start, "n": page.size})
    ...
    ...     def read(self, answer):
    ...         return FoundPage(answer["items"], total_count=answer["total"])
    ...
    ...     def to_text(self, record):
    ...         return record["text"]
    ...
    ...     def to_result(self, record):
    ...         return TextSearchResult(record["text"], record["title"], record["url"])
    >>> Acme(settings=None, services=None).page_size
    20

    A factory by itself: ``Acme(settings, services)`` takes the HTTP client of ``services`` when first needed. The
    first page is asked for at once, the others as the stream is read. Answers that are not what `read` expects are
    ``ResponseInvalid``; those without success are the errors of `portico.http.service_error`, unless `failure` knows
    better.
    """

    paging: ClassVar[Literal["results", "pages", "all pages"]] = "results"
    """How the service goes on: from any result, by pages of a size that it is told, or by pages of its own size."""
    page_size: ClassVar[int] = 10
    """The most results that one answer may be asked for."""
    most: ClassVar[int | None] = None
    """The most results that the service gives of one query, over all pages; None for no bound."""
    at_once: ClassVar[int | None] = None
    """The most requests that may be under way at the same time; None for no bound."""

    def __init__(self, settings: Any, services: Services | None) -> None:
        self.settings = settings
        self._services = services
        self._turns: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}

    @abstractmethod
    def request(self, page: AskedPage) -> HttpRequest:
        """Return the request for a page."""

    @abstractmethod
    def read(self, answer: Any) -> FoundPage[Record]:
        """Return what the service's JSON holds; ``KeyError`` and ``TypeError`` say that it is of another form."""

    def failure(self, response: HttpResponse, answer: Any) -> type[ServiceError] | None:
        """Return what kind of failure an answer is that the status does not tell; None otherwise.

        Called for every answer. ``answer`` is the body as JSON, None where it is none.
        """
        return None

    async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[Record]:
        """Ask for the pages that hold the results wanted."""
        return await self.pages(query, options, self.request, self.read)

    async def pages(
        self,
        query: str,
        options: TextSearchOptions,
        request: Callable[[AskedPage], HttpRequest],
        read: Callable[[Any], FoundPage[Found]],
    ) -> SearchResults[Found]:
        """Do what `fetch` does with another request and reading: for further search methods."""
        last = options.skip + options.top if self.most is None else min(self.most, options.skip + options.top)
        clauses = wanted(options.filter)
        if clauses.nothing or options.skip >= last:
            return SearchResults([], total_count=0 if clauses.nothing else None)
        asked = self._first_page(query, options, last, clauses)

        async def ask(page: AskedPage) -> FoundPage[Found]:
            return self._read(await self._answer(request(page)), read)

        first = await ask(asked)
        stream = _stream(ask, asked, first, range(options.skip, last), self)
        return SearchResults(stream, total_count=first.total_count, metadata=first.metadata)

    def _first_page(self, query: str, options: TextSearchOptions, last: int, clauses: Wanted) -> AskedPage:
        size, start = self.page_size, 0
        if self.paging == "results":
            size, start = min(size, last - options.skip), options.skip
        elif self.paging == "pages":
            size = min(size, last) if options.skip == 0 else size
            start = options.skip - options.skip % size
        return AskedPage(query, start, size, start // size, clauses, options.include_total_count)

    async def _answer(self, request: HttpRequest) -> tuple[HttpResponse, Any]:
        service = f"Text search {self.name!r}"
        if self._services is None:
            raise ValueError(f"{service} was made without services, so it has no HTTP client")
        client = self._services.get(HttpClient)
        turn = self._turn()
        if turn is None:
            response = await client.send(request)
        else:
            async with turn:
                response = await client.send(request)
        try:
            answer, broken = response.json(), None
        except ValueError as error:
            answer, broken = None, error
        kind = self.failure(response, answer)
        if kind is not None or not response.ok:
            raise service_error(response, service, kind, hidden=_secrets(request))
        if broken is not None:
            raise ResponseInvalid(f"{service} answered with something that is not JSON. Check its address.") from broken
        return response, answer

    def _read(self, answered: tuple[HttpResponse, Any], read: Callable[[Any], FoundPage[Found]]) -> FoundPage[Found]:
        try:
            return read(answered[1])
        except PorticoError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
            raise ResponseInvalid(
                f"Text search {self.name!r} answered in another form than agreed: {type(error).__name__}: {error}. "
                "Check its address."
            ) from error

    def _turn(self) -> asyncio.Semaphore | None:
        """Return what bounds the requests of this event loop."""
        if self.at_once is None:
            return None
        loop = asyncio.get_running_loop()
        if loop not in self._turns:
            self._turns = {loop: asyncio.Semaphore(self.at_once)}
        return self._turns[loop]


async def _stream(
    ask: Callable[[AskedPage], Awaitable[FoundPage[Found]]],
    page: AskedPage,
    found: FoundPage[Found],
    wanted: range,
    connector: WebSearchConnector[Any],
) -> AsyncIterator[Found]:
    """Yield the results whose numbers are ``wanted``, asking for further pages on the way."""
    paging = connector.paging
    position = page.start
    while True:
        for number, record in enumerate(found.records, position):
            if number in wanted:
                yield record
        position += len(found.records)
        if paging == "pages":
            # Such a service counts pages, whatever it gave of the last one.
            position = page.start + page.size
        full = bool(found.records) if paging == "all pages" else len(found.records) >= page.size
        if position >= wanted.stop or not found.records or not (full if found.more is None else found.more):
            return
        size = min(connector.page_size, wanted.stop - position) if paging == "results" else page.size
        page = replace(page, start=position, size=size, number=page.number + 1)
        before, found = found, await ask(page)
        if found.records == before.records:
            return  # A service that does not page gives the same page again.


def query_operator(name: str, value: object) -> str:
    """Return an operator of a query language, ``name:value``, with the value quoted so that it is one value.

    >>> query_operator("site", "example.org"), query_operator("intitle", "-two words")
    ('site:example.org', 'intitle:"-two words"')
    """
    text = " ".join(str(value).replace('"', " ").split())
    plain = text and text[0] != "-" and all(letter.isalnum() or letter in "-._/:" for letter in text)
    return f"{name}:{text}" if plain else f'{name}:"{text}"'


def _secrets(request: HttpRequest) -> list[Secret]:
    return [value for value in (*request.headers.values(), *request.params.values()) if isinstance(value, Secret)]
