"""The web search kit passes correct connectors of each way of paging, and catches broken ones."""

from __future__ import annotations

import asyncio
import contextlib
import html
import logging
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

from portico.errors import PorticoError, QuotaExceeded, ResponseInvalid, ServiceError, ServiceUnavailable
from portico.filter import Equal, FilterSupport, Wanted
from portico.http import HttpRequest, HttpResponse
from portico.ports.http_client import HttpClient
from portico.registration import Secret
from portico.search import SearchCapabilities, SearchResults, TextSearchResult
from portico.web_search import FoundPage, WebAddress, WebSearchConnector, read_record
from portico_testkit.fakes.services import FixedServices
from portico_testkit.kit_failures import KnownFaults
from portico_testkit.kit_of_a_kit import KitOfAKit
from portico_testkit.text_search import TextSearchKit
from portico_testkit.web_search import Failure, WebSearchKit
from portico_testkit.web_service import LocalService, Reply, ServedRequest, find, split_operators


class PlainClient:
    """The HttpClient port on the standard library: one connection a request, in a thread."""

    name = "plain"

    async def send(self, request: HttpRequest) -> HttpResponse:
        return await asyncio.to_thread(self._send, request)

    def _send(self, request: HttpRequest) -> HttpResponse:
        seen = ServedRequest.of(request)
        address = request.url + ("?" + urllib.parse.urlencode(seen.params) if seen.params else "")
        asked = urllib.request.Request(address, headers=dict(seen.headers), method=seen.method)
        try:
            with _OPENER.open(asked, timeout=10) as answer:
                return _response(answer)
        except urllib.error.HTTPError as error:
            with error:
                return _response(error)
        except OSError as error:
            raise ServiceUnavailable(f"{request.url} cannot be reached") from error


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects(), urllib.request.ProxyHandler({}))


def _response(answer: Any) -> HttpResponse:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return HttpResponse(answer.status, answer.read(), headers)


@dataclass(frozen=True, slots=True)
class Item:
    title: str
    text: str
    url: WebAddress
    site: str


@dataclass(frozen=True)
class AcmeSettings:
    base_url: str
    api_key: Secret


class AcmeSearch(WebSearchConnector[Item]):
    name = "acme"
    page_size = 7
    capabilities = SearchCapabilities(FilterSupport.fields_of("site", offered=("site",)), total_count=True)

    def request(self, page):
        params = {"q": page.query_with("site"), "from": page.start, "n": page.size}
        return HttpRequest(f"{self.settings.base_url}/find", params, {"X-Key": self.settings.api_key})

    def failure(self, response, answer):
        return QuotaExceeded if response.status == 432 else None

    def read(self, answer):
        return FoundPage(
            [read_record(Item, item) for item in answer["items"]],
            total_count=int(answer["total"]),
        )

    def to_text(self, record):
        return record.text

    def to_result(self, record):
        return TextSearchResult(record.text, record.title, record.url)


class AcmeByPages(AcmeSearch):
    paging = "pages"
    capabilities = replace(AcmeSearch.capabilities, most=70)

    def request(self, page):
        request = super().request(page)
        return replace(request, params={**request.params, "page": page.number, "from": None})


class AcmeByItsOwnPages(AcmeSearch):
    paging = "all pages"
    at_once = 2

    def request(self, page):
        request = super().request(page)
        return replace(request, params={**request.params, "page": page.number, "from": None, "n": None})


class Kit(WebSearchKit):
    kind: ClassVar[type[AcmeSearch]] = AcmeSearch
    filters = (Equal("site", "alpha.example"),)
    asks = ((Equal("site", "alpha.example"), {"q": "door site:alpha.example"}),)
    failures = (Failure("no money", Reply({"error": "Pay first."}, 432), QuotaExceeded, ("Pay first.",)),)

    @pytest.fixture
    def http_client(self) -> PlainClient:
        return PlainClient()

    def connect(self, base_url, services):
        return self.kind(AcmeSettings(base_url, Secret(self.key)), services)

    def speak(self, request, pages):
        if request.headers.get("x-key") != self.key:
            return Reply({"error": "Who are you?"}, 401)
        query, operators = split_operators(request.params["q"], "site")
        found = find(query, pages, sites=operators.get("site", ()))
        start, size = self.window(request)
        items = [
            {"title": page.title, "text": page.text, "url": page.url, "site": page.site}
            for page in found[start : start + size]
        ]
        return Reply({"items": items, "total": len(found)})

    def window(self, request):
        size = int(request.params.get("n", self.served_page_size))
        if "page" in request.params:
            return int(request.params["page"]) * size, size
        return int(request.params["from"]), size

    def fields_of(self, record):
        return {"site": record.site}


