"""The cache as it blocks: one connection, used by one thread."""

from __future__ import annotations

import json
import logging
import os
import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from portico.plugins import Sqlite
from portico_basics.cached_embeddings._errors import CacheDamaged, CacheUnusable, mapped_errors
from portico_basics.cached_embeddings._wire import Key, Purpose, finite_rows, keys_of, row_checksum

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


_LOG = logging.getLogger("portico_basics.cached_embeddings")
T = TypeVar("T")

_EVICTED_AT_ONCE = 200
_TOUCHED_AT_MOST = 1_000
_GREATEST_TICK = 1 << 62
_ROW_OVERHEAD = 100
"""Bytes that a row takes beside its vector, about."""


class Cache:
    """Rows by key in the newest file of a folder, of about ``max_bytes`` at most.

    What was used longest ago goes first. That a row was used is written when others are, and only when a quarter of
    what fits has been used since: whatever is among the last three quarters used never goes, and reading writes
    nothing as a rule.
    Raises ``CacheUnusable`` when there is nothing to be done about a file for now. A damaged one has a successor.
    """

    def __init__(self, folder: Path, max_bytes: int, wait: float) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._wait = wait
        self._file: Path | None = None
        self._identity: tuple[int, int] | None = None
        self._connection: sqlite3.Connection | None = None
        self._touched: dict[int, None] = {}

    def dimensions(self, model: bytes) -> int | None:
        """Return how long the model's vectors are; None when there is none of it."""
        return self._do(lambda connection: _dimensions(connection, model))

    def find(self, model: bytes, purpose: Purpose, texts: Sequence[str]) -> list[bytes | None]:
        """Return each text's vector as float32 bytes; None for one that is not there whole."""
        keys = keys_of(model, purpose, texts)
        return self._do(lambda connection: self._find(connection, model, keys))

    def keep(self, model: bytes, purpose: Purpose, texts: Sequence[str], rows: memoryview, dimensions: int) -> None:
        """Keep the texts' vectors, all or none: ``rows`` has their bytes, one after another."""
        size = dimensions * 4
        if size * 4 > self._max_bytes:
            return
        keys = keys_of(model, purpose, texts)
        kept = [
            (keys[row], vector, row_checksum(keys[row], vector))
            for row in finite_rows(rows.cast("f"), dimensions)
            for vector in (rows[row * size : (row + 1) * size],)
        ]
        if kept:
            self._leave_if_gone()
            self._do(lambda connection: self._keep(connection, model, dimensions, kept))

    def close(self) -> None:
        """Let go of the file; the next call opens it again."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            with mapped_errors(self._folder):
                self._write_touches(connection)
        except CacheDamaged:
            pass  # whoever reads it next finds that out, and can do something about it
        finally:
            self._touched.clear()
            with suppress(sqlite3.Error):
                connection.close()

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        for _ in range(2):
            try:
                with mapped_errors(self._folder):
                    return work(self._opened())
            except CacheDamaged as damage:
                self._leave(damage)
        # The file was begun a moment ago: it is the disk.
        raise CacheUnusable(
            f"The cache of embeddings in {self._folder} is damaged as soon as it is begun: set another `path` in "
            "[embeddings.cached]. Texts are embedded without it, and it is tried again in a minute."
        )

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._file = newest(self._folder)
            self._connection = connect(self._file, self._wait)
            self._identity = identity(self._file)
        return self._connection

    def _leave_if_gone(self) -> None:
        """Close a file that was removed, or left behind by another process, so that nothing is written in vain."""
        with mapped_errors(self._folder):
            if self._file is not None and (
                identity(self._file) != self._identity or newest(self._folder) != self._file
            ):
                self._touched.clear()
                self.close()

    def _leave(self, damage: CacheDamaged) -> None:
        damaged, connection = self._file, self._connection
        self._connection = None
        self._touched.clear()
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()
        if damaged is None:
            return
        with mapped_errors(self._folder):
            following = succeed(damaged)
        _LOG.warning(
            "The cache of embeddings %s is damaged (%s): %s takes its place, what was in it is embedded again when it "
            "is needed, and you may delete it.",
            damaged,
            damage,
            following.name,
        )

    def _find(self, connection: sqlite3.Connection, model: bytes, keys: Sequence[Key]) -> list[bytes | None]:
        dimensions = _dimensions(connection, model)
        if dimensions is None:
            return [None] * len(keys)
        size = dimensions * 4
        # A row is not written anew for a use while less than a quarter of what fits was used after it; uses that are
        # still to be written count too.
        recent = _last_tick(connection) - self._max_bytes // (4 * (size + _ROW_OVERHEAD))
        there = {
            row[0]: row
            for row in connection.execute(
                # The join is crossed so that SQLite looks up one key after another, whatever it makes of the table.
                "SELECT vectors.key, used, checksum, rest, vector FROM json_each(?) AS wanted "
                "CROSS JOIN vectors ON vectors.key = wanted.value",
                (json.dumps([key.number for key in keys]),),
            )
        }
        found: list[bytes | None] = []
        for key in keys:
            row = there.get(key.number)
            if row is None:
                found.append(None)
                continue
            _, used, checksum, rest, vector = row
            whole = rest == key.rest and isinstance(vector, bytes) and len(vector) == size
            if not whole or row_checksum(key, vector) != checksum:
                found.append(None)
                continue
            found.append(vector)
            if not isinstance(used, int) or used < recent + len(self._touched):
                self._touched.pop(key.number, None)
                self._touched[key.number] = None
        if len(self._touched) >= _TOUCHED_AT_MOST:
            try:
                self._write_touches(connection)
            except sqlite3.Error:
                # What was found counts for more than when it was used.
                self._touched.clear()
        return found

    def _keep(
        self, connection: sqlite3.Connection, model: bytes, dimensions: int, rows: Sequence[tuple[Key, memoryview, int]]
    ) -> None:
        with Sqlite.transaction(connection):
            tick = self._tick_touches(connection)
            self._make_room(connection, len(rows), dimensions * 4 + _ROW_OVERHEAD)
            connection.execute(
                "INSERT INTO models VALUES (?, ?) "
                "ON CONFLICT DO UPDATE SET dimensions = excluded.dimensions WHERE dimensions <> excluded.dimensions",
                (model, dimensions),
            )
            connection.executemany(
                "INSERT OR REPLACE INTO vectors (key, used, checksum, rest, vector) VALUES (?, ?, ?, ?, ?)",
                [
                    (key.number, used, checksum, key.rest, vector)
                    for used, (key, vector, checksum) in enumerate(rows, tick)
                ],
            )
        self._touched.clear()
        if _number(connection, "page_count") * _number(connection, "page_size") > self._max_bytes:
            # The bound was a larger one when the file was written. `execute` would free one page of all that are free.
            connection.executescript("PRAGMA incremental_vacuum")

    def _write_touches(self, connection: sqlite3.Connection) -> None:
        if self._touched:
            with Sqlite.transaction(connection):
                self._tick_touches(connection)
            self._touched.clear()

    def _tick_touches(self, connection: sqlite3.Connection) -> int:
        """Write which rows were used, in order; return the next tick."""
        tick = _last_tick(connection) + 1
        connection.executemany(
            "UPDATE vectors SET used = ? WHERE key = ?", [(used, key) for used, key in enumerate(self._touched, tick)]
        )
        return tick + len(self._touched)

    def _make_room(self, connection: sqlite3.Connection, rows: int, size: int) -> None:
        needed = rows * size * 5 // 4
        if _bytes_used(connection) + needed <= self._max_bytes:
            return
        # A tenth more than is needed, so that not every call has to.
        most = self._max_bytes * 9 // 10 - needed
        while (excess := _bytes_used(connection) - most) > 0:
            # No more than are in the way, where few rows fit.
            gone = connection.execute(
                "DELETE FROM vectors WHERE row IN (SELECT row FROM vectors ORDER BY used LIMIT ?)",
                (min(_EVICTED_AT_ONCE, excess // size + 1),),
            )
            if not gone.rowcount:
                break


def _dimensions(connection: sqlite3.Connection, model: bytes) -> int | None:
    row = connection.execute("SELECT dimensions FROM models WHERE name = ?", (model,)).fetchone()
    if row is None:
        return None
    if not isinstance(row[0], int) or row[0] < 1:
        raise CacheDamaged(f"vectors of {row[0]!r} numbers")
    return row[0]


def _last_tick(connection: sqlite3.Connection) -> int:
    (last,) = connection.execute("SELECT max(used) FROM vectors").fetchone()
    if last is None:
        return 0
    if not isinstance(last, int) or last > _GREATEST_TICK:
        raise CacheDamaged(f"the last use is {last!r}")
    return last


def _bytes_used(connection: sqlite3.Connection) -> int:
    pages = _number(connection, "page_count") - _number(connection, "freelist_count")
    return pages * _number(connection, "page_size")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])
