"""Have the first Ctrl-C act while a package is imported inside the event loop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from portico_host.calling_out import is_called_out

__all__ = ["interruptible"]

T = TypeVar("T")


async def interruptible(work: Callable[[], Awaitable[T]]) -> T:
    """Do work on a loop of `asyncio.Runner`, whose handler of SIGINT cancels a task and does no more.

    That comes to something when the task awaits next: after an import of seconds. In an import, and while a service is
    made, which both hold nothing that has to be given back, ``KeyboardInterrupt`` is raised instead.
    """
    with _imports_broken_off():
        return await work()


@contextmanager
def _imports_broken_off() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    # Only the main thread may have a handler. None, or a number, is for a process that is not to be interrupted.
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    cancel = before

    def interrupted(number: int, frame: FrameType | None) -> None:
        if is_called_out(frame):
            raise KeyboardInterrupt
        cancel(number, frame)

    signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is interrupted:
            signal.signal(signal.SIGINT, before)
