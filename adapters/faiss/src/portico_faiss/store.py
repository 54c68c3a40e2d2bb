"""The vector store on FAISS and NumPy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from portico.plugins import Services
from portico.ports import VectorStore
from portico.search import Filter, FilterSupport, VectorMatch, VectorRecord, Vectors
from portico_faiss._folder import FolderNamespace
from portico_faiss._memory import MemoryNamespace
from portico_faiss._search import View, search
from portico_faiss._vectors import Rows, as_rows, unit_queries
from portico_faiss.config import FaissSettings

_INLINE_PRODUCTS = 4_000_000
"""Multiplications that take less time than the way to a thread and back, some tenths of a millisecond."""

_INLINE_RECORDS = 2_000
"""Records whose metadata are looked at without a thread."""


class FaissVectorStore(VectorStore):
    """The VectorStore port, in memory or in a folder.

    >>> from portico import VectorRecord, Vectors
    >>> async def nearest():
    ...     store = FaissVectorStore()
    ...     colours = [VectorRecord("red", {"warm": True}), VectorRecord("blue", {"warm": False})]
    ...     await store.upsert("colours", colours, Vectors.from_rows([[1.0, 0.0], [0.0, 1.0]]))
    ...     [found] = await store.search("colours", Vectors.from_rows([[0.6, 0.8]]), top=1)
    ...     return [(match.id, round(match.score, 3)) for match in found]
    >>> asyncio.run(nearest())
    [('blue', 0.8)]

    Vectors are kept at length one: `get` gives back unit vectors, and those that were put in as such bit for
    bit. A row of zeros is kept and scores 0. Of equal scores the record written first comes first. An id that
    stands twice in one `upsert`, or metadata that is no scalar or list of scalars, is a ``ValueError`` or
    ``TypeError``, and nothing is written.

    Searches compare with every vector; with ``index="hnsw"`` and enough of them they walk a graph, which may
    miss some, except under a filter. Small ones run at once, large ones and all writing in threads. A
    cancelled write happens as a whole or not at all. With a path, several processes may share the folder
    (not over a network file system); `aclose` lets go of it.
    """

    name = "faiss"
    filter_support = FilterSupport.everything()

    def __init__(self, settings: FaissSettings | None = None, services: Services | None = None) -> None:
        self._settings = settings or FaissSettings()
        self._namespaces: dict[str, MemoryNamespace | FolderNamespace] = {}
        self.persistent = self._settings.path is not None

    async def upsert(self, namespace: str, records: Sequence[VectorRecord], vectors: Vectors) -> None:
        """Add records or replace those of the same id, all or none."""

        def write() -> None:
            vectors.check_records(records)
            entries = [(record.id, record.plain_metadata()) for record in records]
            if entries:
                place = self._place(namespace)
                place = place or self._namespaces.setdefault(namespace, MemoryNamespace(self._settings))
                place.write(entries, as_rows(vectors))

        await asyncio.to_thread(write)

    async def delete(self, namespace: str, ids: Sequence[str]) -> int:
        """Remove records; return how many there were."""
        place = self._place(namespace)
        return 0 if place is None else await asyncio.to_thread(place.delete, ids)

    async def get(self, namespace: str, ids: Sequence[str]) -> tuple[list[VectorRecord], Vectors | None]:
        """Return the records known among ``ids``, in that order, and their unit vectors."""
        place = self._place(namespace)
        if place is None:
            return [], None
        records, rows = await asyncio.to_thread(place.get, ids)
        return records, None if rows is None else Vectors(rows, *rows.shape)

    async def search(
        self, namespace: str, queries: Vectors, *, top: int = 10, filter: Filter | None = None
    ) -> list[list[VectorMatch]]:
        """Return the ``top`` best records that pass the filter, best first, one list for each query row."""
        if top < 1:
            raise ValueError(f"top is {top}; it must be at least 1")
        if filter is not None:
            self.filter_support.check(filter, f"Vector store {self.name!r}")
        units = unit_queries(queries)
        place = self._place(namespace)
        if place is None:
            return [[] for _ in units]
        view = place.current()
        if view is not None and view.entries is not None and self._is_quick(view, units, filter):
            return search(view, units, top=top, filter=filter)
        return await asyncio.to_thread(place.search, units, top, filter)

    async def count(self, namespace: str) -> int:
        """Return how many records the namespace has."""
        place = self._place(namespace)
        return 0 if place is None else await asyncio.to_thread(place.count)

    async def ids(self, namespace: str) -> AsyncIterator[str]:
        """Yield every id of the namespace, as it is when the first one is asked for."""
        place = self._place(namespace)
        for id in [] if place is None else await asyncio.to_thread(place.ids):
            yield id

    async def drop(self, namespace: str) -> None:
        """Remove a namespace with everything in it, also one whose files are damaged."""
        place = self._place(namespace)
        if isinstance(place, FolderNamespace):
            await asyncio.to_thread(place.drop)
        else:
            self._namespaces.pop(namespace, None)

    async def aclose(self) -> None:
        """Close every file; a later call opens them again. What is in memory only stays."""
        for place in list(self._namespaces.values()):
            if isinstance(place, FolderNamespace):
                await asyncio.to_thread(place.close)

    def _place(self, namespace: str) -> MemoryNamespace | FolderNamespace | None:
        place = self._namespaces.get(namespace)
        if place is None and self._settings.path is not None:
            made = FolderNamespace(self._settings.path, namespace, self._settings)
            place = self._namespaces.setdefault(namespace, made)
        return place

    def _is_quick(self, view: View, queries: Rows, filter: Filter | None) -> bool:
        return (
            view.rows.size * len(queries) <= _INLINE_PRODUCTS
            and (filter is None or len(view.rows) <= _INLINE_RECORDS)
            and (self._settings.index == "exact" or len(view.rows) < self._settings.hnsw_from)
        )
