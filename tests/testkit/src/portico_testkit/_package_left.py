"""What is left of a service after it was closed."""

from __future__ import annotations

import socket
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

__all__ = ["no_more_of"]


@contextmanager
def no_more_of(service: str) -> Iterator[None]:
    """Fail where threads that were started in the block run after it, or sockets of it are open."""
    threads = set(threading.enumerate())
    made: weakref.WeakSet[socket.socket] = weakref.WeakSet()
    make = socket.socket.__init__

    def noted(self: socket.socket, *arguments: Any, **options: Any) -> None:
        make(self, *arguments, **options)
        made.add(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "__init__", noted)
        yield
    for thread in set(threading.enumerate()) - threads:
        if thread.name.startswith("asyncio_"):
            continue  # of the event loop, which keeps them for the next `asyncio.to_thread`
        # One that was told to end may still be at it.
        thread.join(timeout=5)
        assert not thread.is_alive(), f"{service} leaves the thread {thread.name} behind"
    left = [one for one in made if one.fileno() != -1]
    assert not left, f"{service} leaves {len(left)} sockets open"
