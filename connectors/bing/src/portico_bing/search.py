"""The TextSearch port over the Bing Web Search interface, version 7."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from portico.errors import QuotaExceeded, ServiceError
from portico.plugins import HttpRequest, HttpResponse
from portico.search import (
    AskedPage,
    FoundPage,
    SearchResults,
    TextSearchOptions,
    TextSearchResult,
    WebAddress,
    WebSearchConnector,
    read_record,
    search_method,
)
from portico_bing._wire import NEWS, WEB, BingArticle, build_request, read_news


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


class BingTextSearch(WebSearchConnector[BingPage]):
    """Search the web, and the news, with a service that speaks the Bing v7 interface.

    >>> search = BingTextSearch(api_key="k")
    >>> sorted(search.capabilities.filter.fields["site"])
    ['AnyOf', 'Equal', 'Not']

    ``metadata`` has ``queryContext`` (with ``alteredQuery`` for a corrected query) and ``relatedSearches``, as texts.
    """

    name, page_size, capabilities = "bing", 50, WEB
    settings_class = "portico_bing.config:BingSettings"
    advice: ClassVar = {
        401: "Check the key, `api_key_header` and `base_url`: Microsoft's own service ended on 2025-08-11.",
        404: "Check `base_url`. A query of more than about 1,500 characters is refused so, too.",
        410: "Begin `base_url` with https.",
    }

    def request(self, page: AskedPage) -> HttpRequest:
        """Ask for a page of the web."""
        return build_request(self.settings, "search", page)

    def read(self, answer: Any) -> FoundPage[BingPage]:
        """Return the web pages of an answer; the member is missing where nothing was found."""
        nothing = {"value": [], "totalEstimatedMatches": 0} if answer.get("_type") == "SearchResponse" else None
        found, related = answer.get("webPages", nothing), answer.get("relatedSearches", {}).get("value", [])
        about = {"queryContext": answer.get("queryContext", {}), "relatedSearches": [each["text"] for each in related]}
        pages = [read_record(BingPage, page) for page in found["value"]]
        return FoundPage(pages, found.get("totalEstimatedMatches"), about)

    @search_method(capabilities=NEWS)
    async def get_news(self, query: str, options: TextSearchOptions) -> SearchResults[BingArticle]:
        """Find articles in the news, with who published them and when."""
        return await self.pages(query, options, lambda one: build_request(self.settings, "news/search", one), read_news)

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
