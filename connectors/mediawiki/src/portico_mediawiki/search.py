"""The TextSearch port over the Action API of MediaWiki: `generator=search`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from portico.errors import AuthenticationFailed, RateLimited, ServiceError, ServiceUnavailable
from portico.plugins import HttpRequest, HttpResponse
from portico.search import (
    AskedPage,
    FilterSupport,
    FoundPage,
    SearchCapabilities,
    TextSearchResult,
    Verbatim,
    WebAddress,
    WebSearchConnector,
    read_record,
)
from portico_mediawiki.config import CLAUSES, NAMESPACE


@dataclass(frozen=True, slots=True)
class WikiPage:
    """A page of a wiki: its introduction, the place of the query's words, and the time of the last edit."""

    title: str
    url: WebAddress
    introduction: Verbatim = ""
    snippet: str = ""
    edited: datetime | None = None


_FORM = "action=query&format=json&formatversion=2&generator=search&gsrinfo=totalhits|suggestion|rewrittenquery"
_PAGES = "gsrprop=snippet|timestamp&prop=extracts|info&exintro=1&explaintext=1&exlimit=max&inprop=url"
# Codes that are not a mistake of the caller: https://www.mediawiki.org/wiki/API:Errors_and_warnings
_KINDS = {"lag|limit|busy": RateLimited, "internal|backend": ServiceUnavailable, "denied|blocked": AuthenticationFailed}


class MediaWikiTextSearch(WebSearchConnector[WikiPage]):
    """Search the pages of a wiki. The text is the introduction, and the place found if it is not in the introduction.

    >>> MediaWikiTextSearch().capabilities.filter.describe()
    'incategory (Equal, Not), intitle (Equal, Not), namespace (AnyOf, Equal)'

    ``metadata`` has ``suggestion``, ``rewrittenquery`` and ``warnings`` of the wiki.
    """

    name, settings_class = "mediawiki", "portico_mediawiki.config:MediaWikiSettings"
    # TextExtracts gives the introductions of 20 pages at once; Wikimedia wants no more than 3 requests at a time.
    page_size, at_once = 20, 3
    advice: ClassVar = dict.fromkeys((403, 429), "Set `contact` to your e-mail: wikis want to know who asks.")
    support = FilterSupport.fields_of(**CLAUSES)
    capabilities = SearchCapabilities(support, total_count=True)

    def request(self, page: AskedPage) -> HttpRequest:
        """Ask for pages with introduction and address in one request."""
        namespaces = "|".join(map(str, page.values("namespace", form=NAMESPACE))) or "0"
        part = {"gsrnamespace": namespaces, "gsroffset": page.start, "gsrlimit": page.size}
        search = {"gsrsearch": page.query_with("incategory", "intitle"), "maxlag": self.settings.maxlag}
        return HttpRequest(f"{self.settings.base_url}?{_FORM}&{_PAGES}", search | part, self.settings.headers)

    def read(self, answer: Any) -> FoundPage[WikiPage]:
        """Return the pages in the order of the search; the wiki orders them by their numbers."""
        query = answer.get("query") or {"complete": answer["batchcomplete"]}
        found = [_page(page) for page in sorted(query.get("pages", ()), key=lambda page: page["index"])]
        about = query.get("searchinfo", {}) | {"warnings": answer.get("warnings", {})}
        return FoundPage(found, about.get("totalhits"), about, "continue" in answer)

    def failure(self, response: HttpResponse, answer: Any) -> type[ServiceError] | None:
        """Return the kind of an error that came with the status of success."""
        code = answer["error"]["code"]
        kind = next((kind for words, kind in _KINDS.items() if re.search(words, code)), ServiceError)
        return kind if response.ok else None

    def to_text(self, record: WikiPage) -> str:
        """Return the introduction, and the place found if most of its words are not in the introduction."""
        found, known = set(record.snippet.split()), set(record.introduction.split())
        beyond = f"\n\n… {record.snippet} …" if 3 * len(found - known) > len(found) else ""
        return f"{record.introduction}{beyond}".strip() or record.title

    def to_result(self, record: WikiPage) -> TextSearchResult:
        """Return the text with the page's title and address."""
        return TextSearchResult(self.to_text(record), record.title, record.url)


def _page(page: Any) -> WikiPage:
    renamed = {"url": page["canonicalurl"], "introduction": page.get("extract"), "edited": page.get("timestamp")}
    return read_record(WikiPage, page | renamed)
