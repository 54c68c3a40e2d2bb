"""The TextSearch port over the search API of SearXNG."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Any, ClassVar, TypeAlias

from portico.errors import ServiceUnavailable
from portico.plugins import HttpRequest
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

_OneLine: TypeAlias = Annotated[str, lambda text: " ".join(text.split())]


@dataclass(frozen=True, slots=True)
class WebResult:
    """A result with the engines that found it, the score of SearXNG, and the date where it is known."""

    title: _OneLine
    url: WebAddress
    content: _OneLine = ""
    published: datetime | None = None
    engines: tuple[str, ...] = ()
    score: float | None = None
    category: str | None = None


_JSON_OFF = "Most likely JSON is off there: add `json` to `search.formats` in its settings.yml and restart it."
_LIMITER = "Its limiter holds programs off: let this address pass in its limiter.toml, or set `server.limiter: false`."
_LISTS = dict.fromkeys(("categories", "engines"), ("Equal", "AnyOf"))


class SearxngTextSearch(WebSearchConnector[WebResult]):
    """Search the web through a SearXNG; the text is the engines' excerpt of a page.

    >>> SearxngTextSearch(base_url="http://127.0.0.1:8888").capabilities.total_count
    False

    ``metadata`` has ``answers``, ``corrections``, ``infoboxes``, ``suggestions`` and ``unresponsive_engines``. If
    nothing was found and engines did not answer, it is ``ServiceUnavailable``.
    """

    name, paging = "searxng", "all pages"
    settings_class = "portico_searxng.config:SearxngSettings"
    advice: ClassVar = {403: _JSON_OFF, 429: _LIMITER}
    support = FilterSupport.fields_of("language", "time_range", offered=["site"], site=["Equal", "Not"], **_LISTS)
    capabilities = SearchCapabilities(support)

    def request(self, page: AskedPage, **fixed: str) -> HttpRequest:
        """Ask for a page; the engines read the operator `site:`."""
        chosen = {name: ",".join(map(str, values)) for name, values in page.wanted.values.items() if name != "site"}
        form = {"q": page.query_with("site"), "format": "json", "pageno": page.number + 1}
        return HttpRequest(self.settings.search_url, self.settings.params | fixed | chosen | form)

    def read(self, answer: Any) -> FoundPage[WebResult]:
        """Return the results, and everything else as metadata."""
        about = {name: value for name, value in answer.items() if value and name != "results"}
        silent = ", ".join(f"{engine[0]} ({engine[1]})" for engine in about.get("unresponsive_engines", ()))
        fault = ServiceUnavailable(f"Text search {self.name!r} found nothing. Engines that gave no answer: {silent}.")
        found = [_result(result) for result in answer["results"]]
        return FoundPage(found, metadata=about, fault=fault if silent else None)

    @search_method
    async def get_news(self, query: str, options: TextSearchOptions) -> SearchResults[WebResult]:
        """Search the news."""
        return await self.pages(query, options, partial(self.request, categories="news"), self.read)

    def to_text(self, record: WebResult) -> str:
        """Return the excerpt, or else the title or the address."""
        return record.content or record.title or record.url or ""

    def to_result(self, record: WebResult) -> TextSearchResult:
        """Return the text with the page's title and address."""
        return TextSearchResult(self.to_text(record), record.title or None, record.url)


def _result(found: Any) -> WebResult:
    renamed = {"published": found.get("publishedDate"), "engines": sorted(found.get("engines", ()))}
    return read_record(WebResult, {**found, **renamed, "title": found.get("title") or ""})
