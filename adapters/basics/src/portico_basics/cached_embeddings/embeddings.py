"""The embedding generator that asks another one only for what it has not asked before."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Literal, TypeVar
from zlib import crc32

from portico.errors import ResponseInvalid, StoreDamaged, StoreError
from portico.plugins import Services, Sqlite
from portico.ports import EmbeddingGenerator
from portico.search import Vectors
from portico_basics.config import CachedEmbeddingsSettings

Purpose = Literal["document", "query"]
T = TypeVar("T")

_LOG = logging.getLogger("portico_basics.cached_embeddings")
_FORMAT = 2
"""Part of the files' names: two versions of this package may share a folder."""
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
    # The lengths keep the parts apart.
    parts = (model.encode("utf-8", "surrogatepass"), purpose.encode())
    beginning = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    encoded = (beginning + text.encode("utf-8", "surrogatepass") for text in texts)
    return [blake2b(key, digest_size=24, person=b"portico-embed").digest() for key in encoded]


class Cache:
    """Vectors by key in a file of a folder, of about ``max_bytes`` at most: the oldest are removed first.

    A damaged file is moved aside, and a new one begun. Raises ``StoreError`` when a file cannot be used
    for now. ``wait`` is how many seconds to wait for another process. May be used from several threads, and blocks.
    """

    def __init__(self, folder: Path, max_bytes: int, wait: float) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._wait = wait
        self._lock = threading.Lock()
        self._file = folder / f"vectors-{_FORMAT}-1.sqlite3"
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
            try:
                return self._try(work)
            except StoreDamaged as error:
                self._move_aside(error)
                return self._try(work)

    def _try(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            with Sqlite.errors(
                f"The cache of embeddings in {self._folder}",
                damaged="Set another `path` in [embeddings.cached].",
                advice="Make it writable, or set another `path` in [embeddings.cached].",
            ):
                if self._connection is None or not self._file.exists():  # somebody may have removed it
                    self._close()
                    self._connection = self._open()
                return work(self._connection)
        except StoreError:
            self._close()
            raise

    def _open(self) -> sqlite3.Connection:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Vectors reveal much of their texts; the log beside the file gets the same permissions from SQLite.
        os.close(os.open(self._file, os.O_RDWR | os.O_CREAT, 0o600))
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
        return connection

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _move_aside(self, damage: StoreDamaged) -> None:
        """Move a damaged file aside, as far as the system lets it go; an earlier one is replaced."""
        aside = self._file.with_name(f"{self._file.name}.damaged")
        with suppress(OSError):
            self._file.replace(aside)
        for end in ("-wal", "-shm"):
            with suppress(OSError):
                self._file.with_name(f"{self._file.name}{end}").unlink(missing_ok=True)
        _LOG.warning(
            "The cache of embeddings %s was damaged (%s). It is %s now, and a new one is begun.",
            self._file,
            damage.__cause__,
            aside.name,
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


def _find(connection: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    seen = 0
    for start in range(0, len(keys), _AT_ONCE):
        part = keys[start : start + _AT_ONCE]
        marks = ", ".join("?" * len(part))
        rows = connection.execute(f"SELECT key, checksum, vector FROM vectors WHERE key IN ({marks})", part).fetchall()
        seen += len(rows)
        found |= {
            key: vector
            for key, checksum, vector in rows
            if isinstance(vector, bytes) and crc32(vector, crc32(key)) == checksum
        }
    if seen > len(found):
        _LOG.warning("%d vectors in the cache of embeddings were damaged. They are made again.", seen - len(found))
    return found


def _bytes_used(connection: sqlite3.Connection) -> int:
    pages, free, size = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


_REST = 60.0
"""Seconds without the cache after it could not be used."""


class CachedEmbeddings:
    """Embed with another generator, and keep on disk what it gave.

    >>> from tempfile import TemporaryDirectory
    >>> from portico_testkit.fakes.embedding_generator import HashingEmbeddings
    >>> async def twice(folder):
    ...     cached = CachedEmbeddings(HashingEmbeddings(), path=Path(folder))
    ...     first = await cached.embed(["a red door", "a red roof", "a red door"])
    ...     second = await cached.embed(["a red roof", "a blue door"])
    ...     await cached.aclose()
    ...     return cached.model, cached.embedded, cached.found, second[0] == first[1]
    >>> with TemporaryDirectory() as folder:
    ...     asyncio.run(twice(folder))
    ('hashing-256', 3, 1, True)

    Name and model are the generator's, so that indexes made without the cache stay valid. All missing texts of a call
    go to the generator in one call, each once. A cache that cannot be read or written is logged and left alone for a
    minute, a damaged one is begun anew, and a vector that is not whole is embedded again. Several processes may share
    the file. Nothing is opened before the first call. `aclose` closes the cache and not the generator. Raises
    ``TypeError`` for texts that are no strings, ``ResponseInvalid`` when the generator returns another number of
    vectors than it was asked for, and what the generator raises.
    """

    def __init__(
        self,
        generator: EmbeddingGenerator,
        *,
        path: Path | None = None,
        max_bytes: int = 500_000_000,
        wait: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = generator.name
        self.model = generator.model
        self.found = 0
        """How many vectors came from the cache."""
        self.embedded = 0
        """How many the generator was asked for."""
        self._generator = generator
        self._cache = Cache(path.expanduser().absolute() if path else _default_path(), max_bytes, wait)
        self._clock = clock
        self._read_again = -math.inf
        self._write_again = -math.inf
        self._warned = ""

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Vectors:
        """Return one row per text, from the cache or from the generator."""
        texts = Vectors.check_texts(texts)
        keys = dict(zip(texts, keys_of(self.model, purpose, texts), strict=True))
        if not keys:
            return await self._generator.embed((), purpose=purpose)
        rows: dict[bytes, bytes | memoryview] = {**await self._find(list(keys.values()))}
        missing = [text for text in keys if keys[text] not in rows]
        if missing:
            rows.update(await self._ask(missing, keys, purpose))
        if len({len(row) for row in rows.values()}) > 1:
            # The generator's vectors have another length than they had: the old ones do not compare.
            rows = dict(await self._ask(list(keys), keys, purpose))
        wanted = [rows[keys[text]] for text in texts]
        return Vectors(b"".join(wanted), len(texts), len(wanted[0]) // 4)

    async def aclose(self) -> None:
        """Close the cache; the next call opens it again."""
        await asyncio.to_thread(self._cache.close)

    async def _find(self, keys: Sequence[bytes]) -> Mapping[bytes, bytes]:
        if self._clock() < self._read_again:
            return {}
        try:
            found = await asyncio.to_thread(self._cache.find, keys)
        except StoreError as error:
            self._read_again = self._rest_after(error)
            return {}
        self.found += len(found)
        return found

    async def _ask(
        self, texts: Sequence[str], keys: Mapping[str, bytes], purpose: Purpose
    ) -> Mapping[bytes, memoryview]:
        vectors = await self._generator.embed(texts, purpose=purpose)
        if vectors.rows != len(texts):
            raise ResponseInvalid(
                f"Embeddings {self.name!r} gave {vectors.rows} vectors for {len(texts)} texts. None of them was kept."
            )
        self.embedded += len(texts)
        whole = vectors.buffer.cast("B")
        size = vectors.dimensions * 4
        rows = {keys[text]: whole[start * size : (start + 1) * size] for start, text in enumerate(texts)}
        if self._clock() >= max(self._read_again, self._write_again):
            try:
                await asyncio.to_thread(self._keep, rows)
            except StoreError as error:
                # What cannot be written, on a full disk perhaps, can be read all the same.
                self._write_again = self._rest_after(error)
        return rows

    def _keep(self, rows: Mapping[bytes, memoryview]) -> None:
        import numpy as np

        finite = [(key, row) for key, row in rows.items() if np.isfinite(np.frombuffer(row, np.float32)).all()]
        if finite:
            self._cache.keep(finite)

    def _rest_after(self, error: StoreError) -> float:
        if str(error) != self._warned:
            self._warned = str(error)
            _LOG.warning("%s Texts that are not found there are embedded. It is tried again in a minute.", error)
        return self._clock() + _REST


def from_services(settings: CachedEmbeddingsSettings, services: Services) -> CachedEmbeddings:
    """Make the cache over the generator that the settings name; raises what the services raise for it."""
    return CachedEmbeddings(
        services.get(EmbeddingGenerator, settings.of),
        path=settings.path,
        max_bytes=settings.max_bytes,
        wait=settings.wait,
    )


def _default_path() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("portico", appauthor=False) / "embeddings"
