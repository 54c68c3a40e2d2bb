"""The Bing v7 interface: filters as operators and parameters, and the articles of an answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from portico.errors import UnsupportedOption
from portico.plugins import HttpRequest, ValueForm
from portico.search import AskedPage, FilterSupport, FoundPage, SearchCapabilities, WebAddress, read_record
from portico_bing.config import OPTIONS, BingSettings

_SEVERAL = ("Equal", "AnyOf", "Not")
_OPERATORS = {
    **dict.fromkeys(("contains", "ext", "feed", "hasfeed", "inanchor", "ip", "loc", "location", "prefer"), ("Equal",)),
    **dict.fromkeys(("inbody", "intitle", "url"), ("Equal", "Not")),
    **dict.fromkeys(("filetype", "language", "site"), _SEVERAL),
}
_OF_PAGES = {parameter: form for parameter, (_, form) in OPTIONS.items()}
_OF_NEWS = {
    **{name: _OF_PAGES[name] for name in ("cc", "mkt", "safeSearch", "setLang", "textDecorations", "textFormat")},
    "freshness": ValueForm.one_of("Day", "Week", "Month", ignore_case=True),
    "sortBy": ValueForm.one_of("Date", "Relevance", ignore_case=True),
}
WEB = SearchCapabilities(
    FilterSupport.fields_of(*_OF_PAGES, offered=("site",), date=("Range",), **_OPERATORS), total_count=True
)
NEWS = SearchCapabilities(FilterSupport.fields_of(*_OF_NEWS, offered=("site",), site=_SEVERAL), total_count=True)


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
    usual = {name: getattr(settings, setting) for name, (setting, _) in OPTIONS.items()}
    if chosen.keys() & {"cc", "mkt"}:
        usual |= {"cc": None, "mkt": None}
    # News take other periods and fewer parameters than web pages.
    fitting = {name: value for name, value in usual.items() if name in forms and forms[name].fits(str(value))}
    sent: dict[str, Any] = fitting | chosen
    headers: dict[str, Any] = dict(settings.headers)
    if "cc" in sent:
        # A country needs a language, which then is not a parameter.
        headers["Accept-Language"] = sent.pop("setLang", "en")
    part: dict[str, Any] = {"q": page.query_with(*_OPERATORS), "count": page.size, "offset": page.start}
    return HttpRequest(f"{settings.base_url.rstrip('/')}/{path}", part | sent, headers)


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
