"""Searching one state of a namespace: exactly, along a graph, or through a filter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from portico.search import Filter, FilterSupport, VectorMatch
from portico_faiss._graph import Graph
from portico_faiss._vectors import Rows, Slots, best, margin, ranked

Entry: TypeAlias = tuple[str, dict[str, Any]]

_SCORES_AT_ONCE = 4_000_000
"""Scores held at a time (16 MB), so that many queries do not multiply memory."""

_ONE_BY_ONE = 4
"""Queries that cost less one after another than in one product, which copies all rows into another order first: half
of it with 1,000 or 4,000 rows, as much with 15,000. With eight queries it is the other way round from 10,000 on."""

_WALK_FIRST = 64
_WALK_LAST = 4_096


class Entries(Protocol):
    """The ids and metadata that belong to the slots of one state."""

    def read(self, slots: Sequence[int]) -> list[Entry]:
        """Return the entries of these slots, in their order."""
        ...

    def scan(self, filter: Filter) -> Slots:
        """Return every slot that the filter keeps, ascending; slots without a record may be among them."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One state of a namespace, which no later write touches.

    ``rows`` has one unit vector a slot, the oldest first; the slots in ``dead`` hold no record any more.
    """

    generation: int
    rows: Rows
    dead: Slots
    entries: list[Entry | None] | None = None
    """The record of each slot, when they are few enough to be held; may be longer than ``rows``."""

    @property
    def count(self) -> int:
        """How many records there are."""
        return len(self.rows) - len(self.dead)


class LoadedEntries:
    """Entries held in memory."""

    __slots__ = ("_entries", "_slots")

    def __init__(self, entries: list[Entry | None], slots: int) -> None:
        self._entries = entries
        self._slots = slots

    def read(self, slots: Sequence[int]) -> list[Entry]:
        return [entry for slot in slots if (entry := self._entries[slot]) is not None]

    def scan(self, filter: Filter) -> Slots:
        kept = [
            slot
            for slot in range(self._slots)
            if (entry := self._entries[slot]) is not None and FilterSupport.matches(filter, entry[1])
        ]
        return np.array(kept, dtype=np.int64)


def search(
    view: View, entries: Entries, queries: Rows, *, top: int, filter: Filter | None = None, graph: Graph | None = None
) -> list[list[VectorMatch]]:
    """Return the ``top`` best records for each query. Only a graph may miss one; with a filter it is not used.

    Raises ``ValueError`` for queries of other dimensions than the namespace's.
    """
    if queries.shape[1] != view.rows.shape[1]:
        raise ValueError(
            f"the query has {queries.shape[1]} dimensions, the vectors in the namespace {view.rows.shape[1]}"
        )
    if view.count == 0:
        return [[] for _ in queries]
    if filter is not None:
        choose = _Filtered(view, entries, filter, top)
        return [_records(view, entries, choose.slots(scores), query, top) for query, scores in _scored(view, queries)]
    if graph is not None and top <= graph.most and graph.covers(view.rows):
        return [_records(view, entries, slots, query, top) for query, slots in _walked(view, queries, top, graph)]
    slack = margin(view.rows.shape[1])
    if len(queries) == 1:
        query = queries[0]
        return [_records(view, entries, best(_scores(view, query), top, slack), query, top)]
    return [_records(view, entries, best(scores, top, slack), query, top) for query, scores in _scored(view, queries)]


def _records(view: View, entries: Entries, slots: Slots, query: Rows, top: int) -> list[VectorMatch]:
    chosen, scores = ranked(view.rows, slots, query, top)
    return [
        VectorMatch(id, score, metadata.copy())
        for (id, metadata), score in zip(entries.read(chosen), scores, strict=True)
    ]


def _scores(view: View, query: Rows) -> Rows:
    """Return a query's score for every slot, minus infinity for dead ones."""
    # Measured: FAISS's own scan is no faster than this at any size, and loading FAISS takes 300 ms.
    scores: Rows = view.rows.dot(query)
    if len(view.dead):
        scores[view.dead] = -np.inf
    return scores


def _scored(view: View, queries: Rows) -> Iterator[tuple[Rows, Rows]]:
    """Yield each query with its score for every slot, minus infinity for dead ones."""
    rows, dead = view.rows, view.dead
    if len(queries) <= _ONE_BY_ONE:
        for query in queries:
            yield query, _scores(view, query)
        return
    together = max(1, _SCORES_AT_ONCE // len(rows))
    for start in range(0, len(queries), together):
        group = queries[start : start + together]
        products = group @ rows.T
        if len(dead):
            products[:, dead] = -np.inf
        yield from zip(group, products, strict=True)


def _walked(view: View, queries: Rows, top: int, graph: Graph) -> Iterator[tuple[Rows, Slots]]:
    # Read once: another thread may be extending the graph.
    linked = min(graph.rows, len(view.rows))
    tail = View(view.generation, view.rows[linked:], view.dead[view.dead >= linked] - linked)
    slack = margin(view.rows.shape[1])
    for query, slots in zip(queries, graph.candidates(queries, top, view.dead, linked), strict=True):
        if len(slots) < min(top, view.count - tail.count):
            # The graph led nowhere, as it can when most of what it links is dead.
            yield query, best(_scores(view, query), top, slack)
        elif len(tail.rows):
            yield query, np.concatenate([slots, best(_scores(tail, query), top, slack) + linked])
        else:
            yield query, slots


class _Filtered:
    """Chooses the best slots that a filter keeps.

    It asks `FilterSupport.matches` from the best score downwards and stops when there are enough: a filter that keeps a
    tenth is done after ten times ``top`` records. A filter that keeps next to nothing would be asked about
    nearly all, so after `_WALK_LAST` records the entries find everything that it keeps, once for all queries.
    """

    def __init__(self, view: View, entries: Entries, filter: Filter, top: int) -> None:
        self._entries = entries
        self._filter = filter
        self._top = top
        self._slack = margin(view.rows.shape[1])
        self._everything: Slots | None = None

    def slots(self, scores: Rows) -> Slots:
        size = max(_WALK_FIRST, 4 * self._top)
        ceiling = float("inf")
        kept: list[int] = []
        while self._everything is None and size <= _WALK_LAST and size < len(scores):
            partitioned = scores.copy()
            partitioned.partition(len(scores) - size)
            floor = max(float(partitioned[len(scores) - size]), -2.0)
            asked = ((scores >= floor) & (scores < ceiling)).nonzero()[0].tolist()
            kept += [
                slot
                for slot, (_, metadata) in zip(asked, self._entries.read(asked), strict=True)
                if FilterSupport.matches(self._filter, metadata)
            ]
            if len(kept) >= self._top:
                chosen = np.array(sorted(kept), dtype=np.int64)
                last = np.sort(scores[chosen])[-self._top]
                # Rounding may hide a slot just below the floor that `ranked` would put before the last one.
                if last - self._slack >= floor:
                    near: Slots = chosen[scores[chosen] >= last - self._slack]
                    return near
            ceiling = floor
            size *= 8
        if self._everything is None:
            self._everything = self._entries.scan(self._filter)
        everything = self._everything
        return everything[best(scores[everything], self._top, self._slack)]
