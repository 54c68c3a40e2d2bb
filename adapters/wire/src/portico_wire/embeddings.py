"""What embedding generators that are reached over HTTP have in common: pieces, batches, and unit rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from portico import Usage
from portico.errors import ContextOverflow
from portico.plugins import run_together
from portico.search import Vectors
from portico_wire.connection import Connection
from portico_wire.errors import Peer, invalid
from portico_wire.settings import BatchSettings

Rows: TypeAlias = npt.NDArray[np.float32]
Purpose: TypeAlias = Literal["document", "query"]


def unit_rows(vectors: Sequence[npt.ArrayLike], places: Sequence[int], count: int, peer: Peer) -> Rows:
    """Return one unit row per text: ``places`` says of which text each vector is.

    Raises ``ResponseInvalid`` where a text has no vector, and for vectors that are none.
    """
    if sorted(places) != list(range(count)):
        raise invalid(peer, f"sent {len(vectors)} vectors for {count} texts, or with wrong indexes.")
    lengths = {len(vector) for vector in vectors}  # type: ignore[arg-type]  # they are lists or arrays
    if len(lengths) != 1 or 0 in lengths:
        raise invalid(peer, "sent vectors of different lengths, or empty ones.")
    rows = np.empty((count, lengths.pop()), dtype=np.float32)
    # A number that is too large for float32 becomes infinite, and is listed below.
    with np.errstate(over="ignore"):
        for place, vector in zip(places, vectors, strict=True):
            rows[place] = vector
    if not np.isfinite(rows).all():
        raise invalid(peer, "sent vectors with numbers that are not finite.")
    return normalize(rows)


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


_SHORTEST = 64
"""Characters of a text that is not cut any more, however long the model finds it."""


class WireEmbeddings(ABC):
    """An embedding generator on a `Connection`: a service says how its requests and answers are written.

    Texts go out in batches, a few at once, each text of one call once. Blank texts are not sent. A text that is longer
    than ``max_text_characters``, or than the model can take, goes out in pieces, and its vector is their mean, by
    length. Vectors are brought to length 1. The first call that has no text to send asks for one vector, to learn how
    long they are. Raises the ``ServiceError`` that fits, ``TypeError`` for texts that are no strings.
    """

    name: str

    def __init__(self, connection: Connection, settings: BatchSettings, model: str) -> None:
        """Take the vector space that the service's settings make; further settings that change it are added."""
        self.model = model
        if settings.dimensions is not None:
            self.model += f"-{settings.dimensions}"
        if settings.document_prefix:
            # Another prefix makes other vectors of the same documents.
            self.model += f" after {settings.document_prefix!r}"
        if settings.query_prefix:
            # So does one of queries, which whoever keeps vectors by model and text has to see.
            self.model += f" asked after {settings.query_prefix!r}"
        self._batches = settings
        self._connection = connection
        self._usage = Usage()
        self._dimensions = settings.dimensions

    @property
    def address(self) -> str:
        """The address of the service."""
        return self._connection.settings.address

    @abstractmethod
    def _path(self) -> str:
        """Return what follows ``base_url``."""

    @abstractmethod
    def _body(self, texts: Sequence[str], purpose: Purpose) -> bytes:
        """Write one request."""

    @abstractmethod
    def _read(self, answer: bytes, count: int) -> tuple[Rows, int]:
        """Read an answer: unit rows in the order of the texts, and the tokens read. Raises a ``ServiceError``."""

    @property
    def usage(self) -> Usage:
        """The tokens that were read since the service was made."""
        return self._usage

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Vectors:
        """Return one unit row per text, zeros for a blank one."""
        texts = Vectors.check_texts(texts)
        settings = self._batches
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
            await self._ask(["How long is a vector?"], purpose)
        embedded = await self._embed(pieces, purpose)
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

    async def _embed(self, pieces: Sequence[str], purpose: Purpose) -> Rows:
        """Embed pieces in batches, a few under way at once."""
        settings = self._batches
        batches = list(batches_of(pieces, settings.batch_size, settings.batch_characters))
        if not batches:
            return np.zeros((0, self._dimensions or 1), dtype=np.float32)
        if len(batches) == 1:
            return await self._ask(pieces, purpose)
        parts: dict[int, Rows] = {}
        waiting = iter(batches)

        async def work() -> None:
            for batch in waiting:
                parts[batch.start] = await self._ask(pieces[batch.start : batch.stop], purpose)

        await run_together(work() for _ in range(min(settings.concurrency, len(batches))))
        return np.concatenate([parts[batch.start] for batch in batches])

    async def _ask(self, pieces: Sequence[str], purpose: Purpose) -> Rows:
        """Embed pieces; where the model finds them too long, by halves, and one piece as the mean of its halves."""
        try:
            return await self._fetch(pieces, purpose)
        except ContextOverflow:
            if len(pieces) > 1:
                middle = len(pieces) // 2
                halves = [await self._ask(part, purpose) for part in (pieces[:middle], pieces[middle:])]
                return np.concatenate(halves)
            if len(pieces[0]) < _SHORTEST:
                raise
        parts = list(pieces_of(pieces[0], (len(pieces[0]) + 1) // 2))
        return mean_row(await self._ask(parts, purpose), parts)

    async def _fetch(self, pieces: Sequence[str], purpose: Purpose) -> Rows:
        with self._connection.peer.hiding():
            answer = await self._connection.fetch(self._path(), self._body(pieces, purpose))
            rows, tokens = self._read(answer, len(pieces))
            self._usage += Usage(input_tokens=tokens)
            self._dimensions = self._dimensions or rows.shape[1]
            if rows.shape[1] != self._dimensions:
                wrong = f"sent vectors of {rows.shape[1]} numbers instead of {self._dimensions}."
                advice = "Leave `dimensions` out if its model cannot shorten them." if self._batches.dimensions else ""
                raise invalid(self._connection.peer, f"{wrong} {advice}".rstrip())
            return rows
