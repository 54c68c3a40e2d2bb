"""The words of the index: which passages have a term, and how much they are about it (BM25)."""

from __future__ import annotations

import math
import sqlite3
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from portico_documents import catalogue
from portico_documents.terms import WORD

# FTS5's own constants, which it does not let one choose; k1 bounds what one term can reach.
_K1 = 1.2
_B = 0.75
_LEAST_IDF = 1e-6
_MANY_PASSAGES = 5_000
_COMMON_SHARE = 0.3
_READ_AGAIN = 20

_ROW = np.dtype([("number", np.int64), ("about", np.float64)])
_TOOLS = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.instances USING fts5vocab(main, words, instance)",
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.query USING fts5(text, tokenize='porter unicode61')",
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.tokens USING fts5vocab(temp, query, instance)",
)
_MOST_ROWS = 250_000
_READ_AT_ONCE = 10_000

Numbers = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
Rows = npt.NDArray[np.void]


@dataclass(frozen=True, slots=True)
class LexicalScores:
    """Passages in the order of their numbers, with scores in 0 to 1; ``idf`` is the sum over the query's terms."""

    numbers: Numbers
    scores: Scores
    idf: float

    def best(self, count: int) -> Numbers:
        """Return where the ``count`` best are, the best first."""
        rows = np.arange(len(self.scores))
        if count < len(rows):
            rows = np.flatnonzero(self.scores >= np.partition(self.scores, -count)[-count])
        return rows[np.lexsort((self.numbers[rows], -self.scores[rows]))][:count]

    def of(self, numbers: Numbers) -> Scores:
        """Return the scores of these passages, 0 for one that has none of the words."""
        if not len(self.numbers):
            return np.zeros(len(numbers))
        rows = np.searchsorted(self.numbers, numbers).clip(max=len(self.numbers) - 1)
        return np.where(self.numbers[rows] == numbers, self.scores[rows], 0.0)


class Lexicon:
    """What searches found out of terms, for one revision of the catalogue: the next one need not ask again.

    FTS5 finds the passages that have a term in a sixth of the time that its `bm25` then takes, most of which goes into
    looking up each passage's length; lengths are read once here. Threads may share one. It keeps a bounded number of
    rows, those of the terms that were asked for last.
    """

    def __init__(self, connection: sqlite3.Connection, known: Lexicon | None) -> None:
        self.state = catalogue.state(connection)
        self._rows: dict[str, Rows] = {}
        self._lock = threading.Lock()
        self._asked = 0
        (block,) = connection.execute("SELECT block FROM words_data WHERE id = 1").fetchone() or (b"",)
        passages, *tokens = _varints(block).tolist() or [0]
        self.passages: int = passages
        self.mean = max(1.0, sum(tokens)) / max(1, self.passages)
        self.lengths: tuple[Numbers, Numbers] = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        # The number of a passage is never given again in one database; those of passages that are gone pile up.
        if known is not None and known.state[0] == self.state[0] and len(known.lengths[0]) <= 2 * self.passages:
            self.lengths = known.lengths

    @classmethod
    def of(cls, connection: sqlite3.Connection, known: Lexicon | None = None) -> Lexicon:
        """Return ``known`` where it is of the state that a connection reads, or a new one."""
        for tool in _TOOLS:
            connection.execute(tool)
        return known if known is not None and known.state == catalogue.state(connection) else cls(connection, known)

    def count(self, connection: sqlite3.Connection, term: str) -> int:
        """Return how many passages have a term."""
        if (rows := self._rows.get(term)) is not None:
            return len(rows)
        return int(connection.execute("SELECT count(*) FROM words WHERE words MATCH ?", (_quote(term),)).fetchone()[0])

    def rows(self, connection: sqlite3.Connection, term: str) -> Rows:
        """Return the passages that have a term by their numbers, and how much each is about it: up to k1 + 1."""
        with self._lock:
            if (known := self._rows.pop(term, None)) is not None:
                self._rows[term] = known
                return known
        rows = self._find(connection, term)
        with self._lock:
            self._rows[term] = rows
            while sum(map(len, self._rows.values())) > _MOST_ROWS:
                del self._rows[next(iter(self._rows))]
        return rows

    def _find(self, connection: sqlite3.Connection, term: str) -> Rows:
        connection.execute("DELETE FROM temp.query")
        connection.execute("INSERT INTO temp.query VALUES (?)", (term,))
        tokens = connection.execute("SELECT term FROM temp.tokens").fetchall()
        if len(tokens) == 1:
            # As one text, since other threads take turns with each row that Python is given.
            found = connection.execute("SELECT group_concat(doc, ' ') FROM temp.instances WHERE term = ?", tokens[0])
            places = np.fromstring(found.fetchone()[0] or "", dtype=np.int64, sep=" ")
            first = _first(places)
            numbers, times = places[first], np.diff(first, append=len(places))
            lengths = self._lengths_of(connection, numbers)
            if lengths is not None:
                rows = np.empty(len(numbers), dtype=_ROW)
                rows["number"] = numbers
                rows["about"] = times * (_K1 + 1) / (times + _K1 * (1 - _B + _B * lengths / self.mean))
                return rows
        # What is more than one word is looked for by FTS5 itself; its idf is taken out again.
        found = connection.execute("SELECT rowid, bm25(words) FROM words WHERE words MATCH ?", (_quote(term),))
        rows = np.fromiter(found, dtype=_ROW)
        others = max(self.passages - len(rows), 0)
        rows["about"] /= -(max(math.log((others + 0.5) / (len(rows) + 0.5)), 0.0) or _LEAST_IDF)
        return rows

    def _lengths_of(self, connection: sqlite3.Connection, numbers: Numbers) -> Numbers | None:
        """Return how many words these passages have; None where that is not known here of all.

        Reading all lengths takes as long as `bm25` for a sixteenth of the passages, and waits until so much was asked.
        """
        known, lengths = self.lengths
        last = int(known[-1]) if len(known) else -1
        if len(numbers) and numbers[-1] > last:
            self._asked += len(numbers)
            if 16 * self._asked < self.passages - len(known):
                return None
            reading = connection.execute("SELECT id, sz FROM words_docsize WHERE id > ? ORDER BY id", (last,))
            while read := reading.fetchmany(_READ_AT_ONCE):
                counts = _varints(b"".join(size for _, size in read if isinstance(size, bytes)))
                if not len(counts) or len(counts) % len(read):
                    return None  # damaged: what FTS5 says then counts
                counts = counts.reshape(len(read), -1).sum(axis=1)
                known = np.concatenate((known, np.array([id for id, _ in read], dtype=np.int64)))
                lengths = np.concatenate((lengths, counts))
            if not len(known):
                return None
            self.lengths = known, lengths
        found = np.searchsorted(known, numbers).clip(max=len(known) - 1)
        return lengths[found] if np.array_equal(known[found], numbers) else None


