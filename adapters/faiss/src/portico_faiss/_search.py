"""Search one state of a namespace: exactly, along an index, or with a filter."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from portico.search import And, Equal, Filter, FilterSupport, VectorMatch, VectorRecord
from portico_faiss._files import DATABASE, ROUNDING, Rows, Slots, best, damage_error, rank
from portico_faiss._index import FaissIndex

Entry: TypeAlias = tuple[str, dict[str, Any]]

_SCORES_AT_ONCE = 4_000_000
"""Scores held at a time (16 MB), so that many queries do not multiply memory."""

_ONE_BY_ONE = 4
"""Up to so many queries are quicker one after another than in one product, which first copies all rows."""

_MOST_ALONG_INDEX = 1_000
"""The highest ``top`` that an index is asked for; beyond it comparing all is as quick."""

_WALK_FIRST = 64
_WALK_LAST = 4_096
_READ_AT_ONCE = 1_000
_MOST_TEXTS = 20
"""Texts that SQLite looks for in the metadata before they are decoded; more gain little."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One state of a namespace. No later write changes it.

    ``rows`` has one unit vector for each slot, the oldest first. The slots in ``dead`` have no record any more.
    """

    generation: int
    rows: Rows
    dead: Slots
    entries: list[Entry | None] | None = None
    """The record of each slot, where they are few enough for memory. The list may be longer than ``rows``."""

    @property
    def count(self) -> int:
        return len(self.rows) - len(self.dead)

    def read(self, slots: Sequence[int]) -> list[Entry]:
        """Return the entries of these slots, in their order."""
        entries = self.entries or []
        return [entry for slot in slots if (entry := entries[slot]) is not None]

    def scan(self, filter: Filter) -> Slots:
        """Return every slot that the filter keeps, ascending. Dead slots may be among them."""
        entries = (self.entries or [])[: len(self.rows)]
        kept = [
            slot for slot, entry in enumerate(entries) if entry is not None and FilterSupport.matches(filter, entry[1])
        ]
        return np.array(kept, dtype=np.int64)


class StoredEntries:
    """Reads the entries of a large view from the database, inside one transaction."""

    def __init__(self, connection: sqlite3.Connection, folder: Path) -> None:
        self._connection = connection
        self._folder = folder

    def read(self, slots: Sequence[int]) -> list[Entry]:
        found: dict[int, Entry] = {}
        for start in range(0, len(slots), _READ_AT_ONCE):
            chosen = json.dumps(slots[start : start + _READ_AT_ONCE])
            for slot, id, metadata in self._connection.execute(
                "SELECT slot, id, metadata FROM records WHERE slot IN (SELECT value FROM json_each(?))", (chosen,)
            ):
                found[slot] = decode_id(id), decode(metadata, self._folder)
        try:
            return [found[slot] for slot in slots]
        except KeyError as error:
            raise damage_error(self._folder / DATABASE, f"it has no record in slot {error}") from error

    def scan(self, filter: Filter) -> Slots:
        # Metadata without a text that the filter asks for need not be decoded.
        texts = _asked_texts(filter)[:_MOST_TEXTS]
        condition = " AND ".join(["instr(metadata, ?)"] * len(texts)) or "1"
        rows = self._connection.execute(f"SELECT slot, metadata FROM records WHERE {condition} ORDER BY slot", texts)
        return np.fromiter(
            (slot for slot, text in rows if FilterSupport.matches(filter, decode(text, self._folder))), dtype=np.int64
        )


def encode_id(id: str) -> bytes:
    """Return the bytes of an id for SQLite. The id may be any string, also one that is not valid Unicode."""
    return id.encode("utf-8", "surrogatepass")


def decode_id(id: bytes) -> str:
    return id.decode("utf-8", "surrogatepass")


def decode(text: str, folder: Path) -> dict[str, Any]:
    """Parse metadata. Raises ``StoreDamaged`` for anything that this store did not write."""
    try:
        return VectorRecord.decode_metadata(text)
    except ValueError as error:
        raise damage_error(folder / DATABASE, f"a record's metadata cannot be read ({error})") from error


def search(
    view: View,
    queries: Rows,
    *,
    top: int,
    filter: Filter | None = None,
    index: FaissIndex | None = None,
    stored: StoredEntries | None = None,
) -> list[list[VectorMatch]]:
    """Return the ``top`` best records for each query.

    An index may miss some; a search with a filter does not use it. ``stored`` reads the entries where the view has
    none. Raises ``ValueError`` for queries of other dimensions than the namespace's.
    """
    if queries.shape[1] != view.rows.shape[1]:
        raise ValueError(
            f"the query has {queries.shape[1]} dimensions, the vectors in the namespace {view.rows.shape[1]}"
        )
    if view.count == 0:
        return [[] for _ in queries]
    entries = stored or view

    def records(slots: Slots, query: Rows) -> list[VectorMatch]:
        chosen, scores = rank(view.rows, slots, query, top)
        return [
            VectorMatch(id, score, metadata.copy())
            for (id, metadata), score in zip(entries.read(chosen), scores, strict=True)
        ]

    if filter is not None:
        choose = _make_chooser(view, entries, filter, top)
        return [records(choose(scores), query) for query, scores in _score_each(view, queries)]
    if index is not None and index.rows and top <= _MOST_ALONG_INDEX:
        return [records(slots, query) for query, slots in _walk(view, queries, top, index)]
    return [records(best(scores, top), query) for query, scores in _score_each(view, queries)]


def _scores(view: View, query: Rows) -> Rows:
    """Return a query's score for every slot, minus infinity for dead ones."""
    # Measured: FAISS's own scan is no faster than this at any size, and loading FAISS takes 300 ms.
    scores: Rows = view.rows.dot(query)
    if len(view.dead):
        scores[view.dead] = -np.inf
    return scores


