"""Vectors of length one, and their binary form in pgvector.

That is two big-endian uint16, of which the first is the number of dimensions, then each number as a big-endian float32
(`vector_send` in pgvector's src/vector.c).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from psycopg.adapt import Dumper
from psycopg.pq import Format

from portico.search import Vectors

Rows: TypeAlias = npt.NDArray[np.float32]

MOST_DIMENSIONS = 16_000
"""What pgvector's type holds."""

_HEADER = 4
_NEARLY_ONE = 2e-6
"""How far a squared length may be from 1 for a vector to be kept bit for bit."""


class PackedVector(bytes):
    """A vector in pgvector's binary form, as a parameter of a statement."""


class PackedDumper(Dumper):
    """Sends a `PackedVector` as it is; the statement says that it is a vector."""

    format = Format.BINARY

    def dump(self, obj: Any) -> bytes:
        return bytes(obj)


def as_rows(vectors: Vectors) -> Rows:
    return np.frombuffer(vectors.buffer.cast("B"), dtype=np.float32).reshape(vectors.rows, vectors.dimensions)


def unit_rows(rows: Rows, *, numbers: Sequence[int] | None = None) -> Rows:
    """Return the rows at length one; rows of zeros stay zeros, unit rows keep every bit.

    Raises ``ValueError`` for one that is not finite; ``numbers`` are those by which it names them.
    """
    # float64 holds the square of any float32, so only a number that is not finite gives a square that is not.
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    finite = np.isfinite(squares)
    if not finite.all():
        row = int(finite.argmin())
        raise ValueError(f"vector {row if numbers is None else numbers[row]} holds a number that is not finite")
    other = ((np.abs(squares - 1.0) > _NEARLY_ONE) & (squares > 0)).nonzero()[0]
    if len(other):
        rows = rows.copy()
        rows[other] = rows[other] / np.sqrt(squares[other])[:, None]
    return rows


def row_bytes(dimensions: int) -> int:
    return _HEADER + 4 * dimensions


def packed(rows: Rows) -> memoryview:
    """Return the binary forms of rows one after another, turned round and copied in one go."""
    form: Any = np.empty(len(rows), dtype=_form(rows.shape[1]))
    form["dimensions"] = rows.shape[1]
    form["unused"] = 0
    form["numbers"] = rows
    return memoryview(form).cast("B")


def packed_queries(queries: Vectors) -> list[PackedVector]:
    """Return queries at length one, each in binary form. Raises ``ValueError`` for one that is not finite."""
    if queries.rows == 1:
        # The usual case, which has to be quick.
        row = np.asarray(queries.buffer, dtype=np.float32)
        # float64 holds the square of any float32.
        exact = row.astype(np.float64)
        if abs(exact.dot(exact) - 1.0) <= _NEARLY_ONE:
            return [PackedVector(struct.pack(">HH", queries.dimensions, 0) + row.astype(">f4").tobytes())]
    forms, size = packed(unit_rows(as_rows(queries))), row_bytes(queries.dimensions)
    return [PackedVector(forms[start : start + size]) for start in range(0, len(forms), size)]


def unpacked(vectors: Sequence[bytes], dimensions: int) -> Vectors:
    form = np.frombuffer(b"".join(vectors), dtype=_form(dimensions))
    return Vectors(np.ascontiguousarray(form["numbers"], dtype=np.float32), len(vectors), dimensions)


def _form(dimensions: int) -> np.dtype[Any]:
    return np.dtype([("dimensions", ">u2"), ("unused", ">u2"), ("numbers", ">f4", (dimensions,))])
