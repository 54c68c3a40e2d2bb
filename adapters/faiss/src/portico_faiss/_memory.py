"""A namespace that is kept in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from portico.search import Filter, VectorMatch, VectorRecord
from portico_faiss._graph import Graph, is_behind
from portico_faiss._search import Entry, LoadedEntries, View, search
from portico_faiss._vectors import Rows, unit_blocks
from portico_faiss.config import FaissSettings

_FIRST_ROWS = 64
_DEAD_BEFORE_COMPACTION = 1_000


class MemoryNamespace:
    """Vectors in one array that doubles when it is full; every write makes a new `View` in one assignment.

    A replaced or deleted record leaves a dead slot. When more slots are dead than alive, a new array is made.
    So a search on an older view, in another thread, is never disturbed.
    """

    def __init__(self, settings: FaissSettings) -> None:
        self._settings = settings
        self._writing = threading.Lock()
        self._slots: dict[str, int] = {}
        self._room: Rows | None = None
        self._view: View | None = None
        self._generation = 0
        self._graph: tuple[int, Graph] | None = None
        self._stopped = False

    def busy(self) -> bool:
        """Tell whether a thread is writing, so that a call here would wait."""
        return self._writing.locked()

    def current(self) -> View | None:
        """Return the state; None before the first write. Never waits."""
        return self._view

    def search(self, queries: Rows, top: int, filter: Filter | None) -> list[list[VectorMatch]]:
        """Search the state as it is now, along the graph when there is one."""
        view = self._view
        if view is None:
            return [[] for _ in queries]
        generation, graph = self._graph or (view.generation, None)
        entries = LoadedEntries(view.entries or [], len(view.rows))
        return search(
            view, entries, queries, top=top, filter=filter, graph=graph if generation == view.generation else None
        )

    def write(self, records: Sequence[Entry], rows: Rows) -> None:
        """Add or replace records, all or none. Raises ``ValueError`` for other dimensions than the namespace's."""
        with self._writing:
            view = self._view or View(
                self._generation, np.empty((0, rows.shape[1]), np.float32), np.empty(0, np.int64), []
            )
            entries: list[Entry | None] = [] if view.entries is None else view.entries
            if rows.shape[1] != view.rows.shape[1]:
                raise ValueError(
                    f"the vectors have {rows.shape[1]} dimensions, those in the namespace {view.rows.shape[1]}"
                )
            used = len(view.rows)
            room = self._grown(view.rows, used + len(rows))
            end = used
            for block in unit_blocks(rows):
                room[end : end + len(block)] = block
                end += len(block)
            dead = [slot for id, _ in records if (slot := self._slots.get(id)) is not None]
            # Slots beyond a view are not looked at through it, so one list serves all views of a generation.
            entries[used:] = records
            self._slots.update((id, used + row) for row, (id, _) in enumerate(records))
            self._view = View(
                view.generation, room[:end], np.concatenate([view.dead, np.array(dead, dtype=np.int64)]), entries
            )
            self._compact()
            self._link()

    def delete(self, ids: Sequence[str]) -> int:
        """Remove records and return how many there were."""
        with self._writing:
            view = self._view
            dead = [slot for id in ids if (slot := self._slots.pop(id, None)) is not None]
            if view is not None and dead:
                self._view = View(
                    view.generation, view.rows, np.concatenate([view.dead, np.array(dead, np.int64)]), view.entries
                )
                self._compact()
                self._link()
            return len(dead)

    def get(self, ids: Sequence[str]) -> tuple[list[VectorRecord], Rows | None]:
        """Return the records known among ``ids`` and a copy of their vectors."""
        with self._writing:
            view = self._view
            slots = [slot for id in ids if (slot := self._slots.get(id)) is not None]
            if view is None or not slots:
                return [], None
            entries = LoadedEntries(view.entries or [], len(view.rows)).read(slots)
            return [VectorRecord(id, metadata.copy()) for id, metadata in entries], view.rows[slots]

    def count(self) -> int:
        """Return how many records there are."""
        return len(self._slots)

    def ids_after(self, last: str | None) -> list[str]:
        """Return every id at once, then nothing: they are in memory anyway."""
        with self._writing:
            return list(self._slots) if last is None else []

    def drop(self) -> None:
        """Forget everything, the dimensions too."""
        with self._writing:
            self._slots, self._room, self._view, self._graph = {}, None, None, None
            self._generation += 1

    def close(self) -> None:
        """Stop linking; what is in memory stays."""
        self._stopped = True

    def _grown(self, rows: Rows, wanted: int) -> Rows:
        room = self._room
        if room is None or len(room) < wanted:
            room = np.empty((max(wanted, 2 * len(rows), _FIRST_ROWS), rows.shape[1]), np.float32)
            room[: len(rows)] = rows
            self._room = room
        return room

    def _compact(self) -> None:
        view = self._view
        if view is None or len(view.dead) <= max(_DEAD_BEFORE_COMPACTION, view.count):
            return
        alive = np.ones(len(view.rows), dtype=np.bool_)
        alive[view.dead] = False
        slots = alive.nonzero()[0]
        entries: list[Entry | None] = list(LoadedEntries(view.entries or [], len(view.rows)).read(slots.tolist()))
        rows = view.rows[slots]
        self._slots = {entry[0]: slot for slot, entry in enumerate(entries) if entry is not None}
        self._generation += 1
        self._room, self._graph = rows, None
        self._view = View(self._generation, rows, np.empty(0, np.int64), entries)

    def _link(self) -> None:
        view = self._view
        if self._settings.index != "hnsw" or view is None:
            return
        graph = self._graph[1] if self._graph else Graph.empty(view.rows.shape[1], self._settings)
        if is_behind(len(view.rows), graph.rows, self._settings):
            self._stopped = False
            graph.extend(view.rows, lambda: self._stopped)
            self._graph = view.generation, graph
