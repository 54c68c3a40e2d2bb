"""The Brave connector is a TextSearch, against a server that speaks as Brave does."""

from __future__ import annotations

import html
from collections.abc import Sequence
from datetime import date
from typing import Any
from urllib.parse import urlsplit

from portico.errors import AuthenticationFailed, QuotaExceeded, RateLimited, ServiceError
from portico.plugins import Secret
from portico.search import And, Equal, Range
from portico_brave.config import BraveSettings
from portico_brave.search import BraveTextSearch
from portico_testkit.package import PackageKit
from portico_testkit.text_search import TextSearchKit
from portico_testkit.web_search import Failure, WebSearchKit
from portico_testkit.web_service import Reply, ServedRequest, WebPage, find, split_operators

RESET = {"X-RateLimit-Limit": "1, 2000", "X-RateLimit-Policy": "1;w=1, 2000;w=2592000"}


def refusal(status: int, code: str, detail: str, headers: dict[str, str] | None = None, **meta: Any) -> Reply:
    """Return an error as Brave sends it."""
    error = {"id": "5d832250-9396", "status": status, "detail": detail, "meta": meta, "code": code}
    return Reply({"type": "ErrorResponse", "error": error, "time": 1773685964}, status, headers=headers or {})


def as_brave_says(page: WebPage) -> dict[str, Any]:
    """Return a result as Brave sends it: escaped, with the query's words marked."""
    marked = html.escape(page.text).replace("door", "<strong>door</strong>")
    return {
        "type": "search_result",
        "title": html.escape(page.title),
        "url": page.url,
        "description": marked,
        "page_age": f"{page.date}T07:28:42",
        "age": f"{page.date:%B %d, %Y}",
        "language": page.language,
        "family_friendly": True,
        "meta_url": {"scheme": "https", "netloc": page.site, "hostname": page.site, "path": "›"},
    }


