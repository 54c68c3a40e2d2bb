"""Errors of SQLite and the file system as errors of Portico."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from portico.errors import StoreDamaged, StoreError
from portico.plugins import Sqlite

_SWITCH = 'set another `path` in [runs.sqlite] of portico.toml, or `use = "none"` in [runs] to keep no journal'


def damaged(file: Path, why: str) -> StoreDamaged:
    """Return the error for a damaged file."""
    return StoreDamaged(f"The journal {file} is damaged: {why}. {_mend(file)}")


def _mend(file: Path) -> str:
    return (
        f"Move it away, with {file.name}-wal and {file.name}-shm if they are there, and a new one is begun; the runs "
        f"in it cannot be resumed then. `sqlite3 {file} .recover` shows what can still be read."
    )


def not_a_journal(file: Path) -> StoreError:
    """Return the error for a database that holds something else."""
    return StoreError(f"{file} is not a journal of Portico but another database; {_SWITCH}.")


def too_new(file: Path, version: int, known: int) -> StoreError:
    """Return the error for a journal that a later version wrote."""
    return StoreError(
        f"The journal {file} is of version {version}, and this portico-basics knows up to {known}. "
        "Run `pip install --upgrade portico-basics`."
    )


def mapped_errors(file: Path) -> AbstractContextManager[None]:
    """Raise ``StoreBusy``, ``StoreDamaged`` or ``StoreError`` for what goes wrong around the database ``file``."""
    return Sqlite.errors(f"The journal {file}", damaged=_mend(file), advice=f"Make it writable, or {_SWITCH}.")
