"""The file of a generation's vectors: rows of native float32, without a header; row number = slot.

Rows that the database counts are never written again, so a reader's map of them stays true for ever.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from portico_faiss._errors import damaged
from portico_faiss._vectors import BLOCK, Rows, Slots


def append(file: Path, slots: int, dimensions: int, blocks: Iterable[Rows]) -> None:
    """Write blocks of rows from slot ``slots`` on, over what a killed writer may have left, and wait for the disk.

    Raises ``StoreError`` when the file holds fewer rows than the database counts.
    """
    start = slots * dimensions * 4
    new = slots == 0
    if new:
        file.touch()
    with file.open("r+b") as stream:
        _check_size(file, stream.fileno(), start)
        stream.seek(start)
        for block in blocks:
            stream.write(np.ascontiguousarray(block, dtype=np.float32).data)
        stream.flush()
        os.fsync(stream.fileno())
    if new:
        sync_folder(file.parent)


def mapped(file: Path, slots: int, dimensions: int) -> Rows:
    """Return the rows as a read-only map of the file.

    Raises ``FileNotFoundError`` when a newer generation has replaced it, ``StoreError`` when it is too short.
    """
    with file.open("rb") as stream:
        _check_size(file, stream.fileno(), slots * dimensions * 4)
        if slots == 0:
            return np.empty((0, dimensions), dtype=np.float32)
        # A plain array over the map: every operation on np.memmap itself costs some microseconds more.
        return np.memmap(stream, dtype=np.float32, mode="r", shape=(slots, dimensions)).view(np.ndarray)


def copy(source: Path, target: Path, slots: Slots, used: int, dimensions: int) -> None:
    """Write the rows of some slots to a new file, one after the other, and wait for the disk."""
    rows = mapped(source, used, dimensions)
    with target.open("wb") as stream:
        for start in range(0, len(slots), BLOCK):
            stream.write(rows[slots[start : start + BLOCK]].data)
        stream.flush()
        os.fsync(stream.fileno())
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make new names in a folder last through a power failure, where the system can do that."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_size(file: Path, descriptor: int, least: int) -> None:
    size = os.fstat(descriptor).st_size
    if size < least:
        raise damaged(file, f"it has {size} bytes and should have {least}")
