"""A text search in a list, slow and plain."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from portico.search import (
    FilterSupport,
    Scalar,
    SearchCapabilities,
    SearchConnector,
    SearchResults,
    TextSearchOptions,
    TextSearchResult,
)

__all__ = ["ListEntry", "ListSearch"]

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class ListEntry:
    """What a `ListSearch` finds: a text with a name, a link, and fields to filter by."""

    text: str
    name: str | None = None
    link: str | None = None
    fields: Mapping[str, Scalar] = field(default_factory=dict)


class ListSearch(SearchConnector[ListEntry]):
    """Find the entries that share words with the query, those with the most first.

    >>> import asyncio
    >>> search = ListSearch([ListEntry("a red door"), ListEntry("a blue door"), ListEntry("a roof")])
    >>> async def texts(query):
    ...     return await (await search.search(query)).list()
    >>> asyncio.run(texts("blue doors or a door"))
    ['a blue door', 'a red door', 'a roof']

    Any field can be filtered by, and the total count is known. ``queries`` keeps what was asked, for tests.
    """

    capabilities = SearchCapabilities(FilterSupport.everything(), total_count=True)

    def __init__(self, entries: Iterable[ListEntry], *, name: str = "list") -> None:
        self.name = name
        self.entries = list(entries)
        self.queries: list[str] = []

    async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[ListEntry]:
        """Compare the query with every entry."""
        self.queries.append(query)
        asked = _words(query)
        scored = [
            (len(asked & _words(entry.text)), entry)
            for entry in self.entries
            if FilterSupport.matches(options.filter, entry.fields)
        ]
        found = [entry for score, entry in sorted(scored, key=lambda pair: -pair[0]) if score]
        return SearchResults(
            found[options.skip : options.skip + options.top],
            total_count=len(found) if options.include_total_count else None,
        )

    def to_text(self, record: ListEntry) -> str:
        """Return the entry's text."""
        return record.text

    def to_result(self, record: ListEntry) -> TextSearchResult:
        """Return the entry with its name and link."""
        return TextSearchResult(record.text, record.name, record.link)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))
