"""Vectors of length one: checking and normalising what comes, and ranking what is found."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from portico.search import Vectors

Rows: TypeAlias = npt.NDArray[np.float32]
Slots: TypeAlias = npt.NDArray[np.int64]

BLOCK = 4_096
"""Rows handled at once, so that memory does not grow with the size of a call."""

_NEARLY_ONE = 2e-6
"""How far a squared length may be from 1 for a vector to be kept bit for bit."""
_DEAD_BEFORE_COMPACTION = 1_000


def as_rows(vectors: Vectors) -> Rows:
    return np.frombuffer(vectors.buffer.cast("B"), dtype=np.float32).reshape(vectors.rows, vectors.dimensions)


def unit_blocks(rows: Rows) -> Iterator[Rows]:
    """Yield the rows at length one, block by block; rows of zeros stay zeros, unit rows keep every bit.

    Raises ``ValueError``, which names the row, for a number that is not finite.
    """
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        # float64 holds the square of any float32.
        squares = np.einsum("ij,ij->i", block, block, dtype=np.float64)
        finite = np.isfinite(squares)
        if not finite.all():
            raise ValueError(f"vector {start + int(finite.argmin())} holds a number that is not finite")
        other = np.flatnonzero((np.abs(squares - 1.0) > _NEARLY_ONE) & (squares > 0))
        if len(other):
            block = block.copy()
            block[other] = block[other] / np.sqrt(squares[other])[:, None]
        yield block


def unit_queries(queries: Vectors) -> Rows:
    """Return the queries at length one. Raises ``ValueError`` for a number that is not finite."""
    rows = as_rows(queries)
    if len(rows) == 1:
        # The usual case, which has to be quick.
        row = rows[0].astype(np.float64)
        if abs(float(row.dot(row)) - 1.0) <= _NEARLY_ONE:
            return rows
    return np.concatenate(list(unit_blocks(rows))) if len(rows) else rows


def is_wasteful(dead: int, slots: int) -> bool:
    """Tell whether so many slots are dead that the others should move to a new generation."""
    return dead > max(_DEAD_BEFORE_COMPACTION, slots - dead)


def margin(dimensions: int) -> float:
    """Return how far a fast product may be off the one that `ranked` makes.

    A matrix product sums in an order that depends on where a row lies; rounding errors of float32 sums grow
    with the square root of their number (Higham, Accuracy and Stability of Numerical Algorithms, §2.8).
    """
    return 4e-7 * math.sqrt(dimensions) + 1e-7


def ranked(rows: Rows, slots: Slots, query: Rows, top: int) -> tuple[list[int], list[float]]:
    """Return the best ``top`` of the slots with their cosines; of equal ones the oldest first.

    ``slots`` ascend. Each row is multiplied on its own, so that equal vectors have equal scores wherever they
    lie and whichever way they were found.
    """
    if len(slots) <= BLOCK:
        scores = np.vecdot(rows.take(slots, axis=0), query)
    else:
        blocks = [slots[start : start + BLOCK] for start in range(0, len(slots), BLOCK)]
        scores = np.concatenate([np.vecdot(rows.take(block, axis=0), query) for block in blocks])
    order = (-scores).argsort(kind="stable")[:top]
    # In Python, since a call into NumPy costs more than a few comparisons.
    return slots[order].tolist(), [min(1.0, max(-1.0, score)) for score in scores[order].tolist()]


def best(scores: Rows, top: int, slack: float) -> Slots:
    """Return the slots of the ``top`` highest scores and of all within ``slack`` of the last, ascending.

    Slots with a score of minus infinity are never among them.
    """
    if top >= len(scores):
        return (scores > -2.0).nonzero()[0]
    # The smallest of the negated are found in half the time of the largest.
    negated = -scores
    negated.partition(top - 1)
    return (scores >= max(-float(negated[top - 1]) - slack, -2.0)).nonzero()[0]
