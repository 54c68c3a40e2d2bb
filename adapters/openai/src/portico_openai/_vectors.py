"""Texts as requests for embeddings, and the answers as float32 matrices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from portico_openai._errors import Peer, invalid, reported
from portico_openai._json import encoded
from portico_openai.config import OpenAIEmbeddingsSettings

Rows: TypeAlias = npt.NDArray[np.float32]


class _Row(msgspec.Struct):
    embedding: bytes | list[float]
    index: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None


class _Answer(msgspec.Struct):
    data: list[_Row] | None = None
    usage: _Usage | None = None
    error: Any = None


_decode = msgspec.json.Decoder(_Answer).decode


def request_body(texts: Sequence[str], settings: OpenAIEmbeddingsSettings) -> bytes:
    """Write the body of one request; base64 spares both sides the writing of numbers."""
    fields: dict[str, Any] = {**settings.body, "model": settings.model, "input": texts, "encoding_format": "base64"}
    if settings.dimensions is not None:
        fields["dimensions"] = settings.dimensions
    return encoded(fields)


def unit_rows(answer: bytes, count: int, peer: Peer) -> tuple[Rows, int]:
    """Read an answer: one unit row per text, in the order of the texts, and the tokens that were counted.

    The vectors may be base64 of little-endian float32 numbers, or lists of numbers from servers that know no other
    form. Raises ``ResponseInvalid`` for anything else, and the error that the answer reports.
    """
    try:
        read = _decode(answer)
    except msgspec.ValidationError as error:
        raise invalid(peer, f"sent embeddings that are not in OpenAI's format ({error})", answer) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        broken = "that are not JSON" if answer.strip() else "that are empty"
        raise invalid(peer, f"sent embeddings {broken}", answer) from error
    if read.error:
        raise reported(peer, read.error)
    data = read.data or []
    places = [order if row.index is None else row.index for order, row in enumerate(data)]
    if sorted(places) != list(range(count)):
        raise invalid(peer, f"sent {len(data)} vectors with the indexes {_few(places)} for {count} texts.")
    vectors = [_vector(row.embedding) for row in data]
    lengths = {len(vector) for vector in vectors}
    if len(lengths) != 1 or 0 in lengths:
        raise invalid(peer, f"sent vectors of {_few(sorted(lengths))} numbers: all must have one length, and not 0.")
    rows = np.empty((count, lengths.pop()), dtype=np.float32)
    # A number that is too large for float32 becomes infinite, and is told of below.
    with np.errstate(over="ignore"):
        for place, vector in zip(places, vectors, strict=True):
            rows[place] = vector
    if not np.isfinite(rows).all():
        raise invalid(peer, "sent vectors with numbers that are not finite.")
    return normalized(rows), (read.usage.prompt_tokens if read.usage else None) or 0


def normalized(rows: Rows) -> Rows:
    """Bring each row to length 1 in place, rows of zeros excepted."""
    # In double precision: the squares of large numbers do not fit float32.
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))[:, np.newaxis]
    np.divide(rows, lengths, out=rows, where=lengths > 0, casting="same_kind")
    return rows


def mean_row(rows: Rows, pieces: Sequence[str]) -> Rows:
    """Return the mean of the rows of a text's pieces by their lengths, as one unit row."""
    lengths = np.array([len(piece) for piece in pieces], dtype=np.float32)
    return normalized((lengths @ rows)[np.newaxis, :])


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


def _few(values: Sequence[object]) -> str:
    return ", ".join(map(str, values[:5])) + (", …" if len(values) > 5 else "")
