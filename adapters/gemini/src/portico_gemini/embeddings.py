"""The EmbeddingGenerator on Gemini's batchEmbedContents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from portico.plugins import Services
from portico_gemini._connection import GeminiConnection
from portico_gemini.config import GeminiEmbeddingsSettings
from portico_wire.answers import Answer, decode_answer, encode_json
from portico_wire.embeddings import Purpose, Rows, WireEmbeddings, unit_rows

if TYPE_CHECKING:
    import httpx2


class _Vector(msgspec.Struct):
    values: list[float] = []


class _Usage(msgspec.Struct, rename="camel"):
    prompt_token_count: int | None = None


class _Answer(Answer, rename="camel"):
    embeddings: list[_Vector] | None = None
    usage_metadata: _Usage | None = None


_ANSWERS = msgspec.json.Decoder(_Answer)


class GeminiEmbeddings(WireEmbeddings):
    """Embed texts with Gemini.

    >>> from portico_gemini.config import GeminiEmbeddingsSettings
    >>> GeminiEmbeddings(GeminiEmbeddingsSettings(model="gemini-embedding-001", dimensions=768)).model
    'gemini/gemini-embedding-001-768 for RETRIEVAL_DOCUMENT and RETRIEVAL_QUERY'

    Whoever makes a service closes it with `aclose`; an injected HTTP client stays open.
    """

    name = "gemini"

    def __init__(
        self,
        settings: GeminiEmbeddingsSettings,
        services: Services | None = None,
        *,
        http_client: httpx2.AsyncClient | None = None,
    ) -> None:
        connection = GeminiConnection(settings, "Embeddings", http_client)
        super().__init__(connection, settings, f"gemini/{settings.model}")
        if settings.document_task or settings.query_task:
            # Other tasks make other vectors of the same texts.
            self.model += f" for {settings.document_task or 'no task'} and {settings.query_task or 'no task'}"
        self._settings = settings
        self._method = connection.path("batchEmbedContents")

    def _path(self) -> str:
        return self._method

    def _body(self, texts: Sequence[str], purpose: Purpose) -> bytes:
        settings = self._settings
        task = settings.document_task if purpose == "document" else settings.query_task
        options: dict[str, Any] = {**settings.body, **({"taskType": task} if task else {})}
        if settings.dimensions is not None:
            options["outputDimensionality"] = settings.dimensions
        if settings.through == "developer":
            options["model"] = self._method.rpartition(":")[0]
        else:
            options = {"embedContentConfig": options} if options else {}
        return encode_json({"requests": [{**options, "content": {"parts": [{"text": text}]}} for text in texts]})

    def _read(self, answer: bytes, count: int) -> tuple[Rows, int]:
        peer = self._connection.peer
        read = decode_answer(_ANSWERS, answer, peer, "an answer")
        vectors = [vector.values for vector in read.embeddings or ()]
        rows = unit_rows(vectors, range(len(vectors)), count, peer)
        return rows, (read.usage_metadata.prompt_token_count if read.usage_metadata else None) or 0
