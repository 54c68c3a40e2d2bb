"""Writing a namespace's folder: vectors first, then one commit that makes them count."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from portico.plugins import Sqlite
from portico_faiss._database import State, create, encoded_id, identity, read_state, write_state
from portico_faiss._errors import mapped_errors
from portico_faiss._graph_files import remove_if_possible
from portico_faiss._metadata import encoded
from portico_faiss._names import DATABASE, generation_of_vectors, parts_of_graph, vectors_file
from portico_faiss._search import Entry
from portico_faiss._vector_file import append, copy
from portico_faiss._vectors import Rows, unit_blocks

_DEAD_BEFORE_COMPACTION = 1_000
_SECONDS_A_PART_MAY_TAKE = 86_400


class FolderWriter:
    """One connection for writing, used by one thread at a time; other processes wait their turn in SQLite."""

    def __init__(self, folder: Path, namespace: str, wait: float) -> None:
        self._folder = folder
        self._namespace = namespace
        self._wait = wait
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None

    def write(self, records: Sequence[Entry], rows: Rows) -> None:
        """Add or replace records, all or none. Raises ``ValueError`` for other dimensions than the namespace's."""
        dimensions = int(rows.shape[1])
        with self._lock, mapped_errors(self._folder / DATABASE):
            connection = self._opened()
            with Sqlite.transaction(connection):
                state = read_state(connection, self._folder)
                if state.dimensions not in (None, dimensions):
                    raise ValueError(
                        f"the vectors have {dimensions} dimensions, those in the namespace {state.dimensions}"
                    )
                file = vectors_file(self._folder, state.generation)
                append(file, state.next_slot, dimensions, unit_blocks(rows))
                _bury(connection, [id for id, _ in records])
                connection.executemany(
                    "INSERT INTO records (slot, id, metadata) VALUES (?, ?, ?)",
                    (
                        (slot, encoded_id(id), encoded(metadata))
                        for slot, (id, metadata) in enumerate(records, state.next_slot)
                    ),
                )
                state = State(dimensions, state.generation, state.next_slot + len(records))
                write_state(connection, state)
                kept = self._compacted(connection, state)
            if kept.generation != state.generation:
                self._tidy(kept.generation)

    def delete(self, ids: Sequence[str]) -> int:
        """Remove records and return how many there were."""
        with self._lock, mapped_errors(self._folder / DATABASE):
            if not (self._folder / DATABASE).exists():
                return 0
            connection = self._opened()
            with Sqlite.transaction(connection):
                state = read_state(connection, self._folder)
                removed = _bury(connection, ids)
                kept = self._compacted(connection, state)
            if kept.generation != state.generation:
                self._tidy(kept.generation)
            return removed

    def drop(self) -> None:
        """Remove every record and the dimensions.

        The folder and an empty database stay, so that other processes which have it open see that it is empty
        rather than write into files that are gone.
        """
        with self._lock, mapped_errors(self._folder / DATABASE):
            if not (self._folder / DATABASE).exists():
                return
            connection = self._opened()
            with Sqlite.transaction(connection):
                state = read_state(connection, self._folder)
                connection.execute("DELETE FROM records")
                connection.execute("DELETE FROM dead")
                write_state(connection, State(None, state.generation + 1, 0))
            self._tidy(state.generation + 1)

    def close(self) -> None:
        """Close the connection; the next call opens again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = self._file = None

    def _opened(self) -> sqlite3.Connection:
        if self._connection is not None and self._file != identity(str(self._folder / DATABASE)):
            self.close()
        if self._connection is None:
            connection = create(self._folder, self._namespace, self._wait)
            self._connection, self._file = connection, identity(str(self._folder / DATABASE))
            self._tidy(read_state(connection, self._folder).generation)
        return self._connection

    def _compacted(self, connection: sqlite3.Connection, state: State) -> State:
        """Move the living to a new generation when most slots are dead; return the state that results."""
        dead = connection.execute("SELECT max(number) FROM dead").fetchone()[0] or 0
        if state.dimensions is None or dead <= max(_DEAD_BEFORE_COMPACTION, state.next_slot - dead):
            return state
        slots = np.fromiter(
            (slot for (slot,) in connection.execute("SELECT slot FROM records ORDER BY slot")), dtype=np.int64
        )
        copy(
            vectors_file(self._folder, state.generation),
            vectors_file(self._folder, state.generation + 1),
            slots,
            state.next_slot,
            state.dimensions,
        )
        # A record only ever moves down, in ascending order, so its new slot is free.
        connection.executemany("UPDATE records SET slot = ? WHERE slot = ?", _moves(slots))
        connection.execute("DELETE FROM dead")
        compacted = State(state.dimensions, state.generation + 1, len(slots))
        write_state(connection, compacted)
        return compacted

    def _tidy(self, generation: int) -> None:
        # Only older generations: a newer one may be what another process is about to commit.
        for file in self._folder.iterdir():
            of_vectors, of_graph = generation_of_vectors(file.name), parts_of_graph(file.name)
            older = (of_vectors is not None and of_vectors < generation) or (
                of_graph is not None and of_graph[0] < generation
            )
            if older or (file.name.startswith("part-") and _is_forgotten(file)):
                remove_if_possible(file)


def _bury(connection: sqlite3.Connection, ids: Sequence[str]) -> int:
    keys = [(encoded_id(id),) for id in ids]
    connection.executemany("INSERT INTO dead (slot) SELECT slot FROM records WHERE id = ?", dict.fromkeys(keys))
    return connection.executemany("DELETE FROM records WHERE id = ?", keys).rowcount


def _moves(slots: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Iterator[tuple[int, int]]:
    for new, old in enumerate(slots.tolist()):
        if new != old:
            yield new, old


def _is_forgotten(file: Path) -> bool:
    try:
        return time.time() - file.stat().st_mtime > _SECONDS_A_PART_MAY_TAKE
    except OSError:
        return False
