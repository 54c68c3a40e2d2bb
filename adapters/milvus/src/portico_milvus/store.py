"""The vector store on Milvus."""

from __future__ import annotations

import asyncio
import heapq
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from portico.plugins import Services
from portico.ports import VectorStore
from portico.search import Filter, FilterSupport, VectorMatch, VectorRecord, Vectors
from portico_milvus._connection import Connection, Link
from portico_milvus._errors import WrongDimensions, is_answer, is_missing
from portico_milvus._filters import Expression, expression
from portico_milvus._names import collection_name, key
from portico_milvus._rows import Entry, entries, read, read_id, requests
from portico_milvus._shape import Shape, create, make_ready, read_shape
from portico_milvus._vectors import Rows, as_vectors, cosine, padded, unit_rows
from portico_milvus.config import MilvusSettings

_T = TypeVar("_T")

_KEYS_READ = 1_000
"""Records that one request asks for by their keys."""

_KEYS_DELETED = 20_000
"""Records that one request deletes; it is 900 KB then."""

PAGE = 1_000
"""Records of one request when all are read."""


class Namespaces:
    """Knows the collection of each namespace that was asked for, and asks again when the server no longer agrees."""

    def __init__(self, connection: Connection, settings: MilvusSettings) -> None:
        self._connection = connection
        self._settings = settings
        self.timeout = settings.timeout
        self._shapes: dict[str, Shape] = {}
        self._creating = threading.Lock()
        self.consistency = settings.consistency.title()

    def forget(self) -> None:
        """Ask about every namespace anew."""
        self._shapes.clear()

    def reading(self, namespace: str, nothing: _T, work: Callable[[Link, Shape], _T]) -> _T:
        """Return what ``work`` gives on the collection, or ``nothing`` where there is none."""
        known = namespace in self._shapes
        with self._connection.opened() as link:
            try:
                shape = self._shape(link, namespace)
                return nothing if shape is None else work(link, shape)
            except Exception as error:
                if not (known and (is_answer(error) or isinstance(error, WrongDimensions))):
                    if is_missing(error):
                        self._shapes.pop(namespace, None)
                        return nothing
                    raise
            # Somebody has dropped it meanwhile, made it anew, or released it.
            self._shapes.pop(namespace, None)
            shape = self._shape(link, namespace)
            return nothing if shape is None else work(link, shape)

    def write(self, namespace: str, entries: Sequence[Entry], rows: Rows) -> None:
        """Add or replace records. Raises ``ValueError`` for other dimensions than the namespace's."""

        def work(link: Link, shape: Shape) -> bool:
            if rows.shape[1] != shape.dimensions:
                raise WrongDimensions("the vectors have", rows.shape[1], shape.dimensions)
            parts = requests(entries, padded(rows, shape.width), shape.field, self._settings.request_bytes)
            for part in parts:
                link.client.upsert(shape.name, part, timeout=self.timeout)
                link.unflushed[shape.name] = link.unflushed.get(shape.name, 0) + len(part)
            return True

        if not self.reading(namespace, False, work):
            self._create(namespace, rows.shape[1])
            self.reading(namespace, False, work)

    def delete(self, namespace: str, ids: Sequence[str]) -> int:
        """Remove records and return how many there were, when no one else deletes the same at that moment.

        The server does not say how many it deletes, so they are looked for first.
        """

        def work(link: Link, shape: Shape) -> int:
            there = [row["pk"] for row in self._rows(link, shape, keys, [])]
            for start in range(0, len(there), _KEYS_DELETED):
                some = there[start : start + _KEYS_DELETED]
                link.client.delete(shape.name, filter=_among(some), timeout=self.timeout)
            return len(there)

        keys = list(dict.fromkeys(map(key, ids)))
        return self.reading(namespace, 0, work) if keys else 0

    def get(self, namespace: str, ids: Sequence[str]) -> tuple[list[VectorRecord], Rows | None]:
        """Return the records known among ``ids``, in that order, and their vectors."""

        def work(link: Link, shape: Shape) -> tuple[list[VectorRecord], Rows | None]:
            found = {}
            for row in self._rows(link, shape, list(dict.fromkeys(map(key, ids))), ["id", "metadata", shape.field]):
                id, metadata = read(row)
                found[id] = metadata, row[shape.field]
            known = [id for id in ids if id in found]
            if not known:
                return [], None
            rows = np.array([found[id][1] for id in known], np.float32)[:, : shape.dimensions]
            return [VectorRecord(id, found[id][0].copy()) for id in known], rows

        nothing: tuple[list[VectorRecord], Rows | None] = [], None
        return self.reading(namespace, nothing, work) if ids else nothing

    def count(self, namespace: str) -> int:
        """Return how many records there are."""

        def work(link: Link, shape: Shape) -> int:
            [row] = self._query(link, shape, "", ["count(*)"])
            return int(row["count(*)"])

        return self.reading(namespace, 0, work)

    def pages(self, namespace: str, fields: Callable[[Shape], list[str]], filter: str = "") -> Pages:
        """Return a reader of all records, by key."""
        return Pages(self, namespace, fields, filter)

    def drop(self, namespace: str) -> None:
        """Remove the collection with everything in it."""
        name = collection_name(self._settings.prefix, namespace)
        with self._connection.opened() as link:
            self._shapes.pop(namespace, None)
            link.unflushed.pop(name, None)
            try:
                link.client.drop_collection(name, timeout=self.timeout)
            except Exception as error:
                if not is_missing(error):
                    raise

    def _shape(self, link: Link, namespace: str) -> Shape | None:
        shape = self._shapes.get(namespace)
        if shape is None:
            shape = read_shape(link, collection_name(self._settings.prefix, namespace), self.timeout)
            if shape is not None:
                make_ready(link, shape, self._settings)
                self._shapes[namespace] = shape
        return shape

    def _create(self, namespace: str, dimensions: int) -> None:
        name = collection_name(self._settings.prefix, namespace)
        with self._creating, self._connection.opened() as link:
            if read_shape(link, name, self.timeout) is not None:
                return
            try:
                create(link, name, namespace, dimensions, self._settings)
            except Exception:
                # Another process may have made it at that moment; what it made is then what counts.
                if read_shape(link, name, self.timeout) is None:
                    raise

    def _rows(self, link: Link, shape: Shape, keys: Sequence[str], fields: list[str]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for start in range(0, len(keys), _KEYS_READ):
            found += self._query(link, shape, _among(keys[start : start + _KEYS_READ]), ["pk", *fields])
        return found

    def _query(self, link: Link, shape: Shape, filter: str, fields: list[str]) -> list[dict[str, Any]]:
        rows = link.client.query(
            shape.name, filter=filter, output_fields=fields, consistency_level=self.consistency, timeout=self.timeout
        )
        return list(rows)


class Pages:
    """Reads a namespace page by page, in the order of the keys, so that changes meanwhile disturb nothing."""

    def __init__(
        self, namespaces: Namespaces, namespace: str, fields: Callable[[Shape], list[str]], filter: str
    ) -> None:
        self._namespaces = namespaces
        self._namespace = namespace
        self._fields = fields
        self._filter = filter
        self._iterator: Any = None

    def next(self) -> list[dict[str, Any]]:
        """Return the next rows; none at the end, and when the namespace was dropped."""

        def work(link: Link, shape: Shape) -> list[dict[str, Any]]:
            if self._iterator is None:
                self._iterator = link.client.query_iterator(
                    shape.name,
                    batch_size=PAGE,
                    filter=self._filter,
                    output_fields=self._fields(shape),
                    timeout=self._namespaces.timeout,
                )
            return list(self._iterator.next())

        return self._namespaces.reading(self._namespace, [], work)

    def close(self) -> None:
        """Forget the place."""
        if self._iterator is not None:
            self._iterator.close()


def _among(keys: Sequence[str]) -> str:
    # Keys are hexadecimal digits: nothing of an id is in an expression.
    return f"pk in [{', '.join(f'{key!r}' for key in keys)}]"


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
        # its own Threads: the event loop has few, and with a strong consistency each of them waits for the server.
        with self._starting:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._settings.concurrency, "portico-milvus")
            future = self._threads.submit(call)
        return await asyncio.wrap_future(future)
