"""The vector store on Milvus."""

from __future__ import annotations

import asyncio
import heapq
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from portico.errors import StoreError
from portico.plugins import Services
from portico.ports import VectorStore
from portico.search import Filter, FilterSupport, VectorMatch, VectorRecord, Vectors
from portico_milvus._connection import Connection, Link, WrongDimensions, is_answer, is_missing
from portico_milvus._records import (
    KEY_LENGTH,
    LONGEST_TEXT,
    MOST_TERMS,
    TERM_LENGTH,
    Rows,
    as_text,
    collection_name,
    cosine,
    entry_of,
    expression,
    from_text,
    key,
    read,
    requests,
    unit_rows,
)
from portico_milvus.config import MilvusSettings

T = TypeVar("T")

_VECTOR = "vector"
_FIELDS = {"pk", "id", "metadata", "terms", "bounds", _VECTOR}
_DESCRIBED = 200
"""Characters of a namespace that its collection is described with, for people."""
_KEYS_READ = 1_000
"""Records that one request asks for by their keys."""
_KEYS_DELETED = 20_000
"""Records that one request deletes; it is 900 KB then."""
_PAGE = 1_000
"""Records of one request when all are read."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What is known of a collection."""

    name: str
    dimensions: int
    graph: bool
    """Whether it is searched along an HNSW graph."""


