"""The Bing v7 interface: filters as operators and parameters, and the articles of an answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from portico.errors import UnsupportedOption
from portico.plugins import HttpRequest, ValueForm
from portico.search import AskedPage, FilterSupport, FoundPage, SearchCapabilities, WebAddress, read_record
from portico_bing.config import LANGUAGE, MARKET, BingSettings

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
WEB = SearchCapabilities(
    FilterSupport.fields_of(*_OF_PAGES, offered=("site",), date=("Range",), **_OPERATORS), total_count=True
)
NEWS = SearchCapabilities(FilterSupport.fields_of(*_OF_NEWS, offered=("site",), site=_EVERY), total_count=True)


def build_request(settings: BingSettings, path: str, page: AskedPage) -> HttpRequest:
    """Return the request for a page of web pages (``search``) or of news (``news/search``).

    A filter beats a setting. Raises ``UnsupportedOption`` for values that the service would ignore, and for filters
    that exclude each other.
    """
    forms = _OF_NEWS if path.startswith("news") else _OF_PAGES
    chosen = {name: value for name, form in forms.items() if (value := page.value(name, form=form)) is not None}
    if "cc" in chosen and "mkt" in chosen:
        raise UnsupportedOption(f"{page.source} takes 'cc' or 'mkt', a country or a market, and not both.")
    if (days := page.period("date", "{}..{}", instead_of="freshness")) is not None:
        chosen["freshness"] = days
    usual: dict[str, Any] = {"mkt": settings.market, "setLang": settings.language, "safeSearch": settings.safe_search}
    headers: dict[str, Any] = dict(settings.headers)
    if "cc" in chosen:
        # A country needs a language, which then is not a parameter.
        headers["Accept-Language"] = chosen.pop("setLang", None) or settings.language or "en"
        usual |= {"mkt": None, "setLang": None}
    part: dict[str, Any] = {"q": page.query_with(*_OPERATORS), "count": page.size, "offset": page.start}
    return HttpRequest(f"{settings.base_url.rstrip('/')}/{path}", part | usual | chosen, headers)


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


def read_news(answer: Any) -> FoundPage[BingArticle]:
    """Return the articles of an answer."""
    found = [read_record(BingArticle, article) for article in answer["value"]]
    return FoundPage(found, answer.get("totalEstimatedMatches"), {"queryContext": answer.get("queryContext", {})})
