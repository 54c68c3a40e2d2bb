"""What goes wrong with the cache's file, as one sentence for the log: none of it reaches whoever embeds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from portico.errors import StoreDamaged, StoreError
from portico.plugins import Sqlite


class CacheUnusable(Exception):
    """The cache cannot be used for now; embedding goes on without it."""


class CacheDamaged(Exception):
    """The file is not what was written: another one is to be begun."""


@contextmanager
def mapped_errors(folder: Path) -> Iterator[None]:
    """Raise ``CacheDamaged`` or ``CacheUnusable``, whose sentence says what to do."""
    try:
        with Sqlite.errors(
            f"The cache of embeddings in {folder}",
            damaged="",
            advice="Make it writable, or set another `path` in [embeddings.cached].",
        ):
            yield
    except StoreDamaged as error:
        raise CacheDamaged(str(error.__cause__)) from error
    except (UnicodeError, OverflowError) as error:
        # A number is larger than any that was written.
        raise CacheDamaged(str(error)) from error
    except StoreError as error:
        raise CacheUnusable(
            f"{error} Texts that are not found there are embedded. It is tried again in a minute."
        ) from error