class _Collections:
    """Caches what is known of each namespace's collection, and reads it again when the server refuses a call."""

    def __init__(self, connection: Connection, settings: MilvusSettings) -> None:
        self._connection = connection
        self._settings = settings
        self._shapes: dict[str, Shape] = {}
        self._creating = threading.Lock()
        self._options = {"consistency_level": settings.consistency.title(), "timeout": settings.timeout}

    def forget(self) -> None:
        self._shapes.clear()

    def use(self, namespace: str, nothing: T, work: Callable[[Link, Shape], T]) -> T:
        """Return what ``work`` returns for the collection, or ``nothing`` if there is none."""
        known = namespace in self._shapes
        with self._connection.use() as link:
            try:
                shape = self._shape(link, namespace)
                return nothing if shape is None else work(link, shape)
            except Exception as error:
                self._shapes.pop(namespace, None)
                if not (known and (is_answer(error) or isinstance(error, WrongDimensions))):
                    if is_missing(error):
                        return nothing
                    raise
            # Another process may have dropped, made or released it.
            shape = self._shape(link, namespace)
            return nothing if shape is None else work(link, shape)

    def write(self, namespace: str, entries: Sequence[dict[str, Any]], rows: Rows) -> None:
        """Add or replace records. Raises ``ValueError`` for other dimensions than the namespace's."""

        def work(link: Link, shape: Shape) -> bool:
            if rows.shape[1] != shape.dimensions:
                raise WrongDimensions("the vectors have", rows.shape[1], shape.dimensions)
            for part in requests(entries, rows, _VECTOR):
                link.client.upsert(shape.name, part, timeout=self._settings.timeout)
                link.unflushed[shape.name] = link.unflushed.get(shape.name, 0) + len(part)
            return True

        if not self.use(namespace, False, work):
            self._create(namespace, rows.shape[1])
            self.use(namespace, False, work)

    def delete(self, namespace: str, ids: Sequence[str]) -> int:
        """Remove records and return how many there were. Other deletions at the same time may make the number wrong.

        The server does not say how many it deletes, so they are counted first.
        """

        def work(link: Link, shape: Shape) -> int:
            there = [row["pk"] for row in self._rows(link, shape, ids, [])]
            for start in range(0, len(there), _KEYS_DELETED):
                some = there[start : start + _KEYS_DELETED]
                link.client.delete(shape.name, filter=_among(some), timeout=self._settings.timeout)
            return len(there)

        return self.use(namespace, 0, work) if ids else 0

    def get(self, namespace: str, ids: Sequence[str]) -> tuple[list[VectorRecord], Rows | None]:
        def work(link: Link, shape: Shape) -> tuple[list[VectorRecord], Rows | None]:
            found = {}
            for row in self._rows(link, shape, ids, ["id", "metadata", _VECTOR]):
                id, metadata = read(row)
                found[id] = metadata, row[_VECTOR]
            known = [id for id in ids if id in found]
            if not known:
                return [], None
            rows = np.array([found[id][1] for id in known], np.float32)
            return [VectorRecord(id, found[id][0].copy()) for id in known], rows

        nothing: tuple[list[VectorRecord], Rows | None] = [], None
        return self.use(namespace, nothing, work) if ids else nothing

    def count(self, namespace: str) -> int:
        def work(link: Link, shape: Shape) -> int:
            [row] = link.client.query(shape.name, filter="", output_fields=["count(*)"], **self._options)
            return int(row["count(*)"])

        return self.use(namespace, 0, work)

    def pages(self, link: Link, shape: Shape, fields: list[str], filter: str = "") -> Iterator[list[dict[str, Any]]]:
        """Yield all records page by page, in the order of the keys, so that other changes cause no gaps."""
        iterator = link.client.query_iterator(
            shape.name, batch_size=_PAGE, filter=filter, output_fields=fields, timeout=self._settings.timeout
        )
        try:
            while rows := list(iterator.next()):
                yield rows
        finally:
            iterator.close()

    def drop(self, namespace: str) -> None:
        name = collection_name(self._settings.prefix, namespace)
        with self._connection.use() as link:
            self._shapes.pop(namespace, None)
            link.unflushed.pop(name, None)
            try:
                link.client.drop_collection(name, timeout=self._settings.timeout)
            except Exception as error:
                if not is_missing(error):
                    raise

    def _shape(self, link: Link, namespace: str) -> Shape | None:
        shape = self._shapes.get(namespace)
        if shape is None:
            shape = _read_shape(link, collection_name(self._settings.prefix, namespace), self._settings)
            if shape is not None:
                self._shapes[namespace] = shape
        return shape

    def _create(self, namespace: str, dimensions: int) -> None:
        name = collection_name(self._settings.prefix, namespace)
        with self._creating, self._connection.use() as link:
            if link.client.has_collection(name, timeout=self._settings.timeout):
                return
            try:
                _create_collection(link, name, namespace, dimensions, self._settings)
            except Exception:
                # Another process may have made it at the same moment.
                if not link.client.has_collection(name, timeout=self._settings.timeout):
                    raise

    def _rows(self, link: Link, shape: Shape, ids: Sequence[str], fields: list[str]) -> list[dict[str, Any]]:
        keys = list(dict.fromkeys(map(key, ids)))
        found: list[dict[str, Any]] = []
        for start in range(0, len(keys), _KEYS_READ):
            some = _among(keys[start : start + _KEYS_READ])
            found += link.client.query(shape.name, filter=some, output_fields=["pk", *fields], **self._options)
        return found


def _among(keys: Sequence[str]) -> str:
    # Keys are hexadecimal digits: nothing of an id is in an expression.
    return f"pk in [{', '.join(f'{key!r}' for key in keys)}]"


def _read_shape(link: Link, name: str, settings: MilvusSettings) -> Shape | None:
    """Load a collection and return its shape; None if there is none.

    Raises ``StoreError`` for a collection with other fields than ours.
    """
    client, timeout = link.client, settings.timeout
    if not client.has_collection(name, timeout=timeout):
        return None
    fields = {field["name"]: field for field in client.describe_collection(name, timeout=timeout)["fields"]}
    if fields.keys() != _FIELDS:
        raise StoreError(
            f"The Milvus collection {name} has other fields than this version of portico-milvus writes. Set another "
            "`prefix` in [vectors.milvus], or drop the collection; what is derived from documents is then built again."
        )
    if client.describe_index(name, _VECTOR, timeout=timeout) is None:
        # The process that made the collection was killed, or is making it now.
        _create_indexes(link, name, settings)
    client.load_collection(name, timeout=timeout)
    if link.is_lite:
        # Rows written before a crash are only in its log, where each search reads them one by one.
        client.flush(name, timeout=timeout)
        link.unflushed.pop(name, None)
    index = client.describe_index(name, _VECTOR, timeout=timeout)
    return Shape(name, int(fields[_VECTOR]["params"]["dim"]), str(index.get("index_type")).upper() == "HNSW")


