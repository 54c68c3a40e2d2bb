"""What SQLite and the file system report, as errors of ours."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from portico.databases import is_no_text, plain_code
from portico.errors import StoreBusy, StoreDamaged, StoreError

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)


def damaged(file: Path, why: str) -> StoreDamaged:
    """Return the error for a file that is not what was written."""
    return StoreDamaged(
        f"The vector store's file {file} is damaged: {why}. Delete the folder {file.parent}; "
        "what is derived from documents is then built again."
    )


@contextmanager
def mapped_errors(file: Path) -> Iterator[None]:
    """Raise ``StoreBusy`` or ``StoreError`` for what goes wrong around the database ``file``."""
    try:
        yield
    except sqlite3.Error as error:
        code = plain_code(error)
        if code in _BUSY:
            raise StoreBusy(
                f"Another process is writing to the vector store {file.parent}. Try again when it is done."
            ) from error
        if code in _DAMAGED or is_no_text(error):
            raise damaged(file, str(error)) from error
        raise StoreError(f"The vector store {file.parent} failed: {error} (in {file.name}).") from error
    except UnicodeDecodeError as error:
        raise damaged(file, str(error)) from error
    except OSError as error:
        raise StoreError(f"The vector store {file.parent} cannot be read or written: {error}.") from error
