"""A conversation in a file: read once, written whole after every turn, never over the changes of another process."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from portico.errors import StoreDamaged, StoreError
from portico_cli.arguments import read_bytes
from portico_cli.failures import Misused

if TYPE_CHECKING:
    from portico import Thread


_MAXIMUM_BYTES = 100_000_000
_Stamp = tuple[int, int, int]


class ThreadFile:
    """The file of one thread, readable for its owner only (mode 0600).

    A change by another process is seen by inode, size and time; then the file is left as it is (``StoreError``).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: _Stamp | None = None

    def load(self) -> Thread | None:
        """Read the thread; None if there is no file yet.

        Raises ``StoreDamaged`` for a file that is not a thread, ``Misused`` for one that cannot be read.
        """
        from portico import Thread

        target = self.path.resolve()
        try:
            self._stamp = _stamp(target)
        except OSError as error:
            raise Misused(f"The thread {self.path} cannot be read: {error.strerror or error}.") from error
        if self._stamp is None:
            if not target.parent.is_dir():
                raise Misused(f"There is no folder {target.parent} for the thread.")
            return None
        content = read_bytes(str(target), _MAXIMUM_BYTES, f"The thread {self.path}")
        try:
            return Thread.from_json(json.loads(content.decode("utf-8")))
        except Exception as error:
            # Whatever is wrong with it, it is a person's file, and stays as it is.
            why = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
            raise StoreDamaged(
                f"{self.path} is not a thread that can be continued: {why}. It was left as it is; name another file."
            ) from error

    def save(self, thread: Thread) -> None:
        """Write the thread; a kill leaves the old one or the new one. Raises ``StoreError``."""
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
                # Unlike a replacement, a link fails if another process made the file meanwhile.
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
            f"{self.path} was {how} by another process meanwhile. It is not overwritten, and this conversation is not "
            "saved."
        )


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
