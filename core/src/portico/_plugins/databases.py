"""What stores need of SQLite and PostgreSQL: transactions, and the kinds of errors. Core itself opens no database."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

from portico.errors import StoreBusy, StoreDamaged, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
# SQLITE_ERROR is a missing table or column: the statements of stores are fixed.
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH)
_PAUSE = 0.01
"""Seconds between two attempts to turn the log on."""
_READ_AT_ONCE = 1 << 20
_READING = threading.Lock()
_OPENED: dict[tuple[int, int], int] = {}
"""Descriptors by device and inode, never closed: with any of them POSIX drops all of SQLite's locks on the file."""
_WHOLE: dict[Path, tuple[str, int, int, int]] = {}
"""The seals of files that fitted them, with the state of the file then."""


class Sqlite:
    """What stores in SQLite need: transactions, the write-ahead log, and errors of Portico."""

    @staticmethod
    @contextmanager
    def transaction(connection: sqlite3.Connection, *, write: bool = True) -> Iterator[None]:
        """Run a transaction; an error rolls it back. One that writes excludes other writers.

        >>> connection = sqlite3.connect(":memory:", isolation_level=None)
        >>> with Sqlite.transaction(connection):
        ...     _ = connection.execute("CREATE TABLE names (name)")
        >>> connection.in_transaction
        False
        >>> connection.close()

        The connection needs ``isolation_level=None``. Without ``write``, every statement sees the same state.
        """
        connection.execute("BEGIN IMMEDIATE" if write else "BEGIN DEFERRED")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            # Some errors roll it back themselves.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    @staticmethod
    def use_log(connection: sqlite3.Connection, wait: float) -> None:
        """Turn the write-ahead log on, so that readers and a writer do not wait for each other.

        Raises ``sqlite3.OperationalError`` (busy) when others are in the way for more than ``wait`` seconds. SQLite
        does not wait itself when two processes turn the log on at once.
        """
        until = time.monotonic() + wait
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if _plain_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(_PAUSE)
            else:
                return

    @staticmethod
    def seal(connection: sqlite3.Connection, file: Path, wait: float = 0.0) -> None:
        """Write a checksum of the whole database into a file beside it.

        Does nothing when another connection is at work for more than ``wait`` seconds. Whoever changes the database
        unseals it first. Changes the timeout of the connection.
        """
        connection.execute(f"PRAGMA busy_timeout = {int(wait * 1_000)}")
        if not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            with Sqlite.transaction(connection):  # no other process writes meanwhile
                log = Path(f"{file}-wal")
                # Without a seal, the next opening only takes longer.
                with suppress(OSError):
                    if not log.exists() or not log.stat().st_size:
                        with (part := Path(f"{file}.seal-part")).open("w", encoding="ascii") as stream:
                            stream.write(_checksum(file))
                            stream.flush()
                            os.fsync(stream.fileno())  # else a power failure may leave an empty one
                        part.replace(f"{file}.seal")

    @staticmethod
    def unseal(file: Path) -> None:
        """Take the seal away, as a writer does before its first change."""
        Path(f"{file}.seal").unlink(missing_ok=True)

    @staticmethod
    def is_sealed(file: Path) -> bool:
        """Tell whether a database has a seal; raise ``sqlite3.OperationalError`` where the two do not fit.

        A missing database does not fit its seal. One that was compared is read again when its size or time changes.
        """
        if (seal := _read_seal(file)) is None:
            return False
        try:
            status = file.stat()
            state = seal, status.st_ino, status.st_size, status.st_mtime_ns
            whole = _WHOLE.get(file) == state or _checksum(file) == seal
        except FileNotFoundError:
            whole = False
        if whole:
            _WHOLE[file] = state
        elif _read_seal(file) == seal:  # else another process has begun to write
            raise sqlite3.OperationalError("its bytes are not those that were written")
        return whole

    @staticmethod
    @contextmanager
    def errors(what: str, *, damaged: str, advice: str) -> Iterator[None]:
        """Raise ``StoreBusy``, ``StoreDamaged`` or ``StoreError`` for an error of SQLite or of the file system.

        ``what`` begins the message: "The journal /var/runs.sqlite3". ``damaged`` and ``advice`` end it with what to do
        about a damaged file, and about other errors.
        """
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
            raise Sqlite.error(error, what, damaged=damaged, advice=advice) from error

    @staticmethod
    def error(error: Exception, what: str, *, damaged: str, advice: str) -> StoreError:
        """Return the error that `errors` raises for this one.

        >>> connection = sqlite3.connect(":memory:")
        >>> try:
        ...     connection.execute("SELECT * FROM runs")
        ... except sqlite3.Error as error:
        ...     print(Sqlite.error(error, "The journal", damaged="Move it away.", advice="Set another `path`."))
        The journal is damaged, or another kind of database: no such table: runs. Move it away.
        >>> connection.close()
        """
        if isinstance(error, OSError):
            return StoreError(f"{what} cannot be opened: {error}. {advice}")
        code = _plain_code(error)
        if code in _BUSY:
            return StoreBusy(f"Another process is writing to {what[0].lower()}{what[1:]}. Try again when it is done.")
        # Without a code, the module could not decode a text, or a message that quotes one.
        undecodable = isinstance(error, UnicodeDecodeError | sqlite3.OperationalError) and not code
        if code in _DAMAGED or undecodable:
            return StoreDamaged(f"{what} is damaged, or another kind of database: {error}. {damaged}")
        if code == sqlite3.SQLITE_FULL:
            return StoreError(f"The disk of {what[0].lower()}{what[1:]} is full; nothing was written. Free some space.")
        return StoreError(f"{what} cannot be read or written: {error}. {advice}")


