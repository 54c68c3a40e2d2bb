"""What the Bing v7 interface calls things: the filters of a page become operators and parameters."""

from __future__ import annotations

from typing import Any

from portico.errors import UnsupportedFilter
from portico.filter import FilterSupport
from portico.http import HttpRequest
from portico.search import SearchCapabilities
from portico.settings import ValueForm, one_of
from portico.web_search import AskedPage
from portico_bing.config import LANGUAGE, MARKET, BingSettings

__all__ = ["NEWS", "WEB", "asked_of"]

_OPERATORS = ("contains", "ext", "feed", "filetype", "hasfeed", "inanchor", "inbody", "intitle", "ip", "language",
              "loc", "location", "prefer", "site", "url")  # fmt: skip
_EITHER = ("filetype", "language", "loc", "location", "site")
"""The operators that are worth joining by OR."""
_WORDS = "names with commas between them, as in 'webpages,news'"
_OF_NEWS = {
    "cc": ValueForm("(?i:[a-z]{2})", "two letters, as in 'DE'"),
    "freshness": one_of("Day", "Week", "Month", ignore_case=True),
    "mkt": MARKET,
    "safeSearch": one_of("Off", "Moderate", "Strict", ignore_case=True),
    "setLang": LANGUAGE,
    "sortBy": one_of("Date", "Relevance", ignore_case=True),
    "textDecorations": one_of("true", "false", ignore_case=True),
    "textFormat": one_of("Raw", "HTML", ignore_case=True),
}
_DAY = r"\d{4}-\d\d-\d\d"
_PARAMETERS = {
    **{name: form for name, form in _OF_NEWS.items() if name != "sortBy"},
    "answerCount": ValueForm(r"\d{1,4}", "a whole number, as in '3'"),
    "freshness": ValueForm(
        rf"(?i:day|week|month)|{_DAY}(\.\.{_DAY})?",
        "'Day', 'Week' or 'Month', or days as in '2026-01-01..2026-01-31'",
    ),
    "promote": ValueForm("[A-Za-z]+(,[A-Za-z]+)*", _WORDS),
    "responseFilter": ValueForm("-?[A-Za-z]+(,-?[A-Za-z]+)*", f"{_WORDS}, or '-images' to leave one out"),
}
_EVERY = ("Equal", "AnyOf")
WEB = SearchCapabilities(
    FilterSupport.fields_of(
        *_OPERATORS, *_PARAMETERS, offered=("site",), date=("Range",), **dict.fromkeys(_EITHER, _EVERY)
    ),
    total_count=True,
)
NEWS = SearchCapabilities(FilterSupport.fields_of(*_OF_NEWS, offered=("site",), site=_EVERY), total_count=True)


def asked_of(settings: BingSettings, path: str, page: AskedPage) -> HttpRequest:
    """Return the request for a page of web pages (``search``) or of news (``news/search``).

    A filter beats a setting. Raises ``UnsupportedFilter`` for values that the service would ignore, and for filters
    that exclude each other.
    """
    forms = _OF_NEWS if path.startswith("news") else _PARAMETERS
    chosen = {name: value for name, form in forms.items() if (value := page.value(name, form=form)) is not None}
    if "cc" in chosen and "mkt" in chosen:
        raise UnsupportedFilter(f"{page.source} takes 'cc' or 'mkt', a country or a market, and not both.")
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
