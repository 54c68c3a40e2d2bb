"""The collections of the namespaces: their fields and indexes, and what is done with their records."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from portico.errors import StoreError
from portico.search import VectorRecord
from portico_milvus._connection import Connection, Link, WrongDimensions, is_answer, is_missing
from portico_milvus._filters import TERM_LENGTH
from portico_milvus._records import (
    KEY_LENGTH,
    LONGEST_TEXT,
    MOST_TERMS,
    Rows,
    as_text,
    collection_name,
    key,
    padded,
    read,
    requests,
)
from portico_milvus.config import MilvusSettings

T = TypeVar("T")

_VECTOR = "vector"
_VECTOR_OF_ONE = "vector_of_one"
"""The field of vectors with one dimension: a Milvus server wants two, so there is a zero in them too."""
_OTHERS = ("pk", "id", "metadata", "terms", "bounds")
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
    """What is known of a collection: ``field`` holds the vectors, with ``width`` numbers each."""

    name: str
    dimensions: int
    field: str
    width: int
    graph: bool
    """Whether it is searched along an HNSW graph."""


class Collections:
    """Knows the collection of each namespace, and reads it anew when the server no longer agrees."""

    def __init__(self, connection: Connection, settings: MilvusSettings) -> None:
        self._connection = connection
        self._settings = settings
        self._shapes: dict[str, Shape] = {}
        self._creating = threading.Lock()
        self._options = {"consistency_level": settings.consistency.title(), "timeout": settings.timeout}

    def forget(self) -> None:
        self._shapes.clear()

    def use(self, namespace: str, nothing: T, work: Callable[[Link, Shape], T]) -> T:
        """Return what ``work`` gives on the collection, or ``nothing`` where there is none."""
        known = namespace in self._shapes
        with self._connection.opened() as link:
            try:
                shape = self._shape(link, namespace)
                return nothing if shape is None else work(link, shape)
            except Exception as error:
                self._shapes.pop(namespace, None)
                if not (known and (is_answer(error) or isinstance(error, WrongDimensions))):
                    if is_missing(error):
                        return nothing
                    raise
            # Another process has dropped it meanwhile, made it anew, or released it.
            shape = self._shape(link, namespace)
            return nothing if shape is None else work(link, shape)

    def write(self, namespace: str, entries: Sequence[dict[str, Any]], rows: Rows) -> None:
        """Add or replace records. Raises ``ValueError`` for other dimensions than the namespace's."""

        def work(link: Link, shape: Shape) -> bool:
            if rows.shape[1] != shape.dimensions:
                raise WrongDimensions("the vectors have", rows.shape[1], shape.dimensions)
            for part in requests(entries, padded(rows, shape.width), shape.field):
                link.client.upsert(shape.name, part, timeout=self._settings.timeout)
                link.unflushed[shape.name] = link.unflushed.get(shape.name, 0) + len(part)
            return True

        if not self.use(namespace, False, work):
            self._create(namespace, rows.shape[1])
            self.use(namespace, False, work)

    def delete(self, namespace: str, ids: Sequence[str]) -> int:
        """Remove records and return how many there were; a concurrent deletion may make that inexact.

        The server does not say how many it deletes, so they are looked for first.
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
            for row in self._rows(link, shape, ids, ["id", "metadata", shape.field]):
                id, metadata = read(row)
                found[id] = metadata, row[shape.field]
            known = [id for id in ids if id in found]
            if not known:
                return [], None
            rows = np.array([found[id][1] for id in known], np.float32)[:, : shape.dimensions]
            return [VectorRecord(id, found[id][0].copy()) for id in known], rows

        nothing: tuple[list[VectorRecord], Rows | None] = [], None
        return self.use(namespace, nothing, work) if ids else nothing

    def count(self, namespace: str) -> int:
        def work(link: Link, shape: Shape) -> int:
            [row] = link.client.query(shape.name, filter="", output_fields=["count(*)"], **self._options)
            return int(row["count(*)"])

        return self.use(namespace, 0, work)

    def pages(self, link: Link, shape: Shape, fields: list[str], filter: str = "") -> Iterator[list[dict[str, Any]]]:
        """Yield all records page by page, in the order of the keys, so that changes meanwhile disturb nothing."""
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
        with self._connection.opened() as link:
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
        with self._creating, self._connection.opened() as link:
            if link.client.has_collection(name, timeout=self._settings.timeout):
                return
            try:
                _create_collection(link, name, namespace, dimensions, self._settings)
            except Exception:
                # Another process may have made it at that moment; what it made is then what counts.
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
    """Return what a collection is like, ready to be searched; None when there is none.

    Raises ``StoreError`` for one with other fields than ours.
    """
    client, timeout = link.client, settings.timeout
    if not client.has_collection(name, timeout=timeout):
        return None
    fields = {field["name"]: field for field in client.describe_collection(name, timeout=timeout)["fields"]}
    vector = _VECTOR_OF_ONE if _VECTOR_OF_ONE in fields else _VECTOR
    if set(fields) != {*_OTHERS, vector}:
        raise StoreError(
            f"The Milvus collection {name} has other fields than this version of portico-milvus writes. Set another "
            "`prefix` in [vectors.milvus], or drop the collection; what is derived from documents is then built again."
        )
    if client.describe_index(name, vector, timeout=timeout) is None:
        # The process that made the collection was killed, or makes it at this moment.
        _create_indexes(link, name, vector, settings)
    client.load_collection(name, timeout=timeout)
    if link.is_lite:
        # What was written before a crash is in its log only, where each search reads it row by row.
        client.flush(name, timeout=timeout)
        link.unflushed.pop(name, None)
    width = int(fields[vector]["params"]["dim"])
    index = client.describe_index(name, vector, timeout=timeout)
    dimensions = 1 if vector == _VECTOR_OF_ONE else width
    return Shape(name, dimensions, vector, width, str(index.get("index_type")).upper() == "HNSW")


def _create_collection(link: Link, name: str, namespace: str, dimensions: int, settings: MilvusSettings) -> None:
    """Create a collection; with one shard, so that what one request writes is in one channel of the server's log."""
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
    vector = _VECTOR if dimensions > 1 else _VECTOR_OF_ONE
    schema.add_field(vector, DataType.FLOAT_VECTOR, dim=max(dimensions, 2))
    link.client.create_collection(
        name, schema=schema, num_shards=1, consistency_level="Strong", timeout=settings.timeout
    )


def _create_indexes(link: Link, name: str, vector: str, settings: MilvusSettings) -> None:
    indexes = link.client.prepare_index_params()
    parameters: dict[str, Any] = {}
    if settings.index == "hnsw":
        parameters = {"params": {"M": settings.hnsw_neighbours, "efConstruction": settings.hnsw_construction}}
    kind = {"exact": "FLAT", "hnsw": "HNSW", "auto": "AUTOINDEX"}[settings.index]
    indexes.add_index(vector, index_type=kind, index_name=vector, metric_type="IP", **parameters)
    if not link.is_lite:
        # Milvus Lite has no such index, and looks at every list.
        indexes.add_index("terms", index_type="INVERTED", index_name="terms")
    try:
        link.client.create_index(name, indexes, timeout=settings.timeout, sync=False)
    except Exception:
        # The process that makes the collection at this moment may have been quicker.
        if link.client.describe_index(name, vector, timeout=settings.timeout) is None:
            raise
