"""What every SQLite file of Portico needs: whole transactions, the write-ahead log, and the plain code of an error.

Nothing of core opens one: stores that do share these, so that a lesson is learnt once.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

__all__ = ["is_busy", "is_damaged", "is_no_text", "plain_code", "reading", "use_log", "writing"]

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
# SQLITE_ERROR is a table or column that is not there: what stores send to the database is fixed.
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH)
_PAUSE = 0.01
"""Seconds between two attempts to turn the log on."""


def writing(connection: sqlite3.Connection) -> AbstractContextManager[None]:
    """Run a transaction that excludes all other writers; roll it back when anything goes wrong.

    >>> connection = sqlite3.connect(":memory:", isolation_level=None)
    >>> with writing(connection):
    ...     _ = connection.execute("CREATE TABLE names (name)")
    >>> connection.in_transaction
    False
    >>> connection.close()

    The connection must leave transactions to its user: ``isolation_level=None``.
    """
    return _transaction(connection, "IMMEDIATE")


def reading(connection: sqlite3.Connection) -> AbstractContextManager[None]:
    """Run a transaction in which every statement sees the same state, whatever others write meanwhile."""
    return _transaction(connection, "DEFERRED")


@contextmanager
def _transaction(connection: sqlite3.Connection, kind: str) -> Iterator[None]:
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # Some errors have rolled it back already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def use_log(connection: sqlite3.Connection, wait: float) -> None:
    """Turn the write-ahead log on, so that readers and a writer do not wait for each other; ``wait`` is in seconds.

    Raises ``sqlite3.OperationalError`` (busy) when others are in the way for longer. SQLite does not wait by itself
    when two processes turn the log on at once.
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
    """Return what kind of error it is (``sqlite3.SQLITE_FULL``, …); 0 for one of Python's module itself.

    Extended codes carry the plain one in their low byte.
    """
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def is_busy(error: sqlite3.Error) -> bool:
    """Tell whether others are in the way, so that the same may succeed later."""
    return plain_code(error) in _BUSY


def is_damaged(error: sqlite3.Error) -> bool:
    """Tell whether a file is not what was written: no database, a damaged one, or one with other tables.

    >>> connection = sqlite3.connect(":memory:")
    >>> try:
    ...     connection.execute("SELECT * FROM runs")
    ... except sqlite3.Error as error:
    ...     is_damaged(error), is_busy(error)
    (True, False)
    >>> connection.close()

    A table or column that is missing counts, so ask only where the statements are your own.
    """
    return plain_code(error) in _DAMAGED or is_no_text(error)


def is_no_text(error: Exception) -> bool:
    """Tell whether an error says that what should be text is no UTF-8: bytes that were not written as they are.

    >>> connection = sqlite3.connect(":memory:")
    >>> try:
    ...     connection.execute("SELECT CAST(x'ff' AS TEXT)").fetchone()
    ... except sqlite3.Error as error:
    ...     is_no_text(error), plain_code(error)
    (True, 0)
    >>> connection.close()

    Of a column Python's module says so itself, without a code of SQLite's. Of a table's name or definition SQLite says
    it, in a message that quotes the bytes, and the module fails to read that.
    """
    if isinstance(error, sqlite3.OperationalError):
        return not plain_code(error)
    return isinstance(error, UnicodeDecodeError)
