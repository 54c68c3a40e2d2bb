"""A source with two passages."""

from __future__ import annotations

from typing import Any

from portico import SearchConnector, SearchResults, TextSearchOptions, TextSearchResult

PASSAGES = (
    TextSearchResult("Ports are protocols. Adapters fill them.", "ports.md", "file:///docs/ports.md#L3"),
    TextSearchResult("Plans are data. They are checked first.", "plans.pdf", "file:///docs/plans.pdf#page=2"),
)


class Shelf(SearchConnector[TextSearchResult]):
    name = "shelf"

    def __init__(self, settings: None, services: Any) -> None:
        pass

    async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[TextSearchResult]:
        return SearchResults(list(PASSAGES))

    def to_text(self, record: TextSearchResult) -> str:
        return record.value

    def to_result(self, record: TextSearchResult) -> TextSearchResult:
        return record
