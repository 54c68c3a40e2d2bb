"""The files of the cache: found, begun, and left behind when they are damaged.

A file that is damaged is never renamed or replaced: other processes may have it open, and SQLite's log goes by the
file's name. Its successor has the next number in its name, and whoever opens the cache takes the highest.
"""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import suppress
from pathlib import Path

from portico.plugins import Sqlite

_FORMAT = 1
"""Part of the files' names: two versions of this package may share a folder."""

_NAME = re.compile(rf"vectors-{_FORMAT}-([1-9][0-9]{{0,8}})\.sqlite3")

_PAGE_BYTES = 8192
"""Seven vectors of 256 numbers fill one by 92%, where SQLite's own 4,096 bytes would be filled by 79%."""

_TABLES = (
    "CREATE TABLE models (name BLOB NOT NULL PRIMARY KEY, dimensions INTEGER NOT NULL) WITHOUT ROWID",
    # Rows lie in the order in which they came, so that writing does not split pages; `key` is found by its index.
    # `used` grows with every use that is written: the least is what was not used for longest.
    """CREATE TABLE vectors (
        row INTEGER PRIMARY KEY,
        key INTEGER NOT NULL UNIQUE,
        used INTEGER NOT NULL,
        checksum INTEGER NOT NULL,
        rest BLOB NOT NULL,
        vector BLOB NOT NULL)""",
    "CREATE INDEX longest_unused ON vectors (used)",
)


def newest(folder: Path) -> Path:
    """Return the file that is in use: the one of the highest number, or the first where there is none."""
    return _file(folder, max(_numbers(folder), default=1))


def succeed(damaged: Path) -> Path:
    """Begin the file that follows a damaged one, unless another process has; return the one in use.

    The damaged file stays for whoever wants to look into it; those before it are removed.
    """
    folder = damaged.parent
    match = _NAME.fullmatch(damaged.name)
    number = int(match[1]) if match else 0
    if newest(folder) == damaged:
        _make(_file(folder, number + 1))
    for older in (_file(folder, other) for other in _numbers(folder) if other < number):
        for suffix in ("", "-wal", "-shm"):
            # Where somebody has it open and the system minds, it stays until the next time.
            with suppress(OSError):
                older.with_name(older.name + suffix).unlink(missing_ok=True)
    return newest(folder)


def connect(file: Path, wait: float) -> sqlite3.Connection:
    """Open a file of the cache, and make folder, file and tables where they are missing; ``wait`` is in seconds."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    _make(file)
    connection = sqlite3.connect(file, timeout=wait, isolation_level=None)
    try:
        if _is_empty(connection):
            connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            Sqlite.use_log(connection, wait)
            with Sqlite.transaction(connection):
                # Two processes may begin it at once; the second finds it made.
                if _is_empty(connection):
                    for table in _TABLES:
                        connection.execute(table)
        # A power failure may take the newest rows with it, and nothing else: they are embedded again.
        connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


def identity(file: Path) -> tuple[int, int] | None:
    """Return what tells a file from another one put in its place; None when there is none."""
    try:
        status = file.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _make(file: Path) -> None:
    # Vectors tell much of their texts; the log beside the file gets the same permissions from SQLite.
    os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))


def _numbers(folder: Path) -> list[int]:
    try:
        names = [entry.name for entry in os.scandir(folder)]
    except FileNotFoundError:
        return []
    return [int(match[1]) for name in names if (match := _NAME.fullmatch(name))]


def _file(folder: Path, number: int) -> Path:
    return folder / f"vectors-{_FORMAT}-{number}.sqlite3"


def _is_empty(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
