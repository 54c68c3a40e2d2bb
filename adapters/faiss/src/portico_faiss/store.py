"""The vector store on FAISS and NumPy."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from portico.plugins import Services
from portico.ports import IndexProgress, VectorStore
from portico.search import Filter, FilterSupport, VectorMatch, VectorRecord, Vectors
from portico_faiss._files import Rows, as_rows, is_wasteful, unit_blocks, unit_queries
from portico_faiss._folder import FolderNamespace
from portico_faiss._import import read_vectors, warn_of_others
from portico_faiss._index import FaissIndex, Tell, is_behind, say_untrained
from portico_faiss._search import Entry, View, search
from portico_faiss.config import FaissSettings

_FIRST_ROWS = 64


class _MemoryNamespace:
    """Vectors in one array, which doubles when it is full. Every write makes a new `View`.

    A replaced or deleted record leaves a dead slot; when most slots are dead, a new array is made. So writes do not
    disturb a search on an older view in another thread.
    """

    def __init__(self, settings: FaissSettings, tell: Tell) -> None:
        self._settings = settings
        self._tell = tell
        self._writing = threading.Lock()
        self._slots: dict[str, int] = {}
        self._room: Rows | None = None
        self._view: View | None = None
        self._index: tuple[int, FaissIndex] | None = None

    def current(self) -> View | None:
        """Return the state; None before the first write. Never blocks."""
        return self._view

    def search(self, queries: Rows, top: int, filter: Filter | None) -> list[list[VectorMatch]]:
        """Search the current state, along the index where there is one."""
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
            room = self._grow(view.rows, used + len(rows))
            for block in unit_blocks(rows):
                room[end : end + len(block)] = block
                end += len(block)
            dead = [slot for id, _ in records if (slot := self._slots.get(id)) is not None]
            entries = view.entries or []
            # A view reads no slots beyond its rows, so all views of a generation share one list.
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
        with self._writing:
            return len(self._slots)

    def ids(self) -> list[str]:
        with self._writing:
            return list(self._slots)

    def _grow(self, rows: Rows, wanted: int) -> Rows:
        room = self._room
        if room is None or len(room) < wanted or room.shape[1] != rows.shape[1]:
            room = np.empty((max(wanted, 2 * len(rows), _FIRST_ROWS), rows.shape[1]), np.float32)
            room[: len(rows)] = rows
            self._room = room
        return room

    def _put(self, view: View) -> None:
        """Make a state the current one. Copies the records first if most slots are dead, and extends the index."""
        if is_wasteful(len(view.dead), len(view.rows)):
            slots = np.setdiff1d(np.arange(len(view.rows)), view.dead)
            entries = view.read(slots.tolist())
            self._slots = {id: slot for slot, (id, _) in enumerate(entries)}
            self._room = view.rows[slots]
            self._index = None
            view = View(view.generation + 1, self._room, np.empty(0, np.int64), list(entries))
        self._view = view
        index = self._index[1] if self._index else None
        if is_behind(len(view.rows), index.rows if index else 0, self._settings):
            index = FaissIndex.renewed(index, view.rows, self._settings)
            index.extend(view.rows, self._tell)
            self._index = view.generation, index


def _with(view: View, dead: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.concatenate([view.dead, np.array(dead, dtype=np.int64)])


_INLINE_PRODUCTS = 4_000_000
"""Up to so many multiplications take less time than starting a thread, some tenths of a millisecond."""

_INLINE_RECORDS = 2_000
"""Up to so many records are filtered without a thread."""


class FaissVectorStore(VectorStore):
    """The VectorStore port, in memory or in a folder.

    >>> from portico import VectorRecord, Vectors
    >>> async def nearest():
    ...     store = FaissVectorStore()
    ...     colours = [VectorRecord("red", {"warm": True}), VectorRecord("blue", {"warm": False})]
    ...     await store.upsert("colours", colours, Vectors.from_rows([[1.0, 0.0], [0.0, 1.0]]))
    ...     [found] = await store.search("colours", Vectors.from_rows([[0.6, 0.8]]), top=1)
    ...     return [(match.id, round(match.score, 3)) for match in found]
    >>> asyncio.run(nearest())
    [('blue', 0.8)]

    Vectors are stored at length one: `get` returns unit vectors, and those that were unit vectors before bit for
    bit. A row of zeros stays zeros and scores 0. Of equal scores the oldest record comes first. An `upsert` with
    the same id twice, or with metadata that are not scalars or lists of scalars, raises ``ValueError`` or
    ``TypeError`` and writes nothing.

    A search compares with every vector. A large namespace is searched along an index of FAISS, which may miss some,
    unless ``index="exact"``; a search with a filter still compares with all. `activity` says how far an index is while
    a call trains or extends it. Small searches run at once, large ones and all writes in
    threads. A cancelled write happens completely or not at all. With a path, several processes may share the folder,
    but not over a network file system; `aclose` closes its files.
    """

    name = "faiss"
    filter_support = FilterSupport.everything()

    def __init__(self, settings: FaissSettings | None = None, services: Services | None = None) -> None:
        self._settings = settings or FaissSettings()
        self._namespaces: dict[str, _MemoryNamespace | FolderNamespace] = {}
        self.persistent = self._settings.path is not None
        self._fitting: int | None = None

    async def upsert(self, namespace: str, records: Sequence[VectorRecord], vectors: Vectors) -> None:
        """Add records or replace those with the same id, all or none."""

        def write() -> None:
            vectors.check_records(records)
            entries = [(record.id, record.plain_metadata()) for record in records]
            if entries:
                if self._settings.factory is not None and self._fitting != vectors.dimensions:
                    # What does not fit is refused before anything is written.
                    FaissIndex.empty(vectors.dimensions, self._settings)
                    self._fitting = vectors.dimensions
                place = self._place(namespace)
                place = place or self._namespaces.setdefault(namespace, _MemoryNamespace(self._settings, self._tell))
                place.write(entries, as_rows(vectors))

        await asyncio.to_thread(write)

    async def delete(self, namespace: str, ids: Sequence[str]) -> int:
        """Remove records; return how many there were."""
        place = self._place(namespace)
        return 0 if place is None else await asyncio.to_thread(place.delete, ids)

    async def get(self, namespace: str, ids: Sequence[str]) -> tuple[list[VectorRecord], Vectors | None]:
        """Return the known records among ``ids``, in that order, and their unit vectors."""
        place = self._place(namespace)
        if place is None:
            return [], None
        records, rows = await asyncio.to_thread(place.get, ids)
        return records, None if rows is None else Vectors(rows, *rows.shape)

    async def search(
        self, namespace: str, queries: Vectors, *, top: int = 10, filter: Filter | None = None
    ) -> list[list[VectorMatch]]:
        """Return the ``top`` best records that match the filter, best first, one list for each query row."""
        if top < 1:
            raise ValueError(f"top is {top}; it must be at least 1")
        if filter is not None:
            self.filter_support.check(filter, f"Vector store {self.name!r}")
        units = unit_queries(queries)
        place = self._place(namespace)
        if place is None:
            return [[] for _ in units]
        view = place.current()
        if view is not None:
            say_untrained(self._settings, len(view.rows))
        if view is not None and view.entries is not None and self._is_quick(view, units, filter):
            return search(view, units, top=top, filter=filter)
        return await asyncio.to_thread(place.search, units, top, filter)

    async def count(self, namespace: str) -> int:
        """Return how many records the namespace has."""
        place = self._place(namespace)
        return 0 if place is None else await asyncio.to_thread(place.count)

    async def ids(self, namespace: str) -> AsyncIterator[str]:
        """Yield every id that the namespace has when the first one is read."""
        place = self._place(namespace)
        for id in [] if place is None else await asyncio.to_thread(place.ids):
            yield id

    async def drop(self, namespace: str) -> None:
        """Remove a namespace and all its records, also if its files are damaged."""
        place = self._place(namespace)
        if isinstance(place, FolderNamespace):
            await asyncio.to_thread(place.drop)
        else:
            self._namespaces.pop(namespace, None)

    async def import_index(
        self,
        namespace: str,
        file: str | os.PathLike[str],
        records: Sequence[VectorRecord | str] | Mapping[int, VectorRecord | str],
        *,
        normalise: bool = False,
    ) -> int:
        """Put the vectors of a file of `faiss.write_index` into a namespace, in blocks; return how many there are.

        ``records[number]`` is a vector's record or only its id; its number is its position, or what `add_with_ids`
        gave it. ``normalise`` takes vectors of any length at length 1. Import only files that you trust.

        Raises ``ValueError`` for a file that FAISS cannot read or give vectors back from, one that compares otherwise
        than by cosine, other dimensions than the namespace's, and a number without a record.
        """
        count, blocks = 0, read_vectors(Path(file), normalise=normalise)
        while (block := await asyncio.to_thread(next, blocks, None)) is not None:
            numbers, rows = block
            try:
                by_number = isinstance(records, Mapping)  # else a negative number would be a place from the end
                given = [records[number if by_number or number >= 0 else len(records)] for number in numbers]
            except LookupError as error:
                raise ValueError(f"{file} has a vector that `records` has no record for: {error}") from error
            named = [VectorRecord(each) if isinstance(each, str) else each for each in given]
            await self.upsert(namespace, named, Vectors(rows, *rows.shape))
            count += len(rows)
        return count

    async def aclose(self) -> None:
        """Close every file; a later call opens them again. Namespaces in memory stay."""
        for place in list(self._namespaces.values()):
            if isinstance(place, FolderNamespace):
                await asyncio.to_thread(place.close)

    def _place(self, namespace: str) -> _MemoryNamespace | FolderNamespace | None:
        place = self._namespaces.get(namespace)
        if place is None and self._settings.path is not None:
            if not self._namespaces:
                warn_of_others(self._settings.path)
            made = FolderNamespace(self._settings.path, namespace, self._settings, self._tell)
            place = self._namespaces.setdefault(namespace, made)
        return place

    def _tell(self, activity: IndexProgress | None) -> None:
        self.activity = activity

    def _is_quick(self, view: View, queries: Rows, filter: Filter | None) -> bool:
        return (
            view.rows.size * len(queries) <= _INLINE_PRODUCTS
            and (filter is None or len(view.rows) <= _INLINE_RECORDS)
            and len(view.rows) < self._settings.indexed_from
        )
