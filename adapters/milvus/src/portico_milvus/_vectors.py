"""Vectors of length one, so that Milvus's inner product is the cosine."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from portico.search import Vectors

Rows: TypeAlias = npt.NDArray[np.float32]

_BLOCK = 4_096
"""Rows handled at once, so that memory does not grow with the size of a call."""

_NEARLY_ONE = 2e-6
"""How far a squared length may be from 1 for a vector to be kept bit for bit."""


def unit_rows(vectors: Vectors) -> Rows:
    """Return vectors at length one; rows of zeros stay zeros, unit rows keep every bit and are not copied.

    Lengths are taken in float64, which holds the square of any float32. Milvus's own COSINE takes them in float32, and
    what it says of a row of zeros is its version's affair. Raises ``ValueError`` for a number that is not finite.
    """
    rows = np.frombuffer(vectors.buffer.cast("B"), dtype=np.float32).reshape(vectors.rows, vectors.dimensions)
    made: Rows | None = None
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        squares = np.einsum("ij,ij->i", block, block, dtype=np.float64)
        if not np.isfinite(squares).all():
            number = start + int((~np.isfinite(squares)).argmax())
            raise ValueError(f"vector {number} holds a number that is not finite")
        other = np.flatnonzero((np.abs(squares - 1.0) > _NEARLY_ONE) & (squares > 0))
        if len(other):
            made = rows.copy() if made is None else made
            made[start + other] = block[other] / np.sqrt(squares[other])[:, None]
    return rows if made is None else made


def padded(rows: Rows, dimensions: int) -> Rows:
    """Return rows with zeros behind, up to ``dimensions`` numbers: what Milvus wants two of may have one."""
    if rows.shape[1] == dimensions:
        return rows
    result = np.zeros((len(rows), dimensions), np.float32)
    result[:, : rows.shape[1]] = rows
    return result


def as_vectors(rows: Rows) -> Vectors:
    """Return rows as they cross the port."""
    rows = np.ascontiguousarray(rows)
    return Vectors(rows, *rows.shape)


def cosine(score: float) -> float:
    """Return a score within its bounds, which rounding may pass."""
    return min(1.0, max(-1.0, score))
