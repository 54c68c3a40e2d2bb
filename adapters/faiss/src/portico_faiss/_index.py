"""The index of FAISS (a graph, or one of a `factory`) and its files. It is a cache: it may be missing, old or deleted.

FAISS is imported only when an index is needed: the import takes 300 ms, and exact search does not use it.
"""

from __future__ import annotations

import importlib
import logging
import os
import re
import threading
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from portico.errors import ConfigurationError
from portico.ports import IndexProgress
from portico_faiss._files import Rows, Slots, remove_if_possible, sum_up
from portico_faiss.config import FaissSettings

_ADDED_AT_ONCE = 1_000
"""Rows added between two checks of whether to stop; that takes some tenths of a second."""
_UNUSABLE = (RuntimeError, OSError, ValueError, TypeError)
"""What FAISS and the file system raise for an index that cannot be read or written."""
_FILE = re.compile(r"graph-(\d+)-(\d+)-([0-9a-f]{8})(?:-([0-9a-f]{8})-(\d+))?\.faiss")
_SAMPLE, _LEAST_SAMPLE = 64, 10_000
"""Vectors in training, for each centroid and in all, which bounds its memory."""
_OUTGROWN = 8
"""An index is trained again when there are so many times the vectors that there were."""
_RESCORED = 10
"""Vectors compared exactly for each one asked for: the codes of a trained index order them roughly."""

_LOG = logging.getLogger("portico_faiss")

Tell: TypeAlias = Callable[[IndexProgress | None], None]


