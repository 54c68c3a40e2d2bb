"""What a package does while its modules are imported or its services are made, from the interpreter's audit events.

https://docs.python.org/3/library/audit_events.html lists them. Only the standard library is imported here, since a
fresh process runs this before anything of the package.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from portico_testkit._package_process import process_is_watched

__all__ = ["Deed", "everything_is_watched", "watched"]

_SAID = {
    "os.exec": "starts a process",
    "os.fork": "starts a process",
    "os.forkpty": "starts a process",
    "os.posix_spawn": "starts a process",
    "os.spawn": "starts a process",
    "os.startfile": "starts a process",
    "os.system": "starts a process",
    "subprocess.Popen": "starts a process",
    "sqlite3.connect": "opens a database",
    "socket.__new__": "opens a socket",
    "socket.connect": "connects",
    "socket.getaddrinfo": "looks up a name",
    "socket.gethostbyname": "looks up a name",
    **dict.fromkeys(
        ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate", "tempfile.mkdtemp"),
        "changes files",
    ),
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_IMPORTING = ("<frozen importlib._bootstrap", str(Path(importlib.metadata.__file__).parent))
"""Modules that read what is installed; that is what an import does too."""


@dataclass(frozen=True, slots=True)
class Deed:
    """One thing that was done: at which line of the package, and what; ``reads`` where it was no more than reading.

    >>> print(Deed("portico_acme/search.py:7", "opens a socket"))
    portico_acme/search.py:7 opens a socket
    """

    place: str
    what: str
    reads: bool = False

    def __str__(self) -> str:
        return f"{self.place} {self.what}"


class _Watch:
    def __init__(self, folder: str) -> None:
        self.within = folder + os.sep
        self.beside = len(folder) - len(Path(folder).name)
        self.deeds: list[Deed] = []
        self.active = True

    def note(self, what: str, *, reads: bool = False) -> None:
        """Note what is done just now, if the package does it, or has it done."""
        place, in_loop = self._place(sys._getframe(1)) if _CURRENT.get() is self else (None, False)
        if place is None:
            return
        deed = Deed(place, "starts an event loop" if in_loop and what == "opens a socket" else what, reads)
        if deed not in self.deeds:
            self.deeds.append(deed)

    def _place(self, frame: FrameType | None) -> tuple[str | None, bool]:
        """Return the line of the package that is at work, and whether an event loop is what it makes.

        What the modules of others do while they are imported is theirs: the walk to the outside meets the import
        before it meets the package.
        """
        in_loop = False
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(_IMPORTING):
                return None, False
            if file.startswith(self.within):
                return f"{file[self.beside :].replace(os.sep, '/')}:{frame.f_lineno}", in_loop
            in_loop = in_loop or f"{os.sep}asyncio{os.sep}" in file
            frame = frame.f_back
        return None, False


_CURRENT: ContextVar[_Watch | None] = ContextVar("portico_testkit_watch", default=None)


@contextmanager
def watched(folder: str) -> Iterator[list[Deed]]:
    """Give a list that fills with what code in a folder does in the block, by itself or through others.

    Only what the calling thread, or the calling task, does is seen.
    """
    _hooked()
    watch = _Watch(folder)
    before = _CURRENT.set(watch)
    # The audit events for these two are younger than the Pythons that are supported.
    start, sleep = threading.Thread.start, time.sleep

    def noted(self: threading.Thread) -> None:
        watch.note("starts a thread")
        start(self)

    def waited(seconds: Any) -> None:
        watch.note("waits (time.sleep)")
        sleep(seconds)

    threading.Thread.start = noted  # type: ignore[method-assign]
    time.sleep = waited
    try:
        yield watch.deeds
    finally:
        threading.Thread.start = start  # type: ignore[method-assign]
        time.sleep = sleep
        # Tasks that were made in the block keep its context.
        watch.active = False
        _CURRENT.reset(before)


def everything_is_watched() -> None:
    """Have noted from now on what there is no audit event for: reads of the environment, and what all live with.

    For a process of its own.
    """

    class Watched(type(os.environ)):  # type: ignore[misc]
        def __getitem__(self, key: str) -> str:
            _noted(f"reads the environment ({key})")
            value: str = super().__getitem__(key)
            return value

        def __iter__(self) -> Iterator[str]:
            _noted("reads the environment")
            return super().__iter__()  # type: ignore[no-any-return]

    os.environ.__class__ = Watched
    process_is_watched(_noted)


@cache
def _hooked() -> None:
    """Add the hook, once: a hook stays for as long as the process, and costs little while nothing is watched."""
    sys.addaudithook(_heard)


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        path, mode, flags = arguments
        if isinstance(path, str | bytes) and os.fsdecode(path) != os.devnull:
            writes = bool(set(mode or "") & set("wax+")) or bool((flags or 0) & _WRITING)
            _noted(f"{'writes' if writes else 'reads'} {os.fsdecode(path)}", reads=not writes)
    elif event in _SAID:
        _noted(_SAID[event])


def _noted(what: str, *, reads: bool = False) -> None:
    watch = _CURRENT.get()
    if watch is not None and watch.active:
        watch.note(what, reads=reads)
