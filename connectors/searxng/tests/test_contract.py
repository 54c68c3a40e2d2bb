from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from portico.errors import AuthenticationFailed, RateLimited, ServiceError, ServiceUnavailable
from portico.plugins import Services
from portico.search import And, AnyOf, Equal
from portico_searxng.config import SearxngSettings
from portico_searxng.search import SearxngTextSearch, WebResult
from portico_testkit.package import PackageKit
from portico_testkit.web_search import Failure, WebSearchKit
from portico_testkit.web_service import Reply, ServedRequest, WebPage, find, split_operators

FORBIDDEN = b"""<!doctype html>
<html lang=en>
<title>403 Forbidden</title>
<h1>Forbidden</h1>
<p>You don&#39;t have the permission to access the requested resource.</p>
"""


class TestSearxng(WebSearchKit):
    key = ""
    filters = (Equal("site", "alpha.example"),)
    asks = (
        (Equal("site", "alpha.example"), {"q": "door site:alpha.example", "site": None}),
        (Equal("language", "de-CH"), {"q": "door", "language": "de-CH"}),
        (Equal("time_range", "month"), {"time_range": "month"}),
        (AnyOf("engines", ("duckduckgo", "mojeek")), {"engines": "duckduckgo,mojeek", "categories": None}),
        (
            And((Equal("categories", "science"), Equal("site", "beta.example"))),
            {"categories": "science", "q": "door site:beta.example"},
        ),
    )
    failures = (
        Failure("JSON is off", Reply(status=403, body=FORBIDDEN), AuthenticationFailed, ("search.formats", "403")),
        Failure("the limiter", Reply(status=429, body=b"Too Many Requests"), RateLimited, ("limiter.toml", "429")),
        Failure(
            "a wrong parameter",
            Reply({"error": "Invalid value soon for parameter time_range"}, 400),
            ServiceError,
            ("Invalid value soon", "400"),
        ),
        Failure("its fault", Reply({"error": "search error"}, 500), ServiceUnavailable, ("search error", "500")),
        Failure(
            "no engine answers",
            Reply({"results": [], "unresponsive_engines": [["duckduckgo", "CAPTCHA"], ["mojeek", "timeout"]]}),
            ServiceUnavailable,
            ("duckduckgo (CAPTCHA), mojeek (timeout)",),
        ),
    )

    def connect(self, base_url: str, services: Services) -> SearxngTextSearch:
        return SearxngTextSearch(SearxngSettings(base_url=base_url), services)

    def speak(self, request: ServedRequest, pages: Sequence[WebPage]) -> Reply:
        assert request.path == "/search"
        assert request.params["format"] == "json"
        query, operators = split_operators(request.params["q"], "site")
        found = find(query, pages, sites=operators.get("site", ()))
        start, size = self.window(request)
        # Engines disagree on what is on which page: some of the page before come again.
        again = found[max(0, start - 2) : start]
        results = [as_searxng_says(page, place) for place, page in enumerate([*again, *found[start : start + size]], 1)]
        return Reply(
            {
                "query": request.params["q"],
                "number_of_results": 0,
                "results": results if found[start:] else [],
                "answers": [],
                "corrections": [],
                "infoboxes": [],
                "suggestions": ["doors"],
                "unresponsive_engines": [["mojeek", "timeout"]] if results else [],
            }
        )

    def window(self, request: ServedRequest) -> tuple[int, int]:
        return (int(request.params["pageno"]) - 1) * self.served_page_size, self.served_page_size

    def fields_of(self, record: WebResult) -> Mapping[str, object]:
        return {"site": urlsplit(record.url or "").hostname}


def as_searxng_says(page: WebPage, place: int) -> dict[str, Any]:
    parts = urlsplit(page.url)
    return {
        "url": page.url,
        "title": page.title,
        "content": page.text,
        "publishedDate": f"{page.date}T00:00:00",
        "pubdate": f"{page.date} 00:00:00+0000",
        "engine": "duckduckgo",
        "engines": ["duckduckgo", "brave"],
        "positions": [place],
        "score": 2 / place,
        "category": "general",
        "template": "default.html",
        "parsed_url": [parts.scheme, parts.netloc, parts.path, "", parts.query, ""],
        "img_src": "",
        "thumbnail": "",
        "priority": "",
    }


class TestPackage(PackageKit):
    distribution = "portico-searxng"
    settings = (SearxngSettings("http://127.0.0.1:8888"),)