class FaissIndex:
    """Finds near slots among the first ``rows`` of a namespace; later slots are compared one by one.

    ``trained`` is how many there were in training. Searching and extending exclude each other: FAISS allows many
    searches or one addition at a time. Raises ``ConfigurationError`` for what FAISS refuses of the settings.
    """

    def __init__(self, index: Any, settings: FaissSettings, trained: int = 0) -> None:
        self._index = index
        self._settings = settings
        self._lock = threading.Lock()
        self.rows: int = index.ntotal
        self.trained = trained
        if settings.factory is not None:
            faiss = _faiss()
            if lists := faiss.downcast_index(faiss.try_extract_index_ivf(index)):
                # FAISS's own 1 finds too little.
                lists.nprobe = min(16, lists.nlist)
            for part in (index, lists):
                # It takes FAISS most of the training, and serves the search parameter `ht` only.
                if hasattr(part, "do_polysemous_training"):
                    part.do_polysemous_training = "ht" in (settings.search or "")
            with _refusals("search", settings.search, index.d):
                faiss.ParameterSpace().set_index_parameters(index, settings.search or "")

    @classmethod
    def empty(cls, dimensions: int, settings: FaissSettings) -> FaissIndex:
        faiss = _faiss()
        if settings.factory is not None:
            with _refusals("factory", settings.factory, dimensions):
                index = faiss.index_factory(dimensions, settings.factory, faiss.METRIC_INNER_PRODUCT)
                if isinstance(index, faiss.IndexIDMap):
                    raise RuntimeError("leave IDMap out, the store keeps the ids")
            return cls(index, settings)
        index = faiss.IndexHNSWFlat(dimensions, settings.hnsw_neighbours, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = settings.hnsw_construction
        return cls(index, settings)

    @classmethod
    def renewed(cls, index: FaissIndex | None, rows: Rows, settings: FaissSettings) -> FaissIndex:
        """Return an index to extend over the rows: an empty one where there is none, or it was outgrown."""
        if index is None or 0 < _OUTGROWN * index.trained < len(rows):
            return cls.empty(rows.shape[1], settings)
        return index

    @classmethod
    def read(cls, file: Path, dimensions: int, settings: FaissSettings, *, mapped: bool, trained: int) -> FaissIndex:
        """Read an index. A ``mapped`` one stays in the file and cannot be extended.

        Raises ``RuntimeError`` for a file that FAISS cannot read, ``ValueError`` for one of another kind.
        """
        faiss = _faiss()
        index = faiss.read_index(str(file), faiss.IO_FLAG_MMAP_IFC if mapped else 0)
        if index.d != dimensions or (settings.factory is None and not isinstance(index, faiss.IndexHNSWFlat)):
            raise ValueError(f"{file} is not an index of {dimensions} dimensions")
        return cls(index, settings, trained)

    def extend(self, rows: Rows, tell: Tell, stopped: Callable[[], bool] = lambda: False) -> None:
        """Add the rows from ``self.rows`` on, until ``stopped`` returns true; train it first where it has to be."""
        try:
            with _refusals("factory", self._settings.factory, rows.shape[1]):
                if not self._index.is_trained:
                    size = min(len(rows), max(_SAMPLE * self._settings.centroids, _LEAST_SAMPLE))
                    words = f"Training {self._settings.factory} with {size:,} of {len(rows):,} vectors"
                    tell(IndexProgress(0, None, waiting=words))
                    self._index.train(rows[np.linspace(0, len(rows) - 1, size, dtype=np.int64)])
                    self.trained = len(rows)
                while self.rows < len(rows) and not stopped():
                    tell(IndexProgress(self.rows, len(rows), waiting="Adding vectors to the index of FAISS"))
                    block = np.ascontiguousarray(rows[self.rows : self.rows + _ADDED_AT_ONCE])
                    with self._lock:
                        self._index.add(block)
                        self.rows = self._index.ntotal
        finally:
            tell(None)

    def candidates(self, queries: Rows, top: int, dead: Slots, linked: int) -> list[Slots]:
        """Return, for each query, slots below ``linked`` that are near it and not dead, ascending."""
        faiss = _faiss()
        # Some more, so that equal scores can be put in order.
        wanted, options = top + 8, {}
        with self._lock:
            slots = max(self.rows, int(dead.max()) + 1 if len(dead) else 0)
            if self._settings.factory is None:
                chosen: dict[str, Any] = {"efSearch": max(self._settings.hnsw_search, 2 * top)}
                if len(dead):
                    alive = np.ones(-(-slots // 8) * 8, dtype=np.bool_)
                    alive[dead] = False
                    chosen["sel"] = faiss.IDSelectorBitmap(np.packbits(alive, bitorder="little"))
                options["params"] = faiss.SearchParametersHNSW(**chosen)
            else:
                # Not every kind leaves the dead out by itself.
                wanted = wanted * _RESCORED * slots // max(1, slots - len(dead))
            _, found = self._index.search(np.ascontiguousarray(queries), min(wanted, self.rows), **options)
        near = [np.sort(row[(row >= 0) & (row < linked)]) for row in found]
        return [np.setdiff1d(row, dead, assume_unique=True) for row in near] if self._settings.factory else near

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
        # Another factory's index is of no use. A graph's name says nothing of it.
        self._kind = "" if settings.factory is None else f"{zlib.crc32(settings.factory.encode()):08x}"
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

    def to_extend(self, generation: int, rows: Rows) -> FaissIndex:
        """Return the newest index in memory, or one without rows."""
        _, file = self._find(generation)
        index = self._usable(file, rows.shape[1], mapped=False) if file else None
        return FaissIndex.renewed(index, rows, self._settings)

    def publish(self, generation: int, index: FaissIndex) -> None:
        """Write an index and delete older ones. If that fails, there is no index."""
        part = self._folder / f"part-{uuid.uuid4().hex}.faiss"
        try:
            index.write(part)
            kind = f"-{self._kind}-{index.trained}" if self._kind else ""
            target = self._folder / f"graph-{generation}-{index.rows}-{sum_up(part):08x}{kind}.faiss"
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
        here = generation, self._kind
        covered = [(rows, name) for (of, rows, _, kind, _), name in names if (of, kind) == here]
        if not covered:
            return 0, None
        rows, name = max(covered)
        return rows, self._folder / name

    def _usable(self, file: Path, dimensions: int, *, mapped: bool) -> FaissIndex | None:
        parts = parts_of_index(file.name)
        try:
            if parts is not None and sum_up(file) == parts[2]:
                index = FaissIndex.read(file, dimensions, self._settings, mapped=mapped, trained=parts[4])
                if index.rows == parts[1]:
                    return index
        except _UNUSABLE:
            pass
        remove_if_possible(file)
        return None


def parts_of_index(name: str) -> tuple[int, int, int, str, int] | None:
    """Return generation, rows, checksum, kind and rows in training of an index's file; None for another file."""
    found = _FILE.fullmatch(name)
    return (int(found[1]), int(found[2]), int(found[3], 16), found[4] or "", int(found[5] or 0)) if found else None


def is_behind(slots: int, linked: int, settings: FaissSettings) -> bool:
    """Tell whether the index should be extended: many slots were added after the first ``linked`` ones."""
    return slots >= settings.indexed_from and slots - linked > max(1_000, linked // 10)


def say_untrained(settings: FaissSettings, slots: int) -> None:
    """Log, once for each ``factory``, that a large namespace has too few vectors to train its index."""
    if settings.factory is not None and 1_000 <= slots < settings.indexed_from:
        _say_untrained(settings.factory, settings.indexed_from)


@lru_cache(maxsize=64)
def _say_untrained(factory: str, needed: int) -> None:
    _LOG.warning("%s is trained when a namespace has %s vectors: till then it is searched exactly.", factory, needed)


@contextmanager
def _refusals(setting: str, value: str | None, dimensions: int) -> Iterator[None]:
    """Raise ``ConfigurationError`` for what FAISS refuses, with its words but not the place in its sources."""
    try:
        yield
    except RuntimeError as error:
        said = re.sub(r"^Error in .*?\.cpp:\d+: (Error: )?", "", str(error))
        raise ConfigurationError(
            f"vectors.faiss: {setting} = {value!r} does not work for vectors of {dimensions} dimensions that are "
            f"compared by inner product: {said}"
        ) from error


def _faiss() -> Any:
    return importlib.import_module("faiss")
