"""End a process though a thread or a task that a package has started goes on."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress

__all__ = ["end_though_threads_linger", "leave_behind"]

_PATIENCE = 2.0
"""Seconds for threads that are about to end, in all."""
_left: list[object] = []


def leave_behind(*left: object) -> None:
    """Keep event loops and tasks that do not end: the process ends without them.

    Thrown away, they would be complained of in words of Python's, or go on.
    """
    _left.extend(left)


def end_though_threads_linger(code: int) -> None:
    """End the process with ``code`` when threads go on that Python would wait for, or something was left behind.

    Return when there is nothing of the kind.

    Whatever was done by the command is done and closed. Functions of ``atexit`` are not called, as none of ours is.
    """
    threads = [each for each in threading.enumerate() if not each.daemon and each is not threading.main_thread()]
    given_up = time.monotonic() + _PATIENCE
    with suppress(KeyboardInterrupt):
        for thread in threads:
            thread.join(max(0.0, given_up - time.monotonic()))
    going_on = ", ".join(sorted(repr(thread.name) for thread in threads if thread.is_alive()))
    if not going_on and not _left:
        return
    if going_on:
        with suppress(AttributeError, OSError, ValueError):
            sys.stderr.write(f"Ended, though a thread of some package goes on: {going_on}.\n")
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.flush()
    os._exit(code)
