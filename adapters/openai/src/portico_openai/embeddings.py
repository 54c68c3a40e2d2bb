"""The EmbeddingGenerator on OpenAI's embeddings."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from portico import Usage
from portico.errors import ContextOverflow
from portico.plugins import Services
from portico.search import Vectors
from portico_openai._connection import OpenAIConnection
from portico_openai.config import OpenAIEmbeddingsSettings
from portico_wire.answers import Answer, decode_answer, encode_json
from portico_wire.errors import Peer, invalid

if TYPE_CHECKING:
    import httpx2


Rows: TypeAlias = npt.NDArray[np.float32]


class _Row(msgspec.Struct):
    embedding: bytes | list[float]
    index: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None


class _Answer(Answer):
    data: list[_Row] | None = None
    usage: _Usage | None = None


_ANSWERS = msgspec.json.Decoder(_Answer)


def request_body(texts: Sequence[str], settings: OpenAIEmbeddingsSettings) -> bytes:
    """Write the body of one request; base64 spares both sides the writing of numbers."""
    fields: dict[str, Any] = {**settings.body, "model": settings.model, "input": texts, "encoding_format": "base64"}
    if settings.dimensions is not None:
        fields["dimensions"] = settings.dimensions
    return encode_json(fields)


def unit_rows(answer: bytes, count: int, peer: Peer) -> tuple[Rows, int]:
    """Read an answer: one unit row per text, in the order of the texts, and the tokens that were counted.

    The vectors may be base64 of little-endian float32 numbers, or lists of numbers from servers that know no other
    form. Raises ``ResponseInvalid`` for anything else, and the error that the answer reports.
    """
    read = decode_answer(_ANSWERS, answer, peer, "an answer")
    data = read.data or []
    places = [order if row.index is None else row.index for order, row in enumerate(data)]
    if sorted(places) != list(range(count)):
        raise invalid(peer, f"sent {len(data)} vectors for {count} texts, or with wrong indexes.")
    vectors = [_vector(row.embedding) for row in data]
    lengths = {len(vector) for vector in vectors}
    if len(lengths) != 1 or 0 in lengths:
        raise invalid(peer, "sent vectors of different lengths, or empty ones.")
    rows = np.empty((count, lengths.pop()), dtype=np.float32)
    # A number that is too large for float32 becomes infinite, and is listed below.
    with np.errstate(over="ignore"):
        for place, vector in zip(places, vectors, strict=True):
            rows[place] = vector
    if not np.isfinite(rows).all():
        raise invalid(peer, "sent vectors with numbers that are not finite.")
    return normalize(rows), (read.usage.prompt_tokens if read.usage else None) or 0


def normalize(rows: Rows) -> Rows:
    """Bring each row to length 1 in place, rows of zeros excepted."""
    # In double precision: the squares of large numbers do not fit float32.
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))[:, np.newaxis]
    np.divide(rows, lengths, out=rows, where=lengths > 0, casting="same_kind")
    return rows


def mean_row(rows: Rows, pieces: Sequence[str]) -> Rows:
    """Return the mean of the rows of a text's pieces by their lengths, as one unit row."""
    lengths = np.array([len(piece) for piece in pieces], dtype=np.float32)
    return normalize((lengths @ rows)[np.newaxis, :])


def pieces_of(text: str, limit: int) -> Iterator[str]:
    """Yield the text in pieces of at most ``limit`` characters, cut at white space where there is any."""
    start = 0
    while start < len(text):
        stop = start + limit
        if stop < len(text):
            space = max(text.rfind(" ", start, stop), text.rfind("\n", start, stop))
            stop = space + 1 if space > start else stop
        piece = text[start:stop]
        if piece.strip():
            yield piece
        start = stop