def _create_collection(link: Link, name: str, namespace: str, dimensions: int, settings: MilvusSettings) -> None:
    """Create a collection with one shard, so that one request writes to one channel of the server's log."""
    from pymilvus import DataType  # type: ignore[import-untyped]

    text = DataType.VARCHAR
    schema = link.client.create_schema(
        auto_id=False, enable_dynamic_field=False, description=as_text(namespace)[:_DESCRIBED]
    )
    schema.add_field("pk", text, is_primary=True, max_length=KEY_LENGTH)
    schema.add_field("id", text, max_length=LONGEST_TEXT)
    schema.add_field("metadata", text, max_length=LONGEST_TEXT)
    schema.add_field("terms", DataType.ARRAY, element_type=text, max_capacity=MOST_TERMS, max_length=TERM_LENGTH)
    schema.add_field("bounds", DataType.JSON)
    schema.add_field(_VECTOR, DataType.FLOAT_VECTOR, dim=dimensions)
    link.client.create_collection(
        name, schema=schema, num_shards=1, consistency_level="Strong", timeout=settings.timeout
    )


def _create_indexes(link: Link, name: str, settings: MilvusSettings) -> None:
    indexes = link.client.prepare_index_params()
    parameters: dict[str, Any] = {}
    if settings.index == "hnsw":
        parameters = {"params": {"M": settings.hnsw_neighbours, "efConstruction": settings.hnsw_construction}}
    kind = {"exact": "FLAT", "hnsw": "HNSW", "auto": "AUTOINDEX"}[settings.index]
    indexes.add_index(_VECTOR, index_type=kind, index_name=_VECTOR, metric_type="IP", **parameters)
    if not link.is_lite:
        # Milvus Lite has no such index, and looks at every list.
        indexes.add_index("terms", index_type="INVERTED", index_name="terms")
    try:
        link.client.create_index(name, indexes, timeout=settings.timeout, sync=False)
    except Exception:
        # Another process may have made it at the same moment.
        if link.client.describe_index(name, _VECTOR, timeout=settings.timeout) is None:
            raise


MOST = 16_384
"""Records that Milvus finds for a query at most, and queries of a request at most."""
_RECORDS_AT_ONCE = 10_000
"""Records of one answer at most; with 2 KB of metadata each it is 20 MB."""
_UNFLUSHED = 500
"""Rows in Milvus Lite's memory before a flush. Each search reads them one by one: 500 rows of 256 numbers take 10 ms,
2 ms after a flush of 60 ms."""