Kit.__test__ = False


class TestAConnectorByResults(Kit):
    __test__ = True


class TestAConnectorByPages(Kit):
    __test__ = True
    kind = AcmeByPages


class TestAConnectorByPagesOfTheServicesOwnSize(Kit):
    __test__ = True
    kind = AcmeByItsOwnPages
    served_page_size = 9


def attributes(kind: type[AcmeSearch]) -> dict[str, object]:
    return {"kind": kind, "served_page_size": 9}


def fixtures(kind: type[AcmeSearch]) -> dict[str, Callable[..., object]]:
    made = type("Made", (Kit,), attributes(kind))()

    def service() -> Iterator[LocalService]:
        with LocalService(made.speak) as service:
            yield service

    return {
        "service": service,
        "http_client": PlainClient,
        "text_search": lambda service, http_client: made.connect(service.url, FixedServices({HttpClient: http_client})),
    }


FAULTS = KnownFaults(Kit, fixtures, attributes=attributes, beyond=TextSearchKit)


@FAULTS.caught_by("a_search_is_as_few_requests_as_the_service_allows", "top=1, skip=0 asked for")
class AsksTwice(AcmeSearch):
    async def fetch(self, query, options):
        await super().fetch(query, options)
        return await super().fetch(query, options)


@FAULTS.caught_by("a_search_is_as_few_requests_as_the_service_allows", "top=5, skip=0 asked for")
class AsksForThreeAtATime(AcmeSearch):
    def request(self, page):
        return super().request(replace(page, size=min(page.size, 3)))


@FAULTS.caught_by("a_page_is_asked_for_when_it_is_read", "three results took 15 requests")
class ReadsAhead(AcmeSearch):
    async def fetch(self, query, options):
        results = await super().fetch(query, options)
        return SearchResults(await results.list(), total_count=results.total_count)


@FAULTS.caught_by("pages_make_one_list", "is not the service's list")
class LosesTheLastOfAPage(AcmeByPages):
    def read(self, answer):
        found = super().read(answer)
        return FoundPage(found.records[:6], found.total_count, more=len(found.records) == 7)


@FAULTS.caught_by("a_list_that_ends_is_not_asked_for_more", "11 results took 3 requests")
class GoesOnForNothing(AcmeSearch):
    def read(self, answer):
        found = super().read(answer)
        return FoundPage(found.records, found.total_count, more=True)


@FAULTS.caught_by("a_failure_of_a_later_page_is_told", "DID NOT RAISE")
class CutsAListShort(AcmeSearch):
    async def fetch(self, query, options):
        results = await super().fetch(query, options)

        async def until_it_fails():
            try:
                async for record in results:
                    yield record
            except PorticoError:
                return

        return SearchResults(until_it_fails(), total_count=results.total_count)


@FAULTS.caught_by("filters_reach_the_service", "sent .*, not .*site:alpha.example")
class ForgetsTheFilter(AcmeSearch):
    def request(self, page):
        return super().request(replace(page, wanted=Wanted({}, {})))


@FAULTS.caught_by("what_can_have_no_result_is_not_asked")
class AsksWhateverTheFilter(AcmeSearch):
    async def fetch(self, query, options):
        return await super().fetch(query, replace(options, filter=None))


@FAULTS.caught_by("queries_arrive_as_they_are")
class TidiesQueries(AcmeSearch):
    def request(self, page):
        return super().request(replace(page, query=" ".join(page.query.split()).replace("%", "")))


