"""A conversation in a file: read once, written whole after every turn, never over what another has written."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from portico.errors import StoreDamaged, StoreError
from portico_cli.failures import Misused

if TYPE_CHECKING:
    from portico.agents.thread import Thread

__all__ = ["ThreadFile"]

_MAXIMUM_BYTES = 100_000_000
_Stamp = tuple[int, int, int]


class ThreadFile:
    """The file of one thread, for its owner only (mode 0600).

    What is there is told by inode, size and time: one that another process wrote since is left as it is, with a
    ``StoreError`` that says so.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: _Stamp | None = None

    def load(self) -> Thread | None:
        """Read the thread; None where there is no file yet.

        Raises ``StoreDamaged`` for what is no thread, ``Misused`` for what cannot be read, or not be written later.
        """
        from portico.agents.thread import Thread

        target = self.path.resolve()
        try:
            self._stamp = _stamp(target)
            if self._stamp is None:
                if not target.parent.is_dir():
                    raise Misused(f"There is no folder {target.parent} for the thread.")
                return None
            with target.open("rb") as stream:
                content = stream.read(_MAXIMUM_BYTES + 1)
        except OSError as error:
            raise Misused(f"The thread {self.path} cannot be read: {error.strerror or error}.") from error
        if len(content) > _MAXIMUM_BYTES:
            raise Misused(f"The thread {self.path} has more than {_MAXIMUM_BYTES:,} bytes.")
        try:
            return Thread.from_json(json.loads(content.decode("utf-8")))
        except Exception as error:
            # Whatever is wrong with it, it is somebody's file, and stays as it is.
            why = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
            raise StoreDamaged(
                f"{self.path} is no thread that can be gone on with: {why}. It was left as it is; name another file."
            ) from error

    def save(self, thread: Thread) -> None:
        """Write the thread: a kill leaves the old one or the new. Raises ``StoreError``."""
        target = self.path.resolve()
        content = json.dumps(thread.to_json(), ensure_ascii=False, indent=1)
        try:
            descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as stream:
                    stream.write(f"{content}\n")
                self._put(Path(temporary), target)
            finally:
                with suppress(OSError):
                    Path(temporary).unlink()
        except OSError as error:
            raise StoreError(f"The thread {self.path} cannot be written: {error.strerror or error}.") from error

    def _put(self, temporary: Path, target: Path) -> None:
        if self._stamp is None:
            try:
                # Unlike a replacement, a link fails where somebody made the file meanwhile.
                target.hardlink_to(temporary)
            except FileExistsError as error:
                raise self._changed("made") from error
            except OSError:  # a file system without hard links
                if target.exists():
                    raise self._changed("made") from None
                temporary.replace(target)
        else:
            if _stamp(target) != self._stamp:
                raise self._changed("changed")
            temporary.replace(target)
        self._stamp = _stamp(target)

    def _changed(self, how: str) -> StoreError:
        return StoreError(
            f"{self.path} was {how} by another process meanwhile, so it is not overwritten and what is said here is "
            "not saved."
        )


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
