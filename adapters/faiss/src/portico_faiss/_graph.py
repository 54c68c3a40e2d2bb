"""The HNSW graph: a derived thing, which may be missing, behind or thrown away at any time.

FAISS is imported here and only when a graph is wanted: it takes 300 ms, and exact search does without.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from portico_faiss._vectors import Rows, Slots
from portico_faiss.config import FaissSettings

_ADDED_AT_ONCE = 1_000
"""Rows linked between two looks at whether to stop; some tenths of a second."""


class Graph:
    """Links the first ``rows`` slots of a namespace; later slots are compared one by one.

    Searching and extending exclude each other: FAISS allows many searches or one addition at a time.
    """

    most = 1_000
    """The highest ``top`` that is looked for along the graph; beyond it comparing all is as quick."""

    def __init__(self, index: Any, settings: FaissSettings) -> None:
        self._index = index
        self._search = settings.hnsw_search
        self._least = settings.hnsw_from
        self._lock = threading.Lock()
        self.rows: int = index.ntotal

    @classmethod
    def empty(cls, dimensions: int, settings: FaissSettings) -> Graph:
        """Return a graph without rows."""
        faiss = _faiss()
        index = faiss.IndexHNSWFlat(dimensions, settings.hnsw_neighbours, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = settings.hnsw_construction
        return cls(index, settings)

    @classmethod
    def read(cls, file: Path, dimensions: int, settings: FaissSettings, *, mapped: bool) -> Graph:
        """Read a graph; ``mapped`` leaves it in the file and cannot be extended.

        Raises ``RuntimeError`` for a file that FAISS cannot read, ``ValueError`` for one of another kind.
        """
        faiss = _faiss()
        index = faiss.read_index(str(file), faiss.IO_FLAG_MMAP_IFC if mapped else 0)
        if not isinstance(index, faiss.IndexHNSWFlat) or index.d != dimensions:
            raise ValueError(f"{file} is not a graph of {dimensions} dimensions")
        return cls(index, settings)

    def covers(self, rows: Rows) -> bool:
        """Tell whether the graph is worth walking for these rows."""
        return self.rows > 0 and len(rows) >= self._least

    def extend(self, rows: Rows, stopped: Callable[[], bool]) -> None:
        """Link the rows from ``self.rows`` on, until ``stopped`` says so."""
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
            # A few more than asked for, so that equal scores can be put in order.
            wanted = min(top + 8, self.rows)
            _, found = self._index.search(
                np.ascontiguousarray(queries), wanted, params=faiss.SearchParametersHNSW(**options)
            )
        return [np.sort(row[(row >= 0) & (row < linked)]) for row in found]

    def write(self, file: Path) -> None:
        """Write the graph. Raises ``RuntimeError`` when FAISS cannot."""
        faiss = _faiss()
        with self._lock:
            faiss.write_index(self._index, str(file))


def is_behind(slots: int, linked: int, settings: FaissSettings) -> bool:
    """Tell whether so many slots came since ``linked`` that the graph should be extended."""
    return slots >= settings.hnsw_from and slots - linked > max(1_000, linked // 10)


def _faiss() -> Any:
    return importlib.import_module("faiss")