class _Search:
    """One search of one namespace."""

    def __init__(self, collections: _Collections, settings: MilvusSettings, top: int, filter: Filter | None) -> None:
        self._collections = collections
        self._settings = settings
        self._top = top
        self._filter = filter
        self._expression = True if filter is None else expression(filter)

    def run(self, link: Link, shape: Shape, queries: Rows) -> list[list[VectorMatch]]:
        """Return the best records for each query. Raises ``ValueError`` for other dimensions than the namespace's."""
        if queries.shape[1] != shape.dimensions:
            raise WrongDimensions("the query has", queries.shape[1], shape.dimensions)
        if self._expression is False:
            return [[] for _ in queries]
        if link.is_lite and link.unflushed.get(shape.name, 0) >= _UNFLUSHED:
            link.client.flush(shape.name, timeout=self._settings.timeout)
            link.unflushed.pop(shape.name, None)
        limit = min(self._top, MOST)
        together = max(1, min(_RECORDS_AT_ONCE // limit, MOST))
        result = []
        for start in range(0, len(queries), together):
            some = slice(start, start + together)
            for query, hits in zip(queries[some], self._ask(link, shape, queries[some], limit), strict=True):
                kept = self._read_matches(hits)
                if len(kept) < self._top and len(hits) == limit:
                    # Milvus finds no more for a query, or the expression keeps more than the filter.
                    kept = self._compare_all(link, shape, query)
                result.append(kept)
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
            anns_field=_VECTOR,
            consistency_level=self._settings.consistency.title(),
            timeout=self._settings.timeout,
        )
        return list(found)

    def _read_matches(self, hits: list[Any]) -> list[VectorMatch]:
        kept = []
        for hit in hits:
            id, metadata = read(hit["entity"])
            if FilterSupport.matches(self._filter, metadata):
                kept.append(VectorMatch(id, cosine(hit["distance"]), metadata))
        return kept

    def _compare_all(self, link: Link, shape: Shape, query: Rows) -> list[VectorMatch]:
        """Compare a query with every record here, where Milvus cannot answer it."""
        filter = "" if isinstance(self._expression, bool) else self._expression

        def matches() -> Iterator[VectorMatch]:
            for rows in self._collections.pages(link, shape, ["id", "metadata", _VECTOR], filter):
                there = np.array([row[_VECTOR] for row in rows], np.float32)
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

    A namespace is a collection. Vectors are stored at length one: `get` returns unit vectors, and those that were unit
    vectors before bit for bit. A row of zeros stays zeros and scores 0. The order of equal scores is Milvus's. An
    `upsert` with the same id twice, with vectors of one dimension, with metadata that are not scalars or lists of
    scalars, or with more than a field of Milvus holds, raises ``ValueError`` or ``TypeError`` and writes nothing.

    A write of up to 32 MB is one request, which happens completely or not at all. A larger write is several requests:
    others may see the first ones alone, and a crash may leave it half done. Each call runs in a thread, since the
    client blocks; a cancelled call continues there to its end.
    """

    name = "milvus"
    persistent = True
    filter_support = FilterSupport.everything()

    def __init__(self, settings: MilvusSettings, services: Services | None = None) -> None:
        self._settings = settings
        self._connection = Connection(settings)
        self._collections = _Collections(self._connection, settings)

    async def upsert(self, namespace: str, records: Sequence[VectorRecord], vectors: Vectors) -> None:
        """Add records or replace those of the same id."""
        vectors.check_records(records)
        if vectors.dimensions < 2:
            raise ValueError("Milvus takes vectors of at least two dimensions")

        def write() -> None:
            self._collections.write(namespace, [entry_of(record) for record in records], unit_rows(vectors))

        if records:
            await asyncio.to_thread(write)

    async def delete(self, namespace: str, ids: Sequence[str]) -> int:
        """Remove records; return how many there were."""
        return await asyncio.to_thread(self._collections.delete, namespace, ids)

    async def get(self, namespace: str, ids: Sequence[str]) -> tuple[list[VectorRecord], Vectors | None]:
        """Return the known records among ``ids``, in that order, and their unit vectors."""
        records, rows = await asyncio.to_thread(self._collections.get, namespace, ids)
        if rows is None:
            return records, None
        return records, Vectors(np.ascontiguousarray(rows), *rows.shape)

    async def search(
        self, namespace: str, queries: Vectors, *, top: int = 10, filter: Filter | None = None
    ) -> list[list[VectorMatch]]:
        """Return the ``top`` best records that match the filter, best first, one list for each query row."""
        if top < 1:
            raise ValueError(f"top is {top}; it must be at least 1")
        self.filter_support.check(filter, f"Vector store {self.name!r}")
        if not queries.rows:
            return []
        search = _Search(self._collections, self._settings, top, filter)

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
        """Yield every id that the namespace has when the first one is read."""

        def read_all(link: Link, shape: Shape) -> list[str]:
            pages = self._collections.pages(link, shape, ["id"])
            return [from_text(row["id"]) for rows in pages for row in rows]

        nothing: list[str] = []
        for id in await asyncio.to_thread(self._collections.use, namespace, nothing, read_all):
            yield id

    async def drop(self, namespace: str) -> None:
        """Remove a namespace and all its records."""
        await asyncio.to_thread(self._collections.drop, namespace)

    async def aclose(self) -> None:
        """Disconnect; a later call connects again."""
        self._collections.forget()
        await asyncio.to_thread(self._connection.close)
