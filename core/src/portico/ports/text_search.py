"""The TextSearch port."""

from __future__ import annotations

from typing import Any, Protocol

from portico.ports.search_index import SearchIndex
from portico.search import SearchCapabilities, SearchResults, TextSearchOptions, TextSearchResult

__all__ = ["TextSearch"]


class TextSearch(Protocol):
    """Finds passages for a query. `portico.SearchConnector` derives all of it from three methods.

    Behaviour: best results first, never more than ``top``; ``skip`` leaves out the first ones. A blank query
    gives no results. Options of one call never reach another. Calls may run concurrently.
    Errors: ``UnsupportedFilter`` for a filter outside ``capabilities``, a ``ServiceError`` or ``StoreError``
    for a source that fails.
    """

    name: str
    capabilities: SearchCapabilities
    index: SearchIndex | None
    """What brings the source up to date; None where it is live."""

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
