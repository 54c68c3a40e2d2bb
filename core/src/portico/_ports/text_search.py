"""The TextSearch port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from portico._ports.search_index import SearchIndex
    from portico._search.results import SearchCapabilities, SearchResults, TextSearchOptions, TextSearchResult


class TextSearch(Protocol):
    """Finds passages for a query. `portico.SearchConnector` derives all of it from three methods.

    Behaviour: best results first, at most ``top``, after the first ``skip``. A blank query has no results. Options of
    one call do not affect another. Calls may run concurrently.
    Errors: ``UnsupportedOption`` for a filter outside ``capabilities``, a ``ServiceError`` or ``StoreError``
    for a source that fails.
    """

    name: str
    capabilities: SearchCapabilities
    index: SearchIndex | None
    """Updates the index of the source; None where it has none."""

    async def search(self, query: str, options: TextSearchOptions | None = None) -> SearchResults[str]:
        """Return the passages' texts."""
        ...

    async def get_text_search_results(
        self, query: str, options: TextSearchOptions | None = None
    ) -> SearchResults[TextSearchResult]:
        """Return the passages with name and link."""
        ...

    async def get_search_results(self, query: str, options: TextSearchOptions | None = None) -> SearchResults[Any]:
        """Return the source's own records, all of one type."""
        ...