def _score_each(view: View, queries: Rows) -> Iterator[tuple[Rows, Rows]]:
    """Yield each query with its score for every slot, minus infinity for dead ones."""
    if len(queries) <= _ONE_BY_ONE:
        for query in queries:
            yield query, _scores(view, query)
        return
    together = max(1, _SCORES_AT_ONCE // len(view.rows))
    for start in range(0, len(queries), together):
        group = queries[start : start + together]
        products = group @ view.rows.T
        products[:, view.dead] = -np.inf
        yield from zip(group, products, strict=True)


def _walk(view: View, queries: Rows, top: int, index: FaissIndex) -> Iterator[tuple[Rows, Slots]]:
    """Yield each query with the slots that the index finds, and those that came after the index."""
    # Read once: another thread may be extending the index.
    linked = min(index.rows, len(view.rows))
    tail = View(view.generation, view.rows[linked:], view.dead[view.dead >= linked] - linked)
    for query, slots in zip(queries, index.candidates(queries, top, view.dead, linked), strict=True):
        if len(slots) < min(top, view.count - tail.count):
            # The index found too few: most of its slots may be dead.
            yield query, best(_scores(view, query), top)
        elif len(tail.rows):
            yield query, np.concatenate([slots, best(_scores(tail, query), top) + linked])
        else:
            yield query, slots


def _make_chooser(view: View, entries: View | StoredEntries, filter: Filter, top: int) -> Callable[[Rows], Slots]:
    """Return a function that takes the scores of a query and returns the best slots that the filter keeps.

    It tries the filter on the best records, then on eight times as many where too few pass. After `_WALK_LAST` records
    it scans the entries for all that the filter keeps, once for all queries.
    """
    everything: list[Slots] = []

    def choose(scores: Rows) -> Slots:
        size = max(_WALK_FIRST, 4 * top)
        while not everything and size <= _WALK_LAST and size < len(scores):
            candidates = best(scores, size)
            records = entries.read(candidates.tolist())
            passed = [FilterSupport.matches(filter, metadata) for _, metadata in records]
            kept = candidates[np.array(passed, dtype=np.bool_)]
            if len(kept) >= top:
                last = np.sort(scores[kept])[-top]
                # Rounding may have put a better slot just below the candidates.
                if last - ROUNDING >= scores[candidates].min():
                    return kept
            size *= 8
        if not everything:
            everything.append(entries.scan(filter))
        return everything[0][best(scores[everything[0]], top)]

    return choose


def _asked_texts(filter: Filter) -> list[str]:
    """Return strings that the encoded metadata of every record contain which the filter keeps."""
    match filter:
        case Equal(_, str(value)):
            return [json.dumps(value)]
        case And(parts):
            return [text for part in parts for text in _asked_texts(part)]
    return []
