"""The Google connector is a TextSearch, against a server that speaks the Custom Search JSON API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from portico.errors import AuthenticationFailed, QuotaExceeded, RateLimited, ServiceError, ServiceUnavailable
from portico.plugins import Secret, Services
from portico.search import And, AnyOf, Equal, Not, Range
from portico_google.config import GoogleSettings
from portico_google.search import GooglePage, GoogleTextSearch
from portico_testkit.package import PackageKit
from portico_testkit.web_search import Failure, WebSearchKit
from portico_testkit.web_service import Reply, ServedRequest, WebPage, find


def refused(
    status: int, message: str, reason: str, *, domain: str = "global", detail: str | None = None, code: str = ""
) -> Reply:
    """Return an error as the service sends it; ``detail`` is the reason of its newer form."""
    error: dict[str, Any] = {
        "code": status,
        "message": message,
        "errors": [{"message": message, "domain": domain, "reason": reason}],
        "status": code,
    }
    if detail is not None:
        kind = "type.googleapis.com/google.rpc.ErrorInfo"
        error["details"] = [{"@type": kind, "reason": detail, "domain": "googleapis.com", "metadata": {"service": "x"}}]
    return Reply({"error": error}, status)


PER_DAY = (
    "Quota exceeded for quota metric 'Queries' and limit 'Queries per day' of service 'customsearch.googleapis.com'."
)
PER_MINUTE = PER_DAY.replace("per day", "per minute per user")


class TestGoogle(WebSearchKit):
    filters = (
        Equal("site", "alpha.example"),
        Equal("language", "de"),
        AnyOf("language", ("de", "fr")),
        Range("date", at_least="2024-05-01", below="2025-03-01"),
        And((Equal("site", "alpha.example"), Range("date", at_most="2025-01-01"))),
    )
    asks = (
        (
            Equal("site", "alpha.example"),
            {"q": "door", "siteSearch": "alpha.example", "siteSearchFilter": "i", "num": "5", "start": "1", "lr": None},
        ),
        (Equal("language", "de"), {"lr": "lang_de", "siteSearchFilter": None}),
        (AnyOf("language", ("de", "zh-TW")), {"lr": "lang_de|lang_zh-TW"}),
        (Range("date", at_least="2024-01-31", below="2024-03-01"), {"sort": "date:r:20240131:20240229"}),
        (Equal("dateRestrict", "d7"), {"dateRestrict": "d7"}),
        (Equal("exactTerms", "-two words"), {"q": "door", "exactTerms": "-two words"}),
        (Equal("excludeTerms", "window"), {"excludeTerms": "window"}),
        (Equal("fileType", "pdf"), {"fileType": "pdf"}),
        (Equal("gl", "de"), {"gl": "de"}),
        (Equal("hl", "zh-Hans"), {"hl": "zh-Hans"}),
        (Equal("cr", "countryDE|countryFR"), {"cr": "countryDE|countryFR"}),
        (Equal("rights", "cc_publicdomain"), {"rights": "cc_publicdomain"}),
        (Equal("linkSite", "a.example"), {"linkSite": "a.example"}),
        (Equal("filter", 0), {"filter": "0"}),
        (Equal("orTerms", "red blue"), {"orTerms": "red blue"}),
        (
            And((Not(Equal("site", "a.example")), Not(Equal("site", "b.example")))),
            {"q": "door -site:a.example -site:b.example", "siteSearch": None},
        ),
    )
    failures = (
        Failure(
            "a wrong key",
            refused(
                400,
                "API key not valid. Please pass a valid API key.",
                "badRequest",
                detail="API_KEY_INVALID",
                code="INVALID_ARGUMENT",
            ),
            AuthenticationFailed,
            ("API key not valid.", "400"),
        ),
        Failure(
            "a wrong key, in the older form",
            refused(400, "Bad Request", "keyInvalid", domain="usageLimits"),
            AuthenticationFailed,
            ("Bad Request",),
        ),
        Failure(
            "no key",
            refused(403, "The request is missing a valid API key.", "forbidden", code="PERMISSION_DENIED"),
            AuthenticationFailed,
            ("missing a valid API key",),
        ),
        Failure(
            "an API that is not enabled",
            refused(403, "Custom Search API has not been used.", "accessNotConfigured", detail="SERVICE_DISABLED"),
            AuthenticationFailed,
            ("has not been used",),
        ),
        Failure(
            "the day's quota",
            refused(429, PER_DAY, "rateLimitExceeded", detail="RATE_LIMIT_EXCEEDED", code="RESOURCE_EXHAUSTED"),
            QuotaExceeded,
            ("Queries per day",),
        ),
        Failure(
            "the day's quota, in the older form",
            refused(403, "Daily Limit Exceeded", "dailyLimitExceeded", domain="usageLimits"),
            QuotaExceeded,
            ("Daily Limit Exceeded",),
        ),
        Failure(
            "a quota",
            refused(403, "The quota is used up.", "quotaExceeded", domain="usageLimits"),
            QuotaExceeded,
            ("used up",),
        ),
        Failure(
            "too fast",
            refused(429, PER_MINUTE, "rateLimitExceeded", detail="RATE_LIMIT_EXCEEDED"),
            RateLimited,
            ("per minute",),
        ),
        Failure(
            "too fast, in the older form",
            refused(403, "User Rate Limit Exceeded", "userRateLimitExceeded", domain="usageLimits"),
            RateLimited,
            ("User Rate Limit Exceeded",),
        ),
        Failure(
            "a wrong engine",
            refused(400, "Request contains an invalid argument.", "badRequest", code="INVALID_ARGUMENT"),
            ServiceError,
            ("invalid argument", "`search_engine_id`"),
        ),
        Failure("its own", refused(503, "Backend Error", "backendError"), ServiceUnavailable, ("Backend Error",)),
    )

    def connect(self, base_url: str, services: Services) -> GoogleTextSearch:
        made = GoogleSettings(Secret(self.key), "0123:abc", base_url=f"{base_url}/customsearch/v1")
        return GoogleTextSearch(made, services)

    def window(self, request: ServedRequest) -> tuple[int, int]:
        return int(request.params["start"]) - 1, int(request.params["num"])

    def speak(self, request: ServedRequest, pages: Sequence[WebPage]) -> Reply:
        params = request.params
        assert request.path == "/customsearch/v1"
        if params.get("key") != self.key or params.get("cx") != "0123:abc":
            return refused(403, "The request is missing a valid API key.", "forbidden")
        start, size = self.window(request)
        if not 1 <= size <= 10 or start + size > 100:
            return refused(400, "Request contains an invalid argument.", "badRequest")
        restricted = params.get("sort", "").split(":")
        since, until = map(date.fromisoformat, restricted[2:]) if len(restricted) == 4 else (None, None)
        found = find(
            params["q"],
            pages,
            sites=[params["siteSearch"]] if "siteSearch" in params else [],
            languages=[each.removeprefix("lang_") for each in params["lr"].split("|")] if "lr" in params else [],
            since=since,
            until=until,
        )
        asked = {"totalResults": str(len(found)), "count": size, "startIndex": start + 1, "cx": "0123:abc"}
        queries = {"request": [asked]}
        if start + size < min(len(found), 100):
            queries["nextPage"] = [asked | {"startIndex": start + size + 1}]
        answer: dict[str, Any] = {
            "kind": "customsearch#search",
            "queries": queries,
            "searchInformation": {"searchTime": 0.1, "totalResults": str(len(found))},
        }
        if found[start:]:
            answer["items"] = [as_google_says(page) for page in found[start : start + size]]
        return Reply(answer)

    def fields_of(self, record: GooglePage) -> Mapping[str, object]:
        assert record.link is not None
        assert record.published is not None
        language = next(page.language for page in find(self.query) if page.url == record.link)
        return {"site": record.display_link, "language": language, "date": record.published.date().isoformat()}


def as_google_says(page: WebPage) -> dict[str, Any]:
    """Return a page as the service sends it."""
    return {
        "kind": "customsearch#result",
        "title": page.title,
        "htmlTitle": f"<b>{page.title}</b>",
        "link": page.url,
        "displayLink": page.site,
        "snippet": page.text,
        "htmlSnippet": f"<b>{page.text}</b>",
        "pagemap": {"metatags": [{"viewport": "x", "article:published_time": f"{page.date}T13:45:33.495Z"}]},
    }


class TestPackage(PackageKit):
    distribution = "portico-google"
