"""What goes wrong with the cache's file, as one sentence for the log: none of it reaches whoever embeds."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from portico.plugins import is_busy, is_damaged, plain_code

__all__ = ["CacheDamaged", "CacheUnusable", "mapped_errors"]


class CacheUnusable(Exception):
    """The cache cannot be used for now; embedding goes on without it."""


class CacheDamaged(Exception):
    """The file is not what was written: another one is to be begun."""


@contextmanager
def mapped_errors(folder: Path) -> Iterator[None]:
    """Raise ``CacheDamaged`` or ``CacheUnusable``, whose sentence says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        code = plain_code(error)
        if is_damaged(error):
            raise CacheDamaged(str(error)) from error
        if is_busy(error):
            why = "another process does not let go of it"
        elif code == sqlite3.SQLITE_FULL:
            why = "the disk is full; free some space, or lower `max_bytes` in [embeddings.cached]"
        else:
            why = f"{error}; make it writable, or set another `path` in [embeddings.cached]"
        raise CacheUnusable(_sentence(folder, why)) from error
    except (UnicodeError, OverflowError) as error:
        # SQLite's own message quotes the damaged bytes; a number is larger than any that was written.
        raise CacheDamaged(str(error)) from error
    except OSError as error:
        mend = "set" if isinstance(error, (NotADirectoryError, FileExistsError)) else "make it writable, or set"
        why = f"{error.strerror or error}; {mend} another `path` in [embeddings.cached]"
        raise CacheUnusable(_sentence(folder, why)) from error


def _sentence(folder: Path, why: str) -> str:
    return (
        f"The cache of embeddings in {folder} cannot be used as it should for now: {why}. What is not found there is "
        "embedded, and it is tried again in a minute."
    )
