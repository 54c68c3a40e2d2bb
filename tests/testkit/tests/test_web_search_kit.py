"""The web search kit passes correct connectors of each way of paging, and catches broken ones."""

from __future__ import annotations

import asyncio
import logging
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

from portico.errors import QuotaExceeded, ServiceUnavailable
from portico.plugins import HttpRequest, HttpResponse, Secret
from portico.ports import HttpClient
from portico.search import (
    Equal,
    FilterSupport,
    FoundPage,
    SearchCapabilities,
    TextSearchResult,
    WebAddress,
    WebSearchConnector,
    read_record,
)
from portico_testkit.fakes.services import FixedServices
from portico_testkit.kit_failures import Fault, KnownFaults
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
        return FoundPage([read_record(Item, item) for item in answer["items"]], total_count=int(answer["total"]))

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


FAULTS = KnownFaults(Kit, fixtures, attributes=attributes)


@FAULTS.caught_by("the_key_is_never_shown")
class LogsItsKey(AcmeSearch):
    def request(self, page):
        logging.getLogger("acme").debug("asking with %s", self.settings.api_key.reveal())
        return super().request(page)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: Fault, given: Any) -> None:
    await FAULTS.check(fault, given)
