"""The vector store on Milvus."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from portico.plugins import Services
from portico.ports import VectorStore
from portico.search import Filter, FilterSupport, VectorMatch, VectorRecord, Vectors
from portico_milvus._connection import Connection
from portico_milvus._namespaces import Namespaces
from portico_milvus._rows import entries, read_id
from portico_milvus._search import Search
from portico_milvus._vectors import as_vectors, unit_rows
from portico_milvus.config import MilvusSettings

_T = TypeVar("_T")


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

    One request is seen whole, and a call is one request up to ``request_bytes``; a larger call is several, of which
    others may see the first ones alone, and which a crash may leave half done. Milvus has nothing that would join them.
    The client blocks, so each call has a thread; a cancelled one goes on to its end there. `aclose` lets go of it all.
    """

    name = "milvus"
    persistent = True
    filter_support = FilterSupport.everything()

    def __init__(self, settings: MilvusSettings, services: Services | None = None) -> None:
        self._settings = settings
        self.one_machine = not settings.is_server
        self._connection = Connection(settings)
        self._namespaces = Namespaces(self._connection, settings)
        self._starting = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None

    async def upsert(self, namespace: str, records: Sequence[VectorRecord], vectors: Vectors) -> None:
        """Add records or replace those of the same id."""
        if len(records) != vectors.rows:
            raise ValueError(f"there are {len(records)} records and {vectors.rows} vectors")
        if records:
            await self._run(lambda: self._namespaces.write(namespace, entries(records), unit_rows(vectors)))

    async def delete(self, namespace: str, ids: Sequence[str]) -> int:
        """Remove records; return how many there were."""
        return await self._run(lambda: self._namespaces.delete(namespace, ids))

    async def get(self, namespace: str, ids: Sequence[str]) -> tuple[list[VectorRecord], Vectors | None]:
        """Return the records known among ``ids``, in that order, and their unit vectors."""
        records, rows = await self._run(lambda: self._namespaces.get(namespace, ids))
        return records, None if rows is None else as_vectors(rows)

    async def search(
        self, namespace: str, queries: Vectors, *, top: int = 10, filter: Filter | None = None
    ) -> list[list[VectorMatch]]:
        """Return the ``top`` best records that pass the filter, best first, one list for each query row."""
        if top < 1:
            raise ValueError(f"top is {top}; it must be at least 1")
        self.filter_support.check(filter, f"Vector store {self.name!r}")
        if not queries.rows:
            return []
        search = Search(self._namespaces, self._settings, namespace, top, filter)
        return await self._run(lambda: search.run(unit_rows(queries)))

    async def count(self, namespace: str) -> int:
        """Return how many records the namespace has."""
        return await self._run(lambda: self._namespaces.count(namespace))

    async def ids(self, namespace: str) -> AsyncIterator[str]:
        """Yield every id of the namespace; what is written meanwhile may or may not be among them."""
        pages = self._namespaces.pages(namespace, lambda _: ["id"])
        try:
            while rows := await self._run(pages.next):
                for row in rows:
                    yield read_id(row)
        finally:
            pages.close()

    async def drop(self, namespace: str) -> None:
        """Remove a namespace with everything in it."""
        await self._run(lambda: self._namespaces.drop(namespace))

    async def aclose(self) -> None:
        """Wait for what is under way and disconnect; a later call connects again."""
        with self._starting:
            threads, self._threads = self._threads, None
        if threads is not None:
            await asyncio.to_thread(threads.shutdown)
            self._namespaces.forget()
            await asyncio.to_thread(self._connection.close)

    async def _run(self, call: Callable[[], _T]) -> _T:
        # Threads of its own: the event loop has few, and with a strong consistency each of them waits for the server.
        with self._starting:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._settings.concurrency, "portico-milvus")
            future = self._threads.submit(call)
        return await asyncio.wrap_future(future)
