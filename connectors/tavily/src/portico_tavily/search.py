"""The TextSearch port over Tavily's search API."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from portico.errors import QuotaExceeded, ServiceError
from portico.plugins import HttpRequest, HttpResponse, Secret
from portico.search import (
    AskedPage,
    FilterSupport,
    FoundPage,
    SearchCapabilities,
    SearchResults,
    TextSearchOptions,
    TextSearchResult,
    Verbatim,
    WebAddress,
    WebSearchConnector,
    read_record,
    search_method,
)
from portico_tavily.config import ALWAYS, CLAUSES, FORMS, SITE

_OF_NEWS = FilterSupport.fields_of("time_range", offered=["site"], **CLAUSES)
_NEWS = SearchCapabilities(_OF_NEWS, most=20, query_characters=400)


@dataclass(frozen=True, slots=True)
class TavilyPage:
    """A page with the passage that answers the query, and a score from 0 to 1.

    News have a ``published_date``. ``raw_content`` is the whole text, if the settings ask for it.
    """

    title: Verbatim
    url: WebAddress
    content: Verbatim = ""
    score: float | None = None
    published_date: datetime | None = None
    raw_content: Verbatim = ""


class TavilyTextSearch(WebSearchConnector[TavilyPage]):
    """Search the web with Tavily.

    >>> search = TavilyTextSearch(api_key="tvly-1")
    >>> sorted(search.capabilities.filter.fields)
    ['country', 'date', 'exclude_domains', 'site', 'time_range', 'topic']
    >>> search.capabilities.most
    20

    ``metadata`` has everything beside the results: ``answer``, ``response_time``, ``request_id``, and more. Raises
    ``UnsupportedOption`` for a query that is too long for Tavily.
    """

    name, paging, page_size, settings_class = "tavily", "pages", 20, "portico_tavily.config:TavilySettings"
    support = FilterSupport.fields_of(*FORMS, offered=["site"], **CLAUSES)
    capabilities = SearchCapabilities(support, most=20, query_characters=400)

    def request(self, page: AskedPage, **fixed: str) -> HttpRequest:
        """Ask for all results at once; Tavily has no further pages."""
        params = page.chosen(self.settings, **FORMS) | fixed
        if params["topic"] != "general":
            # Tavily takes a country for the general topic only; the setting is not meant for other topics.
            params["country"] = page.value("country")
        first, last = (day and str(day) for day in page.days("date", instead_of="time_range"))
        params["time_range"] = None if first or last else params["time_range"]
        params |= {"query": page.query, "max_results": page.size, "start_date": first, "end_date": last}
        params |= {name: getattr(self.settings, name) for name in ALWAYS}
        params["include_domains"] = page.values("site", form=SITE) or None
        params["exclude_domains"] = page.values("exclude_domains", form=SITE) or None
        sent = {name: value for name, value in params.items() if value is not None}
        headers = {"Authorization": Secret(f"Bearer {self.settings.api_key.reveal()}")}
        return HttpRequest(f"{self.settings.base_url.rstrip('/')}/search", headers=headers, json=sent)

    def read(self, answer: Any) -> FoundPage[TavilyPage]:
        """Return the results, and everything else as metadata."""
        found = [read_record(TavilyPage, item) for item in answer["results"]]
        return FoundPage(found, metadata={name: value for name, value in answer.items() if name != "results"})

    def failure(self, response: HttpResponse, answer: Any) -> type[ServiceError] | None:
        """Return the kind for Tavily's own statuses: the limit of a plan, and of pay-as-you-go."""
        return QuotaExceeded if response.status in (432, 433) else None

    @search_method(capabilities=_NEWS)
    async def get_news(self, query: str, options: TextSearchOptions) -> SearchResults[TavilyPage]:
        """Search the news with Tavily: articles with their date."""
        return await self.pages(query, options, partial(self.request, topic="news"), self.read)

    def to_text(self, record: TavilyPage) -> str:
        """Return the passage."""
        return record.content or record.title

    def to_result(self, record: TavilyPage) -> TextSearchResult:
        """Return the passage with the page's title and address."""
        return TextSearchResult(self.to_text(record), record.title or None, record.url)
