"""The EmbeddingGenerator on OpenAI's embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from portico.plugins import Services
from portico_openai._connection import OpenAIConnection
from portico_openai.config import OpenAIEmbeddingsSettings
from portico_wire.answers import Answer, decode_answer, encode_json
from portico_wire.embeddings import Purpose, Rows, WireEmbeddings, unit_rows

if TYPE_CHECKING:
    import httpx2


class _Row(msgspec.Struct):
    embedding: bytes | list[float]
    index: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None


class _Answer(Answer):
    data: list[_Row] | None = None
    usage: _Usage | None = None


_ANSWERS = msgspec.json.Decoder(_Answer)


def _vector(embedding: bytes | list[float]) -> Any:
    if isinstance(embedding, bytes):
        return np.frombuffer(embedding, dtype="<f4") if len(embedding) % 4 == 0 else ()
    return embedding


class OpenAIEmbeddings(WireEmbeddings):
    """Embed texts with OpenAI, or with any server that speaks its protocol.

    >>> from portico_openai.config import OpenAIEmbeddingsSettings
    >>> OpenAIEmbeddings(OpenAIEmbeddingsSettings(model="text-embedding-3-small", dimensions=512)).model
    'openai/text-embedding-3-small-512'

    Whoever makes a service closes it with `aclose`; an injected HTTP client stays open.
    """

    name = "openai"

    def __init__(
        self,
        settings: OpenAIEmbeddingsSettings,
        services: Services | None = None,
        *,
        http_client: httpx2.AsyncClient | None = None,
    ) -> None:
        connection = OpenAIConnection(settings, "Embeddings", http_client)
        super().__init__(connection, settings, f"openai/{settings.model}")
        self._settings = settings

    def _path(self) -> str:
        return "/embeddings"

    def _body(self, texts: Sequence[str], purpose: Purpose) -> bytes:
        settings = self._settings
        # Base64 spares both sides the writing of numbers.
        fields = {**settings.body, "model": settings.model, "input": texts, "encoding_format": "base64"}
        if settings.dimensions is not None:
            fields["dimensions"] = settings.dimensions
        return encode_json(fields)

    def _read(self, answer: bytes, count: int) -> tuple[Rows, int]:
        """Read vectors that are base64 of little-endian float32, or lists of numbers where a server knows no other."""
        peer = self._connection.peer
        read = decode_answer(_ANSWERS, answer, peer, "an answer")
        data = read.data or []
        places = [order if row.index is None else row.index for order, row in enumerate(data)]
        rows = unit_rows([_vector(row.embedding) for row in data], places, count, peer)
        return rows, (read.usage.prompt_tokens if read.usage else None) or 0
