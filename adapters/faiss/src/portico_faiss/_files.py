"""The files of a namespace: their names, the errors about them, and the vectors.

A generation's vectors are rows of native float32 without a header; row number = slot. Rows that the database counts
are never written again, so a reader's map of them stays true.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from portico.errors import StoreDamaged
from portico.plugins import Sqlite
from portico_faiss._vectors import BLOCK, Rows, Slots

DATABASE = "store.sqlite"

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-")
_LONGEST = 120
_VECTORS = re.compile(r"vectors-(\d+)\.f32")
_DERIVED = "what is derived from documents is then built again."


def folder_name(namespace: str) -> str:
    """Return the name of a namespace's folder: safe on any file system, different for different namespaces.

    Everything but small letters, digits, ``-`` and ``_`` is percent-encoded, capital letters too, since some file
    systems do not tell them from small ones. A long name is cut and a hash put in; the database has the true name.
    """
    data = namespace.encode("utf-8", "surrogatepass")
    encoded = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02x}" for byte in data)
    if len(encoded) <= _LONGEST:
        return f"ns-{encoded}"
    return f"long-{encoded[:40].rpartition('%')[0] or encoded[:40]}-{hashlib.sha256(data).hexdigest()[:40]}"


def vectors_file(folder: Path, generation: int) -> Path:
    return folder / f"vectors-{generation}.f32"


def generation_of_vectors(name: str) -> int | None:
    """Return the generation of a file of vectors; None for another file."""
    found = _VECTORS.fullmatch(name)
    return int(found[1]) if found else None


def damaged(file: Path, why: str) -> StoreDamaged:
    """Return the error for a file that is not what was written."""
    return StoreDamaged(
        f"The vector store's file {file} is damaged: {why}. Delete the folder {file.parent}; {_DERIVED}"
    )


def mapped_errors(folder: Path) -> AbstractContextManager[None]:
    """Raise ``StoreBusy``, ``StoreDamaged`` or ``StoreError`` for what goes wrong around the database of a folder."""
    return Sqlite.errors(
        f"The vector store's file {folder / DATABASE}",
        damaged=f"Delete the folder {folder}; {_DERIVED}",
        advice="Make its folder writable, or set another `path` in [vectors.faiss].",
    )


def append_rows(file: Path, slots: int, dimensions: int, blocks: Iterable[Rows]) -> None:
    """Write blocks of rows from slot ``slots`` on, over what a killed writer may have left, and wait for the disk.

    Raises ``StoreDamaged`` when the file holds fewer rows than the database counts.
    """
    start = slots * dimensions * 4
    if slots == 0:
        file.touch()
    with file.open("r+b") as stream:
        _check_size(file, stream.fileno(), start)
        stream.seek(start)
        _write(stream, blocks)
    if slots == 0:
        _sync_folder(file.parent)


def map_rows(file: Path, slots: int, dimensions: int) -> Rows:
    """Return the rows as a read-only map of the file.

    Raises ``FileNotFoundError`` when a newer generation has replaced it, ``StoreDamaged`` when it is too short.
    """
    with file.open("rb") as stream:
        _check_size(file, stream.fileno(), slots * dimensions * 4)
        if slots == 0:
            return np.empty((0, dimensions), dtype=np.float32)
        # A plain array over the map: every operation on np.memmap itself costs some microseconds more.
        return np.memmap(stream, dtype=np.float32, mode="r", shape=(slots, dimensions)).view(np.ndarray)


def copy_rows(rows: Rows, slots: Slots, target: Path) -> None:
    """Write the rows of some slots to a new file, one after the other, and wait for the disk."""
    with target.open("wb") as stream:
        _write(stream, (rows[slots[start : start + BLOCK]] for start in range(0, len(slots), BLOCK)))
    _sync_folder(target.parent)


def remove_if_possible(file: Path) -> None:
    """Remove a file that is no longer needed, unless the system refuses."""
    try:
        file.unlink(missing_ok=True)
    except OSError:
        return


def _write(stream: BinaryIO, blocks: Iterable[Rows]) -> None:
    for block in blocks:
        stream.write(np.ascontiguousarray(block, dtype=np.float32).data)
    stream.flush()
    os.fsync(stream.fileno())


def _sync_folder(folder: Path) -> None:
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
