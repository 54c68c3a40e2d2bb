"""The Tavily connector is a TextSearch, against a server that speaks as Tavily does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from email.utils import format_datetime
from typing import Any
from urllib.parse import urlsplit

from portico.errors import AuthenticationFailed, QuotaExceeded, RateLimited, ServiceError
from portico.plugins import Secret
from portico.search import And, AnyOf, Equal, Range
from portico_tavily.config import TavilySettings
from portico_tavily.search import TavilyTextSearch
from portico_testkit.package import PackageKit
from portico_testkit.text_search import TextSearchKit
from portico_testkit.web_search import Failure, WebSearchKit
from portico_testkit.web_service import Reply, ServedRequest, WebPage, find


def refusal(status: int, said: str, headers: dict[str, str] | None = None) -> Reply:
    """Return an error as Tavily sends it."""
    return Reply({"detail": {"error": said}}, status, headers=headers or {})


def as_tavily_says(page: WebPage, score: float) -> dict[str, Any]:
    """Return a result as Tavily sends it."""
    return {
        "title": page.title,
        "url": page.url,
        "content": page.text,
        "score": score,
        "raw_content": None,
        "published_date": format_datetime(datetime(page.date.year, page.date.month, page.date.day)),
    }


class TestTavily(WebSearchKit):
    # Tavily's bound on queries; `test_search.py` has the queries beyond it.
    awkward = tuple(query for query in TextSearchKit.awkward if len(query) <= 400)
    filters = (
        Equal("site", "alpha.example"),
        AnyOf("site", ("alpha.example", "beta.example")),
        Range("date", at_least="2024-03-01", below="2025-01-01"),
        And((Equal("site", "beta.example"), Range("date", above="2024-06-01"))),
    )
    asks = (
        (Equal("site", "alpha.example"), {"query": "door", "include_domains": ["alpha.example"], "country": None}),
        (AnyOf("site", ("a.example", "b.example")), {"include_domains": ["a.example", "b.example"]}),
        (AnyOf("exclude_domains", ("a.example",)), {"exclude_domains": ["a.example"], "include_domains": None}),
        (Equal("topic", "finance"), {"topic": "finance"}),
        (Equal("country", "germany"), {"country": "germany", "topic": "general"}),
        (Equal("time_range", "week"), {"time_range": "week", "start_date": None, "end_date": None}),
        (
            Range("date", at_least="2024-03-01", below="2025-01-01"),
            {"start_date": "2024-03-01", "end_date": "2024-12-31"},
        ),
        (Range("date", above="2024-03-01"), {"start_date": "2024-03-02", "end_date": None}),
    )
    failures = (
        Failure(
            "a wrong key",
            refusal(401, "Unauthorized: missing or invalid API key."),
            AuthenticationFailed,
            ("key", "Unauthorized: missing or invalid API key."),
        ),
        Failure(
            "too many in a minute",
            refusal(
                429,
                "Your request has been blocked due to excessive requests. Please reduce rate of requests.",
                {"Retry-After": "3600"},
            ),
            RateLimited,
            ("in 3600 seconds", "excessive requests"),
        ),
        Failure(
            "the plan is used up",
            refusal(432, "This request exceeds your plan's set usage limit. Please upgrade your plan."),
            QuotaExceeded,
            ("432", "quota", "exceeds your plan's set usage limit"),
        ),
        Failure(
            "the money is used up",
            refusal(433, "This request exceeds the pay-as-you-go limit."),
            QuotaExceeded,
            ("433", "pay-as-you-go"),
        ),
        Failure(
            "a parameter",
            refusal(400, "Invalid topic. Must be 'general', 'news' or 'finance'."),
            ServiceError,
            ("400", "Invalid topic."),
        ),
        Failure(
            "a parameter, as the framework below says it",
            Reply({"detail": [{"loc": ["body", "max_results"], "msg": "Input should be less than 21"}]}, 422),
            ServiceError,
            ("422", "Input should be less than 21"),
        ),
    )

    def connect(self, base_url, services):
        return TavilyTextSearch(TavilySettings(Secret(self.key), base_url=base_url), services)

    def speak(self, request: ServedRequest, pages: Sequence[WebPage]) -> Reply:
        if request.headers.get("authorization") != f"Bearer {self.key}":
            return refusal(401, "Unauthorized: missing or invalid API key.")
        assert (request.method, request.path) == ("POST", "/search")
        assert request.headers["content-type"] == "application/json"
        asked = request.json
        assert self.key not in str(asked), "the key is not for the body"
        assert None not in asked.values(), "Tavily takes no null"
        assert 1 <= asked["max_results"] <= 20, "Tavily gives 20 results at most"
        assert len(asked["query"]) <= 400
        since, until = asked.get("start_date"), asked.get("end_date")
        found = find(
            asked["query"],
            pages,
            sites=asked.get("include_domains", ()),
            since=since and date.fromisoformat(since),
            until=until and date.fromisoformat(until),
        )
        results = [as_tavily_says(page, 1 / (2 + rank)) for rank, page in enumerate(found[: asked["max_results"]])]
        answer = {"query": asked["query"], "follow_up_questions": None, "answer": None, "images": []}
        return Reply({**answer, "results": results, "response_time": 0.42, "request_id": "123e4567-e89b"})

    def window(self, request: ServedRequest) -> tuple[int, int]:
        return 0, request.json["max_results"]

    def fields_of(self, record):
        return {"site": urlsplit(record.url).hostname, "date": record.published_date.date().isoformat()}


class TestPackage(PackageKit):
    distribution = "portico-tavily"
