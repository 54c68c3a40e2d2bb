"""Which calls make a thread wait, noted without a clock."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from types import FrameType, ModuleType
from typing import Any

import pytest

from portico_testkit._places import place_of

__all__ = ["waits_noted"]

_noted: dict[int, list[str]] = {}
"""What is noted of a thread that is watched, by its number."""

_calls: dict[tuple[Any, str], Callable[..., Any]] = {}
"""What is called in the end: a test may have replaced it itself."""


@contextmanager
def waits_noted() -> Iterator[list[str]]:
    """Give a list that fills with the calls by which this thread waits within the block, however shortly.

    >>> with waits_noted() as waits:
    ...     time.sleep(0.001)
    >>> [wait.partition(" in ")[0] for wait in waits]
    ['time.sleep']

    Each is there once, with the place it was called from: the innermost outside the standard library. Other threads
    may wait. Libraries that wait in machine code are not seen, but where they sync a file or lock it by Python, or open
    a database of SQLite; the heartbeat of `portico_testkit.event_loop` sees the others where it takes long.
    """
    own = threading.get_ident()
    before = _noted.get(own)
    noted: list[str] = []
    _noted[own] = noted
    try:
        with pytest.MonkeyPatch.context() as patch:
            for owner, name, watched in _WATCHED:
                original = getattr(owner, name)
                if original is not watched:
                    _calls[owner, name] = original
                patch.setattr(owner, name, watched)
                if isinstance(owner, ModuleType):
                    # Somebody may have it by `from time import sleep`.
                    for module, theirs in _names_of(original):
                        patch.setattr(module, theirs, watched)
            yield noted
    finally:
        if before is None:
            del _noted[own]
        else:
            _noted[own] = before


def _watching(owner: Any, name: str, waits: Callable[..., object]) -> tuple[Any, str, Callable[..., Any]]:
    """Return how a call is watched: it is made as ever, and noted where ``waits`` says that this one may wait."""
    _calls[owner, name] = getattr(owner, name)
    told = f"{owner.__name__}.{name}"

    @wraps(_calls[owner, name])
    def watched(*args: Any, **kwargs: Any) -> Any:
        call = _calls[owner, name]
        own = threading.get_ident()
        frame = sys._getframe(1)
        if own not in _noted or not waits(*args, **kwargs) or _starts_a_thread(frame):
            return call(*args, **kwargs)
        noted = _noted.pop(own)  # what it calls itself to wait is not noted beside it
        if (wait := f"{told} in {place_of(frame)}") not in noted:
            noted.append(wait)
        try:
            return call(*args, **kwargs)
        finally:
            _noted[own] = noted

    return owner, name, watched


def _starts_a_thread(frame: FrameType | None) -> bool:
    """Return whether a thread is started here: that waits until it runs, and there is no other way to start one."""
    caller = frame.f_back if frame is not None else None
    return caller is not None and caller.f_code is threading.Thread.start.__code__


def _may_block(sock: socket.socket, *_args: object, **_kwargs: object) -> bool:
    return sock.gettimeout() != 0  # those of asyncio do not wait


def _always(*_args: object, **_kwargs: object) -> bool:
    return True


def _goes_on(process: subprocess.Popen[Any], *_args: object, **_kwargs: object) -> bool:
    return process.returncode is None


def _waits_for_the_lock(file: object, operation: int, *_args: object) -> bool:
    import fcntl

    return operation != fcntl.LOCK_UN and not operation & fcntl.LOCK_NB


def _is_a_file(database: object = "", *_args: object, **_kwargs: object) -> bool:
    return database not in (":memory:", b":memory:")


def _watching_where_it_is(
    module: str, names: Iterable[str], waits: Callable[..., object]
) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """Yield how calls are watched that not every system, or build of Python, has."""
    try:
        owner = import_module(module)
    except ImportError:
        return
    yield from (_watching(owner, name, waits) for name in names if hasattr(owner, name))


def _names_of(call: object) -> list[tuple[ModuleType, str]]:
    """Return the names that modules have for a function. They are not asked for them: one may be loaded by that."""
    every: list[object] = list(sys.modules.values())  # anything may be put there
    loaded = [module for module in every if isinstance(module, ModuleType)]
    names = ((module, list(object.__getattribute__(module, "__dict__").items())) for module in loaded)
    return [(module, name) for module, items in names for name, value in items if value is call]


# One for all blocks: a module that is imported in one, and keeps what it finds, is watched in the next too.
_WATCHED = (
    _watching(time, "sleep", lambda seconds: seconds > 0),
    _watching(socket, "getaddrinfo", _always),
    *(
        _watching(socket.socket, name, _may_block)
        for name in ("connect", "connect_ex", "accept", "recv", "recv_into", "recvfrom")
    ),
    *(_watching(ssl.SSLSocket, name, _may_block) for name in ("do_handshake", "read")),
    _watching(subprocess.Popen, "wait", _goes_on),
    _watching(subprocess.Popen, "communicate", _goes_on),
    _watching(os, "system", _always),
    *_watching_where_it_is("os", ("fsync", "fdatasync"), _always),
    *_watching_where_it_is("fcntl", ("flock", "lockf"), _waits_for_the_lock),
    # Who opens a database here reads and writes here too, and that is done in machine code.
    *_watching_where_it_is("sqlite3", ("connect",), _is_a_file),
    _watching(threading.Thread, "join", lambda thread, timeout=None: thread.is_alive()),
    # An event, a semaphore, a queue and the result of a `concurrent.futures.Future` are waited for by it.
    _watching(threading.Condition, "wait", lambda condition, timeout=None: timeout is None or timeout > 0),
)
