"""Reading a namespace's folder: snapshots, kept as long as no one writes."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from portico.search import Filter, FilterSupport
from portico_faiss._database import State, check, connect, decoded_id, identity, read_state
from portico_faiss._errors import damaged, mapped_errors
from portico_faiss._metadata import decoded, prefilter
from portico_faiss._names import DATABASE, vectors_file
from portico_faiss._search import Entries, Entry, LoadedEntries, View
from portico_faiss._vector_file import mapped
from portico_faiss._vectors import Rows, Slots

_LOADED_SLOTS = 10_000
_LOADED_TEXT = 8_000_000
"""Up to so many slots, and characters of metadata, are held in memory; larger namespaces are asked by slot."""

_LOOK_EVERY = 1.0
"""Seconds between two looks at whether somebody put another folder in this one's place. Commits are seen at once."""

_READ_AT_ONCE = 1_000
_ATTEMPTS = 10


class FolderReader:
    """One connection for reading, used by one thread at a time.

    The view is carried on from commit to commit: only new slots and new deaths are read. Slots of a
    generation are never used twice, so what was read stays true.
    """

    def __init__(self, folder: Path, namespace: str, wait: float) -> None:
        self._folder = folder
        self._database = str(folder / DATABASE)
        self._namespace = namespace
        self._wait = wait
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._looked = 0.0
        self._version = -1
        self._view: View | None = None
        self._text = 0

    def current(self) -> View | None:
        """Return the state if it is in memory and no one has written since; None when that takes longer to say."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            if self._connection is None or self._view is None:
                return None
            if time.monotonic() > self._looked + _LOOK_EVERY:
                if self._file != identity(self._database):
                    return None
                self._looked = time.monotonic()
            version = self._connection.execute("PRAGMA data_version").fetchone()[0]
            return self._view if version == self._version else None
        except (sqlite3.Error, UnicodeDecodeError, OSError):
            # The slow way meets the same fault and names it.
            return None
        finally:
            self._lock.release()

    @contextmanager
    def snapshot(self) -> Iterator[tuple[View, Entries, sqlite3.Connection] | None]:
        """Give the state as it is now, the same until the block ends; None when there is nothing yet."""
        with self._lock, mapped_errors(self._folder / DATABASE):
            connection = self._opened()
            if connection is None:
                yield None
                return
            try:
                view = self._begun(connection)
                if view is None:
                    yield None
                elif view.entries is None:
                    yield view, _StoredEntries(connection, self._folder), connection
                else:
                    yield view, LoadedEntries(view.entries, len(view.rows)), connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection and forget the view; the next call opens again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = self._file = self._view = None

    def _opened(self) -> sqlite3.Connection | None:
        file = identity(self._database)
        if file is None:
            self.close()
            return None
        if self._connection is None or file != self._file:
            self.close()
            connection = connect(self._folder, self._wait)
            try:
                there = check(connection, self._folder, self._namespace)
            except BaseException:
                connection.close()
                raise
            if not there:
                connection.close()
                return None
            self._connection, self._file, self._version = connection, file, -1
        return self._connection

    def _begun(self, connection: sqlite3.Connection) -> View | None:
        for _ in range(_ATTEMPTS):
            connection.execute("BEGIN")
            state = read_state(connection, self._folder)
            version = connection.execute("PRAGMA data_version").fetchone()[0]
            if version == self._version:
                return self._view
            try:
                self._view = self._carried_on(connection, state)
            except FileNotFoundError:
                # Between our look at the state and at the file, a writer moved on to the next generation.
                connection.execute("ROLLBACK")
            else:
                self._version = version
                return self._view
        raise damaged(vectors_file(self._folder, state.generation), "it is missing")

    def _carried_on(self, connection: sqlite3.Connection, state: State) -> View | None:
        if state.dimensions is None:
            return None
        before = self._view
        if (
            before is None
            or before.generation != state.generation
            or before.rows.shape[1] != state.dimensions
            or len(before.rows) > state.next_slot
        ):
            before = View(state.generation, np.empty((0, state.dimensions), np.float32), np.empty(0, np.int64), [])
            self._text = 0
            self._check_counts(connection, state)
        rows = before.rows
        if len(rows) != state.next_slot:
            rows = mapped(vectors_file(self._folder, state.generation), state.next_slot, state.dimensions)
        died = np.fromiter(
            (slot for (slot,) in connection.execute("SELECT slot FROM dead WHERE number > ?", (len(before.dead),))),
            dtype=np.int64,
        )
        if len(died) and not 0 <= died.min() <= died.max() < state.next_slot:
            raise damaged(self._folder / DATABASE, "it counts slots that it does not have")
        dead = np.concatenate([before.dead, died]) if len(died) else before.dead
        return View(state.generation, rows, dead, self._entries(connection, before, rows))

    def _check_counts(self, connection: sqlite3.Connection, state: State) -> None:
        (alive,) = connection.execute("SELECT count(*) FROM records").fetchone()
        (dead,) = connection.execute("SELECT count(*) FROM dead").fetchone()
        if alive + dead != state.next_slot:
            raise damaged(
                self._folder / DATABASE, f"it has {alive} records and {dead} empty slots of {state.next_slot}"
            )

    def _entries(self, connection: sqlite3.Connection, before: View, rows: Rows) -> list[Entry | None] | None:
        if before.entries is None or len(rows) > _LOADED_SLOTS:
            return None
        entries, start = before.entries, len(before.rows)
        if len(rows) == start:
            return entries
        del entries[start:]
        entries.extend([None] * (len(rows) - start))
        for slot, id, metadata in connection.execute(
            "SELECT slot, id, metadata FROM records WHERE slot >= ?", (start,)
        ):
            if not slot < len(entries):
                raise damaged(self._folder / DATABASE, f"it has a record in slot {slot} of {len(entries)}")
            self._text += len(metadata)
            if self._text > _LOADED_TEXT:
                return None
            entries[slot] = decoded_id(id), decoded(metadata)
        return entries


class _StoredEntries:
    """Entries that are read from the database when asked for, inside one snapshot."""

    def __init__(self, connection: sqlite3.Connection, folder: Path) -> None:
        self._connection = connection
        self._folder = folder

    def read(self, slots: Sequence[int]) -> list[Entry]:
        found: dict[int, Entry] = {}
        for start in range(0, len(slots), _READ_AT_ONCE):
            chosen = json.dumps(slots[start : start + _READ_AT_ONCE])
            for slot, id, metadata in self._connection.execute(
                "SELECT slot, id, metadata FROM records WHERE slot IN (SELECT value FROM json_each(?))", (chosen,)
            ):
                found[slot] = decoded_id(id), decoded(metadata)
        try:
            return [found[slot] for slot in slots]
        except KeyError as error:
            raise damaged(self._folder / DATABASE, f"it has no record in slot {error}") from error

    def scan(self, filter: Filter) -> Slots:
        condition, parameters = prefilter(filter)
        rows = self._connection.execute(
            f"SELECT slot, metadata FROM records WHERE {condition} ORDER BY slot", parameters
        )
        return np.fromiter(
            (slot for slot, text in rows if FilterSupport.matches(filter, decoded(text))), dtype=np.int64
        )
