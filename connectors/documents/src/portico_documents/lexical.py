"""The lexical half: BM25 over the catalogue's words, on a scale that does not depend on the query."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

# FTS5's own constants, which it does not let one choose; its k1 bounds what one term can reach.
_K1 = 1.2
_LEAST_IDF = 1e-6
_MANY_PASSAGES = 5_000
_COMMON_SHARE = 0.3

_ROW = np.dtype([("number", np.int64), ("score", np.float64)])
_SCORES = "SELECT rowid, bm25(words) FROM words WHERE words MATCH ?"


@dataclass(frozen=True, slots=True)
class LexicalScores:
    """Passages by number with their scores in 0 to 1, the best first; ``idf`` is the sum over the query's terms."""

    numbers: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    idf: float

    def of(self, numbers: Sequence[int]) -> npt.NDArray[np.float64]:
        """Return the scores of these passages, 0 for one that has none of the words."""
        order = np.argsort(self.numbers)
        wanted = np.asarray(numbers, dtype=np.int64)
        places = np.searchsorted(self.numbers, wanted, sorter=order)
        result = np.zeros(len(wanted))
        inside = places < len(order)
        rows = order[places[inside]]
        result[inside] = np.where(self.numbers[rows] == wanted[inside], self.scores[rows], 0.0)
        return result


def score_words(
    connection: sqlite3.Connection, terms: Sequence[str], allowed: npt.NDArray[np.int64] | None
) -> LexicalScores:
    """Score every passage that has one of the terms, divided by what a perfect passage would reach.

    BM25 (Robertson and Zaragoza 2009) sums, over the query's terms, the term's rarity (idf) times how much the
    passage is about it, which k1 + 1 bounds. Divided by the sum of all the query's idf times k1 + 1, a score says
    which part of the query a passage answers, and so compares with a cosine. FTS5 does the second factor in C,
    one term at a time; the idf is Lucene's ln(1 + (N - n + 0.5) / (n + 0.5)), since FTS5's own is nothing for a
    term in half of the passages, which in a folder of three is every term.

    Terms are bound as quoted strings: nothing in a query is read as FTS5's query language. In large indexes a term
    in more than 30% of the passages is left out when there are others. The connection must be in a transaction.
    """
    total = int(connection.execute("SELECT count(*) FROM passages").fetchone()[0])
    numbers: list[npt.NDArray[np.int64]] = []
    scores: list[npt.NDArray[np.float64]] = []
    idf_sum = 0.0
    for term, count in _telling(connection, terms, total):
        idf = math.log1p((total - count + 0.5) / (count + 0.5))
        idf_sum += idf
        if not count:
            continue
        rows = np.fromiter(connection.execute(_SCORES, (_quoted(term),)), dtype=_ROW)
        own_idf = max(math.log((total - count + 0.5) / (count + 0.5)), 0.0) or _LEAST_IDF
        numbers.append(rows["number"])
        scores.append(rows["score"] * (-idf / own_idf))
    if not numbers:
        return LexicalScores(np.zeros(0, dtype=np.int64), np.zeros(0), idf_sum)
    found, inverse = np.unique(np.concatenate(numbers), return_inverse=True)
    summed = np.bincount(inverse, weights=np.concatenate(scores)) / (idf_sum * (_K1 + 1))
    if allowed is not None:
        kept = np.isin(found, allowed)
        found, summed = found[kept], summed[kept]
    order = np.lexsort((found, -summed))
    return LexicalScores(found[order], summed[order], idf_sum)


def _telling(connection: sqlite3.Connection, terms: Sequence[str], total: int) -> list[tuple[str, int]]:
    counted = [
        (
            term,
            int(connection.execute("SELECT count(*) FROM words WHERE words MATCH ?", (_quoted(term),)).fetchone()[0]),
        )
        for term in terms
    ]
    if total < _MANY_PASSAGES:
        return counted
    rare = [(term, count) for term, count in counted if count <= total * _COMMON_SHARE]
    return rare if any(count for _, count in rare) else counted


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'
