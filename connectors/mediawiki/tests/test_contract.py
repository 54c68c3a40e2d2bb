from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from portico.errors import AuthenticationFailed, RateLimited, ResponseInvalid, ServiceError, ServiceUnavailable
from portico.plugins import Services
from portico.search import AnyOf, Equal
from portico_mediawiki.config import MediaWikiSettings
from portico_mediawiki.search import MediaWikiTextSearch, WikiPage
from portico_testkit.package import PackageKit
from portico_testkit.web_search import Failure, WebSearchKit
from portico_testkit.web_service import Reply, ServedRequest, WebPage, find, split_operators


def said(code: str, info: str, **headers: str) -> Reply:
    """Return an error as MediaWiki sends it: with the status of success."""
    error = {"code": code, "info": info, "docref": "See https://wiki.example/w/api.php for API usage."}
    return Reply({"error": error, "servedby": "mw1"}, headers={"MediaWiki-API-Error": code, **headers})


class TestMediaWiki(WebSearchKit):
    """A category of the wiki is a site of the kit's small web."""

    key = ""
    filters = (Equal("incategory", "alpha.example"), Equal("intitle", "The"))
    asks = (
        (Equal("incategory", "Doors and windows"), {"gsrsearch": 'door incategory:"Doors and windows"'}),
        (Equal("intitle", "oak"), {"gsrsearch": "door intitle:oak"}),
        (Equal("namespace", 4), {"gsrnamespace": "4"}),
        (AnyOf("namespace", ("0", "12")), {"gsrnamespace": "0|12", "gsrsearch": "door"}),
    )
    failures = (
        Failure(
            "lag",
            said("maxlag", "Waiting for a database server: 7 seconds lagged.", **{"Retry-After": "5"}),
            RateLimited,
            ("in 5 seconds", "7 seconds lagged"),
        ),
        Failure("too fast", said("ratelimited", "You've exceeded your rate limit."), RateLimited, ("exceeded",)),
        Failure("busy", said("cirrussearch-too-busy-error", "Search is currently too busy."), RateLimited, ("busy",)),
        Failure(
            "no index",
            said("cirrussearch-backend-error", "We could not complete your search due to a temporary problem."),
            ServiceUnavailable,
            ("temporary problem",),
        ),
        Failure(
            "its fault",
            said("internal_api_error_DBQueryError", "[bf00] Caught exception of type DBQueryError."),
            ServiceUnavailable,
            ("DBQueryError",),
        ),
        Failure(
            "a closed wiki",
            said("readapidenied", "You need read permission to use this module."),
            AuthenticationFailed,
            ("read permission",),
        ),
        Failure(
            "too long",
            said(
                "cirrussearch-query-too-long", "Search request is longer than the maximum allowed length. (400 > 300)"
            ),
            ServiceError,
            ("400 > 300",),
        ),
        Failure(
            "nobody knows who asks",
            Reply(status=403, body=b"Please respect our robot policy."),
            AuthenticationFailed,
            ("`contact`", "403"),
        ),
        Failure("no wiki", Reply({}), ResponseInvalid, ("form",)),
    )

    def connect(self, base_url: str, services: Services) -> MediaWikiTextSearch:
        return MediaWikiTextSearch(MediaWikiSettings(base_url=f"{base_url}/w/api.php"), services)

    def speak(self, request: ServedRequest, pages: Sequence[WebPage]) -> Reply:
        assert request.path == "/w/api.php"
        asked = request.params
        assert (asked["action"], asked["generator"], asked["formatversion"]) == ("query", "search", "2")
        assert set(asked["prop"].split("|")) == {"extracts", "info"}
        query, operators = split_operators(asked["gsrsearch"], "incategory", "intitle")
        (start, size) = self.window(request)
        assert 1 <= size <= 20, "TextExtracts gives 20 at most"
        found = [
            page
            for page in find(query, pages, sites=operators.get("incategory", ()))
            if all(title in page.title.split() for title in operators.get("intitle", ()))
        ]
        part = [as_mediawiki_says(page, index) for index, page in enumerate(found[start : start + size], start + 1)]
        more = {"continue": {"gsroffset": start + size, "continue": "gsroffset||"}} if start + size < len(found) else {}
        query_part: dict[str, Any] = {"searchinfo": {"totalhits": len(found)}}
        if part:
            query_part["pages"] = sorted(part, key=lambda page: page["pageid"])
        return Reply({"batchcomplete": True, **more, "query": query_part})

    def window(self, request: ServedRequest) -> tuple[int, int]:
        return int(request.params["gsroffset"]), int(request.params["gsrlimit"])

    def query_of(self, request: ServedRequest) -> str:
        return request.params["gsrsearch"]

    def fields_of(self, record: WikiPage) -> Mapping[str, object]:
        return {"incategory": urlsplit(record.url or "").hostname, "intitle": record.title.split()}


def as_mediawiki_says(page: WebPage, index: int) -> dict[str, Any]:
    first, _, rest = html.escape(page.text).partition(" ")
    return {
        "pageid": 9_999 - index * 7 % 100,
        "ns": 0,
        "title": page.title,
        "snippet": f'<span class="searchmatch">{first}</span> {rest}',
        "timestamp": f"{page.date}T12:30:00Z",
        "index": index,
        "extract": page.text,
        "contentmodel": "wikitext",
        "fullurl": page.url,
        "editurl": f"{page.url}&action=edit",
        "canonicalurl": page.url,
    }


class TestPackage(PackageKit):
    distribution = "portico-mediawiki"
