"""The parameters of Google Custom Search for the filters of a page."""

from __future__ import annotations

from typing import Any

from portico.plugins import HttpRequest, ValueForm
from portico.search import AskedPage, FilterSupport, SearchCapabilities
from portico_google.config import COUNTRY, LANGUAGE, GoogleSettings

_SITE = ValueForm(r"\S+", "one site without blanks, as in 'example.org'")
_TEXT = ValueForm(r"(?s:.*\S.*)", "a text that is not empty")
_PARAMETERS = {
    "cr": ValueForm(r"[-().|A-Za-z]+", "countries, as in 'countryDE|countryAT'"),
    "dateRestrict": ValueForm(r"[dwmy]\d{1,4}", "a number of days, weeks, months or years, as in 'd7' or 'm3'"),
    "exactTerms": _TEXT,
    "excludeTerms": _TEXT,
    "fileType": ValueForm(r"\.?[A-Za-z0-9]+", "the end of a file's name, as in 'pdf'"),
    "gl": COUNTRY,
    "hl": LANGUAGE,
    "rights": ValueForm(r"[-().|a-z_]+", "licences, as in 'cc_publicdomain|cc_attribute'"),
}
_OF_PAGES = ValueForm("[A-Za-z]{2}(-[A-Za-z]{2})?", "a language's short name, as in 'de' or 'zh-TW'")
_ALSO: dict[str, tuple[str, ...]] = {"site": ("Equal",), "language": ("Equal", "AnyOf"), "date": ("Range",)}
WEB = SearchCapabilities(FilterSupport.fields_of(*_PARAMETERS, offered=("site",), **_ALSO), total_count=True, most=100)


def build_request(settings: GoogleSettings, page: AskedPage) -> HttpRequest:
    """Return the request for a page; a filter beats a setting.

    Raises ``UnsupportedOption`` for values that the service would ignore.
    """
    params: dict[str, Any] = {"key": settings.api_key, "cx": settings.search_engine_id}
    params |= {"q": page.query, "num": page.size, "start": page.start + 1}
    params |= {"gl": settings.country, "hl": settings.language, "safe": settings.safe_search}
    params |= {name: value for name, form in _PARAMETERS.items() if (value := page.value(name, form=form)) is not None}
    params["siteSearch"] = page.value("site", form=_SITE)
    params["siteSearchFilter"] = "i" if params["siteSearch"] else None
    params["lr"] = "|".join(f"lang_{language}" for language in page.values("language", form=_OF_PAGES)) or None
    # Restricts to a range of days, both included, and does not sort:
    # https://developers.google.com/custom-search/docs/structured_search#restrict_to_range
    params["sort"] = (page.period("date", "date:r:{}:{}") or "").replace("-", "") or None
    return HttpRequest(settings.base_url, params)
