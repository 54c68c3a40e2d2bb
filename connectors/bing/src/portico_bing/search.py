"""The TextSearch port over the Bing Web Search interface, version 7."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Any, ClassVar

from portico.errors import QuotaExceeded, ServiceError, UnsupportedOption
from portico.plugins import HttpRequest, HttpResponse, ValueForm
from portico.search import (
    AskedPage,
    FilterSupport,
    FoundPage,
    SearchCapabilities,
    SearchResults,
    TextSearchOptions,
    TextSearchResult,
    WebAddress,
    WebSearchConnector,
    read_record,
    search_method,
)
from portico_bing.config import LANGUAGE, MARKET, BingSettings


@dataclass(frozen=True, slots=True)
class BingPage:
    """A web page with title, address, snippet, and the dates of publication and of the last crawl."""

    name: str
    url: WebAddress
    snippet: str = ""
    date_published: datetime | None = None
    date_last_crawled: datetime | None = None
    display_url: str | None = None
    language: str | None = None
    site_name: str | None = None


def _names(providers: Any) -> str:
    return ", ".join(FoundPage.plain_text(provider["name"]) for provider in providers)


@dataclass(frozen=True, slots=True)
class BingArticle:
    """An article of the news: its summary, its publisher and its date."""

    name: str
    url: WebAddress
    description: str = ""
    provider: Annotated[str, _names] = ""
    category: str | None = None
    date_published: datetime | None = None


_EVERY = ("Equal", "AnyOf")
_OPERATORS = {"filetype": _EVERY, "inbody": ("Equal",), "intitle": ("Equal",), "language": _EVERY, "site": _EVERY}
_DAY = r"\d{4}-\d\d-\d\d"
_COMMON = {
    "cc": ValueForm("(?i:[a-z]{2})", "two letters, as in 'DE'"),
    "mkt": MARKET,
    "safeSearch": ValueForm.one_of("Off", "Moderate", "Strict", ignore_case=True),
    "setLang": LANGUAGE,
}
_OF_NEWS = {
    **_COMMON,
    "freshness": ValueForm.one_of("Day", "Week", "Month", ignore_case=True),
    "sortBy": ValueForm.one_of("Date", "Relevance", ignore_case=True),
}
_OF_PAGES = {
    **_COMMON,
    "freshness": ValueForm(
        rf"(?i:day|week|month)|{_DAY}(\.\.{_DAY})?", "'Day', 'Week' or 'Month', or days as in '2026-01-01..2026-01-31'"
    ),
}
_WEB = SearchCapabilities(
    FilterSupport.fields_of(*_OF_PAGES, offered=("site",), date=("Range",), **_OPERATORS), total_count=True
)
_NEWS = SearchCapabilities(FilterSupport.fields_of(*_OF_NEWS, offered=("site",), site=_EVERY), total_count=True)


class BingTextSearch(WebSearchConnector[BingPage]):
    """Search the web, and the news, with a service that speaks the Bing v7 interface.

    >>> from portico.plugins import Secret
    >>> from portico_bing.config import BingSettings
    >>> search = BingTextSearch(BingSettings(api_key=Secret("k")), None)
    >>> sorted(search.capabilities.filter.fields["site"])
    ['AnyOf', 'Equal']

    ``metadata`` has ``queryContext`` (with ``alteredQuery`` for a corrected query) and ``relatedSearches``, as texts.
    """

    name, page_size, capabilities = "bing", 50, _WEB
    advice: ClassVar = {
        401: "Check the key, `api_key_header` and `base_url`: Microsoft's own service ended on 2025-08-11.",
        404: "Check `base_url`. A query of more than about 1,500 characters is refused so, too.",
        410: "Begin `base_url` with https.",
    }

    def request(self, page: AskedPage, path: str = "search") -> HttpRequest:
        """Ask for a page of the web, or of the news; a filter beats a setting."""
        forms = _OF_NEWS if path == "news/search" else _OF_PAGES
        chosen = {name: value for name, form in forms.items() if (value := page.value(name, form=form)) is not None}
        if "cc" in chosen and "mkt" in chosen:
            raise UnsupportedOption(f"{page.source} takes 'cc' or 'mkt', a country or a market, and not both.")
        if (days := page.period("date", "{}..{}", instead_of="freshness")) is not None:
            chosen["freshness"] = days
        settings: BingSettings = self.settings
        usual: dict[str, Any] = {"mkt": settings.market, "setLang": settings.language}
        usual["safeSearch"] = settings.safe_search
        headers: dict[str, Any] = dict(settings.headers)
        if "cc" in chosen:
            # A country needs a language, which then is not a parameter.
            headers["Accept-Language"] = chosen.pop("setLang", None) or settings.language or "en"
            usual |= {"mkt": None, "setLang": None}
        part: dict[str, Any] = {"q": page.query_with(*_OPERATORS), "count": page.size, "offset": page.start}
        return HttpRequest(f"{settings.base_url.rstrip('/')}/{path}", part | usual | chosen, headers)

    def read(self, answer: Any) -> FoundPage[BingPage]:
        """Return the web pages of an answer; the member is missing where nothing was found."""
        nothing = {"value": [], "totalEstimatedMatches": 0} if answer.get("_type") == "SearchResponse" else None
        found, related = answer.get("webPages", nothing), answer.get("relatedSearches", {}).get("value", [])
        about = {"queryContext": answer.get("queryContext", {}), "relatedSearches": [each["text"] for each in related]}
        pages = [read_record(BingPage, page) for page in found["value"]]
        return FoundPage(pages, found.get("totalEstimatedMatches"), about)

    @search_method(capabilities=_NEWS)
    async def get_news(self, query: str, options: TextSearchOptions) -> SearchResults[BingArticle]:
        """Find articles in the news, with who published them and when."""
        return await self.pages(query, options, partial(self.request, path="news/search"), _read_news)

    def failure(self, response: HttpResponse, answer: Any) -> type[ServiceError] | None:
        """Return the kind for a used-up quota, which is 403, and for an error with the status of success."""
        if response.status == 403 and (b"quota" in response.body or b"RateLimitExceeded" in response.body):
            return QuotaExceeded
        return ServiceError if response.ok and answer["_type"] == "ErrorResponse" else None

    def to_text(self, record: BingPage) -> str:
        """Return the snippet."""
        return record.snippet or record.name

    def to_result(self, record: BingPage) -> TextSearchResult:
        """Return the snippet with the page's title and address."""
        return TextSearchResult(self.to_text(record), record.name or None, record.url)


def _read_news(answer: Any) -> FoundPage[BingArticle]:
    found = [read_record(BingArticle, article) for article in answer["value"]]
    return FoundPage(found, answer.get("totalEstimatedMatches"), {"queryContext": answer.get("queryContext", {})})
