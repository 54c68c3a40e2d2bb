"""The TextSearch port over Brave's Web Search and News Search APIs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from portico.errors import AuthenticationFailed, QuotaExceeded, ServiceError
from portico.plugins import HttpRequest, HttpResponse
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
from portico_brave.config import FORMS


@dataclass(frozen=True, slots=True)
class BravePage:
    """A page of the web or an article of the news.

    ``page_age`` is the time of its last change, ``extra_snippets`` are further excerpts, ``breaking`` marks news of
    this hour.
    """

    title: str
    url: WebAddress
    description: str = ""
    page_age: datetime | None = None
    language: str | None = None
    extra_snippets: tuple[str, ...] = ()
    breaking: bool = False


_WRONG_KEY = ("SUBSCRIPTION_TOKEN_INVALID", "SUBSCRIPTION_NOT_FOUND")


class BraveTextSearch(WebSearchConnector[BravePage]):
    """Search the web with Brave.

    >>> search = BraveTextSearch(api_key="BSA-1")
    >>> search.capabilities.filter.describe()
    'country (Equal), date (Range), freshness (Equal), language (Equal), safe_search (Equal), site (Equal, Not)'
    >>> search.capabilities.most
    200

    ``metadata`` has ``original``, and ``altered`` where Brave corrected the spelling. Raises ``UnsupportedOption`` for
    a query that is too long for Brave.
    """

    name, paging, page_size = "brave", "pages", 20
    settings_class = "portico_brave.config:BraveSettings"
    support = FilterSupport.fields_of(*FORMS, offered=["site"], date=["Range"], site=["Equal", "Not"])
    capabilities = SearchCapabilities(support, most=200, query_characters=400, query_words=50)

    def request(self, page: AskedPage, kind: str = "web") -> HttpRequest:
        """Ask for a page of the web, or of another kind of things."""
        params = page.chosen(self.settings, **FORMS)
        params |= {"search_lang": params.pop("language"), "safesearch": params.pop("safe_search")}
        params["freshness"] = page.period("date", "{}to{}", instead_of="freshness") or params["freshness"]
        params |= {"q": page.query_with("site"), "count": page.size, "offset": page.number, "text_decorations": False}
        params["extra_snippets"] = self.settings.extra_snippets or None
        params["result_filter"] = "web" if kind == "web" else None
        headers = {"X-Subscription-Token": self.settings.api_key, "Accept": "application/json"}
        return HttpRequest(f"{self.settings.base_url.rstrip('/')}/{kind}/search", params, headers)

    def read(self, answer: Any) -> FoundPage[BravePage]:
        """Return the results; those of the web are in ``web``, which is missing where nothing was found."""
        query, results = answer["query"], answer if "results" in answer else answer.get("web", {"results": ()})
        found = [read_record(BravePage, item) for item in results["results"]]
        return FoundPage(found, metadata=query, more=query.get("more_results_available"))

    def failure(self, response: HttpResponse, answer: Any) -> type[ServiceError] | None:
        """Return the kind for an error code: a wrong key has the status 422, a used-up plan 429."""
        code = (answer.get("error") or answer["errors"][0])["code"]
        return AuthenticationFailed if code in _WRONG_KEY else QuotaExceeded if code == "QUOTA_LIMITED" else None

    @search_method
    async def get_news(self, query: str, options: TextSearchOptions) -> SearchResults[BravePage]:
        """Search the news with Brave: articles with their date."""
        return await self.pages(query, options, partial(self.request, kind="news"), self.read)

    def to_text(self, record: BravePage) -> str:
        """Return the description and the excerpts."""
        return "\n".join([record.description, *record.extra_snippets]).strip() or record.title

    def to_result(self, record: BravePage) -> TextSearchResult:
        """Return the text with the page's title and address."""
        return TextSearchResult(self.to_text(record), record.title or None, record.url)
