"""What SQLite and the file system report, as errors of ours."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from portico.errors import StoreBusy, StoreDamaged, StoreError
from portico.plugins import is_busy, is_damaged, plain_code

__all__ = ["damaged", "mapped_errors", "not_a_journal", "too_new"]

_UNWRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)
_SWITCH = 'set another `path` in [runs.sqlite] of portico.toml, or `use = "none"` in [runs] to keep no journal'


def damaged(file: Path, why: str) -> StoreDamaged:
    """Return the error for a file that is not what was written."""
    return StoreDamaged(
        f"The journal {file} is damaged: {why}. Move it away, with {file.name}-wal and {file.name}-shm if they are "
        f"there, and a new one is begun; the runs in it cannot be resumed then. `sqlite3 {file} .recover` shows what "
        "can still be read."
    )


def not_a_journal(file: Path) -> StoreError:
    """Return the error for a database that holds something else."""
    return StoreError(f"{file} is a database of something else than Portico's runs; {_SWITCH}.")


def too_new(file: Path, version: int, known: int) -> StoreError:
    """Return the error for a journal that a later version wrote."""
    return StoreError(
        f"The journal {file} is of version {version}, and this portico-basics knows up to {known}. "
        "Run `pip install --upgrade portico-basics`."
    )


@contextmanager
def mapped_errors(file: Path) -> Iterator[None]:
    """Raise ``StoreBusy``, ``StoreDamaged`` or ``StoreError`` for what goes wrong around the database ``file``."""
    try:
        yield
    except sqlite3.Error as error:
        code = plain_code(error)
        if is_busy(error):
            raise StoreBusy(f"Another process is writing to the journal {file}. Try again when it is done.") from error
        if is_damaged(error):
            raise damaged(file, str(error)) from error
        if code == sqlite3.SQLITE_FULL:
            raise StoreError(
                f"The disk of the journal {file} is full; nothing was written. Free some space, then resume the run."
            ) from error
        if code in _UNWRITABLE:
            raise StoreError(
                f"The journal {file} cannot be written: {error}. Make it writable, or {_SWITCH}."
            ) from error
        if code == sqlite3.SQLITE_TOOBIG:
            raise StoreError(f"An entry is too large for the journal {file}: {error}.") from error
        raise StoreError(f"The journal {file} failed: {error}.") from error
    except UnicodeDecodeError as error:
        raise damaged(file, str(error)) from error
    except OSError as error:
        why = error.strerror or str(error)
        raise StoreError(f"The journal {file} cannot be opened: {why}. Make its folder, or {_SWITCH}.") from error
