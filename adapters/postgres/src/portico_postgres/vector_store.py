"""The vector store on pgvector."""

from __future__ import annotations

import operator
from collections.abc import AsyncIterator, Sequence

from portico.plugins import Services
from portico.ports import VectorStore
from portico.search import Filter, FilterSupport, VectorMatch, VectorRecord, Vectors
from portico_postgres import _vector_searching as searching
from portico_postgres._conditions import Condition, condition_of
from portico_postgres._texts import given, key, stored
from portico_postgres._vector_access import Access
from portico_postgres._vector_tables import Connection, Namespace
from portico_postgres._vector_writing import delete, keys_of, upsert
from portico_postgres._vectors import MOST_DIMENSIONS, packed_queries
from portico_postgres._words import asked_words
from portico_postgres.vector_config import PostgresVectorSettings

_SUPPORT = FilterSupport.everything()
_SOURCE = "Vector store 'postgres'"
_LONG_TEXT = 2_000
"""Characters of text that take as long to index as a record takes to write."""
_MOST_RECORDS = 10**12
"""More than there ever are; a larger ``top`` is that."""


class PostgresVectorStore(VectorStore):
    """The VectorStore port on PostgreSQL with pgvector, with hybrid search.

    >>> from portico.plugins import Secret
    >>> store = PostgresVectorStore(PostgresVectorSettings(uri=Secret("postgresql://ada@db.example/portico")))
    >>> store.persistent
    True

    Nothing is opened before the first call. Vectors are kept at length one, and those that were put in as such come
    back bit for bit. A row of zeros is kept and scores 0. Of equal scores the record that came first comes first. An id
    or a namespace has 2,000 bytes of UTF-8 at most, and a vector 16,000 dimensions.

    Searches compare with every vector that passes the filter; with ``index="hnsw"`` they walk a graph once a namespace
    has enough records, which may miss some. Vectors of more than 4,000 dimensions are always compared. Every write is
    one transaction. Any number of processes may share the tables.
    """

    name = "postgres"
    persistent = True
    filter_support = _SUPPORT

    def __init__(self, settings: PostgresVectorSettings, services: Services | None = None) -> None:
        self._access = Access(settings)
        self.hybrid = PostgresHybridSearch(self._access)
        """`portico.ports.HybridSearch` over the same records."""

    async def upsert(self, namespace: str, records: Sequence[VectorRecord], vectors: Vectors) -> None:
        """Add records or replace those of the same id, all or none; with their texts, for hybrid search."""
        keys = keys_of(records, vectors)
        if not records:
            return
        key(namespace, "the namespace")
        if vectors.dimensions > MOST_DIMENSIONS:
            raise ValueError(f"the vectors have {vectors.dimensions:,} dimensions; pgvector takes {MOST_DIMENSIONS:,}")

        async def work(connection: Connection, place: Namespace) -> None:
            await upsert(connection, place, keys, records, vectors)

        size = len(records) + sum(len(record.text) for record in records if record.text) // _LONG_TEXT
        await self._access.write(namespace, vectors.dimensions, size, work)

    async def delete(self, namespace: str, ids: Sequence[str]) -> int:
        """Remove records; return how many there were."""
        keys = [stored(id) for id in ids]

        async def work(connection: Connection, place: Namespace) -> int:
            return await delete(connection, place, keys)

        return await self._access.delete(namespace, work) if keys else 0

    async def get(self, namespace: str, ids: Sequence[str]) -> tuple[list[VectorRecord], Vectors | None]:
        """Return the records known among ``ids``, in that order, with their texts, and their unit vectors."""
        keys = [stored(id) for id in ids]

        async def work(connection: Connection, place: Namespace) -> tuple[list[VectorRecord], Vectors | None]:
            return await searching.read(connection, place, keys)

        return await self._access.read(namespace, work, ([], None))

    async def search(
        self, namespace: str, queries: Vectors, *, top: int = 10, filter: Filter | None = None
    ) -> list[list[VectorMatch]]:
        """Return the ``top`` best records that pass the filter, best first, one list for each query row."""
        limit, condition = _asked_for(top, filter)
        units = packed_queries(queries)

        async def work(connection: Connection, place: Namespace) -> list[list[VectorMatch]]:
            graph = self._access.settings.index == "hnsw" and place.takes_graph
            return await searching.nearest(connection, place, units, top=limit, condition=condition, graph=graph)

        if not units:
            return []
        return await self._access.read(namespace, work, [[] for _ in units], dimensions=queries.dimensions)

    async def count(self, namespace: str) -> int:
        """Return how many records the namespace has."""
        return await self._access.read(namespace, searching.count, 0)

    async def ids(self, namespace: str) -> AsyncIterator[str]:
        """Yield every id of the namespace; what is written meanwhile may or may not be among them."""
        last: str | None = None
        while True:
            some = await self._ids_after(namespace, last)
            for id in some:
                yield given(id)
            if not some:
                return
            last = some[-1]

    async def drop(self, namespace: str) -> None:
        """Remove a namespace with everything in it."""
        await self._access.drop(namespace)

    async def aclose(self) -> None:
        """Close the connections of this event loop; a later call opens others."""
        await self._access.connections.aclose()

    async def _ids_after(self, namespace: str, last: str | None) -> list[str]:
        async def work(connection: Connection, place: Namespace) -> list[str]:
            return await searching.ids_after(connection, place, last)

        return await self._access.read(namespace, work, [])


class PostgresHybridSearch:
    """The HybridSearch port: one statement ranks by words (BM25) and by the cosine.

    Words are what the text search configuration ``language`` makes of them; a namespace keeps that of its first write.
    """

    def __init__(self, access: Access) -> None:
        self._access = access

    async def search(
        self,
        namespace: str,
        text: str,
        vector: Vectors | None = None,
        *,
        top: int = 10,
        share: float | None = None,
        filter: Filter | None = None,
    ) -> list[VectorMatch]:
        """Return the ``top`` best records that pass the filter, best first."""
        limit, condition = _asked_for(top, filter)
        if share is not None and not 0 <= share <= 1:
            raise ValueError(f"share is {share}; it is from 0, for the vector alone, to 1, for the words alone")
        if vector is not None and vector.rows != 1:
            raise ValueError(f"there are {vector.rows} vectors; a hybrid search asks for one")
        query = None if vector is None else packed_queries(vector)[0]
        words = " ".join(asked_words(text))

        async def work(connection: Connection, place: Namespace) -> list[VectorMatch]:
            graph = self._access.settings.index == "hnsw" and place.takes_graph
            return await searching.hybrid(
                connection, place, words, query, top=limit, share=share, condition=condition, graph=graph
            )

        dimensions = None if vector is None else vector.dimensions
        return await self._access.read(namespace, work, [], dimensions=dimensions)


def _asked_for(top: int, filter: Filter | None) -> tuple[int, Condition]:
    if top < 1:
        raise ValueError(f"top is {top}; it must be at least 1")
    _SUPPORT.check(filter, _SOURCE)
    return min(operator.index(top), _MOST_RECORDS), condition_of(filter)
