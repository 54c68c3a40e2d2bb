"""A vector store with hybrid search in dictionaries, slow and plain."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from portico.search import Filter, VectorMatch, VectorRecord, Vectors
from portico_testkit.fakes.vector_store import DictVectorStore

__all__ = ["DictHybridSearch", "DictHybridStore"]

_WORD = re.compile(r"[^\W_]+")
_EVERYTHING = 1_000_000


class DictHybridStore(DictVectorStore):
    """A `DictVectorStore` that keeps texts too and has hybrid search.

    >>> import asyncio
    >>> async def best():
    ...     store = DictHybridStore()
    ...     records = [VectorRecord("a", {}, "a red door"), VectorRecord("b", {}, "a blue roof")]
    ...     await store.upsert("n", records, Vectors.from_rows([[1, 0], [0, 1]]))
    ...     return [match.id for match in await store.hybrid.search("n", "doors or a roof", share=1.0)]
    >>> asyncio.run(best())
    ['b', 'a']
    """

    def __init__(self, *, name: str = "dict") -> None:
        super().__init__(name=name)
        self.texts: dict[str, dict[str, str]] = {}
        self.hybrid = DictHybridSearch(self)

    async def upsert(self, namespace: str, records: Sequence[VectorRecord], vectors: Vectors) -> None:
        """Add or replace records and their texts."""
        await super().upsert(namespace, records, vectors)
        kept = self.texts.setdefault(namespace, {})
        for record in records:
            kept.pop(record.id, None)
            if record.text is not None:
                kept[record.id] = record.text

    async def get(self, namespace: str, ids: Sequence[str]) -> tuple[list[VectorRecord], Vectors | None]:
        """Return the records known among ``ids`` with their texts, and unit vectors."""
        records, vectors = await super().get(namespace, ids)
        texts = self.texts.get(namespace, {})
        return [VectorRecord(record.id, record.metadata, texts.get(record.id)) for record in records], vectors

    async def delete(self, namespace: str, ids: Sequence[str]) -> int:
        """Remove records and return how many there were."""
        for id in ids:
            self.texts.get(namespace, {}).pop(id, None)
        return await super().delete(namespace, ids)

    async def drop(self, namespace: str) -> None:
        """Forget a namespace."""
        self.texts.pop(namespace, None)
        await super().drop(namespace)


class DictHybridSearch:
    """The HybridSearch port over a `DictHybridStore`: each word counts by its rarity, and each half by its share."""

    def __init__(self, store: DictHybridStore) -> None:
        self.store = store

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
        """Compare every record with the words and the vector."""
        if top < 1:
            raise ValueError(f"top is {top}; it must be at least 1")
        if share is not None and not 0 <= share <= 1:
            raise ValueError(f"share is {share}; it is from 0 to 1")
        if vector is not None and vector.rows != 1:
            raise ValueError(f"there are {vector.rows} vectors; a hybrid search asks for one")
        self.store.filter_support.check(filter, f"Vector store {self.store.name!r}")
        answered = self.answered(namespace, text)
        weight = 0.0 if not _words(text) else 1.0 if vector is None else 0.5 if share is None else share
        asked = vector or Vectors.from_rows([[0.0] * self.store._dimensions.get(namespace, 1)])
        [near] = await self.store.search(namespace, asked, top=_EVERYTHING, filter=filter)
        found = [
            VectorMatch(
                match.id,
                weight * answered.get(match.id, 0.0) + (1 - weight) * max(match.score, 0.0),
                match.metadata,
                answered.get(match.id, 0.0),
                match.score if vector is not None else 0.0,
            )
            for match in near
        ]
        return sorted((match for match in found if match.score > 0), key=lambda match: -match.score)[:top]

    def answered(self, namespace: str, text: str) -> dict[str, float]:
        """Return which part of the words of ``text`` each record has, weighed by how rare they are."""
        texts = {id: _words(kept) for id, kept in self.store.texts.get(namespace, {}).items()}
        having = Counter(word for words in texts.values() for word in words)
        weights = {word: math.log1p((len(texts) + 1) / (having[word] + 0.5)) for word in _words(text)}
        whole = sum(weights.values()) or 1.0
        return {id: sum(weights.get(word, 0.0) for word in words) / whole for id, words in texts.items()}


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}
