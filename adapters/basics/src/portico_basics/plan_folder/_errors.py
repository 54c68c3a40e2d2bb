"""What the file system and damaged files are to those who use a store."""

from __future__ import annotations

from pathlib import Path

from portico.errors import StoreDamaged, StoreError


def damaged(path: Path, reason: object) -> StoreDamaged:
    """Return the error of a file that is no saved plan."""
    return StoreDamaged(f"The saved plan in {path} cannot be read: {reason}. Mend the file, or delete it.")


def unreadable(path: Path, error: OSError) -> StoreError:
    """Return the error of a folder or file that cannot be read."""
    return StoreError(f"The plan store cannot read {path}: {error.strerror or error}.")


def unwritable(path: Path, reason: object) -> StoreError:
    """Return the error of a plan that cannot be kept."""
    said = reason.strerror or reason if isinstance(reason, OSError) else reason
    return StoreError(f"The plan store cannot write to {path}: {said}.")
