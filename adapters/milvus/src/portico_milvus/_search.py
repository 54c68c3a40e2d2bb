"""Searching a namespace: as many requests as it takes to have the best that a filter keeps."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

import numpy as np

from portico.search import Filter, FilterSupport, VectorMatch
from portico_milvus._connection import Link
from portico_milvus._errors import WrongDimensions
from portico_milvus._filters import Expression, expression
from portico_milvus._namespaces import Namespaces
from portico_milvus._rows import read
from portico_milvus._shape import Shape
from portico_milvus._vectors import Rows, cosine, padded
from portico_milvus.config import MilvusSettings

MOST = 16_384
"""Records that Milvus finds for a query at most, and queries of a request at most."""

_RECORDS_AT_ONCE = 10_000
"""Records of one answer at most; with 2 KB of metadata each it is 20 MB."""

_UNFLUSHED = 500
"""Rows in Milvus Lite's memory, which each search reads one by one. Measured with 500 of 256 numbers: a search takes 10
ms of the processor, after a flush of 60 ms it takes 2."""


class Search:
    """One search of one namespace."""

    def __init__(
        self, namespaces: Namespaces, settings: MilvusSettings, namespace: str, top: int, filter: Filter | None
    ) -> None:
        self._namespaces = namespaces
        self._settings = settings
        self._namespace = namespace
        self._top = top
        self._filter = filter
        self._expression: Expression = True if filter is None else expression(filter)

    def run(self, queries: Rows) -> list[list[VectorMatch]]:
        """Return the best for each query. Raises ``ValueError`` for other dimensions than the namespace's."""
        nothing: list[list[VectorMatch] | None] = [[] for _ in queries]

        def work(link: Link, shape: Shape) -> list[list[VectorMatch] | None]:
            if queries.shape[1] != shape.dimensions:
                raise WrongDimensions("the query has", queries.shape[1], shape.dimensions)
            if self._expression is False:
                return nothing
            if link.is_lite and link.unflushed.get(shape.name, 0) >= _UNFLUSHED:
                link.client.flush(shape.name, timeout=self._settings.timeout)
                link.unflushed.pop(shape.name, None)
            return self._found(link, shape, padded(queries, shape.width))

        found = self._namespaces.reading(self._namespace, nothing, work)
        return [self._from_all(query) if best is None else best for query, best in zip(queries, found, strict=True)]

    def _found(self, link: Link, shape: Shape, queries: Rows) -> list[list[VectorMatch] | None]:
        """Return the best for each query; None where Milvus does not go far enough."""
        result: list[list[VectorMatch] | None] = [None] * len(queries)
        limit = min(self._top, MOST)
        left = list(range(len(queries)))
        while left:
            deeper = []
            together = max(1, min(_RECORDS_AT_ONCE // limit, MOST))
            for start in range(0, len(left), together):
                some = left[start : start + together]
                for number, hits in zip(some, self._asked(link, shape, queries[some], limit), strict=True):
                    best = self._kept(hits)[: self._top]
                    if len(best) == self._top or len(hits) < limit:
                        result[number] = best
                    else:
                        deeper.append(number)
            if limit == MOST:
                return result
            # The expression let pass what the filter does not, which happens seldom.
            limit = min(limit * 8, MOST)
            left = deeper
        return result

    def _asked(self, link: Link, shape: Shape, queries: Rows, limit: int) -> list[list[Any]]:
        parameters = {"ef": max(self._settings.hnsw_search, limit)} if shape.graph else {}
        found = link.client.search(
            shape.name,
            data=list(queries),
            filter="" if self._expression is True else self._expression,
            limit=limit,
            output_fields=["id", "metadata"],
            search_params={"metric_type": "IP", "params": parameters},
            anns_field=shape.field,
            consistency_level=self._namespaces.consistency,
            timeout=self._settings.timeout,
        )
        return list(found)

    def _kept(self, hits: list[Any]) -> list[VectorMatch]:
        kept = []
        for hit in hits:
            id, metadata = read(hit["entity"])
            if FilterSupport.matches(self._filter, metadata):
                kept.append(VectorMatch(id, cosine(hit["distance"]), metadata))
        return kept

    def _from_all(self, query: Rows) -> list[VectorMatch]:
        """Compare a query with every record here, for what Milvus cannot be asked."""
        return heapq.nlargest(self._top, self._all(query), key=lambda match: match.score)

    def _all(self, query: Rows) -> Iterator[VectorMatch]:
        filter = "" if isinstance(self._expression, bool) else self._expression
        vectors: list[str] = []

        def fields(shape: Shape) -> list[str]:
            vectors[:] = [shape.field]
            return ["id", "metadata", shape.field]

        pages = self._namespaces.pages(self._namespace, fields, filter)
        try:
            while rows := pages.next():
                there = np.array([row[vectors[0]] for row in rows], np.float32)[:, : len(query)]
                for row, score in zip(rows, (there @ query).tolist(), strict=True):
                    id, metadata = read(row)
                    if FilterSupport.matches(self._filter, metadata):
                        yield VectorMatch(id, cosine(score), metadata)
        finally:
            pages.close()
