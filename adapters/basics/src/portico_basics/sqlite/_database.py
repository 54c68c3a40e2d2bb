"""The file of the journal: opened, told apart from others, and given its tables."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from portico.plugins import Sqlite
from portico_basics.sqlite._errors import damaged, not_a_journal, too_new

VERSION = 1
_APPLICATION = 0x506F7274
"""What `file` and SQLite tell the journal by: "Port"."""

_TABLES = (
    # Names are bytes: any string is a name, also one that is not valid Unicode. `token` is that of the newest lease;
    # `owner` is none when the run is free, and `presence` the file that the owner's process holds locked.
    """CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name BLOB NOT NULL UNIQUE,
        created REAL NOT NULL,
        finished INTEGER NOT NULL DEFAULT 0,
        token INTEGER NOT NULL DEFAULT 0,
        owner BLOB,
        presence TEXT,
        expires REAL NOT NULL DEFAULT 0)""",
    "CREATE INDEX finished_runs ON runs (id) WHERE finished",
    """CREATE TABLE entries (
        run INTEGER NOT NULL REFERENCES runs (id),
        number INTEGER NOT NULL,
        entry TEXT NOT NULL,
        PRIMARY KEY (run, number)) WITHOUT ROWID""",
    # One row: the last token given, so that none comes again when a run was removed.
    "CREATE TABLE tokens (last INTEGER NOT NULL)",
    "INSERT INTO tokens VALUES (0)",
)


def connect(file: Path, wait: float) -> sqlite3.Connection:
    """Open the journal, and begin it where there is none; ``wait`` is in seconds.

    Raises ``OSError`` and ``sqlite3.Error`` as they come, and ``StoreError`` for a file of another kind or version.
    """
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Results may be private; the log beside it gets the same permissions from SQLite.
    os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
    connection = sqlite3.connect(file, timeout=wait, isolation_level=None)
    try:
        _prepare(connection, file, wait)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, file: Path, wait: float) -> None:
    if _is_empty(connection):
        Sqlite.use_log(connection, wait)
        with Sqlite.transaction(connection):
            # Two processes may begin it at once; the second finds it made.
            if _is_empty(connection):
                for table in _TABLES:
                    connection.execute(table)
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != _APPLICATION:
        raise not_a_journal(file)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise too_new(file, version, VERSION)
    if version < 1:
        raise damaged(file, f"it says of itself that it is of version {version}")
    connection.execute("PRAGMA synchronous = NORMAL")


def _is_empty(connection: sqlite3.Connection) -> bool:
    (pages,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return not pages
