"""Errors of DBOS, SQLAlchemy and the databases as Portico's errors.

The URI was checked before, so no message of PostgreSQL's library has a part of the password. The engine hides the
values of statements.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from portico.errors import StoreError, StoreUnavailable
from portico.plugins import Secret, Sqlite


def closed_error(place: str) -> StoreError:
    return StoreError(f"The runner on {place} was closed meanwhile.")


@contextmanager
def map_errors(place: str) -> Iterator[None]:
    """Raise ``StoreError`` or one of its kinds for every error of the database at ``place``."""
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
        return Sqlite.error(
            error,
            place,
            damaged="Set another `path` in [runner.dbos], or move the file away with its -wal and -shm; a new "
            "one is made, without jobs.",
            advice="Set another `path` in [runner.dbos].",
        )
    if isinstance(error, Exception) and hasattr(error, "sqlstate"):
        # The place is the URI without user and password.
        return Secret(place).database_error(error, table="[runner.dbos]")
    return StoreError(f"{place} failed: {_line(error)}.")


def _line(error: BaseException | None) -> str:
    """Return the message in one line, without the statement that SQLAlchemy adds."""
    said = str(error.args[0] if error is not None and error.args else error)
    return " ".join(said.split())[:500].rstrip(".?") or type(error).__name__
