"""A namespace that is kept in a folder, which several processes may read and write."""

from __future__ import annotations

import shutil
import threading
import uuid
from collections.abc import Sequence
from pathlib import Path

from portico.errors import StoreDamaged
from portico.search import Filter, VectorMatch, VectorRecord
from portico_faiss._database import decoded_id, encoded_id
from portico_faiss._errors import mapped_errors
from portico_faiss._graph import Graph, is_behind
from portico_faiss._graph_files import GraphFiles
from portico_faiss._metadata import decoded
from portico_faiss._names import DATABASE, folder_name
from portico_faiss._reader import FolderReader
from portico_faiss._search import Entry, View, search
from portico_faiss._vectors import Rows
from portico_faiss._writer import FolderWriter
from portico_faiss.config import FaissSettings

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
