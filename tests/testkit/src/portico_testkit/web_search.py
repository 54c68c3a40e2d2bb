"""What services say when they fail, and answers that are odd in one place."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, ClassVar

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings, strategies as st

from portico.errors import (
    AuthenticationFailed,
    PorticoError,
    RateLimited,
    ResponseInvalid,
    ServiceError,
    ServiceUnavailable,
)
from portico.plugins import HttpRequest, HttpResponse, Services
from portico.ports import HttpClient
from portico.search import Filter, SearchResults, TextSearchOptions, TextSearchResult
from portico_testkit.fakes.http_client import RecordedHttpClient
from portico_testkit.fakes.services import FixedServices
from portico_testkit.strategies import json_values, near
from portico_testkit.text_search import TextSearchKit
from portico_testkit.web_service import LocalService, Reply, ServedRequest, WebPage, find

__all__ = ["COMMON_FAILURES", "Failure", "WebSearchKit", "all_of", "gives_results_or_an_error", "installed_http_client"]


@dataclass(frozen=True, slots=True)
class Failure:
    """An answer that is none, and what a search must make of it.

    ``kind`` is the very class of the error, ``words`` are in its message. ``name`` is shown by a test that fails.
    """

    name: str
    reply: Reply
    kind: type[PorticoError]
    words: tuple[str, ...] = ()


COMMON_FAILURES: tuple[Failure, ...] = (
    Failure("rate limit", Reply({}, 429, headers={"Retry-After": "3600"}), RateLimited, ("3600", "429")),
    Failure("wrong key", Reply({}, 401), AuthenticationFailed, ("401", "key")),
    Failure("nothing there", Reply(status=404, body=b"<h1>Not found</h1>"), ServiceError, ("404", "address")),
    Failure("its fault", Reply({}, 500), ServiceUnavailable, ("500",)),
    Failure("a proxy's fault", Reply(status=502, body=b"<h1>Bad gateway</h1>"), ServiceUnavailable, ("502",)),
    Failure("moved", Reply(status=302, headers={"Location": "/sign-in"}), ResponseInvalid, ("/sign-in", "302")),
    Failure("a page for people", Reply(body=b"<!doctype html><h1>Welcome</h1>"), ResponseInvalid, ("JSON",)),
    Failure("nothing said", Reply(body=b""), ResponseInvalid, ("JSON",)),
    Failure("a list", Reply([]), ResponseInvalid, ("form",)),
    Failure("a word", Reply("results"), ResponseInvalid, ("form",)),
    Failure("a number", Reply(42), ResponseInvalid, ("form",)),
    Failure("null", Reply(body=b"null"), ResponseInvalid, ("form",)),
)
"""What any service may say, or a proxy before it."""


async def gives_results_or_an_error(search: Any, query: str, response: HttpResponse) -> None:
    """Search with a connector that is answered so, and see that there are well-formed results or an error of ours."""
    try:
        results: SearchResults[TextSearchResult] = await search.get_text_search_results(
            query, TextSearchOptions(top=3, include_total_count=True)
        )
        found = await results.list()
    except PorticoError:
        return
    except Exception as error:
        raise AssertionError(f"{response} is {error!r}, no error of Portico") from error
    assert isinstance(results.total_count, int | None), f"total_count is {results.total_count!r}"
    for result in found:
        assert isinstance(result.value, str), f"a value is {result.value!r}"
        assert result.name is None or isinstance(result.name, str), f"a name is {result.name!r}"
        assert result.link is None or result.link.startswith(("http://", "https://")), f"a link is {result.link!r}"


def all_of(error: BaseException) -> str:
    """Return all that can be printed of an error and of those behind it."""
    shown = []
    behind: BaseException | None = error
    while behind is not None:
        shown += [str(behind), repr(behind), repr(vars(behind))]
        behind = behind.__cause__ or behind.__context__
    return "\n".join(shown)


def installed_http_client() -> HttpClient:
    """Return the HttpClient of the package that is installed for it, without settings."""
    for entry_point in entry_points(group="portico"):
        hook = getattr(entry_point.load(), "portico_http_clients", None)
        for registration in hook() if hook is not None else ():
            chosen = registration.settings
            chosen = _imported(chosen) if isinstance(chosen, str) else chosen
            client: HttpClient = _imported(registration.factory)(None if chosen is None else chosen(), FixedServices())
            return client
    return pytest.fail("No HttpClient is installed. Install portico-web, or give the fixture http_client.")


def _imported(reference: str) -> Any:
    module, _, attribute = reference.partition(":")
    return getattr(import_module(module), attribute)


class WebSearchKit(TextSearchKit):
    """Subclass it and say how to make the connector and what the service says::

        class TestAcme(WebSearchKit):
            filters = (Equal("site", "alpha.example"),)
            asks = ((Equal("site", "alpha.example"), {"q": "door site:alpha.example"}),)
            failures = (Failure("no money", Reply({"error": "Pay."}, 432), QuotaExceeded, ("Pay.",)),)

            def connect(self, base_url, services):
                return AcmeTextSearch(AcmeSettings(api_key=Secret(self.key), base_url=base_url), services)

            def speak(self, request, pages):
                if request.headers.get("x-key") != self.key:
                    return Reply({"error": "Who are you?"}, 401)
                found = find(request.params["q"], pages)
                start, size = self.window(request)
                return Reply({"items": [as_acme_says(page) for page in found[start : start + size]]})

            def window(self, request):
                return int(request.params["offset"]), int(request.params["count"])

            def fields_of(self, record):
                return {"site": record.site}

    ``speak`` runs in a real server on loopback and honours paging, counts and filters over ``pages``; let it assert
    what the service would refuse. ``window`` is what a request asks for: the number of the first result, from 0 on,
    and how many. ``asks`` are filters with the parameters, or members of the JSON, that they must become for the query
    ``door``; a parameter that must not be there is None. ``failures`` are errors as the service sends them.
    ``served_page_size`` is the size of the pages of a service that has its own. The client is the installed one; a
    fixture ``http_client`` replaces it.
    """

    query: ClassVar[str] = "door"
    other_query: ClassVar[str] = "roof"
    many: ClassVar[str] = "brick"
    key: ClassVar[str] = "tk-9f86d081884c7d65"
    asks: ClassVar[tuple[tuple[Filter, Mapping[str, Any]], ...]] = ()
    failures: ClassVar[tuple[Failure, ...]] = ()
    common_failures: ClassVar[tuple[Failure, ...]] = COMMON_FAILURES
    served_page_size: ClassVar[int] = 10

    def connect(self, base_url: str, services: Services) -> Any:
        """Return the connector for a service at ``base_url``, with ``key`` as its key."""
        raise AssertionError("a subclass says how the connector is made: connect")

    def speak(self, request: ServedRequest, pages: Sequence[WebPage]) -> Reply:
        """Return what the service says to a request."""
        raise AssertionError("a subclass says what the service says: speak")

    def window(self, request: ServedRequest) -> tuple[int, int]:
        """Return the number of the first result that a request asks for, and how many."""
        raise AssertionError("a subclass says what a request asks for: window")

    def query_of(self, request: ServedRequest) -> str:
        """Return the query as the service got it."""
        text = request.params.get("q") if request.json is None else request.json.get("query")
        assert isinstance(text, str), f"the query is not where the kit looks for it; say so with query_of: {request}"
        return text

    def expected(self, page: WebPage) -> TextSearchResult:
        """Return the result that a page must become."""
        return TextSearchResult(page.text, page.title, page.url)

    def best(self) -> str:
        """Return the text of the service's first result."""
        return self.expected(find(self.query)[0]).value

    @pytest.fixture
    def failing_search(self, http_client: HttpClient) -> Iterator[Any]:
        with LocalService(lambda request, pages: Reply({}, 500)) as service:
            yield self.connect(service.url, FixedServices({HttpClient: http_client}))

    @pytest.fixture
    def service(self) -> Iterator[LocalService]:
        with LocalService(self.speak) as service:
            yield service

    @pytest_asyncio.fixture
    async def http_client(self) -> AsyncIterator[HttpClient]:
        client = installed_http_client()
        yield client
        close = getattr(client, "aclose", None)
        if close is not None:
            await close()

    @pytest.fixture
    def text_search(self, service: LocalService, http_client: HttpClient) -> Any:
        return self.connect(service.url, FixedServices({HttpClient: http_client}))

    @pytest.mark.asyncio
    async def test_what_the_service_has_is_what_is_found(self, text_search: Any) -> None:
        for query in (self.query, self.other_query):
            found = await _found(text_search, query, top=20)
            assert found == [self.expected(page) for page in find(query)]

    @pytest.mark.asyncio
    async def test_pages_make_one_list(self, text_search: Any) -> None:
        size = self.served_page_size if text_search.paging == "all pages" else text_search.page_size
        every = [self.expected(page) for page in find(self.many)][: text_search.capabilities.most]
        last = 3 * size + 5 if text_search.capabilities.most is None else text_search.capabilities.most
        assert await _found(text_search, self.many, top=last) == every[:last], f"top={last} is not the service's list"
        for skip in (0, 1, size - 1, size, size + 1, last - 2):
            for top in (1, 3, size, size + 1):
                found = await _found(text_search, self.many, top=top, skip=skip)
                assert found == every[skip : skip + top], f"skip={skip}, top={top} is not that part of the list"

    @pytest.mark.asyncio
    async def test_a_failure_of_a_later_page_is_told(self, text_search: Any, service: LocalService) -> None:
        if text_search.capabilities.most is not None and text_search.capabilities.most <= text_search.page_size:
            return
        service.speak = lambda request, pages: (
            self.speak(request, pages) if len(service.requests) == 1 else Reply({}, 401)
        )
        results = await text_search.get_text_search_results(self.many, TextSearchOptions(top=100))
        read = []
        with pytest.raises(AuthenticationFailed):
            async for result in results:
                read.append(result)  # noqa: PERF401 - what was read before the failure is to be seen
        assert read == [self.expected(page) for page in find(self.many)[: len(read)]]
        assert read, "what came before the failure is lost"

    @pytest.mark.asyncio
    async def test_filters_reach_the_service(self, text_search: Any, service: LocalService) -> None:
        for filter, expected in self.asks:
            service.requests.clear()
            await _found(text_search, self.query, filter=filter)
            assert service.requests, f"{filter} sent nothing"
            request = service.requests[0]
            sent = {**request.params, **(request.json or {})}
            differs = {name: sent.get(name) for name, value in expected.items() if sent.get(name) != value}
            assert not differs, f"{filter} sent {differs}, not {dict(expected)}"

    @pytest.mark.asyncio
    async def test_queries_arrive_as_they_are(self, text_search: Any, service: LocalService) -> None:
        for query in self.awkward:
            service.requests.clear()
            await _found(text_search, query)
            expected = query.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            assert [self.query_of(request) for request in service.requests[:1]] == [expected]

    @pytest.mark.asyncio
    async def test_failures_are_told_apart(
        self, text_search: Any, service: LocalService, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        for failure in (*self.common_failures, *self.failures):
            service.speak = lambda request, pages, reply=failure.reply: reply  # type: ignore[misc]
            with pytest.raises(PorticoError) as caught:
                await _found(text_search, self.query)
            error = caught.value
            assert type(error) is failure.kind, f"{failure.name}: {type(error).__name__}: {error}"
            lost = [word for word in (*failure.words, repr(text_search.name)) if word not in str(error)]
            assert not lost, f"{failure.name}: the message does not tell {lost}: {error}"
            if isinstance(error, RateLimited) and "Retry-After" in failure.reply.headers:
                assert error.retry_after == float(failure.reply.headers["Retry-After"])
            self._has_no_key(all_of(error), failure.name)
        self._has_no_key(caplog.text, "the log")
        service.speak = self.speak
        assert await _found(text_search, self.query), "after failures the connector finds nothing"

    @pytest.mark.asyncio
    async def test_a_service_that_is_not_there_is_told(self, http_client: HttpClient) -> None:
        with LocalService(self.speak) as gone:
            url = gone.url
        search = self.connect(url, FixedServices({HttpClient: http_client}))
        with pytest.raises(ServiceUnavailable) as caught:
            await _found(search, self.query)
        self._has_no_key(all_of(caught.value), "the error")

    @pytest.mark.asyncio
    async def test_the_key_is_never_shown(
        self, text_search: Any, service: LocalService, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        await _found(text_search, self.query)
        self._has_no_key(caplog.text, "the log")
        self._has_no_key(repr(text_search) + repr(vars(text_search)), "repr")
        for status in (400, 401, 403, 422, 500):
            said = f"{'x' * 280} the key {self.key} is not {self.key}. "
            for reply in (
                Reply({"error": {"message": said, "detail": said}, "message": said, "detail": {"error": said}}, status),
                Reply(status=status, body=said.encode(), headers={"Content-Type": "text/plain"}),
                Reply(status=302, headers={"Location": f"https://elsewhere.example/?key={self.key}"}),
            ):
                service.speak = lambda request, pages, reply=reply: reply  # type: ignore[misc]
                with pytest.raises(PorticoError) as caught:
                    await _found(text_search, self.query)
                self._has_no_key(all_of(caught.value), f"the error for {status}")
        self._has_no_key(caplog.text, "the log")

    @pytest.mark.asyncio
    async def test_a_search_can_be_cancelled(self, text_search: Any, service: LocalService) -> None:
        with service.holding():
            search = asyncio.create_task(_found(text_search, self.query))
            while not service.requests:
                await asyncio.sleep(0.005)
            search.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(search, 5)
        assert await _found(text_search, self.query, top=1) == [self.expected(find(self.query)[0])]

    @pytest.mark.fuzz
    def test_whatever_is_answered_gives_results_or_an_error_of_portico(self) -> None:
        answer = asyncio.run(self._answer())

        @settings(deadline=None, suppress_health_check=list(HealthCheck))
        @given(near(answer) | json_values() | st.binary(max_size=40), st.sampled_from([200, 200, 200, 400, 429]))
        def check(said: Any, status: int) -> None:
            reply = Reply(body=said) if isinstance(said, bytes) else Reply(said)
            asyncio.run(self._gives_results_or_an_error(HttpResponse(status, reply.content())))

        check()

    async def _gives_results_or_an_error(self, response: HttpResponse) -> None:
        client = RecordedHttpClient(lambda request: response)
        search = self.connect("http://127.0.0.1:9", FixedServices({HttpClient: client}))
        await gives_results_or_an_error(search, self.query, response)

    async def _answer(self) -> Any:
        """Return what the service answers to the query."""
        replies: list[Reply] = []

        def answer(request: HttpRequest) -> HttpResponse:
            replies.append(self.speak(ServedRequest.of(request), find(self.query)))
            return HttpResponse(200, replies[-1].content())

        search = self.connect("http://127.0.0.1:9", FixedServices({HttpClient: RecordedHttpClient(answer)}))
        await _found(search, self.query, top=3)
        return replies[0].json

    def _has_no_key(self, text: str, where: str) -> None:
        assert not self.key or self.key not in text, f"{where} shows the key"


async def _found(
    search: Any, query: str, *, top: int = 5, skip: int = 0, filter: Filter | None = None
) -> list[TextSearchResult]:
    options = TextSearchOptions(top=top, skip=skip, filter=filter)
    return await (await search.get_text_search_results(query, options)).list()  # type: ignore[no-any-return]