def _first(values: Numbers) -> Numbers:
    """Return where, in values that ascend, each begins."""
    return np.flatnonzero(np.concatenate((values[:1] >= values[:1], values[1:] != values[:-1])))


def _varints(data: bytes) -> Numbers:
    """Return numbers as SQLite writes them: seven bits to a byte, the highest first, all but the last one marked."""
    if not data or data[-1] >= 128:
        return np.zeros(0, dtype=np.int64)
    codes = np.frombuffer(data, dtype=np.uint8).astype(np.int64)
    ends = np.flatnonzero(codes < 128)
    places = np.arange(len(codes))
    values = (codes & 127) << 7 * (ends[np.searchsorted(ends, places)] - places)
    return np.add.reduceat(values, np.concatenate(([0], ends[:-1] + 1)))


def score_words(
    connection: sqlite3.Connection, terms: Sequence[str], allowed: Numbers | None, lexicon: Lexicon | None = None
) -> LexicalScores:
    """Score every passage that has one of the terms, divided by what a perfect passage would reach.

    BM25 (Robertson and Zaragoza 2009) sums, over the query's terms, the term's rarity (idf) times how much the
    passage is about it, which k1 + 1 bounds. Divided by the sum of all the query's idf times k1 + 1, a score says
    which part of the query a passage answers, and so compares with a cosine. The second factor is FTS5's; the idf is
    Lucene's ln(1 + (N - n + 0.5) / (n + 0.5)), since FTS5's own is nothing for a term in half of the passages, which
    in a folder of three is every term. For an identifier with underscores the best passages are read again: where it
    stands whole, it counts twice.

    Terms are bound as quoted strings: nothing in a query is read as FTS5's query language. In large indexes a term
    in more than 30% of the passages is left out when there are others. The connection must be in a transaction.
    """
    lexicon = lexicon or Lexicon.of(connection)
    total = lexicon.passages
    counted = [(term, lexicon.count(connection, term)) for term in terms]
    if total >= _MANY_PASSAGES:
        rare = [(term, count) for term, count in counted if count <= total * _COMMON_SHARE]
        counted = rare if any(count for _, count in rare) else counted
    reached: list[tuple[Numbers, Scores]] = []
    forms: dict[str, float] = {}
    idf_sum = most = 0.0
    for term, count in counted:
        idf = math.log1p((max(total - count, 0) + 0.5) / (count + 0.5))
        idf_sum += idf
        most += idf * (_K1 + 1)
        if "_" in term:  # FTS5 finds an identifier wherever its parts stand in a row
            forms[term] = idf
            most += idf * (_K1 + 1)
        if count:
            having = lexicon.rows(connection, term)
            reached.append((having["number"], having["about"] * idf))
    if not reached:
        return LexicalScores(np.zeros(0, dtype=np.int64), np.zeros(0), idf_sum)
    every = np.concatenate([numbers for numbers, _ in reached])
    order = every.argsort(kind="stable")  # of runs in order: quick
    every = every[order]
    first = _first(every)
    scores = np.concatenate([scores for _, scores in reached])[order]
    found, summed = every[first], np.add.reduceat(scores, first) / most
    if allowed is not None:
        kept = np.isin(found, allowed)
        found, summed = found[kept], summed[kept]
    result = LexicalScores(found, summed, idf_sum)
    if not forms:
        return result
    least = summed[result.best(_READ_AGAIN)].min(initial=1.0)
    rows = np.flatnonzero(summed >= least)
    if len(rows) > 2 * _READ_AGAIN:  # all that are alike or none: their numbers must not decide
        rows = np.flatnonzero(summed > least)
    reading = "SELECT trail || ' ' || text || ' ' || parts FROM passages WHERE number = ?"
    for row in rows.tolist():
        (text,) = connection.execute(reading, (int(found[row]),)).fetchone() or (None,)
        words = WORD.findall((text or "").lower())
        half = _K1 * (1 - _B + _B * len(words) / lexicon.mean)
        times = Counter(filter(forms.__contains__, words)).items()
        about = sum(forms[term] * count * (_K1 + 1) / (count + half) for term, count in times)
        summed[row] += about / most
    return result


def _quote(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'
