"""Ranking by the catalogue's words and the store's vectors."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from portico.search import Filter, Vectors
from portico_documents.lexical import LexicalScores, score_words
from portico_documents.ranking import Weights, weights_for
from portico_documents.rows import Ranked, ids_of, numbers_allowed, numbers_of
from portico_documents.terms import query_terms
from portico_documents.threads import in_thread
from portico_documents.vector_mirror import VectorMirror, as_rows

_FIRST_DEPTH = 100
_LAST_DEPTH = 6_400
# Stores add up a product in different orders: the last digits must not decide between passages of one text.
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Question:
    """What is searched for: ``pushed_filter`` is the filter where the store can apply it, else None.

    Without a vector, as for a text without any meaning, words decide alone.
    """

    text: str
    vector: Vectors | None
    filter: Filter | None
    pushed_filter: Filter | None


async def rank_here(
    connection: sqlite3.Connection, mirror: VectorMirror, asked: Question, count: int, weights: Weights | None
) -> list[Ranked]:
    """Return the ``count`` best passages by the weighed sum of both halves, best first.

    Candidates are the best of each half, as many as it takes: a passage in neither list cannot reach more than
    the weighed sum of both lists' last scores, and once ``count`` candidates reach that, they are the best of
    all (Fagin's threshold algorithm). The lists stop growing at 6,400.
    """
    allowed = None if asked.filter is None else await in_thread(numbers_allowed, connection, asked.filter)
    words = _Words(await in_thread(score_words, connection, query_terms(asked.text), allowed), allowed)
    weights = weights or weights_for(words.scores.idf)
    depth = max(_FIRST_DEPTH, 2 * count)
    while True:
        candidates, cosine_floor = await _candidates(connection, mirror, asked, words, depth)
        lexical_floor = words.scores.scores[depth - 1] if len(words.scores.scores) >= depth else 0.0
        fused = weights.fuse(candidates.lexical, candidates.cosines)
        order = np.lexsort((candidates.numbers, -fused))[:count]
        order = order[fused[order] > 0.0]
        floor = weights.lexical * lexical_floor + weights.vector * cosine_floor
        if floor <= 0.0 or depth >= _LAST_DEPTH or (len(order) == count and fused[order[-1]] >= floor):
            return [
                Ranked(
                    int(candidates.numbers[row]),
                    float(fused[row]),
                    float(candidates.lexical[row]),
                    float(candidates.cosines[row]),
                )
                for row in order.tolist()
            ]
        depth *= 4


@dataclass(frozen=True, slots=True)
class _Words:
    scores: LexicalScores
    allowed: npt.NDArray[np.int64] | None


@dataclass(frozen=True, slots=True)
class _Candidates:
    numbers: npt.NDArray[np.int64]
    lexical: npt.NDArray[np.float64]
    cosines: npt.NDArray[np.float64]


async def _candidates(
    connection: sqlite3.Connection, mirror: VectorMirror, asked: Question, words: _Words, depth: int
) -> tuple[_Candidates, float]:
    """Return the best of both halves with both scores, and the cosine that no other passage exceeds."""
    cosines: dict[str, float] = {}
    floor = 0.0
    if asked.vector is not None:
        [found] = await mirror.store.search(mirror.namespace, asked.vector, top=depth, filter=asked.pushed_filter)
        cosines = {match.id: match.score for match in found}
        floor = max(0.0, found[-1].score) if len(found) >= depth else 0.0
    numbers = await in_thread(numbers_of, connection, list(cosines))
    if words.allowed is not None:
        inside = set(words.allowed.tolist())
        numbers = {id: number for id, number in numbers.items() if number in inside}
    best = words.scores.numbers[:depth].tolist()
    of_words = await in_thread(ids_of, connection, sorted(set(best) - set(numbers.values())))
    if asked.vector is not None and of_words:
        records, vectors = await mirror.store.get(mirror.namespace, list(of_words))
        if vectors is not None:
            products = as_rows(vectors) @ as_rows(asked.vector)[0]
            cosines.update(zip((record.id for record in records), products.tolist(), strict=True))
    numbers |= of_words
    every = list(numbers.values())
    return _Candidates(
        np.asarray(every, dtype=np.int64),
        words.scores.of(every),
        np.array([round(cosines.get(id, 0.0), _DIGITS) for id in numbers], dtype=np.float64),
    ), floor
