"""Graphs beside the vectors of a folder: a cache that every process may replace and none has to trust."""

from __future__ import annotations

import os
import uuid
import zlib
from pathlib import Path

from portico_faiss._graph import Graph
from portico_faiss._names import graph_file, parts_of_graph
from portico_faiss.config import FaissSettings

_UNUSABLE = (RuntimeError, OSError, ValueError, TypeError)
"""What FAISS and the file system raise for a graph that cannot be read or written."""

_READ_AT_ONCE = 1 << 20


class GraphFiles:
    """The graph files of one namespace.

    A name holds a checksum of the content, since FAISS follows the links of a damaged graph to wherever they
    lead. A file that does not fit its name is removed, and the next write or search makes another.
    """

    def __init__(self, folder: Path, settings: FaissSettings) -> None:
        self._folder = folder
        self._settings = settings
        self._seen: tuple[int, int] | None = None
        self._read: tuple[str, Graph | None] | None = None

    def newest(self, generation: int, dimensions: int) -> Graph | None:
        """Return the graph that covers most slots of a generation, mapped; looks again when the folder changed."""
        try:
            changed = self._folder.stat().st_mtime_ns
            if self._seen != (generation, changed):
                file = self._find(generation)
                if file is None:
                    self._read = None
                elif self._read is None or self._read[0] != file.name:
                    self._read = file.name, self._usable(file, dimensions, mapped=True)
                self._seen = generation, changed
        except OSError:
            return None
        return self._read[1] if self._read else None

    def linked(self, generation: int) -> int:
        """Return how many slots the newest graph covers, going by its name."""
        file = self._find(generation)
        parts = parts_of_graph(file.name) if file else None
        return parts[1] if parts else 0

    def to_extend(self, generation: int, dimensions: int) -> Graph:
        """Return the newest graph in memory, or one without rows."""
        file = self._find(generation)
        graph = self._usable(file, dimensions, mapped=False) if file else None
        return graph or Graph.empty(dimensions, self._settings)

    def publish(self, generation: int, graph: Graph) -> None:
        """Write a graph and put it in the place of the others; when that fails there is simply none."""
        part = self._folder / f"part-{uuid.uuid4().hex}.faiss"
        try:
            graph.write(part)
            target = graph_file(self._folder, generation, graph.rows, _checksum(part))
            part.replace(target)
            self._remove_others(target)
        except _UNUSABLE:
            part.unlink(missing_ok=True)

    def _remove_others(self, kept: Path) -> None:
        generation, rows, _ = parts_of_graph(kept.name) or (0, 0, 0)
        for file in self._folder.glob("graph-*.faiss"):
            parts = parts_of_graph(file.name)
            if parts and parts[:2] <= (generation, rows) and file != kept:
                remove_if_possible(file)

    def _find(self, generation: int) -> Path | None:
        covered: list[tuple[int, str]] = []
        with os.scandir(self._folder) as entries:
            for entry in entries:
                parts = parts_of_graph(entry.name)
                if parts and parts[0] == generation:
                    covered.append((parts[1], entry.name))
        return self._folder / max(covered)[1] if covered else None

    def _usable(self, file: Path, dimensions: int, *, mapped: bool) -> Graph | None:
        parts = parts_of_graph(file.name)
        try:
            if parts is not None and _checksum(file) == parts[2]:
                graph = Graph.read(file, dimensions, self._settings, mapped=mapped)
                if graph.rows == parts[1]:
                    return graph
        except FileNotFoundError:
            return None
        except _UNUSABLE:
            pass
        remove_if_possible(file)
        return None


def remove_if_possible(file: Path) -> None:
    """Remove a file that no one needs any more, unless the system says no."""
    try:
        file.unlink(missing_ok=True)
    except OSError:
        return


def _checksum(file: Path) -> int:
    checksum = 0
    with file.open("rb") as stream:
        while block := stream.read(_READ_AT_ONCE):
            checksum = zlib.crc32(block, checksum)
    return checksum
