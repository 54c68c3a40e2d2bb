"""The vector store on Milvus."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import numpy as np

from portico.plugins import Services
from portico.ports import VectorStore
from portico.search import Filter, FilterSupport, VectorMatch, VectorRecord, Vectors
from portico_milvus._collections import Collections, Shape
from portico_milvus._connection import Connection, Link, WrongDimensions
from portico_milvus._filters import expression
from portico_milvus._records import Rows, cosine, entry_of, from_text, padded, read, unit_rows
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

    def __init__(self, collections: Collections, settings: MilvusSettings, top: int, filter: Filter | None) -> None:
        self._collections = collections
        self._settings = settings
        self._top = top
        self._filter = filter
        self._expression = True if filter is None else expression(filter)

    def run(self, link: Link, shape: Shape, queries: Rows) -> list[list[VectorMatch]]:
        """Return the best for each query. Raises ``ValueError`` for other dimensions than the namespace's."""
        if queries.shape[1] != shape.dimensions:
            raise WrongDimensions("the query has", queries.shape[1], shape.dimensions)
        if self._expression is False:
            return [[] for _ in queries]
        if link.is_lite and link.unflushed.get(shape.name, 0) >= _UNFLUSHED:
            link.client.flush(shape.name, timeout=self._settings.timeout)
            link.unflushed.pop(shape.name, None)
        wide = padded(queries, shape.width)
        result: list[list[VectorMatch]] = [[] for _ in queries]
        limit = min(self._top, MOST)
        left = list(range(len(queries)))
        while left:
            deeper = []
            together = max(1, min(_RECORDS_AT_ONCE // limit, MOST))
            for start in range(0, len(left), together):
                some = left[start : start + together]
                for number, hits in zip(some, self._ask(link, shape, wide[some], limit), strict=True):
                    result[number] = self._kept(hits)[: self._top]
                    if len(result[number]) < self._top and len(hits) == limit:
                        deeper.append(number)
            if limit == MOST:
                for number in deeper:
                    result[number] = self._compare_all(link, shape, queries[number])
                break
            # The expression let pass what the filter does not, which happens seldom.
            limit = min(limit * 8, MOST)
            left = deeper
        return result

    def _ask(self, link: Link, shape: Shape, queries: Rows, limit: int) -> list[list[Any]]:
        parameters = {"ef": max(self._settings.hnsw_search, limit)} if shape.graph else {}
        found = link.client.search(
            shape.name,
            data=list(queries),
            filter="" if isinstance(self._expression, bool) else self._expression,
            limit=limit,
            output_fields=["id", "metadata"],
            search_params={"metric_type": "IP", "params": parameters},
            anns_field=shape.field,
            consistency_level=self._settings.consistency.title(),
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

    def _compare_all(self, link: Link, shape: Shape, query: Rows) -> list[VectorMatch]:
        """Compare a query with every record here, for what Milvus cannot be asked."""
        filter = "" if isinstance(self._expression, bool) else self._expression

        def matches() -> Iterator[VectorMatch]:
            for rows in self._collections.pages(link, shape, ["id", "metadata", shape.field], filter):
                there = np.array([row[shape.field] for row in rows], np.float32)[:, : len(query)]
                for row, score in zip(rows, (there @ query).tolist(), strict=True):
                    id, metadata = read(row)
                    if FilterSupport.matches(self._filter, metadata):
                        yield VectorMatch(id, cosine(score), metadata)

        return heapq.nlargest(self._top, matches(), key=lambda match: match.score)


class MilvusVectorStore(VectorStore):
    """The VectorStore port, on a Milvus server or on Milvus Lite in a folder.

    >>> import tempfile
    >>> from portico import VectorRecord, Vectors
    >>> async def nearest(folder):
    ...     store = MilvusVectorStore(MilvusSettings(uri=f"{folder}/vectors.db"))
    ...     colours = [VectorRecord("red", {"warm": True}), VectorRecord("blue", {"warm": False})]
    ...     await store.upsert("colours", colours, Vectors.from_rows([[1.0, 0.0], [0.0, 1.0]]))
    ...     [found] = await store.search("colours", Vectors.from_rows([[0.6, 0.8]]), top=1)
    ...     await store.aclose()
    ...     return [(match.id, round(match.score, 3)) for match in found]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     asyncio.run(nearest(folder))
    [('blue', 0.8)]

    A namespace is a collection. Vectors are kept at length one: `get` gives back unit vectors, and those that were put
    in as such bit for bit. A row of zeros is kept and scores 0. The order of equal scores is Milvus's. An id that
    stands twice in one `upsert`, metadata that are no scalars or lists of scalars, and what is longer than a field of
    Milvus is a ``ValueError`` or ``TypeError``, and nothing is written.

    One request is seen whole, and a call is one request up to 32 MB; a larger call is several, of which others may see
    the first ones alone, and which a crash may leave half done. Milvus has nothing that would join them.
    The client blocks, so each call has a thread; a cancelled one continues to its end there.
    """

    name = "milvus"
    persistent = True
    filter_support = FilterSupport.everything()

    def __init__(self, settings: MilvusSettings, services: Services | None = None) -> None:
        self._settings = settings
        self._connection = Connection(settings)
        self._collections = Collections(self._connection, settings)

    async def upsert(self, namespace: str, records: Sequence[VectorRecord], vectors: Vectors) -> None:
        """Add records or replace those of the same id."""
        vectors.check_records(records)

        def write() -> None:
            self._collections.write(namespace, [entry_of(record) for record in records], unit_rows(vectors))

        if records:
            await asyncio.to_thread(write)

    async def delete(self, namespace: str, ids: Sequence[str]) -> int:
        """Remove records; return how many there were."""
        return await asyncio.to_thread(self._collections.delete, namespace, ids)

    async def get(self, namespace: str, ids: Sequence[str]) -> tuple[list[VectorRecord], Vectors | None]:
        """Return the records known among ``ids``, in that order, and their unit vectors."""
        records, rows = await asyncio.to_thread(self._collections.get, namespace, ids)
        if rows is None:
            return records, None
        return records, Vectors(np.ascontiguousarray(rows), *rows.shape)

    async def search(
        self, namespace: str, queries: Vectors, *, top: int = 10, filter: Filter | None = None
    ) -> list[list[VectorMatch]]:
        """Return the ``top`` best records that pass the filter, best first, one list for each query row."""
        if top < 1:
            raise ValueError(f"top is {top}; it must be at least 1")
        self.filter_support.check(filter, f"Vector store {self.name!r}")
        if not queries.rows:
            return []
        search = Search(self._collections, self._settings, top, filter)

        def run() -> list[list[VectorMatch]]:
            units = unit_rows(queries)
            return self._collections.use(
                namespace, [[] for _ in units], lambda link, shape: search.run(link, shape, units)
            )

        return await asyncio.to_thread(run)

    async def count(self, namespace: str) -> int:
        """Return how many records the namespace has."""
        return await asyncio.to_thread(self._collections.count, namespace)

    async def ids(self, namespace: str) -> AsyncIterator[str]:
        """Yield every id of the namespace, as it is when the first one is asked for."""

        def read_all(link: Link, shape: Shape) -> list[str]:
            pages = self._collections.pages(link, shape, ["id"])
            return [from_text(row["id"]) for rows in pages for row in rows]

        nothing: list[str] = []
        for id in await asyncio.to_thread(self._collections.use, namespace, nothing, read_all):
            yield id

    async def drop(self, namespace: str) -> None:
        """Remove a namespace with everything in it."""
        await asyncio.to_thread(self._collections.drop, namespace)

    async def aclose(self) -> None:
        """Disconnect; a later call connects again."""
        self._collections.forget()
        await asyncio.to_thread(self._connection.close)