def _read_seal(file: Path) -> str | None:
    try:
        return Path(f"{file}.seal").read_text("latin-1")
    except FileNotFoundError:
        return None


def _checksum(file: Path) -> str:
    """Return the size and the CRC-32 of a database."""
    size = checksum = 0
    with _READING:
        status = file.stat()
        descriptor = _OPENED.get((status.st_dev, status.st_ino))
        descriptor = descriptor or os.open(file, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        while block := _read_at(descriptor, size):
            size += len(block)
            checksum = crc32(block, checksum)
        if os.name == "nt":
            os.close(descriptor)
        else:
            status = os.fstat(descriptor)
            _OPENED[status.st_dev, status.st_ino] = descriptor
    return f"{size} {checksum:08x}"


def _read_at(descriptor: int, place: int) -> bytes:
    # A forked process shares the place from which the next `read` would go on.
    if os.name != "nt":
        return os.pread(descriptor, _READ_AT_ONCE, place)
    os.lseek(descriptor, place, os.SEEK_SET)
    return os.read(descriptor, _READ_AT_ONCE)


def _plain_code(error: Exception) -> int:
    """Return the kind of an error (``sqlite3.SQLITE_FULL``, …), the low byte of its code; 0 without a code."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


_POSTGRES: tuple[tuple[tuple[str, ...], type[StoreError], str], ...] = (
    (("55P03",), StoreBusy, "Try again when the other process is done."),
    (("57014",), StoreUnavailable, "Nothing was written. Raise `statement_timeout` in {table} if the server is slow."),
    (("40",), StoreUnavailable, "Nothing was written, because others wrote the same. Try again."),
    (("57P", "53300"), StoreUnavailable, "Try again in a moment."),
    (
        ("42P01", "3F000", "42703", "42704", "42804", "XX001", "XX002"),
        StoreDamaged,
        "Restore the schema from a backup, or drop it and it is made anew, empty, or set another `schema` in {table}.",
    ),
    (("42501",), StoreError, "Let an administrator grant what is missing, or make the `schema` of {table} the user's."),
    (("42P07", "42710"), StoreError, "Another program's tables are there: set another `schema` in {table}."),
    (("28", "3D000"), StoreError, "Check the user, the password and the database in `uri` of {table}."),
)
"""Codes of PostgreSQL (SQLSTATE) or how they begin, the kind of error, and what to do."""
_LATER = ("starting up", "shutting down", "recovery", "too many", "connection slots")
"""What a server says that takes no connection now and will later."""


def postgres_error(error: Exception, what: str, *, table: str) -> StoreError:
    """Return ``StoreBusy``, ``StoreUnavailable``, ``StoreDamaged`` or ``StoreError`` for an error of psycopg.

    ``what`` begins the message: "postgresql://db.example/app". ``table`` is where the settings are:
    "[runs.postgres]". The server's sentence is quoted; its DETAIL is not, because it shows rows.
    """
    code: str = getattr(error, "sqlstate", None) or ""
    said = getattr(getattr(error, "diag", None), "message_primary", None)
    if not said:
        # The library writes a line for each host that it tried, and indented advice.
        lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith("\t")]
        said = "; ".join(lines) or type(error).__name__
    said = said.removeprefix("connection failed: ").removeprefix("connection is bad: ")[:500].rstrip(".?")
    for codes, kind, advice in _POSTGRES:
        if code.startswith(codes):
            return kind(f"{what} reports: {said}. {advice.format(table=table)}")
    connecting = {"OperationalError", "InterfaceError"} & {each.__name__ for each in type(error).__mro__}
    if code or not connecting:
        return StoreError(f"{what} failed: {said}.")
    if "FATAL" in str(error) and not any(words in said for words in _LATER):
        return StoreError(
            f"{what} refused the connection: {said}. Check the user, the password and the database in `uri` of {table}."
        )
    return StoreUnavailable(f"{what} cannot be reached: {said}. Start the server, or correct `uri` in {table}.")
