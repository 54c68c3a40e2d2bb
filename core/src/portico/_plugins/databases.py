"""SQLite for stores: transactions, the write-ahead log, and the kinds of errors. Core itself opens no database."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
# SQLITE_ERROR is a missing table or column: the statements of stores are fixed.
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH)
_PAUSE = 0.01
"""Seconds between two attempts to turn the log on."""


def writing(connection: sqlite3.Connection) -> AbstractContextManager[None]:
    """Run a transaction that excludes other writers; an error rolls it back.

    >>> connection = sqlite3.connect(":memory:", isolation_level=None)
    >>> with writing(connection):
    ...     _ = connection.execute("CREATE TABLE names (name)")
    >>> connection.in_transaction
    False
    >>> connection.close()

    The connection needs ``isolation_level=None``.
    """
    return _transaction(connection, "IMMEDIATE")


def reading(connection: sqlite3.Connection) -> AbstractContextManager[None]:
    """Run a transaction in which every statement sees the same state."""
    return _transaction(connection, "DEFERRED")


@contextmanager
def _transaction(connection: sqlite3.Connection, kind: str) -> Iterator[None]:
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # Some errors roll it back themselves.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def use_log(connection: sqlite3.Connection, wait: float) -> None:
    """Turn the write-ahead log on, so that readers and a writer do not wait for each other.

    Raises ``sqlite3.OperationalError`` (busy) when others are in the way for more than ``wait`` seconds. SQLite does
    not wait itself when two processes turn the log on at once.
    """
    until = time.monotonic() + wait
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if plain_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_PAUSE)
        else:
            return


def plain_code(error: sqlite3.Error) -> int:
    """Return the kind of an error (``sqlite3.SQLITE_FULL``, …), the low byte of its code; 0 without a code."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def is_busy(error: sqlite3.Error) -> bool:
    """Tell whether others are in the way, so that another attempt may succeed."""
    return plain_code(error) in _BUSY


def is_damaged(error: sqlite3.Error) -> bool:
    """Tell whether a file is not a database, is damaged, or has other tables.

    >>> connection = sqlite3.connect(":memory:")
    >>> try:
    ...     connection.execute("SELECT * FROM runs")
    ... except sqlite3.Error as error:
    ...     is_damaged(error), is_busy(error)
    (True, False)
    >>> connection.close()

    """
    return plain_code(error) in _DAMAGED or is_no_text(error)


def is_no_text(error: Exception) -> bool:
    """Tell whether an error means that a text is not UTF-8, so that the file is damaged.

    Python's module raises it for a column, without a code of SQLite. For a table's name, SQLite quotes the bytes in a
    message, which the module cannot decode.
    """
    if isinstance(error, sqlite3.OperationalError):
        return not plain_code(error)
    return isinstance(error, UnicodeDecodeError)
