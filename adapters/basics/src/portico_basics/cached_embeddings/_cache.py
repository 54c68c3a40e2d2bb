"""The file of the cache: SQLite, used by one thread at a time."""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Literal, TypeVar
from zlib import crc32

from portico.errors import StoreDamaged, StoreError
from portico.plugins import Sqlite

Purpose = Literal["document", "query"]
T = TypeVar("T")

_LOG = logging.getLogger("portico_basics.cached_embeddings")
_FORMAT = 2
"""Part of the files' names: two versions of this package may share a folder."""
_NAME = re.compile(rf"vectors-{_FORMAT}-([1-9][0-9]{{0,8}})\.sqlite3")
_PAGE_BYTES = 8192
"""Seven vectors of 256 numbers fill one by 92%, where SQLite's own 4,096 bytes would be filled by 79%."""
_AT_ONCE = 1_000
"""Rows read or written in one statement or transaction."""
_ROW_OVERHEAD = 100
"""Bytes that a row takes beside its vector, about."""
_TABLE = """CREATE TABLE IF NOT EXISTS vectors (
    row INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,
    checksum INTEGER NOT NULL,
    vector BLOB NOT NULL)"""


def keys_of(model: str, purpose: Purpose, texts: Iterable[str]) -> list[bytes]:
    """Return a key of 24 bytes for each text, whatever is in the texts.

    >>> one, other = keys_of("m", "query", ["a red door", "a red roof"])
    >>> one == other, [one] == keys_of("m", "query", ["a red door"]), [one] == keys_of("n", "query", ["a red door"])
    (False, True, False)
    """
    beginning = blake2b(digest_size=24, person=b"portico-embed")
    for part in (model.encode("utf-8", "surrogatepass"), purpose.encode()):
        # The length keeps the parts apart.
        beginning.update(len(part).to_bytes(8, "big") + part)
    keys = []
    for text in texts:
        state = beginning.copy()
        state.update(text.encode("utf-8", "surrogatepass"))
        keys.append(state.digest())
    return keys


class Cache:
    """Vectors by key in the newest file of a folder, of about ``max_bytes`` at most: the oldest are removed first.

    A damaged file is left in place, and a new one begun beside it. Raises ``StoreError`` when a file cannot be used
    for now. ``wait`` is how many seconds to wait for another process. May be used from several threads, and blocks.
    """

    def __init__(self, folder: Path, max_bytes: int, wait: float) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._wait = wait
        self._lock = threading.Lock()
        self._file = folder
        self._connection: sqlite3.Connection | None = None

    def find(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the vectors that are there and whole, as float32 bytes."""
        return self._do(lambda connection: _find(connection, keys))

    def keep(self, rows: Sequence[tuple[bytes, memoryview]]) -> None:
        """Keep vectors, which all have the same length, by their keys."""
        size = rows[0][1].nbytes + _ROW_OVERHEAD
        if size * 4 > self._max_bytes:
            return
        at_once = min(_AT_ONCE, max(1, self._max_bytes // (20 * size)))
        for start in range(0, len(rows), at_once):
            part = rows[start : start + at_once]
            self._do(lambda connection, part=part: self._keep(connection, part, size))  # type: ignore[misc]

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        with self._lock:
            self._close()

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock:
            for attempt in (1, 2):
                try:
                    with Sqlite.errors(
                        f"The cache of embeddings in {self._folder}",
                        damaged="Set another `path` in [embeddings.cached].",
                        advice="Make it writable, or set another `path` in [embeddings.cached].",
                    ):
                        if not self._file.exists():
                            self._close()  # somebody removed it
                        if self._connection is None:
                            self._open()
                        assert self._connection is not None  # noqa: S101 - it was opened
                        return work(self._connection)
                except StoreDamaged as error:
                    self._close()
                    if attempt == 2:
                        raise  # the file was begun a moment ago: it is the disk
                    self._begin_next(error)
                except StoreError:
                    self._close()
                    raise
        raise AssertionError

    def _open(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = self._newest()
        _make(self._file)
        connection = sqlite3.connect(self._file, timeout=self._wait, isolation_level=None, check_same_thread=False)
        try:
            connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            Sqlite.use_log(connection, self._wait)
            # A power failure may lose the newest rows, which are then embedded again.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(_TABLE)
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _newest(self) -> Path:
        numbers = [int(match[1]) for file in self._folder.iterdir() if (match := _NAME.fullmatch(file.name))]
        return self._folder / f"vectors-{_FORMAT}-{max(numbers, default=1)}.sqlite3"

    def _begin_next(self, damage: StoreDamaged) -> None:
        """Begin the file after a damaged one, unless another process has."""
        match = _NAME.fullmatch(self._file.name)
        if match and self._newest() == self._file:
            _make(self._folder / f"vectors-{_FORMAT}-{int(match[1]) + 1}.sqlite3")
        _LOG.warning(
            "The cache of embeddings %s is damaged (%s). A new one is begun, and you may delete the damaged file.",
            self._file,
            damage.__cause__,
        )

    def _keep(self, connection: sqlite3.Connection, rows: Sequence[tuple[bytes, memoryview]], size: int) -> None:
        with Sqlite.transaction(connection):
            # A quarter more for what pages leave empty.
            most = self._max_bytes - len(rows) * size * 5 // 4
            while (excess := _bytes_used(connection) - most) > 0:
                gone = connection.execute(
                    "DELETE FROM vectors WHERE row IN (SELECT row FROM vectors ORDER BY row LIMIT ?)",
                    (excess // size + 1,),
                )
                if not gone.rowcount:
                    break
            connection.executemany(
                "INSERT OR REPLACE INTO vectors (key, checksum, vector) VALUES (?, ?, ?)",
                [(key, crc32(vector, crc32(key)), vector) for key, vector in rows],
            )


def _make(file: Path) -> None:
    # Vectors reveal much of their texts; the log beside the file gets the same permissions from SQLite.
    os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))


def _find(connection: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for start in range(0, len(keys), _AT_ONCE):
        part = keys[start : start + _AT_ONCE]
        marks = ", ".join("?" * len(part))
        rows = connection.execute(f"SELECT key, checksum, vector FROM vectors WHERE key IN ({marks})", part)
        found |= {
            key: vector
            for key, checksum, vector in rows
            if isinstance(vector, bytes) and crc32(vector, crc32(key)) == checksum
        }
    return found


def _bytes_used(connection: sqlite3.Connection) -> int:
    pages, free, size = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size
