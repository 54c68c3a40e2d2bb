"""What can be done with namespaces, on collections of Milvus. All calls block: they belong in a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from portico.search import VectorRecord
from portico_milvus._connection import Connection, Link
from portico_milvus._errors import WrongDimensions, is_answer, is_missing
from portico_milvus._names import collection_name, key
from portico_milvus._rows import Entry, read, requests
from portico_milvus._shape import Shape, create, make_ready, read_shape
from portico_milvus._vectors import Rows, padded
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
        """Remove records and return how many there were, when nobody else deletes the same at that moment.

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
