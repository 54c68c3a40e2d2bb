"""The index of FAISS (an HNSW graph) and its files. It is a cache: it may be missing or old, or be deleted.

FAISS is imported only when an index is needed: the import takes 300 ms, and exact search does not use it.
"""

from __future__ import annotations

import importlib
import os
import re
import threading
import uuid
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from portico_faiss._files import Rows, Slots, remove_if_possible
from portico_faiss.config import FaissSettings

_ADDED_AT_ONCE = 1_000
"""Rows added between two checks of whether to stop; that takes some tenths of a second."""
_READ_AT_ONCE = 1 << 20
_UNUSABLE = (RuntimeError, OSError, ValueError, TypeError)
"""What FAISS and the file system raise for an index that cannot be read or written."""
_FILE = re.compile(r"graph-(\d+)-(\d+)-([0-9a-f]{8})\.faiss")


class FaissIndex:
    """Finds near slots among the first ``rows`` of a namespace; later slots are compared one by one.

    Searching and extending exclude each other: FAISS allows many searches or one addition at a time.
    """

    def __init__(self, index: Any, settings: FaissSettings) -> None:
        self._index = index
        self._search = settings.hnsw_search
        self._lock = threading.Lock()
        self.rows: int = index.ntotal

    @classmethod
    def empty(cls, dimensions: int, settings: FaissSettings) -> FaissIndex:
        faiss = _faiss()
        index = faiss.IndexHNSWFlat(dimensions, settings.hnsw_neighbours, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = settings.hnsw_construction
        return cls(index, settings)

    @classmethod
    def read(cls, file: Path, dimensions: int, settings: FaissSettings, *, mapped: bool) -> FaissIndex:
        """Read an index. A ``mapped`` one stays in the file and cannot be extended.

        Raises ``RuntimeError`` for a file that FAISS cannot read, ``ValueError`` for one of another kind.
        """
        faiss = _faiss()
        index = faiss.read_index(str(file), faiss.IO_FLAG_MMAP_IFC if mapped else 0)
        if not isinstance(index, faiss.IndexHNSWFlat) or index.d != dimensions:
            raise ValueError(f"{file} is not a graph of {dimensions} dimensions")
        return cls(index, settings)

    def extend(self, rows: Rows, stopped: Callable[[], bool] = lambda: False) -> None:
        """Add the rows from ``self.rows`` on, until ``stopped`` returns true."""
        while self.rows < len(rows) and not stopped():
            block = np.ascontiguousarray(rows[self.rows : self.rows + _ADDED_AT_ONCE])
            with self._lock:
                self._index.add(block)
                self.rows = self._index.ntotal

    def candidates(self, queries: Rows, top: int, dead: Slots, linked: int) -> list[Slots]:
        """Return, for each query, slots below ``linked`` that are near it and not dead, ascending."""
        faiss = _faiss()
        with self._lock:
            options: dict[str, Any] = {"efSearch": max(self._search, 2 * top)}
            if len(dead):
                slots = max(self.rows, int(dead.max()) + 1)
                alive = np.ones(-(-slots // 8) * 8, dtype=np.bool_)
                alive[dead] = False
                options["sel"] = faiss.IDSelectorBitmap(np.packbits(alive, bitorder="little"))
            # Some more, so that equal scores can be put in order.
            _, found = self._index.search(
                np.ascontiguousarray(queries), min(top + 8, self.rows), params=faiss.SearchParametersHNSW(**options)
            )
        return [np.sort(row[(row >= 0) & (row < linked)]) for row in found]

    def write(self, file: Path) -> None:
        """Write the index. Raises ``RuntimeError`` when FAISS cannot."""
        with self._lock:
            _faiss().write_index(self._index, str(file))


class IndexFiles:
    """The index files of one namespace.

    A file's name has the generation, the number of rows and a checksum: FAISS would follow any link of a damaged
    graph. A file that does not match its name is deleted, and the next write or search makes another.
    """

    def __init__(self, folder: Path, settings: FaissSettings) -> None:
        self._folder = folder
        self._settings = settings
        self._read: tuple[Path, FaissIndex | None] | None = None

    def newest(self, generation: int, dimensions: int) -> FaissIndex | None:
        """Return the index that covers most slots of a generation, mapped; it is read once."""
        _, file = self._find(generation)
        if file is None:
            return None
        if self._read is None or self._read[0] != file:
            self._read = file, self._usable(file, dimensions, mapped=True)
        return self._read[1]

    def count_linked(self, generation: int) -> int:
        """Return how many slots the newest index covers, by its name."""
        return self._find(generation)[0]

    def to_extend(self, generation: int, dimensions: int) -> FaissIndex:
        """Return the newest index in memory, or one without rows."""
        _, file = self._find(generation)
        index = self._usable(file, dimensions, mapped=False) if file else None
        return index or FaissIndex.empty(dimensions, self._settings)

    def publish(self, generation: int, index: FaissIndex) -> None:
        """Write an index and delete older ones. If that fails, there is no index."""
        part = self._folder / f"part-{uuid.uuid4().hex}.faiss"
        try:
            index.write(part)
            target = self._folder / f"graph-{generation}-{index.rows}-{_checksum(part):08x}.faiss"
            part.replace(target)
        except _UNUSABLE:
            remove_if_possible(part)
            return
        for file in self._folder.glob("graph-*.faiss"):
            name = parts_of_index(file.name)
            if name and name[:2] <= (generation, index.rows) and file != target:
                remove_if_possible(file)

    def _find(self, generation: int) -> tuple[int, Path | None]:
        try:
            names = [(parts, name) for name in os.listdir(self._folder) if (parts := parts_of_index(name))]  # noqa: PTH208
        except OSError:
            names = []
        covered = [(rows, name) for (of, rows, _), name in names if of == generation]
        if not covered:
            return 0, None
        rows, name = max(covered)
        return rows, self._folder / name

    def _usable(self, file: Path, dimensions: int, *, mapped: bool) -> FaissIndex | None:
        parts = parts_of_index(file.name)
        try:
            if parts is not None and _checksum(file) == parts[2]:
                index = FaissIndex.read(file, dimensions, self._settings, mapped=mapped)
                if index.rows == parts[1]:
                    return index
        except _UNUSABLE:
            pass
        remove_if_possible(file)
        return None


def parts_of_index(name: str) -> tuple[int, int, int] | None:
    """Return generation, rows and checksum of an index's file; None for another file."""
    found = _FILE.fullmatch(name)
    return (int(found[1]), int(found[2]), int(found[3], 16)) if found else None


def is_behind(slots: int, linked: int, settings: FaissSettings) -> bool:
    """Tell whether the index should be extended: many slots were added after the first ``linked`` ones."""
    return slots >= settings.hnsw_from and slots - linked > max(1_000, linked // 10)


def _checksum(file: Path) -> int:
    checksum = 0
    with file.open("rb") as stream:
        while block := stream.read(_READ_AT_ONCE):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _faiss() -> Any:
    return importlib.import_module("faiss")
