"""A namespace that is in memory only."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from portico.search import Filter, VectorMatch, VectorRecord
from portico_faiss._index import FaissIndex, is_behind
from portico_faiss._search import Entry, View, search
from portico_faiss._vectors import Rows, is_wasteful, unit_blocks
from portico_faiss.config import FaissSettings

_FIRST_ROWS = 64


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
        self._index: tuple[int, FaissIndex] | None = None

    def current(self) -> View | None:
        """Return the state; None before the first write. Never waits."""
        return self._view

    def search(self, queries: Rows, top: int, filter: Filter | None) -> list[list[VectorMatch]]:
        """Search the state as it is now, along the index when there is one."""
        view = self._view
        if view is None:
            return [[] for _ in queries]
        generation, index = self._index or (view.generation, None)
        return search(view, queries, top=top, filter=filter, index=index if generation == view.generation else None)

    def write(self, records: Sequence[Entry], rows: Rows) -> None:
        """Add or replace records, all or none. Raises ``ValueError`` for other dimensions than the namespace's."""
        with self._writing:
            view = self._view or View(0, np.empty((0, rows.shape[1]), np.float32), np.empty(0, np.int64), [])
            if rows.shape[1] != view.rows.shape[1]:
                raise ValueError(
                    f"the vectors have {rows.shape[1]} dimensions, those in the namespace {view.rows.shape[1]}"
                )
            used = end = len(view.rows)
            room = self._grown(view.rows, used + len(rows))
            for block in unit_blocks(rows):
                room[end : end + len(block)] = block
                end += len(block)
            dead = [slot for id, _ in records if (slot := self._slots.get(id)) is not None]
            entries = view.entries or []
            # Slots beyond a view are not looked at through it, so one list serves all views of a generation.
            entries[used:] = records
            self._slots.update((id, used + row) for row, (id, _) in enumerate(records))
            self._put(View(view.generation, room[:end], _with(view, dead), entries))

    def delete(self, ids: Sequence[str]) -> int:
        with self._writing:
            view = self._view
            dead = [slot for id in ids if (slot := self._slots.pop(id, None)) is not None]
            if view is not None and dead:
                self._put(View(view.generation, view.rows, _with(view, dead), view.entries))
            return len(dead)

    def get(self, ids: Sequence[str]) -> tuple[list[VectorRecord], Rows | None]:
        with self._writing:
            view = self._view
            slots = [slot for id in ids if (slot := self._slots.get(id)) is not None]
            if view is None or not slots:
                return [], None
            return [VectorRecord(id, metadata.copy()) for id, metadata in view.read(slots)], view.rows[slots]

    def count(self) -> int:
        return len(self._slots)

    def ids(self) -> list[str]:
        with self._writing:
            return list(self._slots)

    def _grown(self, rows: Rows, wanted: int) -> Rows:
        room = self._room
        if room is None or len(room) < wanted or room.shape[1] != rows.shape[1]:
            room = np.empty((max(wanted, 2 * len(rows), _FIRST_ROWS), rows.shape[1]), np.float32)
            room[: len(rows)] = rows
            self._room = room
        return room

    def _put(self, view: View) -> None:
        """Put a state in force: the living in a new generation where most slots are dead, and an index of them."""
        if is_wasteful(len(view.dead), len(view.rows)):
            slots = np.setdiff1d(np.arange(len(view.rows)), view.dead)
            entries = view.read(slots.tolist())
            self._slots = {id: slot for slot, (id, _) in enumerate(entries)}
            self._room = view.rows[slots]
            self._index = None
            view = View(view.generation + 1, self._room, np.empty(0, np.int64), list(entries))
        self._view = view
        if self._settings.index == "hnsw":
            index = self._index[1] if self._index else FaissIndex.empty(view.rows.shape[1], self._settings)
            if is_behind(len(view.rows), index.rows, self._settings):
                index.extend(view.rows)
                self._index = view.generation, index


def _with(view: View, dead: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.concatenate([view.dead, np.array(dead, dtype=np.int64)])
