"""The database of a namespace: ids, metadata, and which row of the vectors' file belongs to which record.

A commit here is the only moment at which a namespace changes.
"""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from portico.plugins import Sqlite
from portico_faiss._errors import damaged
from portico_faiss._names import DATABASE, generation_of_vectors

_FORMAT = 1

_TABLES = (
    """CREATE TABLE state (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        format INTEGER NOT NULL,
        namespace BLOB NOT NULL,
        dimensions INTEGER,
        generation INTEGER NOT NULL,
        next_slot INTEGER NOT NULL)""",
    "CREATE TABLE records (slot INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, metadata TEXT NOT NULL)",
    # Slots that held a record once, in the order of their death: what a reader has not seen yet is the end of it.
    "CREATE TABLE dead (number INTEGER PRIMARY KEY, slot INTEGER NOT NULL)",
)


@dataclass(frozen=True, slots=True)
class State:
    """The one row that says which vectors are in force; no dimensions mean that there is nothing."""

    dimensions: int | None
    generation: int
    next_slot: int


def encoded_id(id: str) -> bytes:
    """Return an id as SQLite keeps it: any string, also one that is not valid Unicode."""
    return id.encode("utf-8", "surrogatepass")


def decoded_id(id: bytes) -> str:
    """Return the id that `encoded_id` encoded."""
    return id.decode("utf-8", "surrogatepass")


def connect(folder: Path, wait: float) -> sqlite3.Connection:
    """Open the database of a folder, which must be there; ``wait`` is in seconds.

    The caller makes sure that one thread at a time uses it.
    """
    connection = sqlite3.connect(
        f"{(folder / DATABASE).absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=wait,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        # FULL: a commit must not be lost to a power failure after the file that it replaced was removed.
        connection.execute("PRAGMA synchronous = FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def create(folder: Path, namespace: str, wait: float) -> sqlite3.Connection:
    """Open the database of a folder for writing, and make folder, file and tables where they are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / DATABASE).touch()
    connection = connect(folder, wait)
    try:
        Sqlite.use_log(connection, wait)
        with Sqlite.transaction(connection):
            if not _has_tables(connection, folder):
                for table in _TABLES:
                    connection.execute(table)
                connection.execute("INSERT INTO state VALUES (1, ?, ?, NULL, 1, 0)", (_FORMAT, encoded_id(namespace)))
        check(connection, folder, namespace)
    except BaseException:
        connection.close()
        raise
    return connection


def check(connection: sqlite3.Connection, folder: Path, namespace: str) -> bool:
    """Tell whether there is anything to read; raise ``StoreError`` when it is not this namespace's."""
    if not _has_tables(connection, folder):
        return False
    row = connection.execute("SELECT format, namespace FROM state").fetchone()
    if row is None:
        raise damaged(folder / DATABASE, "it says nothing about itself")
    if row[0] != _FORMAT:
        raise damaged(folder / DATABASE, f"its format is {row[0]!r}, this version of portico-faiss reads {_FORMAT}")
    if row[1] != encoded_id(namespace):
        raise damaged(folder / DATABASE, f"it belongs to the namespace {row[1]!r}")
    return True


def read_state(connection: sqlite3.Connection, folder: Path) -> State:
    """Return the state that this transaction sees."""
    row = connection.execute("SELECT dimensions, generation, next_slot FROM state").fetchone()
    if row is None:
        raise damaged(folder / DATABASE, "it says nothing about itself")
    return State(*row)


def write_state(connection: sqlite3.Connection, state: State) -> None:
    """Put a state in force with the transaction under way."""
    connection.execute(
        "UPDATE state SET dimensions = ?, generation = ?, next_slot = ?",
        (state.dimensions, state.generation, state.next_slot),
    )


def identity(database: str) -> tuple[int, int] | None:
    """Return what tells the file from another one put in its place; None when there is none.

    A string rather than a path, since this is asked before every search.
    """
    try:
        status = os.stat(database)  # noqa: PTH116
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _has_tables(connection: sqlite3.Connection, folder: Path) -> bool:
    if _has_state(connection):
        return True
    # The tables are there before the first vector, so vectors without tables are the rest of something, unless
    # another process has made both since the question was asked.
    if any(generation_of_vectors(file.name) for file in folder.iterdir()) and not _has_state(connection):
        raise damaged(folder / DATABASE, "it is empty, but there are vectors beside it")
    return _has_state(connection)


def _has_state(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'state'").fetchone() is not None
