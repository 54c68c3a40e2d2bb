"""Whether the write-ahead log of a database is whole, seen before SQLite opens it.

SQLite reads a log up to the first frame whose checksum is wrong, and drops the rest without a word. Its index (`-shm`)
knows how many frames were committed. Both files are described at https://sqlite.org/walformat.html.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from struct import pack, unpack_from
from tempfile import TemporaryDirectory

_INDEX, _LARGEST_PAGE = 100, 1 << 16
_VERSION = pack("=I", 3_007_000)


def lost_frames(file: Path) -> tuple[int, int]:
    """Return how many frames of a database's log are not what was written, and how many were.

    The process must not have the database open: closing a file gives up all locks that a process has on it.
    """
    index, log, page = _read(file, "-shm", _INDEX), _read(file, "-wal"), _read(file, "", _LARGEST_PAGE)
    # If the index changes, other processes have the database open. SQLite does not read the log anew then.
    changes = index[:48] != index[48:96] or index != _read(file, "-shm", _INDEX)
    if changes or len(index) < _INDEX or index[:4] != _VERSION or not page:
        return 0, 0
    (committed,), (in_database,) = unpack_from("=I", index, 16), unpack_from("=I", index, 96)
    if not log and committed <= in_database:
        return 0, committed
    found = b""
    for place in (None, file.parent):
        with suppress(OSError):
            found = found or _index_of_copy(page, log, place)
    if not found:  # There is room for a copy nowhere. What cannot be checked is not damaged.
        return 0, committed
    taken = unpack_from("=I", found, 16)[0] if index[32:40] == found[32:40] else 0
    return max(committed - taken, 0), committed


def _index_of_copy(page: bytes, log: bytes, place: Path | None) -> bytes:
    """Let SQLite read the log of a copy, to which the first page is enough, and return the index that it makes."""
    with TemporaryDirectory(prefix=".portico-", dir=place) as folder:
        copy = Path(folder, "copy")
        copy.write_bytes(page)
        Path(f"{copy}-wal").write_bytes(log)
        with closing(sqlite3.connect(f"{copy.as_uri()}?mode=ro", uri=True)) as connection:
            with suppress(sqlite3.Error):
                connection.execute("SELECT name FROM sqlite_master").fetchone()
            index = _read(copy, "-shm", _INDEX)
            return index if len(index) == _INDEX else b""


def _read(file: Path, end: str, most: int = -1) -> bytes:
    try:
        # No more than that: what follows in the index may be locked.
        with file.with_name(file.name + end).open("rb", buffering=0) as stream:
            return stream.read(most)
    except FileNotFoundError:
        return b""
