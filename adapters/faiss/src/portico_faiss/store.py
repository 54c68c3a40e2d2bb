"""The vector store on FAISS and NumPy."""

from __future__ import annotations

import asyncio
import shutil
import threading
import uuid
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import numpy as np

from portico.errors import StoreDamaged
from portico.plugins import Services
from portico.ports import VectorStore
from portico.search import Filter, FilterSupport, VectorMatch, VectorRecord, Vectors
from portico_faiss._database import decoded_id, encoded_id
from portico_faiss._errors import mapped_errors
from portico_faiss._graph import Graph, is_behind
from portico_faiss._graph_files import GraphFiles
from portico_faiss._metadata import decoded
from portico_faiss._names import DATABASE, folder_name
from portico_faiss._reader import FolderReader
from portico_faiss._search import Entry, LoadedEntries, View, search
from portico_faiss._vectors import Rows, as_rows, check_finite, unit_blocks, unit_queries
from portico_faiss._writer import FolderWriter
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


_IDS_AT_ONCE = 1_000


class FolderNamespace:
    """The database is the truth; vectors count when it says so, and graphs are only a cache.

    All calls block: they belong in a thread, but for `current`.
    """

    def __init__(self, root: Path, namespace: str, settings: FaissSettings) -> None:
        self._root = root
        self._folder = root / folder_name(namespace)
        self._settings = settings
        self._reader = FolderReader(self._folder, namespace, settings.wait)
        self._writer = FolderWriter(self._folder, namespace, settings.wait)
        self._graphs = GraphFiles(self._folder, settings)
        self._linking = threading.Lock()
        self._stopped = False
        self.unlinked = False
        """Whether the last search had to do with no graph, or an old one."""

    def current(self) -> View | None:
        """Return the state if it is known without waiting."""
        return self._reader.current()

    def search(self, queries: Rows, top: int, filter: Filter | None) -> list[list[VectorMatch]]:
        """Search the state as it is now, along the graph when there is one."""
        self._stopped = False
        with self._reader.snapshot() as snapshot:
            if snapshot is None:
                return [[] for _ in queries]
            view, entries, _ = snapshot
            graph = self._graph(view) if filter is None else None
            if view.entries is None:
                return search(view, entries, queries, top=top, filter=filter, graph=graph)
        return search(view, entries, queries, top=top, filter=filter, graph=graph)

    def write(self, records: Sequence[Entry], rows: Rows) -> None:
        """Add or replace records, and bring the graph up to date when many are new."""
        self._stopped = False
        self._writer.write(records, rows)
        self.link()

    def delete(self, ids: Sequence[str]) -> int:
        """Remove records and return how many there were."""
        return self._writer.delete(ids)

    def get(self, ids: Sequence[str]) -> tuple[list[VectorRecord], Rows | None]:
        """Return the records known among ``ids`` and a copy of their vectors."""
        with self._reader.snapshot() as snapshot:
            if snapshot is None:
                return [], None
            view, _, connection = snapshot
            slots: list[int] = []
            records: list[VectorRecord] = []
            for id in ids:
                row = connection.execute(
                    "SELECT slot, metadata FROM records WHERE id = ?", (encoded_id(id),)
                ).fetchone()
                if row is not None:
                    slots.append(row[0])
                    records.append(VectorRecord(id, decoded(row[1])))
            return (records, view.rows[slots]) if slots else ([], None)

    def count(self) -> int:
        """Return how many records there are."""
        with self._reader.snapshot() as snapshot:
            return 0 if snapshot is None else snapshot[0].count

    def ids_after(self, last: str | None) -> list[str]:
        """Return the next ids in the order of their bytes, none at the end."""
        with self._reader.snapshot() as snapshot:
            if snapshot is None:
                return []
            condition, parameters = ("1", []) if last is None else ("id > ?", [encoded_id(last)])
            rows = snapshot[2].execute(
                f"SELECT id FROM records WHERE {condition} ORDER BY id LIMIT {_IDS_AT_ONCE}", parameters
            )
            return [decoded_id(id) for (id,) in rows]

    def drop(self) -> None:
        """Remove everything; a damaged folder goes as a whole."""
        try:
            self._writer.drop()
        except StoreDamaged:
            self.close()
            with mapped_errors(self._folder / DATABASE):
                # Renamed first, so that a kill leaves all of it or nothing under its name.
                self._folder.replace(self._root / f"removed-{uuid.uuid4().hex}")
        for folder in self._root.glob("removed-*"):
            shutil.rmtree(folder, ignore_errors=True)

    def link(self) -> None:
        """Extend the graph over the slots that came since it was written; one thread does, others go on."""
        if self._settings.index != "hnsw" or not self._linking.acquire(blocking=False):
            return
        try:
            with self._reader.snapshot() as snapshot:
                view = snapshot[0] if snapshot else None
            if view is None:
                return
            if not is_behind(len(view.rows), self._graphs.linked(view.generation), self._settings):
                return
            graph = self._graphs.to_extend(view.generation, view.rows.shape[1])
            linked = graph.rows
            graph.extend(view.rows, lambda: self._stopped)
            # Also when it was stopped: the next process goes on from there.
            if graph.rows > linked:
                self._graphs.publish(view.generation, graph)
        finally:
            self._linking.release()

    def close(self) -> None:
        """Close every file; the next call opens them again."""
        self._stopped = True
        with self._linking:
            self._reader.close()
            self._writer.close()

    def _graph(self, view: View) -> Graph | None:
        if self._settings.index != "hnsw" or len(view.rows) < self._settings.hnsw_from:
            return None
        graph = self._graphs.newest(view.generation, int(view.rows.shape[1]))
        self.unlinked = is_behind(len(view.rows), graph.rows if graph else 0, self._settings)
        return graph


