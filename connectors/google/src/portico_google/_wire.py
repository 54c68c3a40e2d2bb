"""The parameters of Google Custom Search for the filters of a page."""

from __future__ import annotations

from typing import Any

from portico.plugins import HttpRequest
from portico.search import AskedPage, FilterSupport, SearchCapabilities
from portico_google.config import LANGUAGE, OPTIONS, SITE, GoogleSettings

# Pages of a language are the filter `language`, and sites that are left out are operators of the query.
_ALSO = {"site": ("Equal", "Not"), "language": ("Equal", "AnyOf"), "date": ("Range",)}
_FORMS = {parameter: form for parameter, (_, form) in OPTIONS.items() if parameter != "lr"}
WEB = SearchCapabilities(FilterSupport.fields_of(*_FORMS, offered=("site",), **_ALSO), total_count=True, most=100)


def build_request(settings: GoogleSettings, page: AskedPage) -> HttpRequest:
    """Return the request for a page; a filter beats a setting.

    Raises ``UnsupportedOption`` for values that the service would ignore.
    """
    params: dict[str, Any] = {"key": settings.api_key, "cx": settings.search_engine_id, "safe": settings.safe_search}
    params |= {"q": page.query_with(), "num": page.size, "start": page.start + 1}
    for name, form in _FORMS.items():
        params[name] = page.value(name, getattr(settings, OPTIONS[name][0]), form=form)
    params["siteSearch"] = page.value("site", form=SITE)
    params["siteSearchFilter"] = "i" if params["siteSearch"] else None
    languages = page.values("language", form=LANGUAGE) or (settings.language_restrict or "").split("|")
    params["lr"] = "|".join(f"lang_{language}" for language in languages if language) or None
    # Restricts to a range of days, both included, and does not sort:
    # https://developers.google.com/custom-search/docs/structured_search#restrict_to_range
    params["sort"] = (page.period("date", "date:r:{}:{}") or "").replace("-", "") or None
    return HttpRequest(settings.base_url, params)
