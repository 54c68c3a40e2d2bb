"""What SQLite and the file system report, as errors of ours."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from portico.errors import StoreBusy, StoreDamaged, StoreError
from portico.plugins import is_busy, is_damaged


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
        if is_busy(error):
            raise StoreBusy(
                f"Another process is writing to the vector store {file.parent}. Try again when it is done."
            ) from error
        if is_damaged(error):
            raise damaged(file, str(error)) from error
        raise StoreError(f"The vector store {file.parent} failed: {error} (in {file.name}).") from error
    except UnicodeDecodeError as error:
        raise damaged(file, str(error)) from error
    except OSError as error:
        raise StoreError(f"The vector store {file.parent} cannot be read or written: {error}.") from error
