"""What SQLite and the file system report, as errors of ours."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from portico.errors import StoreDamaged
from portico.plugins import Sqlite

_DERIVED = "what is derived from documents is then built again."


def damaged(file: Path, why: str) -> StoreDamaged:
    """Return the error for a file that is not what was written."""
    return StoreDamaged(
        f"The vector store's file {file} is damaged: {why}. Delete the folder {file.parent}; {_DERIVED}"
    )


def mapped_errors(file: Path) -> AbstractContextManager[None]:
    """Raise ``StoreBusy``, ``StoreDamaged`` or ``StoreError`` for what goes wrong around the database ``file``."""
    return Sqlite.errors(
        f"The vector store's file {file}",
        damaged=f"Delete the folder {file.parent}; {_DERIVED}",
        advice="Make its folder writable, or set another `path` in [vectors.faiss].",
    )
