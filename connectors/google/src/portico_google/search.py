"""The TextSearch port over Google's Custom Search JSON API."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from portico.errors import AuthenticationFailed, QuotaExceeded, RateLimited, ServiceError
from portico.plugins import HttpRequest, HttpResponse, ValueForm
from portico.search import (
    AskedPage,
    FilterSupport,
    FoundPage,
    SearchCapabilities,
    TextSearchResult,
    WebAddress,
    WebSearchConnector,
    read_record,
)
from portico_google.config import COUNTRY, LANGUAGE


@dataclass(frozen=True, slots=True)
class GooglePage:
    """A web page with title, address, snippet, and the dates that it declares."""

    title: str
    link: WebAddress
    snippet: str = ""
    published: datetime | None = None
    modified: datetime | None = None
    display_link: str | None = None
    mime: str | None = None


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
_FILTER = FilterSupport.fields_of(*_PARAMETERS, offered=("site",), **_ALSO)
# Only the message shows whether the limit of a day or of a minute is reached: both have the reason rateLimitExceeded.
_QUOTA, _RATE = "dailyLimitExceeded|quotaExceeded|per day", "[rR]ateLimitExceeded|RATE_LIMIT"
_KEY = "keyInvalid|keyExpired|API_KEY|accessNotConfigured|SERVICE_DISABLED"
_KINDS = {_QUOTA: QuotaExceeded, _RATE: RateLimited, _KEY: AuthenticationFailed}


class GoogleTextSearch(WebSearchConnector[GooglePage]):
    """Search with a Programmable Search Engine: the web, or your own sites.

    >>> from portico.plugins import Secret
    >>> from portico_google.config import GoogleSettings
    >>> search = GoogleTextSearch(GoogleSettings(api_key=Secret("k"), search_engine_id="0123:abc"), None)
    >>> search.page_size, search.capabilities.most
    (10, 100)

    ``metadata`` has ``spelling`` (with ``correctedQuery``), ``searchInformation`` and ``context`` of the service.
    """

    name, capabilities = "google", SearchCapabilities(_FILTER, total_count=True, most=100)
    advice: ClassVar = {400: "Check the key, `search_engine_id` (the ID alone) and what was asked."}

    def request(self, page: AskedPage) -> HttpRequest:
        """Ask for ten results at most, counted from 1; a filter beats a setting."""
        params: dict[str, Any] = {"key": self.settings.api_key, "cx": self.settings.search_engine_id}
        params |= {"q": page.query, "num": page.size, "start": page.start + 1}
        params |= {"gl": self.settings.country, "hl": self.settings.language, "safe": self.settings.safe_search}
        params |= {
            name: value for name, form in _PARAMETERS.items() if (value := page.value(name, form=form)) is not None
        }
        params["siteSearch"] = page.value("site", form=_SITE)
        params["siteSearchFilter"] = "i" if params["siteSearch"] else None
        params["lr"] = "|".join(f"lang_{language}" for language in page.values("language", form=_OF_PAGES)) or None
        # Restricts to a range of days, both included, and does not sort:
        # https://developers.google.com/custom-search/docs/structured_search#restrict_to_range
        params["sort"] = (page.period("date", "date:r:{}:{}") or "").replace("-", "") or None
        return HttpRequest(self.settings.base_url, params)

    def read(self, answer: Any) -> FoundPage[GooglePage]:
        """Return the results of an answer; without results it has no items, and its numbers are texts."""
        about = {name: answer.get(name, {}) for name in ("spelling", "searchInformation", "context")}
        total, more = int(answer["searchInformation"]["totalResults"]), "nextPage" in answer["queries"]
        return FoundPage([_page(item) for item in answer.get("items", [])], total, about, more)

    def failure(self, response: HttpResponse, answer: Any) -> type[ServiceError] | None:
        """Return the kind for the reasons in an answer: a wrong key is 400, and a quota 403 or 429."""
        error = answer["error"]
        reasons = [each.get("reason") for name in ("errors", "details") for each in error.get(name, [])]
        said = f"{reasons} {error.get('message')}"
        return next((kind for words, kind in _KINDS.items() if re.search(words, said)), None)

    def identity(self, record: GooglePage) -> str | None:
        """Return the address."""
        return record.link

    def to_text(self, record: GooglePage) -> str:
        """Return the snippet."""
        return record.snippet or record.title

    def to_result(self, record: GooglePage) -> TextSearchResult:
        """Return the snippet with the page's title and address."""
        return TextSearchResult(self.to_text(record), record.title or None, record.link)


def _page(item: Any) -> GooglePage:
    tags: dict[str, Any] = next(iter(item.get("pagemap", {}).get("metatags", [])), {})
    dates = {name: tags.get(f"article:{name}_time") for name in ("published", "modified")}
    return read_record(GooglePage, item | dates)
