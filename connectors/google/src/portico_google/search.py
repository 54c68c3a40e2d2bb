"""The TextSearch port over Google's Custom Search JSON API."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from portico.errors import AuthenticationFailed, QuotaExceeded, RateLimited, ServiceError
from portico.plugins import HttpRequest, HttpResponse
from portico.search import AskedPage, FoundPage, TextSearchResult, WebAddress, WebSearchConnector, read_record
from portico_google._wire import WEB, build_request


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


# Only the message shows whether the limit of a day or of a minute is reached: both have the reason rateLimitExceeded.
_QUOTA, _RATE = "dailyLimitExceeded|quotaExceeded|per day", "[rR]ateLimitExceeded|RATE_LIMIT"
_KEY = "keyInvalid|keyExpired|API_KEY|accessNotConfigured|SERVICE_DISABLED"
_KINDS = {_QUOTA: QuotaExceeded, _RATE: RateLimited, _KEY: AuthenticationFailed}


class GoogleTextSearch(WebSearchConnector[GooglePage]):
    """Search with a Programmable Search Engine: the web, or your own sites.

    >>> search = GoogleTextSearch(api_key="k", search_engine_id="0123:abc")
    >>> search.page_size, search.capabilities.most
    (10, 100)

    ``metadata`` has ``spelling`` (with ``correctedQuery``), ``searchInformation`` and ``context`` of the service.
    """

    name, capabilities = "google", WEB
    settings_class = "portico_google.config:GoogleSettings"
    advice: ClassVar = {400: "Check the key, `search_engine_id` (the ID alone) and what was asked."}

    def request(self, page: AskedPage) -> HttpRequest:
        """Ask for ten results at most, counted from 1."""
        return build_request(self.settings, page)

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