@FAULTS.caught_by("failures_are_told_apart", "rate limit: ServiceError")
class MixesUpFailures(AcmeSearch):
    def failure(self, response, answer):
        return None if response.ok else ServiceError


@FAULTS.caught_by("failures_are_told_apart", "That did not work")
class SaysNothingOfFailures(AcmeSearch):
    def failure(self, response, answer):
        if not response.ok:
            raise QuotaExceeded("That did not work.")


@FAULTS.caught_by("failures_are_told_apart", "DID NOT RAISE")
class TakesAnyAnswer(AcmeSearch):
    def read(self, answer):
        return super().read(answer) if isinstance(answer, dict) and "items" in answer else FoundPage([], 0)


@FAULTS.caught_by("the_key_is_never_shown", "repr shows the key")
class ShowsItsKey(AcmeSearch):
    def __repr__(self):
        return f"AcmeSearch({self.settings.api_key.reveal()})"


@FAULTS.caught_by("the_key_is_never_shown")
class LogsItsKey(AcmeSearch):
    def request(self, page):
        logging.getLogger("acme").debug("asking with %s", self.settings.api_key.reveal())
        return super().request(page)


@FAULTS.caught_by("what_the_service_has_is_what_is_found")
class KeepsMarkup(AcmeSearch):
    def to_result(self, record):
        return TextSearchResult(html.escape(record.text), record.title, record.url)


@FAULTS.caught_by("an_answer_that_is_odd_in_one_place_gives_results_or_an_error_of_portico", "a name is True")
class TrustsTheService(AcmeSearch):
    def read(self, answer):
        return FoundPage([Item(**item) for item in answer["items"]], total_count=answer["total"])


@FAULTS.caught_by("whatever_is_answered_gives_results_or_an_error_of_portico")
class ReadsWithoutANet(AcmeSearch):
    def _read(self, answer, read, request):
        return read(answer)


@FAULTS.caught_by("many_searches_at_once_do_not_mix", "door found")
class RemembersTheQuery(AcmeSearch):
    async def fetch(self, query, options):
        self.last = query
        await asyncio.sleep(0.001)
        return await super().fetch(self.last, options)


@FAULTS.caught_by("many_searches_at_once_do_not_mix", "requests at once")
class AsksAllAtOnce(AcmeSearch):
    at_once = 2

    def _place(self):
        return contextlib.nullcontext()


@FAULTS.caught_by("a_search_can_be_cancelled", "DID NOT RAISE")
class CannotBeStopped(AcmeSearch):
    async def fetch(self, query, options):
        try:
            return await super().fetch(query, options)
        except asyncio.CancelledError:
            return SearchResults([])


@FAULTS.caught_by("an_answer_that_is_cut_short_is_told", "DID NOT RAISE")
class FindsNothingInHalfAnAnswer(AcmeSearch):
    async def fetch(self, query, options):
        try:
            return await super().fetch(query, options)
        except ResponseInvalid:
            return SearchResults([])


@FAULTS.caught_by("a_service_that_is_not_there_is_told", "DID NOT RAISE")
class FindsNothingWhereNobodyIs(AcmeSearch):
    async def fetch(self, query, options):
        try:
            return await super().fetch(query, options)
        except ServiceUnavailable:
            return SearchResults([])


@FAULTS.caught_by("filter_values_that_the_service_cannot_take_are_refused", "shows a regular expression to people")
class ShowsItsPatterns(AcmeSearch):
    async def fetch(self, query, options):
        if options.filter is not None and r"\x00" in repr(options.filter):
            raise ServiceError("The site does not match [a-z0-9.-]+.")
        return await super().fetch(query, options)


@FAULTS.caught_by("a_key_that_stands_anywhere_in_an_answer_is_in_no_error", "shows the key")
class ShowsWhatItWasAnswered(AcmeSearch):
    def _read(self, answer, read, request):
        try:
            return super()._read(answer, read, request)
        except PorticoError as error:
            raise ResponseInvalid(f"Text search 'acme' was answered {answer}.") from error


class TestTheWebSearchKit(KitOfAKit):
    faults = FAULTS
    correct = (AcmeSearch, AcmeByPages, AcmeByItsOwnPages)
