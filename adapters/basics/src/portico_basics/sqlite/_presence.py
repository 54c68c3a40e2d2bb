"""Whether the process that holds a lease is still there.

A process that was killed cannot give its leases back. Each store keeps a file locked as long as its process lives;
the system lets go of the lock when the process ends, however it ends. So a run whose process is gone can be resumed
at once rather than when its lease runs out. Process numbers would not do: they come again, and mean nothing in
another container. Where locks cannot be had, leases run out and nothing else.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path

try:
    import fcntl
except ImportError:
    _LOCKS = False
    """Windows has other locks, which keep a file from being removed."""
else:
    _LOCKS = True


class Presence:
    """A locked file that says that this process is there; ``name`` is empty where it could not be locked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None
        self.name = ""
        try:
            self._lock()
        except OSError:
            self.close()

    def _lock(self) -> None:
        if not _LOCKS:
            return
        self._folder.mkdir(exist_ok=True, mode=0o700)
        while not self.name:
            name = uuid.uuid4().hex
            file = self._folder / name
            self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                # Another process took it for the rest of a killed one, between the two lines above.
                os.close(self._descriptor)
                continue
            if _is_same(file, self._descriptor):
                self.name = name
            else:
                os.close(self._descriptor)

    def close(self) -> None:
        """Take the sign away."""
        if self.name:
            (self._folder / self.name).unlink(missing_ok=True)
            self.name = ""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def is_gone(folder: Path, name: str | None) -> bool:
    """Tell whether the process that had this file has ended for certain; its file is removed then."""
    if not name or not _LOCKS:
        return False
    file = folder / name
    try:
        descriptor = os.open(file, os.O_RDWR)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.unlink(missing_ok=True)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def sweep(folder: Path, most: int) -> None:
    """Remove what killed processes left, at most so many files at a time."""
    for number, name in enumerate(os.listdir(folder) if folder.is_dir() else ()):  # noqa: PTH208 - names are enough
        if number == most:
            break
        is_gone(folder, name)


def _is_same(file: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(file.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
