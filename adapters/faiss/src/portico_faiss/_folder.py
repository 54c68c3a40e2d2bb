"""A namespace in a folder: a database with ids and metadata, a file of vectors, and perhaps an index.

A namespace changes only when the database commits. The vectors are written before that. The index is only a cache.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, replace
from pathlib import Path

import numpy as np

from portico.errors import StoreDamaged, StoreError
from portico.plugins import Sqlite
from portico.search import Filter, VectorMatch, VectorRecord
from portico_faiss._files import (
    DATABASE,
    Rows,
    append_rows,
    copy_rows,
    damage_error,
    folder_name,
    generation_of_vectors,
    is_wasteful,
    map_errors,
    map_rows,
    sum_up,
    unit_blocks,
    vectors_file,
)
from portico_faiss._index import IndexFiles, Tell, is_behind, parts_of_index, say_untrained
from portico_faiss._search import Entry, StoredEntries, View, decode, decode_id, encode_id, search
from portico_faiss.config import FaissSettings

_FORMAT = 1

_TABLES = (
    """CREATE TABLE state (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        format INTEGER NOT NULL,
        namespace BLOB NOT NULL,
        dimensions INTEGER,
        generation INTEGER NOT NULL,
        next_slot INTEGER NOT NULL,
        checksum INTEGER NOT NULL)""",
    "CREATE TABLE records (slot INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, metadata TEXT NOT NULL)",
    # Slots that held a record once.
    "CREATE TABLE dead (number INTEGER PRIMARY KEY, slot INTEGER NOT NULL)",
)

_LOADED_SLOTS = 10_000
_LOADED_TEXT = 8_000_000
"""Up to so many slots and characters of metadata are kept in memory; larger namespaces are read by slot."""
_LOOK_EVERY = 1.0
"""Seconds between two checks of whether the folder was replaced. Commits are seen at once."""
_ATTEMPTS = 10
_READ_AT_ONCE = 500
_SECONDS_A_PART_MAY_TAKE = 86_400


@dataclass(frozen=True, slots=True)
class _State:
    """The row that names the current vectors, with the CRC-32 of them all. An empty namespace has no dimensions."""

    dimensions: int | None
    generation: int
    next_slot: int
    checksum: int


class _Database:
    """A connection to a namespace's database. A thread needs ``lock`` to use it."""

    def __init__(self, folder: Path, namespace: str, wait: float) -> None:
        self.lock = threading.RLock()
        self.connection: sqlite3.Connection | None = None
        self._folder = folder
        self._file = str(folder / DATABASE)
        self._namespace = encode_id(namespace)
        self._wait = wait
        self._identity: tuple[int, int] | None = None

    def is_same_file(self) -> bool:
        """Tell whether the open file is still the one in the folder."""
        return self._identity == _identity(self._file)

    def open(self, *, create: bool = False) -> sqlite3.Connection | None:
        """Return the connection; None if the namespace does not exist, unless ``create`` is set."""
        if self.connection is not None and self.is_same_file():
            return self.connection
        self.close()
        sealed = Sqlite.is_sealed(Path(self._file))
        if create:
            self._folder.mkdir(parents=True, exist_ok=True)
        elif _identity(self._file) is None:
            return None
        connection = sqlite3.connect(
            f"{Path(self._file).absolute().as_uri()}?mode={'rwc' if create else 'rw'}",
            uri=True,
            timeout=self._wait,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            # FULL: a power failure must not undo a commit after older files were deleted.
            connection.execute("PRAGMA synchronous = FULL")
            if not sealed and connection.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
                raise damage_error(Path(self._file), "its parts do not fit together")
            if create:
                self._create(connection)
            if not self._check(connection):
                connection.close()
                return None
        except BaseException:
            connection.close()
            raise
        self.connection, self._identity = connection, _identity(self._file)
        return connection

    def close(self) -> None:
        """Close the connection; the next call opens again."""
        with self.lock:
            if self.connection is not None:
                self.connection.close()
            self.connection = None

    def _create(self, connection: sqlite3.Connection) -> None:
        Sqlite.use_log(connection, self._wait)
        with Sqlite.transaction(connection):
            if not self._has_tables(connection):
                for table in _TABLES:
                    connection.execute(table)
                connection.execute("INSERT INTO state VALUES (1, ?, ?, NULL, 1, 0, 0)", (_FORMAT, self._namespace))

    def _check(self, connection: sqlite3.Connection) -> bool:
        """Tell whether the tables exist. Raises ``StoreDamaged`` if they belong to another namespace."""
        if not self._has_tables(connection):
            return False
        row = connection.execute("SELECT format, namespace FROM state").fetchone()
        if row != (_FORMAT, self._namespace):
            raise damage_error(
                Path(self._file), f"it belongs to the namespace and format {row}, not to {(self._namespace, _FORMAT)}"
            )
        if all(name != "checksum" for _, name, *_ in connection.execute("PRAGMA table_info(state)")):
            # An earlier version wrote it. Another process may be quicker.
            with suppress(FileNotFoundError), Sqlite.transaction(connection):
                with suppress(sqlite3.OperationalError):
                    connection.execute("ALTER TABLE state ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0")
                query = "SELECT generation, dimensions * next_slot * 4 FROM state"
                generation, size = connection.execute(query).fetchone()
                checksum = sum_up(vectors_file(self._folder, generation), size) if size else 0
                connection.execute("UPDATE state SET checksum = ?", (checksum,))
        return True

    def _has_tables(self, connection: sqlite3.Connection) -> bool:
        found = "SELECT 1 FROM sqlite_master WHERE name = 'state'"
        there = connection.execute(found).fetchone() is not None
        # Tables are made before vectors. Another process may have made both after the first query: ask again.
        if not there and any(generation_of_vectors(name) for name in os.listdir(self._folder)):  # noqa: PTH208
            there = connection.execute(found).fetchone() is not None
            if not there:
                raise damage_error(Path(self._file), "it is empty, but there are vectors beside it")
        return there


class FolderNamespace:
    """A namespace in a folder. All calls block, except `current`.

    There is one connection for reading and one for writing, so that searches do not wait for writers.
    """

    def __init__(self, root: Path, namespace: str, settings: FaissSettings, tell: Tell) -> None:
        self._tell = tell
        self._root = root
        self._folder = root / folder_name(namespace)
        self._settings = settings
        self._reading = _Database(self._folder, namespace, settings.wait)
        self._writing = _Database(self._folder, namespace, settings.wait)
        self._seen: tuple[sqlite3.Connection, int] | None = None
        self._view: View | None = None
        self._looked = 0.0
        self._files = IndexFiles(self._folder, settings)
        # The state that was read last, to tell without a query whether the index may be behind.
        self._last = _State(None, 0, sys.maxsize, 0)
        self._compared: sqlite3.Connection | None = None
        self._linking = threading.Lock()
        self._stopped = False

    def current(self) -> View | None:
        """Return the state if it is in memory and still valid; None if checking would block."""
        reading = self._reading
        if not reading.lock.acquire(blocking=False):
            return None
        try:
            connection = reading.connection
            if connection is None:
                return None
            if time.monotonic() > self._looked + _LOOK_EVERY:
                if not reading.is_same_file():
                    return None
                self._looked = time.monotonic()
            return self._view if self._seen == (connection, _version(connection)) else None
        except (sqlite3.Error, UnicodeDecodeError, OSError):
            # The slow path gets the same error and reports it.
            return None
        finally:
            reading.lock.release()

    def search(self, queries: Rows, top: int, filter: Filter | None) -> list[list[VectorMatch]]:
        """Search the current state, along the index where there is one. Extends the index first if it is behind."""
        self._stopped = False
        if filter is None:
            self._link()
        with self._snapshot() as snapshot:
            if snapshot is None:
                return [[] for _ in queries]
            view, connection = snapshot
            index = None
            if filter is None and len(view.rows) >= self._settings.indexed_from:
                index = self._files.newest(view.generation, int(view.rows.shape[1]))
            if view.entries is None:
                stored = StoredEntries(connection, self._folder)
                return search(view, queries, top=top, filter=filter, index=index, stored=stored)
        return search(view, queries, top=top, filter=filter, index=index)

    def write(self, records: Sequence[Entry], rows: Rows) -> None:
        """Add or replace records, all or none; then extend the index if many are new.

        Raises ``ValueError`` for other dimensions than the namespace's.
        """
        self._stopped = False
        dimensions = int(rows.shape[1])
        with self._change(create=True) as change:
            if change is not None:
                connection, state = change
                if state.dimensions not in (None, dimensions):
                    raise ValueError(
                        f"the vectors have {dimensions} dimensions, those in the namespace {state.dimensions}"
                    )
                file = vectors_file(self._folder, state.generation)
                checksum = append_rows(file, state.next_slot, dimensions, unit_blocks(rows), state.checksum)
                _bury(connection, [id for id, _ in records])
                connection.executemany(
                    "INSERT INTO records (slot, id, metadata) VALUES (?, ?, ?)",
                    (
                        (slot, encode_id(id), VectorRecord.encode_metadata(metadata))
                        for slot, (id, metadata) in enumerate(records, state.next_slot)
                    ),
                )
                slots = state.next_slot + len(records)
                _write_state(connection, _State(dimensions, state.generation, slots, checksum))
        self._link()

    def delete(self, ids: Sequence[str]) -> int:
        with self._change() as change:
            return 0 if change is None else _bury(change[0], ids)

    def get(self, ids: Sequence[str]) -> tuple[list[VectorRecord], Rows | None]:
        """Return the known records among ``ids`` and a copy of their vectors."""
        with self._snapshot() as snapshot:
            if snapshot is None:
                return [], None
            view, connection = snapshot
            found: dict[str, tuple[int, str]] = {}
            for start in range(0, len(ids), _READ_AT_ONCE):
                keys = [encode_id(id) for id in ids[start : start + _READ_AT_ONCE]]
                query = f"SELECT id, slot, metadata FROM records WHERE id IN ({', '.join('?' * len(keys))})"
                found.update((decode_id(id), (slot, text)) for id, slot, text in connection.execute(query, keys))
            known = [id for id in ids if id in found]
            records = [VectorRecord(id, decode(found[id][1], self._folder)) for id in known]
            return (records, view.rows[[found[id][0] for id in known]]) if known else ([], None)

    def count(self) -> int:
        with self._snapshot() as snapshot:
            return 0 if snapshot is None else snapshot[0].count

    def ids(self) -> list[str]:
        with self._snapshot() as snapshot:
            rows = [] if snapshot is None else snapshot[1].execute("SELECT id FROM records")
            return [decode_id(id) for (id,) in rows]

    def drop(self) -> None:
        """Remove every record and the dimensions. A damaged folder is removed whole.

        Otherwise the folder and the database stay: other processes may have them open.
        """
        try:
            with self._change() as change:
                if change is not None:
                    connection, state = change
                    connection.execute("DELETE FROM records")
                    connection.execute("DELETE FROM dead")
                    _write_state(connection, _State(None, state.generation + 1, 0, 0))
        except StoreDamaged:
            self.close()
            with map_errors(self._folder):
                # Renamed first, so that a kill leaves the whole folder or nothing under its name.
                self._folder.replace(self._root / f"removed-{uuid.uuid4().hex}")
        for folder in self._root.glob("removed-*"):
            shutil.rmtree(folder, ignore_errors=True)

    def _link(self) -> None:
        """Extend the index over the new slots, in one thread at a time; other threads skip it."""
        if not self._is_behind(self._last.generation, self._last.next_slot):
            return
        if not self._linking.acquire(blocking=False):
            return
        try:
            with self._snapshot() as snapshot:
                view = snapshot[0] if snapshot else None
            if view is None or not self._is_behind(view.generation, len(view.rows)):
                return
            index = self._files.to_extend(view.generation, view.rows)
            linked = index.rows
            index.extend(view.rows, self._tell, lambda: self._stopped)
            # Also when it was stopped: the next process continues from there.
            if index.rows > linked:
                self._files.publish(view.generation, index)
        finally:
            self._linking.release()

    def _is_behind(self, generation: int, slots: int) -> bool:
        if slots < self._settings.indexed_from:
            return False
        return is_behind(slots, self._files.count_linked(generation), self._settings)

    def close(self) -> None:
        """Close every file and stop extending the index; the next call opens them again."""
        self._stopped = True
        say_untrained(self._settings, self._last.next_slot)
        with self._linking, self._writing.lock:
            # Without a seal, which others who are at work prevent, it is only opened more slowly.
            with suppress(StoreError), map_errors(self._folder):
                database = self._folder / DATABASE
                if not Sqlite.is_sealed(database) and (connection := self._writing.open()) is not None:
                    self._reading.close()
                    Sqlite.seal(connection, database)
            self._reading.close()
            self._writing.close()

    @contextmanager
    def _snapshot(self) -> Iterator[tuple[View, sqlite3.Connection] | None]:
        """Give the current state, unchanged until the block ends; None if the namespace is empty."""
        with self._reading.lock, map_errors(self._folder):
            connection = self._reading.open()
            if connection is None:
                yield None
                return
            for _ in range(_ATTEMPTS):
                with Sqlite.transaction(connection, write=False):
                    state = self._state(connection)
                    try:
                        view = self._view_of(connection, state)
                    except FileNotFoundError:
                        # A writer began the next generation after the state was read.
                        continue
                    yield None if view is None else (view, connection)
                    return
            raise damage_error(vectors_file(self._folder, state.generation), "it is missing")

    def _view_of(self, connection: sqlite3.Connection, state: _State) -> View | None:
        seen = connection, _version(connection)
        if self._seen != seen:
            self._seen = None
            self._view = self._load(connection, state)
            self._seen = seen
        return self._view

    def _load(self, connection: sqlite3.Connection, state: _State) -> View | None:
        if state.dimensions is None:
            return None
        slots, database = state.next_slot, self._folder / DATABASE
        rows = map_rows(vectors_file(self._folder, state.generation), slots, state.dimensions)
        if self._compared is not connection:  # what is written while it is open is not read again
            self._compare_vectors(state)
            self._compared = connection
        dead = np.fromiter((slot for (slot,) in connection.execute("SELECT slot FROM dead")), dtype=np.int64)
        (alive,) = connection.execute("SELECT count(*) FROM records").fetchone()
        if alive + len(dead) != slots or (len(dead) and not 0 <= dead.min() <= dead.max() < slots):
            raise damage_error(database, f"it has {alive} records and {len(dead)} empty slots of {slots}")
        if slots > _LOADED_SLOTS:
            return View(state.generation, rows, dead)
        entries: list[Entry | None] = [None] * slots
        size = 0
        for slot, id, metadata in connection.execute("SELECT slot, id, metadata FROM records"):
            size += len(metadata)
            if size > _LOADED_TEXT:
                return View(state.generation, rows, dead)
            if not 0 <= slot < slots:
                raise damage_error(database, f"it has a record in slot {slot} of {slots}")
            entries[slot] = decode_id(id), decode(metadata, self._folder)
        return View(state.generation, rows, dead, entries)

    @contextmanager
    def _change(self, *, create: bool = False) -> Iterator[tuple[sqlite3.Connection, _State] | None]:
        """Give the state, to change it in one transaction; None if the namespace does not exist."""
        with self._writing.lock, map_errors(self._folder):
            connection = self._writing.open(create=create)
            if connection is None:
                yield None
                return
            with Sqlite.transaction(connection):
                Sqlite.unseal(self._folder / DATABASE)
                yield connection, self._state(connection)
                state = self._compact(connection, self._state(connection))
            self._tidy(state.generation)

    def _compact(self, connection: sqlite3.Connection, state: _State) -> _State:
        """Copy the records to a new generation if most slots are dead; return the new state."""
        dead = connection.execute("SELECT max(number) FROM dead").fetchone()[0] or 0
        if state.dimensions is None or not is_wasteful(dead, state.next_slot):
            return state
        living = connection.execute("SELECT slot FROM records ORDER BY slot")
        slots = np.fromiter((slot for (slot,) in living), dtype=np.int64)
        rows = map_rows(vectors_file(self._folder, state.generation), state.next_slot, state.dimensions)
        self._compare_vectors(state)
        checksum = copy_rows(rows, slots, vectors_file(self._folder, state.generation + 1))
        # Records move to lower slots, in ascending order, so each new slot is free.
        connection.executemany("UPDATE records SET slot = ? WHERE slot = ?", enumerate(slots.tolist()))
        connection.execute("DELETE FROM dead")
        compacted = replace(state, generation=state.generation + 1, next_slot=len(slots), checksum=checksum)
        _write_state(connection, compacted)
        return compacted

    def _compare_vectors(self, state: _State) -> None:
        """Raise ``StoreDamaged`` unless the vectors are those that were written."""
        file = vectors_file(self._folder, state.generation)
        size = (state.dimensions or 0) * state.next_slot * 4
        if sum_up(file, size) != state.checksum:
            raise damage_error(file, "its vectors are not those that were written")

    def _tidy(self, generation: int) -> None:
        """Remove files of older generations, and old parts that a killed process left.

        Another process may be about to commit a newer generation.
        """
        with suppress(OSError):
            for file in self._folder.iterdir():
                of_index = parts_of_index(file.name)
                found = of_index[0] if of_index else generation_of_vectors(file.name)
                old = found is not None and found < generation
                if file.name.startswith("part-"):
                    old = time.time() - file.stat().st_mtime > _SECONDS_A_PART_MAY_TAKE
                if old:
                    file.unlink()

    def _state(self, connection: sqlite3.Connection) -> _State:
        row = connection.execute("SELECT dimensions, generation, next_slot, checksum FROM state").fetchone()
        if row is None:
            raise damage_error(self._folder / DATABASE, "its state is missing")
        self._last = _State(*row)
        return self._last


def _write_state(connection: sqlite3.Connection, state: _State) -> None:
    connection.execute("UPDATE state SET dimensions = ?, generation = ?, next_slot = ?, checksum = ?", astuple(state))


def _bury(connection: sqlite3.Connection, ids: Sequence[str]) -> int:
    keys = [(encode_id(id),) for id in ids]
    connection.executemany("INSERT INTO dead (slot) SELECT slot FROM records WHERE id = ?", dict.fromkeys(keys))
    return connection.executemany("DELETE FROM records WHERE id = ?", keys).rowcount


def _version(connection: sqlite3.Connection) -> int:
    """Return a number that changes when another connection commits."""
    version: int = connection.execute("PRAGMA data_version").fetchone()[0]
    return version


def _identity(file: str) -> tuple[int, int] | None:
    """Return device and inode of a file; None if it does not exist."""
    try:
        status = os.stat(file)  # noqa: PTH116 - this is asked before every search
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