class TestBrave(WebSearchKit):
    # Brave's bound on queries; `test_search.py` has the queries beyond it.
    awkward = tuple(query for query in TextSearchKit.awkward if len(query) <= 400)
    filters = (
        Equal("site", "alpha.example"),
        Equal("language", "de"),
        Range("date", at_least="2024-03-01", below="2025-01-01"),
        And((Equal("site", "beta.example"), Range("date", above="2024-06-01"))),
    )
    asks = (
        (Equal("site", "alpha.example"), {"q": "door site:alpha.example", "freshness": None}),
        (Equal("language", "de"), {"search_lang": "de", "q": "door"}),
        (Equal("country", "DE"), {"country": "DE"}),
        (Equal("safe_search", "strict"), {"safesearch": "strict"}),
        (Equal("freshness", "pw"), {"freshness": "pw"}),
        (Range("date", at_least="2024-03-01", below="2025-01-01"), {"freshness": "2024-03-01to2024-12-31"}),
        (Range("date", above="2024-03-01T12:00", at_most="2024-03-31"), {"freshness": "2024-03-02to2024-03-31"}),
        (Range("date", at_most="2024-03-31"), {"freshness": "1970-01-01to2024-03-31"}),
    )
    failures = (
        Failure(
            "a wrong key",
            refusal(422, "SUBSCRIPTION_TOKEN_INVALID", "The provided subscription token is invalid."),
            AuthenticationFailed,
            ("key", "The provided subscription token is invalid."),
        ),
        Failure(
            "no subscription",
            refusal(404, "SUBSCRIPTION_NOT_FOUND", "No subscription found.", component="subscriptions"),
            AuthenticationFailed,
            ("No subscription found.",),
        ),
        Failure(
            "too many in a second",
            refusal(
                429,
                "RATE_LIMITED",
                "Request rate limit exceeded for plan.",
                RESET | {"X-RateLimit-Remaining": "0, 1985", "X-RateLimit-Reset": "60, 1419704"},
                plan="Free",
                rate_limit=1,
            ),
            RateLimited,
            ("in 60 seconds", "Request rate limit exceeded for plan."),
        ),
        Failure(
            "too many in a month",
            refusal(
                429,
                "QUOTA_LIMITED",
                "Request quota limit exceeded for plan.",
                RESET | {"X-RateLimit-Remaining": "1, 0", "X-RateLimit-Reset": "1, 1419704"},
                plan="Free",
                quota_limit=2000,
            ),
            QuotaExceeded,
            ("Request quota limit exceeded for plan.",),
        ),
        Failure(
            "errors as a list, as the reference has them",
            Reply({"type": "ErrorResponse", "errors": [{"code": "QUOTA_LIMITED", "detail": "Used up."}]}, 429),
            QuotaExceeded,
            ("Used up.",),
        ),
        Failure(
            "a parameter",
            refusal(
                422,
                "VALIDATION",
                "Unable to validate request parameter(s)",
                errors=[{"type": "enum", "loc": ["query", "country"], "msg": "Input should be 'AR'", "input": "XX"}],
            ),
            ServiceError,
            ("Unable to validate request parameter(s) (query.country: Input should be 'AR')",),
        ),
        Failure(
            "not in the plan",
            refusal(400, "OPTION_NOT_IN_PLAN", "The option is not subscribed in the plan."),
            ServiceError,
            ("The option is not subscribed in the plan.",),
        ),
    )

    def connect(self, base_url, services):
        return BraveTextSearch(BraveSettings(Secret(self.key), base_url=f"{base_url}/res/v1"), services)

    def speak(self, request: ServedRequest, pages: Sequence[WebPage]) -> Reply:
        if "x-subscription-token" not in request.headers:
            return refusal(422, "VALIDATION", "Unable to validate request parameter(s)")
        if request.headers["x-subscription-token"] != self.key:
            return refusal(422, "SUBSCRIPTION_TOKEN_INVALID", "The provided subscription token is invalid.")
        assert (request.method, request.path) == ("GET", "/res/v1/web/search")
        start, size = self.window(request)
        assert 1 <= size <= 20, "Brave gives 20 results at most"
        assert 0 <= start // size <= 9, "Brave has ten pages"
        assert len(request.params["q"]) <= 400
        query, operators = split_operators(request.params["q"], "site")
        since, _, until = request.params.get("freshness", "").partition("to")
        found = find(
            query,
            pages,
            sites=operators.get("site", ()),
            languages=[request.params["search_lang"]] if "search_lang" in request.params else (),
            since=date.fromisoformat(since) if until else None,
            until=date.fromisoformat(until) if until else None,
        )
        answer: dict[str, Any] = {
            "type": "search",
            "query": {"original": query, "spellcheck_off": False, "more_results_available": len(found) > start + size},
        }
        if found[start : start + size]:
            results = [as_brave_says(page) for page in found[start : start + size]]
            answer["web"] = {"type": "search", "results": results, "family_friendly": True}
        return Reply(answer)

    def window(self, request: ServedRequest) -> tuple[int, int]:
        size = int(request.params["count"])
        return int(request.params["offset"]) * size, size

    def fields_of(self, record):
        return {
            "site": urlsplit(record.url).hostname,
            "language": record.language,
            "date": record.page_age.date().isoformat(),
        }

    async def test_a_limit_of_one_request_a_second_is_waited_for(self, text_search, service):
        """Brave says when in a header of its own; the cheapest plan has this limit."""
        said = {"X-RateLimit-Remaining": "0, 1985", "X-RateLimit-Reset": "0.05, 1419704"}
        service.speak = lambda request, pages: (
            refusal(429, "RATE_LIMITED", "Request rate limit exceeded for plan.", RESET | said)
            if len(service.requests) == 1
            else self.speak(request, pages)
        )
        results = await text_search.search(self.query)
        assert len(await results.list()) == 5
        assert len(service.requests) == 2


class TestPackage(PackageKit):
    distribution = "portico-brave"
