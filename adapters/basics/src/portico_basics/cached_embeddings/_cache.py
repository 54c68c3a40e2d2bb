"""The cache as it blocks: one connection, used by one thread."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from portico.plugins import Sqlite
from portico_basics.cached_embeddings._database import connect, identity, newest, succeed
from portico_basics.cached_embeddings._errors import CacheDamaged, CacheUnusable, mapped_errors
from portico_basics.cached_embeddings._wire import Key, Purpose, finite_rows, keys_of, row_checksum

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
