"""Whether the write-ahead log of a database is whole, seen before SQLite opens it.

SQLite reads a log up to the first frame whose checksum is wrong, and drops the rest without a word. Its index (`-shm`)
knows how many frames were committed. Both files are described at https://sqlite.org/walformat.html.
"""

from __future__ import annotations

import sys
from pathlib import Path
from struct import iter_unpack, pack, unpack_from

_HEADER, _FRAME, _INDEX = 32, 24, 100
_NATIVE = "<" if sys.byteorder == "little" else ">"
_VERSION = pack("=I", 3_007_000)


def lost_frames(file: Path) -> tuple[int, int]:
    """Return how many frames of a database's log are not what was written, and how many were.

    The process must not have the database open: closing a file gives up all locks that a process has on it.
    """
    index, log = _read(file, "-shm", _INDEX), _read(file, "-wal")
    if len(index) < _INDEX or index[:4] != _VERSION or index[:48] != index[48:96]:
        return 0, 0
    # If it changes, other processes have the database open. SQLite does not read the log anew then.
    if index != _read(file, "-shm", _INDEX) or _sum(index[:40], _NATIVE) != unpack_from(_NATIVE + "II", index, 40):
        return 0, 0
    (committed,), (in_database,) = unpack_from("=I", index, 16), unpack_from("=I", index, 96)
    if not log and committed <= in_database:
        return 0, committed
    order = ">" if log[3:4] and log[3] & 1 else "<"
    if len(log) < _HEADER or (total := _sum(log[:24], order)) != unpack_from(">II", log, 24):
        return committed, committed
    size = _FRAME + int.from_bytes(log[8:12])
    for number in range(committed):
        frame = log[_HEADER + number * size : _HEADER + (number + 1) * size]
        total = _sum(frame[:8] + frame[_FRAME:], order, total) if len(frame) == size else (-1, -1)
        if frame[8:16] != index[32:40] or unpack_from(">II", frame.ljust(_FRAME), 16) != total:
            return committed - number, committed
    return 0, committed


def _read(file: Path, end: str, most: int = -1) -> bytes:
    try:
        # No more than that: what follows in the index may be locked.
        with file.with_name(file.name + end).open("rb", buffering=0) as stream:
            return stream.read(most)
    except FileNotFoundError:
        return b""


def _sum(data: bytes, order: str, begun: tuple[int, ...] = (0, 0)) -> tuple[int, ...]:
    """Return SQLite's checksum of two words."""
    one, two = begun
    for first, second in iter_unpack(order + "II", data):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two
