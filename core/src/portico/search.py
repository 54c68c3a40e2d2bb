"""Search: connectors, options, filters, results and vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from portico._lazy import lazy_names

if TYPE_CHECKING:
    from portico._search.filters import (
        And as And,
        AnyOf as AnyOf,
        check_filter as check_filter,
        Equal as Equal,
        Filter as Filter,
        FilterSupport as FilterSupport,
        matches as matches,
        Not as Not,
        Or as Or,
        Range as Range,
        Scalar as Scalar,
    )
    from portico._search.functions import (
        search_plugin as search_plugin,
        SEARCH_TAG as SEARCH_TAG,
        SearchParameter as SearchParameter,
    )
    from portico._search.fused import (
        fuse_passages as fuse_passages,
        FusedSearch as FusedSearch,
    )
    from portico._search.results import (
        query_bounds as query_bounds,
        search_method as search_method,
        search_methods as search_methods,
        SearchCapabilities as SearchCapabilities,
        SearchConnector as SearchConnector,
        SearchResults as SearchResults,
        TextSearchOptions as TextSearchOptions,
        TextSearchResult as TextSearchResult,
    )
    from portico._search.vectors import (
        HybridMatch as HybridMatch,
        Metadata as Metadata,
        plain_metadata as plain_metadata,
        VectorMatch as VectorMatch,
        VectorRecord as VectorRecord,
        Vectors as Vectors,
    )
    from portico._search.web import (
        AskedPage as AskedPage,
        FoundPage as FoundPage,
        plain_text as plain_text,
        read_record as read_record,
        Verbatim as Verbatim,
        WebAddress as WebAddress,
        WebSearchConnector as WebSearchConnector,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)
