"""What Google Custom Search calls things: the filters of a page become parameters."""

from __future__ import annotations

from typing import Any

from portico.errors import UnsupportedFilter
from portico.filter import FilterSupport
from portico.http import HttpRequest
from portico.search import SearchCapabilities
from portico.search_pages import AskedPage
from portico_google.config import GoogleSettings

__all__ = ["WEB", "asked_of"]

_TEXT = r"(?s:.*\S.*)"
_PARAMETERS = {
    "cr": r"[-().|A-Za-z]+",
    "dateRestrict": r"[dwmy]\d{1,4}",
    "exactTerms": _TEXT,
    "excludeTerms": _TEXT,
    "fileType": r"\.?[A-Za-z0-9]+",
    "filter": "[01]",
    "gl": "[A-Za-z]{2}",
    "hl": "[A-Za-z]{2,3}(-[A-Za-z]+)?",
    "linkSite": r"\S+",
    "lr": r"lang_[A-Za-z-]+(\|lang_[A-Za-z-]+)*",
    "orTerms": _TEXT,
    "rights": r"[-().|a-z_]+",
    "siteSearch": r"\S+",
    "sort": r"\S+",
}
_ALSO: dict[str, tuple[str, ...]] = {"site": ("Equal",), "language": ("Equal", "AnyOf"), "date": ("Range",)}
WEB = SearchCapabilities(FilterSupport.fields_of(*_PARAMETERS, offered=("site",), **_ALSO), total_count=True, most=100)


def asked_of(settings: GoogleSettings, page: AskedPage) -> HttpRequest:
    """Return the request for a page; a filter beats a setting.

    Raises ``UnsupportedFilter`` for values that the service would ignore, and for filters that exclude each other.
    """
    chosen = {name: value for name in _PARAMETERS if (value := page.value(name, pattern=_PARAMETERS[name])) is not None}
    languages = page.values("language", pattern="[A-Za-z]{2}(-[A-Za-z]{2})?")
    common = {
        "siteSearch": ("site", page.value("site", pattern=r"\S+")),
        "lr": ("language", "|".join(f"lang_{language}" for language in languages) or None),
        # Restricts to a range of days, and does not sort.
        "sort": ("date", (page.period("date", "date:r:{}:{}") or "").replace("-", "") or None),
    }
    for name, (field, value) in common.items():
        if value is not None and name in chosen:
            raise UnsupportedFilter(f"{page.source} filters by {field!r} or by {name!r}, not by both: they are one.")
        chosen |= {name: value} if value is not None else {}
    if "siteSearch" in chosen:
        chosen["siteSearchFilter"] = "i"
    usual: dict[str, Any] = {"gl": settings.country, "hl": settings.language, "safe": settings.safe_search}
    part = {"q": page.query, "num": page.size, "start": page.start + 1}
    who: dict[str, Any] = {"key": settings.api_key, "cx": settings.search_engine_id}
    return HttpRequest(settings.base_url, who | part | usual | chosen)
