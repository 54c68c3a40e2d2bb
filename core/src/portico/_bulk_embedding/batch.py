"""A batch: records for a vector store, and the texts of their vectors."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from portico._search.vectors import VectorRecord, Vectors
from portico.errors import ResponseInvalid

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator, Sequence

    from portico._ports.embedding_generator import EmbeddingGenerator
    from portico._ports.vector_store import VectorStore

_NUMBER = 4
"""Bytes of a float32."""


@dataclass(frozen=True, slots=True)
class EmbeddingBatch:
    """Records of one namespace. ``rows`` gives for each record the text of its vector, as a place in ``texts``.

    >>> batch = EmbeddingBatch("docs", (VectorRecord("a"), VectorRecord("b")), ("the same text",), (0, 0))
    >>> [part.rows for part in batch.parts(1)]
    [(0,), (0,)]

    Records of one text share an embedding.
    """

    namespace: str
    records: Sequence[VectorRecord]
    texts: Sequence[str]
    rows: Sequence[int]

    def parts(self, most: int) -> Iterator[EmbeddingBatch]:
        """Yield the batch in parts of at most ``most`` records, each with its texts."""
        if len(self.records) <= most:
            yield self
            return
        for start in range(0, len(self.records), most):
            rows = self.rows[start : start + most]
            places = {row: place for place, row in enumerate(dict.fromkeys(rows))}
            yield EmbeddingBatch(
                self.namespace,
                self.records[start : start + most],
                tuple(self.texts[row] for row in places),
                tuple(places[row] for row in rows),
            )


async def embed_batch(
    batch: EmbeddingBatch, embeddings: EmbeddingGenerator, store: VectorStore, turn: asyncio.Lock | None = None
) -> int:
    """Embed the texts of a batch and put its records into the store; return how many texts were embedded.

    The store gets all records or none. With ``turn``, batches are embedded one at a time, and one is written while the
    next is embedded. Raises what the generator and the store raise, and ``ResponseInvalid`` for a wrong number of
    vectors.
    """
    if not batch.records:
        return 0
    async with turn or nullcontext():
        vectors = await embeddings.embed(batch.texts, purpose="document")
    if vectors.rows != len(batch.texts):
        raise ResponseInvalid(
            f"Embeddings {embeddings.name!r} gave {vectors.rows} vectors for {len(batch.texts)} texts."
        )
    await store.upsert(batch.namespace, batch.records, _arranged(vectors, batch.rows))
    return len(batch.texts)


def _arranged(vectors: Vectors, rows: Sequence[int]) -> Vectors:
    """Return one vector for each of ``rows``; a copy only where they are not all the rows in their order."""
    if len(rows) == vectors.rows and all(row == place for place, row in enumerate(rows)):
        return vectors
    numbers = vectors.buffer.cast("B")
    size = vectors.dimensions * _NUMBER
    buffer = b"".join(numbers[row * size : row * size + size] for row in rows)
    return Vectors(buffer, len(rows), vectors.dimensions)
