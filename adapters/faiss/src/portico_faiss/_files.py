"""The files of a namespace: their names, the errors about them, and the vectors.

The vectors of a generation are rows of native float32 without a header; the row number is the slot. Rows that the
database counts never change, so readers can map the file. The database has their CRC-32, which grows with them.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt

from portico.errors import StoreDamaged
from portico.plugins import Sqlite
from portico.search import Vectors

Rows: TypeAlias = npt.NDArray[np.float32]
Slots: TypeAlias = npt.NDArray[np.int64]

BLOCK = 4_096
"""Rows handled at once, so that memory does not grow with the size of a call."""

_NEARLY_ONE = 2e-6
"""How far a squared length may be from 1 for a vector to be kept bit for bit."""
ROUNDING = 3e-5
"""How far a score of a matrix product may be from the one that `rank` computes: more than 3,000 dimensions need."""
_DEAD_BEFORE_COMPACTION = 1_000


def as_rows(vectors: Vectors) -> Rows:
    return np.frombuffer(vectors.buffer.cast("B"), dtype=np.float32).reshape(vectors.rows, vectors.dimensions)


def unit_blocks(rows: Rows) -> Iterator[Rows]:
    """Yield the rows at length one, block by block. Rows of zeros stay zeros, and unit rows stay bit for bit.

    Raises ``ValueError`` with the row for a number that is not finite.
    """
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        # float64 holds the square of any float32.
        squares = np.einsum("ij,ij->i", block, block, dtype=np.float64)
        finite = np.isfinite(squares)
        if not finite.all():
            raise ValueError(f"vector {start + int(finite.argmin())} holds a number that is not finite")
        other = np.flatnonzero((np.abs(squares - 1.0) > _NEARLY_ONE) & (squares > 0))
        if len(other):
            block = block.copy()
            block[other] = block[other] / np.sqrt(squares[other])[:, None]
        yield block


def unit_queries(queries: Vectors) -> Rows:
    """Return the queries at length one. Raises ``ValueError`` for a number that is not finite."""
    rows = as_rows(queries)
    if len(rows) == 1:
        # The usual case, which has to be quick.
        row = rows[0].astype(np.float64)
        if abs(float(row.dot(row)) - 1.0) <= _NEARLY_ONE:
            return rows
    return np.concatenate(list(unit_blocks(rows))) if len(rows) else rows


def is_wasteful(dead: int, slots: int) -> bool:
    """Tell whether so many slots are dead that the others should be copied to a new generation."""
    return dead > max(_DEAD_BEFORE_COMPACTION, slots - dead)


def rank(rows: Rows, slots: Slots, query: Rows, top: int) -> tuple[list[int], list[float]]:
    """Return the best ``top`` of the slots with their cosines; of equal ones the oldest first.

    ``slots`` ascend. Each row is multiplied on its own: so equal vectors have equal scores, wherever they lie.
    """
    if len(slots) <= BLOCK:
        scores = np.vecdot(rows.take(slots, axis=0), query)
    else:
        blocks = [slots[start : start + BLOCK] for start in range(0, len(slots), BLOCK)]
        scores = np.concatenate([np.vecdot(rows.take(block, axis=0), query) for block in blocks])
    order = (-scores).argsort(kind="stable")[:top]
    # In Python, since a call into NumPy costs more than a few comparisons.
    return slots[order].tolist(), [min(1.0, max(-1.0, score)) for score in scores[order].tolist()]


def best(scores: Rows, top: int) -> Slots:
    """Return the slots of the ``top`` highest scores and of all that rounding may have put below them, ascending.

    Slots with a score of minus infinity are never among them.
    """
    if top >= len(scores):
        return (scores > -2.0).nonzero()[0]
    # The smallest of the negated are found in half the time of the largest.
    negated = -scores
    negated.partition(top - 1)
    return (scores >= max(-float(negated[top - 1]) - ROUNDING, -2.0)).nonzero()[0]


DATABASE = "store.sqlite"

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-")
_LONGEST = 120
_VECTORS = re.compile(r"vectors-(\d+)\.f32")
_READ_AT_ONCE = 1 << 20


def folder_name(namespace: str) -> str:
    """Return the name of a namespace's folder: valid on any file system, different for different namespaces.

    All but small letters, digits, ``-`` and ``_`` is percent-encoded. Capital letters are too, since some file systems
    ignore case. A long name is cut and gets a hash; the database has the full name.
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