def batches_of(texts: Sequence[str], count: int, characters: int) -> Iterator[range]:
    """Yield runs of texts that may go in one request: at most so many, of so many characters; one at least."""
    start = 0
    size = 0
    for number, text in enumerate(texts):
        if number > start and (number - start >= count or size + len(text) > characters):
            yield range(start, number)
            start, size = number, 0
        size += len(text)
    if start < len(texts):
        yield range(start, len(texts))


def _vector(embedding: bytes | list[float]) -> Any:
    if isinstance(embedding, bytes):
        return np.frombuffer(embedding, dtype="<f4") if len(embedding) % 4 == 0 else ()
    return embedding


_PATH = "/embeddings"
_SHORTEST = 64
"""Characters of a text that is not cut any more, however long the model finds it."""


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
        self._connection = OpenAIConnection(settings, "Embeddings", http_client)
        self._usage = Usage()
        self._dimensions = settings.dimensions

    @property
    def usage(self) -> Usage:
        """The tokens that were read since the service was made."""
        return self._usage

    async def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"] = "document") -> Vectors:
        """Return one unit row per text, zeros for a blank one."""
        texts = Vectors.check_texts(texts)
        settings = self._settings
        prefix = settings.document_prefix if purpose == "document" else settings.query_prefix
        rows_of: dict[str, range] = {}
        """For each different text, which of ``pieces`` are its own."""
        pieces: list[str] = []
        for text in texts:
            if text not in rows_of:
                start = len(pieces)
                pieces += [prefix + piece for piece in pieces_of(text, settings.max_text_characters)]
                rows_of[text] = range(start, len(pieces))
        if not pieces and self._dimensions is None:
            await self._ask(["How long is a vector?"])
        embedded = await self._embed(pieces)
        if len(rows_of) == len(texts) == len(pieces):
            return Vectors(embedded, *embedded.shape)
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

    async def _embed(self, pieces: Sequence[str]) -> Rows:
        """Embed pieces in batches, a few under way at once."""
        settings = self._settings
        batches = list(batches_of(pieces, settings.batch_size, settings.batch_characters))
        if not batches:
            return np.zeros((0, self._dimensions or 1), dtype=np.float32)
        if len(batches) == 1:
            return await self._ask(pieces)
        parts: dict[int, Rows] = {}
        waiting = iter(batches)

        async def work() -> None:
            for batch in waiting:
                parts[batch.start] = await self._ask(pieces[batch.start : batch.stop])

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(settings.concurrency, len(batches))):
                    group.create_task(work())
        except BaseExceptionGroup as failures:
            # The first failure cancelled the others.
            first = failures.exceptions[0]
            raise first from first.__cause__
        return np.concatenate([parts[batch.start] for batch in batches])

    async def _ask(self, pieces: Sequence[str]) -> Rows:
        """Embed pieces; where the model finds them too long, by halves, and one piece as the mean of its halves."""
        try:
            return await self._fetch(pieces)
        except ContextOverflow:
            if len(pieces) > 1:
                middle = len(pieces) // 2
                return np.concatenate([await self._ask(pieces[:middle]), await self._ask(pieces[middle:])])
            if len(pieces[0]) < _SHORTEST:
                raise
        halves = list(pieces_of(pieces[0], (len(pieces[0]) + 1) // 2))
        return mean_row(await self._ask(halves), halves)

    async def _fetch(self, pieces: Sequence[str]) -> Rows:
        with self._connection.peer.hiding():
            answer = await self._connection.fetch(_PATH, request_body(pieces, self._settings))
            rows, tokens = unit_rows(answer, len(pieces), self._connection.peer)
            self._usage += Usage(input_tokens=tokens)
            self._dimensions = self._dimensions or rows.shape[1]
            if rows.shape[1] != self._dimensions:
                wrong = f"sent vectors of {rows.shape[1]} numbers instead of {self._dimensions}."
                advice = "Leave `dimensions` out if its model cannot shorten them." if self._settings.dimensions else ""
                raise invalid(self._connection.peer, f"{wrong} {advice}".rstrip())
            return rows
