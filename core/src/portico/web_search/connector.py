"""Connectors of search services that answer over HTTP in JSON, page by page.

The author of one says how to ask for a page and how to read the answer. Pages, limits, filters, errors and the
lazy stream are done here.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, TypeVar
from weakref import WeakKeyDictionary

from portico.errors import PorticoError, ResponseInvalid, ServiceError
from portico.filter import Wanted, wanted
from portico.http import HttpRequest, HttpResponse, printable, service_error, without_secrets
from portico.ports.http_client import HttpClient
from portico.registration import Secret, Services
from portico.search import SearchConnector, SearchResults, TextSearchOptions
from portico.web_search.pages import AskedPage, FoundPage, check_query, whole_text

__all__ = ["WebSearchConnector"]

Record = TypeVar("Record")
Found = TypeVar("Found")

# What reading JSON of another form than expected raises.
_OTHER_FORM = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


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
    """The most results that the service gives of one query, over all pages; ``capabilities`` then say it too."""
    at_once: ClassVar[int | None] = None
    """The most requests that may be under way at the same time; None for no bound."""
    advice: ClassVar[Mapping[int, str]] = {}
    """What to do about an answer of a status, where the connector knows better than `portico.http.service_error`."""

    def __init__(self, settings: Any, services: Services | None) -> None:
        self.settings = settings
        self._services = services
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "most" not in vars(cls) and cls.capabilities.most is not None:
            cls.most = cls.capabilities.most
        elif cls.capabilities.most != cls.most:
            cls.capabilities = replace(cls.capabilities, most=cls.most)

    @abstractmethod
    def request(self, page: AskedPage) -> HttpRequest:
        """Return the request for a page."""

    @abstractmethod
    def read(self, answer: Any) -> FoundPage[Record]:
        """Return what the service's JSON holds; ``KeyError`` and ``TypeError`` say that it is of another form."""

    def failure(self, response: HttpResponse, answer: Any) -> type[ServiceError] | None:
        """Return what kind of failure an answer is that the status does not tell; None otherwise.

        Called for every answer. ``answer`` is the body as JSON, None where it is none. An answer of another form than
        this expects is left to the status.
        """
        return None

    def identity(self, record: Any) -> Hashable:
        """Return what makes a record the same as one of an earlier page: its ``url``, where it has one; None for none.

        Services find a thing again on a further page. It is given once, and a page with nothing new is the last.
        """
        url = getattr(record, "url", None)
        return url if isinstance(url, str) else None

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
        clauses = wanted(options.filter)
        if clauses.nothing:
            return SearchResults([], total_count=0)
        last = options.skip + options.top if self.most is None else min(self.most, options.skip + options.top)
        if options.skip >= last:
            return SearchResults([])
        asked = self._first_page(whole_text(query), options, last, clauses)

        async def ask(page: AskedPage) -> FoundPage[Found]:
            sent = request(page)
            return self._read(await self._answer(sent), read, sent)

        first = await ask(asked)
        if first.fault is not None and not first.records:
            raise first.fault
        stream = _stream(ask, asked, first, range(options.skip, last), self)
        return SearchResults(stream, total_count=first.total_count, metadata=first.metadata)

    def _first_page(self, query: str, options: TextSearchOptions, last: int, clauses: Wanted) -> AskedPage:
        size, start = self.page_size, 0
        if self.paging == "results":
            size, start = min(size, last - options.skip), options.skip
        elif self.paging == "pages":
            size = min(size, last) if options.skip == 0 else size
            start = options.skip - options.skip % size
        source = f"Text search {self.name!r}"
        limits = {"characters": self.capabilities.query_characters, "words": self.capabilities.query_words}
        check_query(query, source, **limits)
        counted = options.include_total_count
        return AskedPage(query, start, size, start // size, clauses, counted, limits, source)

    async def _answer(self, request: HttpRequest) -> Any:
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
        answer, is_json = None, True
        try:
            answer = response.json()
        except ValueError:
            is_json = False
        try:
            kind = self.failure(response, answer)
        except _OTHER_FORM:
            kind = None
        if kind is not None or not response.ok:
            hidden, advice = _secrets(request, self.settings), self.advice.get(response.status)
            raise service_error(response, service, kind, hidden=hidden, advice=advice)
        if not is_json:
            raise ResponseInvalid(f"{service} answered with something that is not JSON. Check its address.")
        return answer

    def _read(self, answer: Any, read: Callable[[Any], FoundPage[Found]], request: HttpRequest) -> FoundPage[Found]:
        try:
            return read(answer)
        except PorticoError:
            raise
        except _OTHER_FORM as error:
            odd = error
        # The cause is shown in a traceback, and quotes what the service said: it stays only without secrets.
        why, hidden = f"{type(odd).__name__}: {odd}", _secrets(request, self.settings)
        fault = ResponseInvalid(
            f"Text search {self.name!r} answered in another form than agreed: {printable(why, hidden)}. "
            "Check its address."
        )
        raise fault from (odd if without_secrets(why, hidden) == why else None)

    def _turn(self) -> asyncio.Semaphore | None:
        """Return what bounds the requests of this event loop."""
        if self.at_once is None:
            return None
        return self._turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self.at_once))


async def _stream(
    ask: Callable[[AskedPage], Awaitable[FoundPage[Found]]],
    page: AskedPage,
    found: FoundPage[Found],
    wanted: range,
    connector: WebSearchConnector[Any],
) -> AsyncIterator[Found]:
    """Yield the results whose numbers are ``wanted``, asking for further pages on the way.

    A page with fewer records than it was asked for does not end the results where the service says that there are
    more: the next one fills them up. What a service repeats of an earlier page is left out.
    """
    paging, most = connector.paging, connector.most
    left, skip = len(wanted), wanted.start - page.start
    before: Sequence[Found] = ()
    known: set[Hashable] = set()
    while True:
        named = [(connector.identity(record), record) for record in found.records]
        fresh = [record for name, record in named if (record not in before if name is None else name not in known)]
        known.update(name for name, _ in named)
        for record in fresh[skip:]:
            yield record
            left -= 1
            if left == 0:
                return
        position = page.start + len(found.records)
        full = bool(fresh) if paging == "all pages" else len(found.records) >= page.size
        if paging == "results" and found.total_count is not None:
            full = full or position < found.total_count
        if not fresh or not (full if found.more is None else found.more):
            return
        if paging == "all pages":
            skip = max(0, skip - len(fresh))
        elif paging == "pages":
            # Such a service counts pages, whatever it gave of the last one.
            skip, position = 0, page.start + page.size
        elif found.next_start is not None:
            position = found.next_start
        if position <= page.start or (most is not None and position >= most):
            return
        size = page.size
        if paging == "results":
            size = min(connector.page_size, left, left if most is None else most - position)
        page = replace(page, start=position, size=size, number=page.number + 1)
        before, found = found.records, await ask(page)


def _secrets(request: HttpRequest, settings: object) -> list[Secret]:
    """Return what must not show of a request, and the settings' keys, which it may hold as a part of a value."""
    names = (*getattr(settings, "__dict__", ()), *getattr(type(settings), "__slots__", ()))
    own = (getattr(settings, name, None) for name in names)
    sent = (*request.headers.values(), *request.params.values())
    return [value for value in (*own, *sent) if isinstance(value, Secret)]