def damage_error(file: Path, why: str) -> StoreDamaged:
    """Return the error for a damaged file."""
    return StoreDamaged(f"The vector store's file {file} is damaged: {why}. {_advice(file.parent)}")


def map_errors(folder: Path) -> AbstractContextManager[None]:
    """Raise ``StoreBusy``, ``StoreDamaged`` or ``StoreError`` for the errors of a folder's database."""
    return Sqlite.errors(
        f"The vector store's file {folder / DATABASE}",
        damaged=_advice(folder),
        advice="Make its folder writable, or set another `path` in [vectors.faiss].",
    )


def _advice(folder: Path) -> str:
    return f"`portico index` makes vectors of documents anew. Delete the folder {folder} to make others anew."


def append_rows(file: Path, slots: int, dimensions: int, blocks: Iterable[Rows], checksum: int) -> int:
    """Write blocks of rows from slot ``slots`` on, and sync to disk; return the ``checksum`` with them.

    Rows there are those of a killed writer.

    Raises ``StoreDamaged`` if the file has fewer rows than the database counts.
    """
    start = slots * dimensions * 4
    if slots == 0:
        file.touch()
    with file.open("r+b") as stream:
        _check_size(file, stream.fileno(), start)
        stream.seek(start)
        checksum = _write(stream, blocks, checksum)
    if slots == 0:
        _sync_folder(file.parent)
    return checksum


def sum_up(file: Path, size: int = sys.maxsize) -> int:
    """Return the CRC-32 of a file, or of so many bytes of it."""
    checksum = 0
    with file.open("rb") as stream:  # mapped pages would count as memory of this process
        while block := stream.read(min(_READ_AT_ONCE, size)):
            size -= len(block)
            checksum = zlib.crc32(block, checksum)
    return checksum


def map_rows(file: Path, slots: int, dimensions: int) -> Rows:
    """Map the rows of the file, read-only.

    Raises ``FileNotFoundError`` if a newer generation has replaced the file, ``StoreDamaged`` if it is too short.
    """
    with file.open("rb") as stream:
        _check_size(file, stream.fileno(), slots * dimensions * 4)
        if slots == 0:
            return np.empty((0, dimensions), dtype=np.float32)
        # Operations on np.memmap itself take some microseconds more.
        return np.memmap(stream, dtype=np.float32, mode="r", shape=(slots, dimensions)).view(np.ndarray)


def copy_rows(rows: Rows, slots: Slots, target: Path) -> int:
    """Write the rows of some slots to a new file, and sync to disk; return their checksum."""
    with target.open("wb") as stream:
        checksum = _write(stream, (rows[slots[start : start + BLOCK]] for start in range(0, len(slots), BLOCK)))
    _sync_folder(target.parent)
    return checksum


def remove_if_possible(file: Path) -> None:
    """Remove a file that is no longer needed, unless the system refuses."""
    try:
        file.unlink(missing_ok=True)
    except OSError:
        return


def _write(stream: BinaryIO, blocks: Iterable[Rows], checksum: int = 0) -> int:
    for block in blocks:
        data = np.ascontiguousarray(block, dtype=np.float32).data
        stream.write(data)
        checksum = zlib.crc32(data, checksum)
    stream.flush()
    os.fsync(stream.fileno())
    return checksum


def _sync_folder(folder: Path) -> None:
    """Sync the names in a folder to disk, so that a power failure does not lose them. Windows cannot do it."""
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
        raise damage_error(file, f"it has {size} bytes and should have {least}")
