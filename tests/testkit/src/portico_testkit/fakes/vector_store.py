"""A vector store in a dictionary, slow and plain: what others are compared with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import numpy as np
import numpy.typing as npt

from portico.ports import VectorStore
from portico.search import Filter, FilterSupport, VectorMatch, VectorRecord, Vectors

__all__ = ["DictVectorStore"]

_Row = npt.NDArray[np.float64]


class DictVectorStore(VectorStore):
    """The VectorStore port on dictionaries.

    >>> import asyncio
    >>> async def nearest():
    ...     store = DictVectorStore()
    ...     records = [VectorRecord("red"), VectorRecord("blue")]
    ...     await store.upsert("colours", records, Vectors.from_rows([[1, 0], [0, 1]]))
    ...     [found] = await store.search("colours", Vectors.from_rows([[0.6, 0.8]]), top=1)
    ...     return found[0].id
    >>> asyncio.run(nearest())
    'blue'
    """

    filter_support = FilterSupport.everything()

    def __init__(self, *, name: str = "dict") -> None:
        self.name = name
        self.persistent = False
        self._namespaces: dict[str, dict[str, tuple[VectorRecord, _Row]]] = {}
        self._dimensions: dict[str, int] = {}

    async def upsert(self, namespace: str, records: Sequence[VectorRecord], vectors: Vectors) -> None:
        """Add or replace records."""
        rows = _rows(vectors)
        if len(records) != len(rows):
            raise ValueError(f"{len(records)} records and {len(rows)} vectors")
        if len({record.id for record in records}) != len(records):
            raise ValueError("an id stands twice in one upsert")
        if not records:
            return
        copies = [_copied(record) for record in records]
        if self._dimensions.setdefault(namespace, vectors.dimensions) != vectors.dimensions:
            raise ValueError(f"{vectors.dimensions} dimensions, the namespace has {self._dimensions[namespace]}")
        kept = self._namespaces.setdefault(namespace, {})
        for record, row in zip(copies, rows, strict=True):
            # Out and in again, so that of equal scores the record written first comes first.
            kept.pop(record.id, None)
            kept[record.id] = record, row

    async def delete(self, namespace: str, ids: Sequence[str]) -> int:
        """Remove records and return how many there were."""
        kept = self._namespaces.get(namespace, {})
        return sum(kept.pop(id, None) is not None for id in ids)

    async def get(self, namespace: str, ids: Sequence[str]) -> tuple[list[VectorRecord], Vectors | None]:
        """Return the records known among ``ids`` with unit vectors."""
        kept = self._namespaces.get(namespace, {})
        found = [kept[id] for id in ids if id in kept]
        if not found:
            return [], None
        rows = np.array([row for _, row in found], dtype=np.float32)
        return [_copied(record) for record, _ in found], Vectors(rows, *rows.shape)

    async def search(
        self, namespace: str, queries: Vectors, *, top: int = 10, filter: Filter | None = None
    ) -> list[list[VectorMatch]]:
        """Compare every record with every query."""
        if top < 1:
            raise ValueError(f"top is {top}; it must be at least 1")
        self.filter_support.check(filter, f"Vector store {self.name!r}")
        rows = _rows(queries)
        if self._dimensions.get(namespace, queries.dimensions) != queries.dimensions:
            raise ValueError(f"{queries.dimensions} dimensions, the namespace has {self._dimensions[namespace]}")
        kept = [
            (_copied(record), row)
            for record, row in self._namespaces.get(namespace, {}).values()
            if FilterSupport.matches(filter, record.metadata)
        ]
        return [
            sorted(
                (VectorMatch(record.id, float(query @ row), record.metadata) for record, row in kept),
                key=lambda match: -match.score,
            )[:top]
            for query in rows
        ]

    async def count(self, namespace: str) -> int:
        """Return how many records there are."""
        return len(self._namespaces.get(namespace, {}))

    async def ids(self, namespace: str) -> AsyncIterator[str]:
        """Yield every id."""
        for id in list(self._namespaces.get(namespace, {})):
            yield id

    async def drop(self, namespace: str) -> None:
        """Forget a namespace."""
        self._namespaces.pop(namespace, None)
        self._dimensions.pop(namespace, None)


def _rows(vectors: Vectors) -> list[_Row]:
    rows = np.frombuffer(vectors.buffer.cast("B"), dtype=np.float32).astype(np.float64)
    if not np.isfinite(rows).all():
        raise ValueError("a vector holds a number that is not finite")
    return [row / (np.linalg.norm(row) or 1.0) for row in rows.reshape(vectors.rows, vectors.dimensions)]


def _copied(record: VectorRecord) -> VectorRecord:
    return VectorRecord(record.id, record.plain_metadata())
