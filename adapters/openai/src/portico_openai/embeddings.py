"""The EmbeddingGenerator on OpenAI's embeddings."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from portico import Usage
from portico.errors import ContextOverflow
from portico.plugins import Services
from portico.search import Vectors
from portico_openai._connection import Connection
from portico_openai._errors import invalid
from portico_openai._vectors import Rows, batches_of, mean_row, pieces_of, request_body, unit_rows
from portico_openai.config import OpenAIEmbeddingsSettings

if TYPE_CHECKING:
    import httpx2


_PATH = "/embeddings"
_SHORTEST = 64
"""Characters of a text that is not cut any more, however long the model finds it."""

_KNOWN_DIMENSIONS = {"text-embedding-3-large": 3072, "text-embedding-3-small": 1536, "text-embedding-ada-002": 1536}


class OpenAIEmbeddings:
    """Embed texts with OpenAI, or with any server that speaks its protocol.

    >>> from portico_openai.config import OpenAIEmbeddingsSettings
    >>> OpenAIEmbeddings(OpenAIEmbeddingsSettings(model="text-embedding-3-small", dimensions=512)).model
    'openai/text-embedding-3-small-512'

    Texts go out in batches, a few at once, each text of one call once. Blank texts are not sent. A text that is longer
    than ``max_text_characters``, or than the model can take, goes out in pieces, and its vector is their mean, by
    length. Vectors are brought to length 1. The first call that has no text to send asks for one vector, to learn how
    long they are. Whoever makes a service closes it with `aclose`; an injected HTTP client stays open. Raises the
    ``ServiceError`` that fits, ``TypeError`` for texts that are no strings.
    """

    def __init__(
        self,
        settings: OpenAIEmbeddingsSettings,
        services: Services | None = None,
        *,
        http_client: httpx2.AsyncClient | None = None,
    ) -> None:
        self.name = "openai"
        self.model = f"openai/{settings.model}"
        if settings.dimensions is not None:
            self.model += f"-{settings.dimensions}"
        if settings.document_prefix:
            # Another prefix makes other vectors of the same documents.
            self.model += f" after {settings.document_prefix!r}"
        if settings.query_prefix:
            # So does one of queries, which whoever keeps vectors by model and text has to see.
            self.model += f" asked after {settings.query_prefix!r}"
        self._settings = settings
        self._connection = Connection(settings, "Embeddings", http_client)
        self._usage = Usage()
        self._dimensions = settings.dimensions
        if self._dimensions is None and settings.is_openai:
            self._dimensions = _KNOWN_DIMENSIONS.get(settings.model)

    @property
    def usage(self) -> Usage:
        """The tokens that were read since the service was made."""
        return self._usage

    async def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"] = "document") -> Vectors:
        """Return one unit row per text, zeros for a blank one."""
        texts = Vectors.check_texts(texts)
        settings = self._settings
        prefix = settings.document_prefix if purpose == "document" else settings.query_prefix
        limit = settings.max_text_characters
        rows_of: dict[str, range] = {}
        """For each different text, which of ``pieces`` are its own."""
        pieces: list[str] = []
        for text in texts:
            if text not in rows_of:
                start = len(pieces)
                pieces += [prefix + piece for piece in pieces_of(text, limit)]
                rows_of[text] = range(start, len(pieces))
        embedded = await self._embedded(pieces)
        if len(rows_of) == len(texts) == len(pieces) and embedded is not None:
            return Vectors(embedded, *embedded.shape)
        if embedded is None:
            if self._dimensions is None:
                await self._asked(["How long is a vector?"])
            return Vectors(bytes(len(texts) * self._size * 4), len(texts), self._size)
        rows = np.zeros((len(texts), embedded.shape[1]), dtype=np.float32)
        for number, text in enumerate(texts):
            own = rows_of[text]
            if len(own) == 1:
                rows[number] = embedded[own.start]
            elif own:
                rows[number] = mean_row(embedded[own.start : own.stop], pieces[own.start : own.stop])[0]
        return Vectors(rows, *rows.shape)

    async def aclose(self) -> None:
        """Close the connections; a second time does nothing."""
        await self._connection.aclose()

    @property
    def _size(self) -> int:
        return self._dimensions or 1

    async def _embedded(self, pieces: Sequence[str]) -> Rows | None:
        """Embed pieces in batches, a few under way at once; None where there are none."""
        settings = self._settings
        batches = list(batches_of(pieces, settings.batch_size, settings.batch_characters))
        if not batches:
            return None
        if len(batches) == 1:
            return await self._asked(pieces)
        parts: dict[int, Rows] = {}
        waiting = iter(batches)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(settings.concurrency, len(batches))):
                    group.create_task(self._work(waiting, pieces, parts))
        except BaseExceptionGroup as failures:
            # The first failure cancelled the others.
            first = failures.exceptions[0]
            raise first from first.__cause__
        return np.concatenate([parts[batch.start] for batch in batches])

    async def _work(self, waiting: Iterator[range], pieces: Sequence[str], parts: dict[int, Rows]) -> None:
        for batch in waiting:
            parts[batch.start] = await self._asked(pieces[batch.start : batch.stop])

    async def _asked(self, pieces: Sequence[str]) -> Rows:
        """Embed pieces; where the model finds them too long, by halves, and one piece as the mean of its halves."""
        try:
            return await self._answered(pieces)
        except ContextOverflow:
            if len(pieces) > 1:
                middle = len(pieces) // 2
                return np.concatenate([await self._asked(pieces[:middle]), await self._asked(pieces[middle:])])
            if len(pieces[0]) < _SHORTEST:
                raise
        halves = list(pieces_of(pieces[0], (len(pieces[0]) + 1) // 2))
        return mean_row(await self._asked(halves), halves)

    async def _answered(self, pieces: Sequence[str]) -> Rows:
        answer = await self._connection.fetch(_PATH, request_body(pieces, self._settings))
        rows, tokens = unit_rows(answer, len(pieces), self._connection.peer)
        self._usage += Usage(input_tokens=tokens)
        dimensions = rows.shape[1]
        if self._dimensions is None:
            self._dimensions = dimensions
        if dimensions != self._dimensions:
            wrong = f"sent vectors of {dimensions} numbers where {self._dimensions} were"
            if self._settings.dimensions is None:
                raise invalid(self._connection.peer, f"{wrong} sent before: it has another model now.")
            advice = "It does not shorten them: leave `dimensions` out, or take a model that can."
            raise invalid(self._connection.peer, f"{wrong} asked for. {advice}")
        return rows
