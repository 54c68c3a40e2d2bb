"""A batch as a job of kind "embed", and how a worker carries it out."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from portico._bulk_embedding.batch import EmbeddingBatch, embed_batch
from portico._jobs import Job
from portico._ports.embedding_generator import EmbeddingGenerator
from portico._ports.vector_store import VectorStore
from portico._search.vectors import VectorRecord
from portico.errors import ConfigurationError

if TYPE_CHECKING:
    from portico._plans.task import Emit


P = TypeVar("P")
KIND = "embed"
_VERSION = 2


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
