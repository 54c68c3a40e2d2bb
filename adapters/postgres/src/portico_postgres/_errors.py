"""What PostgreSQL and its client report, as errors of ours.

The server's own sentence is quoted (its DETAIL is not: it shows rows). What libpq says of a connection names host,
port, user and database; the URI was checked before, so none of these is a part of the password.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import psycopg
from psycopg import errors

from portico.errors import StoreBusy, StoreDamaged, StoreError, StoreUnavailable

_MISSING = (errors.UndefinedTable, errors.InvalidSchemaName, errors.UndefinedObject)
_OTHER_SHAPE = (errors.UndefinedColumn, errors.DatatypeMismatch, errors.InvalidColumnReference)
_CORRUPT = (errors.DataCorrupted, errors.IndexCorrupted)
_FORGOTTEN = (errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement)
_CONNECTING = re.compile("^connection (failed|is bad): (?=.)")
"""How psycopg begins before what libpq says."""
_FULL = (errors.DiskFull, errors.OutOfMemory)
_COLLIDED = (errors.SerializationFailure, errors.DeadlockDetected)
_GOING = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.IdleSessionTimeout)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the tables are, as messages name it: ``server`` is ``host:port/database``, ``table`` that of the settings.

    >>> str(Place("db.example:5432/app", "portico", "[runs.postgres]"))
    'PostgreSQL at db.example:5432/app'
    """

    server: str
    schema: str
    table: str

    def __str__(self) -> str:
        return f"PostgreSQL at {self.server}"


def is_collision(error: psycopg.Error) -> bool:
    """Tell whether the server took a statement back because of others: nothing of it happened."""
    return isinstance(error, _COLLIDED)


def is_end(error: psycopg.Error) -> bool:
    """Tell whether the server ends the session, whatever became of the statement."""
    return isinstance(error, _GOING)


def mapped(error: psycopg.Error, place: Place) -> StoreError:
    """Return the error of ours for one of psycopg's; raise it ``from`` that one."""
    said = _sentence(error)
    match error:
        case errors.LockNotAvailable():
            return StoreBusy(f"Another process holds what is needed in {place}: {said}. Try again when it is done.")
        case errors.QueryCanceled():
            return StoreUnavailable(
                f"{place} did not finish in time and took the statement back: {said}. Nothing was written. Raise "
                f"`statement_timeout` in {place.table} if the server is only slow."
            )
        case _ if isinstance(error, _COLLIDED):
            return StoreUnavailable(f"{place} took the statement back because of others: {said}. Nothing was written.")
        case _ if isinstance(error, _GOING):
            return StoreUnavailable(f"{place} is starting or going down: {said}. Try again in a moment.")
        case _ if isinstance(error, _MISSING + _OTHER_SHAPE):
            return StoreDamaged(
                f"The tables in the schema {place.schema!r} of {place} are not what Portico made: {said}. Where they "
                f"were removed, the next call makes them anew; where they are another program's, set another `schema` "
                f"in {place.table}."
            )
        case _ if isinstance(error, _CORRUPT):
            return StoreDamaged(
                f"{place} reports damage: {said}. Restore the schema {place.schema!r} from a backup, or drop it, and "
                "the next call makes it anew, empty."
            )
        case errors.DuplicateTable() | errors.DuplicateObject():
            return StoreError(
                f"The schema {place.schema!r} of {place} has tables of another program: {said}. Set another `schema` "
                f"in {place.table}."
            )
        case errors.InsufficientPrivilege():
            return StoreError(
                f"The user of {place} may not do what is needed: {said}. Let an administrator make the schema "
                f"{place.schema!r} the user's own (`CREATE SCHEMA … AUTHORIZATION …`), or grant what is missing on it."
            )
        case errors.ReadOnlySqlTransaction():
            return StoreError(
                f"{place} takes no writing: {said}. It may be a standby: name the primary in `uri`, or several hosts "
                "with `?target_session_attrs=read-write`."
            )
        case _ if isinstance(error, _FORGOTTEN):
            return StoreError(
                f"{place} has forgotten a prepared statement: {said}. Where a pooler stands between, set "
                f"`transaction_pooler = true` in {place.table}."
            )
        case _ if isinstance(error, _FULL):
            return StoreError(f"{place} has no room left; nothing was written: {said}.")
    return StoreError(f"{place} failed: {said}.")


def unreachable(error: psycopg.Error, place: Place) -> StoreError:
    """Return the error of ours for a connection that could not be made.

    libpq hands on what the server said, without its code: what is wrong is told by the words, where these are English.
    """
    said = _sentence(error)
    if re.search("authentication failed|no password supplied|pg_hba|role .* does not exist|not permitted", said):
        return StoreError(
            f"{place} did not let the user in: {said}. Check the user and the password in `uri` of {place.table}."
        )
    if re.search("database .* does not exist", said):
        return StoreError(f"{place} has no such database: {said}. Make it, or correct `uri` in {place.table}.")
    if re.search("too many|connection slots|Max client connections", said):
        return StoreUnavailable(
            f"{place} takes no more connections: {said}. Lower `pool_size` in {place.table}, start fewer processes, or "
            "put a pooler before it."
        )
    if "ProactorEventLoop" in said:
        return StoreError(
            "psycopg needs another event loop on Windows: run the program with "
            "`asyncio.Runner(loop_factory=asyncio.SelectorEventLoop)`."
        )
    return StoreUnavailable(f"{place} cannot be reached: {said}. Start the server, or correct `uri` in {place.table}.")


def _sentence(error: psycopg.Error) -> str:
    """Return one line of what was said: the server's own message, or that of the client without its advice."""
    said = error.diag.message_primary or str(error).strip() or type(error).__name__
    return " ".join(_CONNECTING.sub("", said).splitlines()[0].split()).rstrip(".")
