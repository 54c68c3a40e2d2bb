"""What hishel keeps pages in: SQLite, in memory or in a folder, away from the event loop."""

from __future__ import annotations

import asyncio
import sqlite3
import uuid
from collections.abc import AsyncIterable, AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

from hishel import AsyncBaseStorage, Entry, Headers, Request, Response, SqliteStorage

from portico.errors import ServiceUnavailable, StoreError

T = TypeVar("T")

_WEEK = 7 * 24 * 3600.0


class PageStorage(AsyncBaseStorage):
    """hishel's SQLite storage with its work in threads, a body at a time.

    hishel's own asynchronous one needs a further package. A body is saved when it has been read to its end, and is
    read back whole, so that nothing is held open. ``file`` is None for memory. Pages go after a week, the
    longest unused first when there is no room. Raises ``StoreError`` for a file that cannot be used.
    """

    def __init__(self, file: Path | None, *, most: int, most_of_one: int) -> None:
        super().__init__(default_ttl=_WEEK, max_stream_size=min(most_of_one, most))
        self._file = file
        self._most = most
        self._most_of_one = min(most_of_one, most)
        self._storage: SqliteStorage | None = None
        self._opening = asyncio.Lock()
        self._closed = False

    async def create_entry(
        self, request: Request, response: Response, key: str, *, ttl: float | None = None, tti: float | None = None
    ) -> Entry:
        """Return the entry with a stream that saves the body when it has been read."""
        entry = Entry(uuid.uuid4(), request, response)
        stream = self._saving(entry, key, ttl, tti)
        return replace(entry, response=replace(response, stream=stream))

    async def get_entries(self, key: str) -> list[Entry]:
        """Return what is kept under a key, with its bodies."""
        return await self._run(_entries, key)

    async def update_headers(self, id: uuid.UUID, headers: Headers) -> None:
        """Replace the headers of an entry."""
        await self._run(SqliteStorage.update_headers, id, headers)

    async def remove_entry(self, id: uuid.UUID) -> None:
        """Remove an entry."""
        await self._run(SqliteStorage.remove_entry, id)

    async def close(self) -> None:
        """Close the database, for good."""
        self._closed = True
        storage, self._storage = self._storage, None
        if storage is not None:
            await asyncio.to_thread(storage.close)

    async def _saving(self, entry: Entry, key: str, ttl: float | None, tti: float | None) -> AsyncIterator[bytes]:
        kept: list[bytes] = []
        size = 0
        stream = cast("AsyncIterable[bytes]", entry.response.stream)
        async for piece in stream:
            size += len(piece)
            if size <= self._most_of_one:
                kept.append(piece)
            else:
                kept.clear()
            yield piece
        if size <= self._most_of_one:
            await self._run(partial(_save, entry=entry, key=key, body=b"".join(kept), ttl=ttl, tti=tti))

    async def _run(self, work: Callable[..., T], *arguments: object) -> T:
        async with self._opening:
            if self._closed:
                # Opened again it would stay open: whoever closes has been here.
                raise ServiceUnavailable("The page reader 'web-pages' was closed meanwhile.")
            if self._storage is None:
                self._storage = await asyncio.to_thread(self._opened)
            storage = self._storage
        try:
            return await asyncio.to_thread(work, storage, *arguments)
        except (RuntimeError, sqlite3.Error, OSError) as error:
            raise self._unusable(error) from error

    def _opened(self) -> SqliteStorage:
        try:
            place = ":memory:"
            if self._file is not None:
                self._file.parent.mkdir(parents=True, exist_ok=True)
                place = str(self._file)
            connection = sqlite3.connect(place, check_same_thread=False, isolation_level=None)
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from error
        # Nothing streams from an entry for longer than one call, so little time protects those that are removed.
        return SqliteStorage(connection=connection, max_size=self._most, default_ttl=_WEEK, soft_delete_ttl=10.0)

    def _unusable(self, error: Exception) -> StoreError:
        place = "in memory" if self._file is None else f"in {self._file}"
        return StoreError(f"Pages cannot be kept {place} (`cache_folder` of [pages.web-pages]): {error}.")


def _entries(storage: SqliteStorage, key: str) -> list[Entry]:
    found = []
    for entry in storage.get_entries(key):
        try:
            body = b"".join(cast("list[bytes]", entry.response.stream or []))
        except RuntimeError:
            continue  # removed by another process in this moment: hishel tells it so
        found.append(replace(entry, response=replace(entry.response, stream=_once(body))))
    return found


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


def _save(storage: SqliteStorage, *, entry: Entry, key: str, body: bytes, ttl: float | None, tti: float | None) -> None:
    response = replace(entry.response, stream=iter([body]))
    saved = storage.create_entry(entry.request, response, key, ttl=ttl, tti=tti)
    for _ in cast("list[bytes]", saved.response.stream):
        pass
