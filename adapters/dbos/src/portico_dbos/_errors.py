"""What DBOS, SQLAlchemy and the databases below report, as errors of ours.

The URI was checked before it was used, so no sentence of PostgreSQL's library can hold a part of the password, and the
engine hides what is bound to statements. The server's own sentence is quoted, its DETAIL is not: it shows rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from portico.errors import StoreBusy, StoreDamaged, StoreError, StoreUnavailable
from portico.plugins import Sqlite

_STARTING = ("starting up", "shutting down", "recovery", "too many clients", "remaining connection slots")
"""What a server says that takes no connection now and will later."""


def own_dbos() -> StoreError:
    """Return the error for a process in which something else has made its own DBOS."""
    return StoreError(
        "This process runs its own DBOS, and DBOS is there once in a process. Call `DBOS.destroy()` before the "
        "runner is used, or let another process run and work."
    )


def other_database(place: str, mine: str) -> StoreBusy:
    """Return the error for a second database in one process."""
    return StoreBusy(
        f"Another runner of this process is running or working on {place}, and DBOS is there once in a process. Use "
        f"{mine} when that has ended, or in another process."
    )


def second_worker(place: str) -> StoreBusy:
    """Return the error for a second worker in one process."""
    return StoreBusy(f"This process is a worker on {place} already. Begin another in its own process.")


def closed(place: str) -> StoreError:
    """Return the error for what was under way when the runner was closed."""
    return StoreError(f"The runner on {place} was closed meanwhile.")


@contextmanager
def mapped_errors(place: str) -> Iterator[None]:
    """Raise ``StoreError`` or one of its kinds for what goes wrong around the database at ``place``."""
    from dbos import error as dbos_errors
    from sqlalchemy.exc import DBAPIError, SQLAlchemyError, TimeoutError as PoolTimeout

    try:
        yield
    except DBAPIError as error:
        raise _of_driver(error.orig, place) from error
    except PoolTimeout as error:
        raise StoreUnavailable(
            f"{place} did not answer on any connection in time. Raise `pool_size` in [runner.dbos] if it only has "
            "much to do."
        ) from error
    except dbos_errors.DBOSConflictingWorkflowError as error:
        raise ValueError("a job of that name and another kind is in the queue already") from error
    except (SQLAlchemyError, dbos_errors.DBOSException) as error:
        raise StoreError(f"{place} failed: {_line(error)}.") from error
    except OSError as error:
        why = error.strerror or str(error)
        raise StoreError(f"{place} cannot be opened: {why}. Set another `path` in [runner.dbos].") from error


def _of_driver(error: BaseException | None, place: str) -> StoreError:
    if isinstance(error, sqlite3.Error):
        return _of_sqlite(error, place)
    import psycopg

    if isinstance(error, psycopg.Error):
        return _of_postgres(error, place)
    return StoreError(f"{place} failed: {_line(error)}.")


def _of_sqlite(error: sqlite3.Error, place: str) -> StoreError:
    return Sqlite.error(
        error,
        place,
        damaged="Set another `path` in [runner.dbos], or move the file away with its -wal and -shm, and a new one is "
        "begun, without jobs.",
        advice="Set another `path` in [runner.dbos].",
    )


def _of_postgres(error: BaseException, place: str) -> StoreError:
    import psycopg
    from psycopg import errors

    said = _line(error)
    match error:
        case errors.InvalidPassword() | errors.InvalidAuthorizationSpecification():
            return StoreError(f"{place} did not let the user in: {said}. Check user and password in `uri`.")
        case errors.InsufficientPrivilege():
            return StoreError(
                f"The user of {place} may not do what is needed: {said}. Let an administrator grant CREATE on the "
                "database, or make the `schema` of [runner.dbos] the user's own."
            )
        case errors.UndefinedTable() | errors.InvalidSchemaName() | errors.UndefinedColumn():
            return StoreDamaged(
                f"The tables of {place} are not what was made: {said}. Drop the `schema` of [runner.dbos], and start "
                "anew, or set another."
            )
        case psycopg.OperationalError() | psycopg.InterfaceError():
            if any(word in str(error) for word in _STARTING):
                return StoreUnavailable(f"{place} takes no connection now: {said}. Try again in a moment.")
            if error.sqlstate is None and "FATAL" in str(error):
                # No one to ask again: a wrong password, user or database, as the library tells it while connecting.
                return StoreError(f"{place} refused the connection: {said}. Check `uri` in [runner.dbos].")
            return StoreUnavailable(
                f"{place} cannot be reached: {said}. Start the server, or correct `uri` in [runner.dbos]."
            )
    return StoreError(f"{place} failed: {said}.")


def _line(error: BaseException | None) -> str:
    """Return one line of what was said: the server's own message, or that of the library."""
    diagnosis = getattr(error, "diag", None)
    # What SQLAlchemy adds to its sentence is the statement.
    first = error.args[0] if error is not None and error.args else error
    # PostgreSQL's library says a line for each host it tried; what is indented below asks whether the server runs.
    lines = [" ".join(line.split()) for line in str(first).splitlines() if not line.startswith("\t")]
    said = getattr(diagnosis, "message_primary", None) or "; ".join(filter(None, lines)) or type(error).__name__
    return said[:500].rstrip(".?")
