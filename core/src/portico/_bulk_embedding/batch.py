"""A batch: records for a vector store, and the texts of their vectors; and the job of a worker that embeds one."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from portico._jobs import Job
from portico._ports.embedding_generator import EmbeddingGenerator
from portico._ports.vector_store import VectorStore
from portico._search.vectors import VectorRecord, Vectors
from portico.errors import ConfigurationError, ResponseInvalid

if TYPE_CHECKING:
    from portico._plans.task import Emit

P = TypeVar("P")
KIND = "embed"
_VERSION = 2
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


def job_of(batch: EmbeddingBatch, *, model: str, store: str) -> Job:
    """Return a new job for a batch.

    >>> batch = EmbeddingBatch("docs", (VectorRecord("a", {"type": "md"}),), ("A red door.",), (0,))
    >>> job_of(batch, model="small", store="faiss").body["records"]
    [['a', 0, {'type': 'md'}, None]]
    """
    body = {
        "version": _VERSION,
        "namespace": batch.namespace,
        "model": model,
        "store": store,
        "texts": list(batch.texts),
        "records": [
            [record.id, row, {field: _written(value) for field, value in record.metadata.items()}, record.text]
            for record, row in zip(batch.records, batch.rows, strict=True)
        ],
    }
    return Job(f"{names_of(batch.namespace)}{uuid.uuid4().hex}", KIND, body)


def names_of(namespace: str) -> str:
    """Return the beginning of the names of all jobs for a namespace."""
    return f"embed-{namespace}-"


class _Worker(Protocol):
    """The kernel of a worker, which has its services."""

    def service(self, port: Callable[..., P], name: str | None = None) -> P: ...


class EmbeddingJobs:
    """Carry out jobs of this kind in one worker, which embeds one batch at a time and writes others meanwhile.

    So the number of workers limits the requests to an embedding service at the same time.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def __call__(self, kernel: _Worker, job: Job, *, emit: Emit | None = None) -> dict[str, int]:
        """Embed a job's texts with the worker's services; return how many texts and records there were.

        Raises ``ConfigurationError`` for a worker with another model, another store, or a store in memory, and for a
        job of another version. A job may run twice: it writes the same again.
        """
        batch, model, wanted = _read(job)
        embeddings = kernel.service(EmbeddingGenerator)
        store = kernel.service(VectorStore)
        if embeddings.model != model:
            raise ConfigurationError(
                f"The worker embeds with {embeddings.model!r} and the index with {model!r}: "
                "give both the same [embeddings]."
            )
        if store.name != wanted:
            raise ConfigurationError(
                f"The worker keeps vectors in {store.name!r} and the index in {wanted!r}: give both the same [vectors]."
            )
        if not store.persistent:
            raise ConfigurationError(
                "The worker keeps vectors in memory, where other processes cannot read them: give it the "
                f"[vectors.{wanted}] that the index has."
            )
        texts = await embed_batch(batch, embeddings, store, self._turn)
        return {"texts": texts, "records": len(batch.records)}


def _read(job: Job) -> tuple[EmbeddingBatch, str, str]:
    body = job.body
    try:
        if body["version"] != _VERSION:
            raise ValueError(f"version {body['version']!r}")
        texts = tuple(map(_text, body["texts"]))
        records, rows = [], []
        for id, row, metadata, text in body["records"]:
            if not isinstance(metadata, Mapping) or not 0 <= row < len(texts):
                raise ValueError(f"the record {id!r}")
            records.append(VectorRecord(_text(id), metadata, None if text is None else _text(text)))
            rows.append(row)
        batch = EmbeddingBatch(_text(body["namespace"]), records, texts, rows)
        return batch, _text(body["model"]), _text(body["store"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"The job {job.name} cannot be read ({error}): the index and the worker are of different versions of "
            "Portico. Install the same everywhere."
        ) from error


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where text belongs")
    return value


def _written(value: object) -> object:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
