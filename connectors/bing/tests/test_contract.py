"""The Bing connector is a TextSearch, against a server that speaks the v7 interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from portico.errors import AuthenticationFailed, QuotaExceeded, RateLimited, ServiceError, ServiceUnavailable
from portico.plugins import Secret, Services
from portico.search import And, AnyOf, Equal, Not, Range
from portico_bing.config import BingSettings
from portico_bing.search import BingPage, BingTextSearch
from portico_testkit.package import PackageKit
from portico_testkit.web_search import Failure, WebSearchKit
from portico_testkit.web_service import Reply, ServedRequest, WebPage, find, split_operators


def refused(code: str, message: str, status: int, **more: str) -> Reply:
    """Return an error as the service sends it."""
    return Reply({"_type": "ErrorResponse", "errors": [{"code": code, "message": message, **more}]}, status)


class TestBing(WebSearchKit):
    filters = (
        Equal("site", "alpha.example"),
        AnyOf("site", ("alpha.example", "beta.example")),
        Equal("language", "de"),
        Range("date", at_least="2024-05-01", below="2025-03-01"),
        And((Equal("site", "alpha.example"), Range("date", at_most="2025-01-01"))),
    )
    asks = (
        (
            Equal("site", "alpha.example"),
            {"q": "door site:alpha.example", "count": "5", "offset": "0", "freshness": None},
        ),
        (AnyOf("site", ("a.example", "b.example")), {"q": "door (site:a.example OR site:b.example)"}),
        (AnyOf("language", ("de",)), {"q": "door language:de"}),
        (Equal("intitle", "-two words"), {"q": 'door intitle:"-two words"'}),
        (Equal("inbody", 'a "quote" OR site:x'), {"q": 'door inbody:"a quote OR site:x"'}),
        (And((Equal("filetype", "pdf"), Equal("site", "a.example"))), {"q": "door filetype:pdf site:a.example"}),
        (Range("date", at_least="2024-01-31", below="2024-03-01"), {"freshness": "2024-01-31..2024-02-29"}),
        (Range("date", at_most="2024-01-31"), {"freshness": "1970-01-01..2024-01-31"}),
        (Equal("freshness", "Week"), {"freshness": "Week"}),
        (Equal("mkt", "de-DE"), {"mkt": "de-DE"}),
        (Equal("cc", "DE"), {"cc": "DE", "mkt": None, "setLang": None}),
        (Equal("safeSearch", "Off"), {"safeSearch": "Off"}),
        (Not(Equal("language", "en")), {"q": "door -language:en"}),
        (
            And((Equal("intitle", "red"), Not(AnyOf("site", ("a.example", "b.example"))))),
            {"q": "door intitle:red -site:a.example -site:b.example"},
        ),
        (Equal("responseFilter", "Webpages,News"), {"responseFilter": "Webpages,News"}),
        (Equal("answerCount", 3), {"answerCount": "3"}),
        (Equal("textDecorations", True), {"textDecorations": "true"}),
        (Equal("inanchor", "red"), {"q": "door inanchor:red"}),
    )
    failures = (
        Failure(
            "a wrong key",
            refused(
                "InvalidAuthorization",
                "Authorization is required.",
                401,
                moreDetails="Subscription key is not recognized.",
            ),
            AuthenticationFailed,
            ("Authorization is required.", "`base_url`"),
        ),
        Failure(
            "a key of the gateway's that is wrong",
            Reply({"error": {"code": "401", "message": "Access denied due to invalid subscription key."}}, 401),
            AuthenticationFailed,
            ("Access denied",),
        ),
        Failure(
            "a key that may not",
            refused("InsufficientAuthorization", "Authorization is disabled.", 403, subCode="AuthorizationDisabled"),
            AuthenticationFailed,
            ("Authorization is disabled.",),
        ),
        Failure(
            "the month's quota", refused("RateLimitExceeded", "Too many.", 403), QuotaExceeded, ("Too many.", "quota")
        ),
        Failure(
            "the gateway's quota",
            Reply({"statusCode": 403, "message": "Out of call volume quota. Replenished in 2.12 days."}, 403),
            QuotaExceeded,
            ("2.12 days",),
        ),
        Failure("too fast", refused("RateLimitExceeded", "Slowly.", 429), RateLimited, ("Slowly.",)),
        Failure(
            "a wrong parameter",
            refused(
                "InvalidRequest", "Parameter has invalid value.", 400, subCode="ParameterInvalidValue", parameter="mkt"
            ),
            ServiceError,
            ("Parameter has invalid value.",),
        ),
        Failure("not https", refused("InvalidRequest", "HTTPS only.", 410), ServiceError, ("https", "410")),
        Failure(
            "its own", refused("ServerError", "Unexpected error.", 500), ServiceUnavailable, ("Unexpected error.",)
        ),
        Failure("success that is none", refused("InvalidRequest", "Missing.", 200), ServiceError, ("Missing.",)),
    )

    def connect(self, base_url: str, services: Services) -> BingTextSearch:
        return BingTextSearch(BingSettings(api_key=Secret(self.key), base_url=f"{base_url}/v7.0/"), services)

    def window(self, request: ServedRequest) -> tuple[int, int]:
        return int(request.params["offset"]), int(request.params["count"])

    def speak(self, request: ServedRequest, pages: Sequence[WebPage]) -> Reply:
        assert request.path == "/v7.0/search"
        if request.headers.get("ocp-apim-subscription-key") != self.key:
            return refused("InvalidAuthorization", "Authorization is required.", 401)
        start, size = self.window(request)
        assert 1 <= size <= 50, "the interface has at most 50 results a page"
        assert "cc" not in request.params or ("mkt" not in request.params and "accept-language" in request.headers)
        query, operators = split_operators(
            request.params["q"].replace("(", "").replace(")", "").replace(" OR ", " "), "site", "language"
        )
        bounds = request.params.get("freshness", "").split("..")
        since, until = map(date.fromisoformat, bounds) if len(bounds) == 2 else (None, None)
        found = find(
            query,
            pages,
            sites=operators.get("site", ()),
            languages=operators.get("language", ()),
            since=since,
            until=until,
        )
        answer: dict[str, Any] = {"_type": "SearchResponse", "queryContext": {"originalQuery": request.params["q"]}}
        if found[start:]:
            said = [as_bing_says(page) for page in found[start : start + size]]
            answer["webPages"] = {"totalEstimatedMatches": len(found), "value": said}
        return Reply(answer)

    def fields_of(self, record: BingPage) -> Mapping[str, object]:
        assert record.url is not None
        assert record.date_published is not None
        site = record.url.split("/")[2]
        return {"site": site, "language": record.language, "date": record.date_published.date().isoformat()}


def as_bing_says(page: WebPage) -> dict[str, Any]:
    """Return a page as the service sends it."""
    return {
        "id": "https://api.bing.microsoft.com/api/v7/#WebPages.0",
        "name": page.title,
        "url": page.url,
        "displayUrl": page.url,
        "snippet": page.text,
        "datePublished": f"{page.date}T00:00:00.0000000",
        "dateLastCrawled": "2025-12-01T02:09:00.0000000Z",
        "language": page.language,
        "isNavigational": False,
    }


class TestPackage(PackageKit):
    distribution = "portico-bing"
