"""Search: connectors, options, filters, results and vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from portico._lazy import lazy_names

if TYPE_CHECKING:
    from portico._search.filters import (
        And as And,
        AnyOf as AnyOf,
        Equal as Equal,
        Filter as Filter,
        FilterSupport as FilterSupport,
        Not as Not,
        Or as Or,
        Range as Range,
        Scalar as Scalar,
    )
    from portico._search.functions import SearchParameter as SearchParameter, search_plugin as search_plugin
    from portico._search.fused import FusedSearch as FusedSearch
    from portico._search.results import (
        SearchCapabilities as SearchCapabilities,
        SearchConnector as SearchConnector,
        SearchResults as SearchResults,
        TextSearchOptions as TextSearchOptions,
        TextSearchResult as TextSearchResult,
        search_method as search_method,
    )
    from portico._search.vectors import VectorMatch as VectorMatch, VectorRecord as VectorRecord, Vectors as Vectors
    from portico._search.web import (
        AskedPage as AskedPage,
        FoundPage as FoundPage,
        Verbatim as Verbatim,
        WebAddress as WebAddress,
        WebSearchConnector as WebSearchConnector,
        read_record as read_record,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)