_INLINE_PRODUCTS = 4_000_000
"""Multiplications that take less time than the way to a thread and back, some tenths of a millisecond."""

_INLINE_RECORDS = 2_000
"""Records whose metadata are looked at, or written, without a thread."""


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

    Vectors are kept at length one: `get` gives back unit vectors, and those that were put in as such bit for
    bit. A row of zeros is kept and scores 0. Of equal scores the record written first comes first. An id that
    stands twice in one `upsert`, or metadata that is no scalar or list of scalars, is a ``ValueError`` or
    ``TypeError``, and nothing is written.

    Searches compare with every vector; with ``index="hnsw"`` and enough of them they walk a graph, which may
    miss some, except under a filter. Small ones run at once, large ones and all writing in threads. A
    cancelled write happens as a whole or not at all. With a path, several processes may share the folder
    (not over a network file system); `aclose` lets go of it.
    """

    name = "faiss"
    one_machine = True
    filter_support = FilterSupport.everything()

    def __init__(self, settings: FaissSettings | None = None, services: Services | None = None) -> None:
        self._settings = settings or FaissSettings()
        self._namespaces: dict[str, MemoryNamespace | FolderNamespace] = {}
        self._linking: dict[str, asyncio.Task[None]] = {}
        self.persistent = self._settings.path is not None

    async def upsert(self, namespace: str, records: Sequence[VectorRecord], vectors: Vectors) -> None:
        """Add records or replace those of the same id, all or none."""
        if len(records) != vectors.rows:
            raise ValueError(f"there are {len(records)} records and {vectors.rows} vectors")
        if not records:
            return
        if self._is_small(namespace, len(records) * vectors.dimensions, len(records)):
            self._write(namespace, records, vectors)
        else:
            await asyncio.to_thread(self._write, namespace, records, vectors)

    async def delete(self, namespace: str, ids: Sequence[str]) -> int:
        """Remove records; return how many there were."""
        place = self._place(namespace)
        if place is None:
            return 0
        return (
            place.delete(ids) if self._is_small(namespace, 0, len(ids)) else await asyncio.to_thread(place.delete, ids)
        )

    async def get(self, namespace: str, ids: Sequence[str]) -> tuple[list[VectorRecord], Vectors | None]:
        """Return the records known among ``ids``, in that order, and their unit vectors."""
        place = self._place(namespace)
        if place is None:
            return [], None
        small = self._is_small(namespace, 0, len(ids))
        records, rows = place.get(ids) if small else await asyncio.to_thread(place.get, ids)
        return records, None if rows is None else Vectors(rows, *rows.shape)

    async def search(
        self, namespace: str, queries: Vectors, *, top: int = 10, filter: Filter | None = None
    ) -> list[list[VectorMatch]]:
        """Return the ``top`` best records that pass the filter, best first, one list for each query row."""
        if top < 1:
            raise ValueError(f"top is {top}; it must be at least 1")
        if filter is not None:
            self.filter_support.check(filter, f"Vector store {self.name!r}")
        units = unit_queries(queries)
        place = self._place(namespace)
        if place is None:
            return [[] for _ in units]
        view = place.current()
        if view is not None and view.entries is not None and self._is_quick(view, units, filter):
            return search(view, LoadedEntries(view.entries, len(view.rows)), units, top=top, filter=filter)
        found = await asyncio.to_thread(place.search, units, top, filter)
        if isinstance(place, FolderNamespace) and place.unlinked:
            self._link_meanwhile(namespace, place)
        return found

    async def count(self, namespace: str) -> int:
        """Return how many records the namespace has."""
        place = self._place(namespace)
        if place is None:
            return 0
        view = place.current()
        return await asyncio.to_thread(place.count) if view is None else view.count

    async def ids(self, namespace: str) -> AsyncIterator[str]:
        """Yield every id of the namespace; what is written meanwhile may or may not be among them."""
        place = self._place(namespace)
        last: str | None = None
        while place is not None:
            some = await asyncio.to_thread(place.ids_after, last)
            for id in some:
                yield id
            if not some:
                return
            last = some[-1]

    async def drop(self, namespace: str) -> None:
        """Remove a namespace with everything in it, also one whose files are damaged."""
        place = self._place(namespace)
        if place is not None:
            await asyncio.to_thread(place.drop)

    async def aclose(self) -> None:
        """Close every file; a later call opens them again. What is in memory only stays."""
        for place in list(self._namespaces.values()):
            await asyncio.to_thread(place.close)
        await asyncio.gather(*self._linking.values(), return_exceptions=True)
        self._linking.clear()

    def _place(self, namespace: str, *, new: bool = False) -> MemoryNamespace | FolderNamespace | None:
        place = self._namespaces.get(namespace)
        if place is None and self._settings.path is not None:
            place = self._namespaces.setdefault(
                namespace, FolderNamespace(self._settings.path, namespace, self._settings)
            )
        elif place is None and new:
            place = self._namespaces.setdefault(namespace, MemoryNamespace(self._settings))
        return place

    def _write(self, namespace: str, records: Sequence[VectorRecord], vectors: Vectors) -> None:
        entries = [(record.id, record.plain_metadata()) for record in records]
        seen: set[str] = set()
        for id, _ in entries:
            if id in seen:
                raise ValueError(f"the id {id!r} stands twice in one upsert")
            seen.add(id)
        rows = as_rows(vectors)
        check_finite(rows)
        place = self._place(namespace, new=True)
        if place is not None:
            place.write(entries, rows)

    def _is_small(self, namespace: str, products: int, records: int) -> bool:
        place = self._namespaces.get(namespace)
        return (
            not self.persistent
            and self._settings.index == "exact"
            and products <= _INLINE_PRODUCTS
            and records <= _INLINE_RECORDS
            and not (isinstance(place, MemoryNamespace) and place.busy())
        )

    def _is_quick(self, view: View, queries: Rows, filter: Filter | None) -> bool:
        return (
            view.rows.size * len(queries) <= _INLINE_PRODUCTS
            and (filter is None or len(view.rows) <= _INLINE_RECORDS)
            and (self._settings.index == "exact" or len(view.rows) < self._settings.hnsw_from)
        )

    def _link_meanwhile(self, namespace: str, place: FolderNamespace) -> None:
        task = self._linking.get(namespace)
        if task is None or task.done():
            self._linking[namespace] = asyncio.create_task(asyncio.to_thread(place.link))
