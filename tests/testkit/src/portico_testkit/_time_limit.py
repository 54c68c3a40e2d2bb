"""An end for what has none: a test fails after a while, and says where it waits."""

from __future__ import annotations

import faulthandler
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from portico_testkit._places import awaited, place_of

__all__ = ["end_threads", "time_limit"]

_TICKS = 8
"""Into so many parts the time is divided: a host that stops the process takes one of them at most."""

_AGAIN = 2.0
"""Seconds after which what did not end is ended again."""

_LAST_SECONDS = 20
"""Seconds that threads have to end with the process, after a test had none."""

_DEBUGGERS = {"bdb", "debugpy", "pdb", "pydevd"}

_MOST = 8
"""How many tasks and threads are told of."""

_PLACES = 4
"""How many places of a task: where it begins, and the innermost."""

_LOOK_FOR = (
    "Look for a lock, or a place in a queue, that a cancelled call keeps (it is given back in a `finally`), for an "
    "answer that nobody sends, and for a call that blocks the event loop. A test that takes long for a good reason has "
    "`time_limit = …` (seconds) in its class."
)

_struck = threading.Event()
"""Set where something had no end: threads of it may go on."""


@contextmanager
def time_limit(seconds: float, what: str) -> Iterator[None]:
    """Fail in the main thread, saying ``what``, unless the block is left after so many seconds.

    A signal ends it, so that an event loop that is blocked, a property and a test that is no coroutine are ended
    too. A loop that goes on is stopped; one that does not stop has the failure raised in it, again and again where it
    is swallowed. There is no limit outside the main thread, without POSIX's timers, within a debugger, and where
    somebody else has such a timer, as `pytest-timeout` has.
    """
    if not _can_be_bounded():
        yield
        return
    left = _TICKS
    failure: str | None = None

    def tick(_number: int, frame: FrameType | None) -> None:
        nonlocal left, failure
        left -= 1
        if left > 0 or _is_debugged(frame):
            return
        _struck.set()
        stopped = failure is None and _stop_the_loop()
        failure = f"{what}: {seconds:g} seconds have passed.\n{_LOOK_FOR}\n{_told(frame)}"
        again = min(seconds / _TICKS, _AGAIN)
        signal.setitimer(signal.ITIMER_REAL, again, again)
        if not stopped:
            raise pytest.fail.Exception(failure, pytrace=False)

    before = signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, seconds / _TICKS, seconds / _TICKS)
    try:
        yield
    except RuntimeError:
        if failure is None:
            raise
        # It says that the loop was stopped.
        raise pytest.fail.Exception(failure, pytrace=False) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    if failure is not None:
        raise pytest.fail.Exception(failure, pytrace=False)


def end_threads() -> None:
    """Have the process end soon where something had no end: Python would wait for its threads for ever.

    What they are at is told on the standard error stream then.
    """
    own = threading.current_thread()
    left = [thread.name for thread in threading.enumerate() if thread is not own and not thread.daemon]
    if _struck.is_set() and left and sys.__stderr__ is not None:
        told = f"Threads of a test that had no end go on: {', '.join(left)}. They have {_LAST_SECONDS:g} seconds more."
        print(told, file=sys.__stderr__, flush=True)
        faulthandler.dump_traceback_later(_LAST_SECONDS, exit=True, file=sys.__stderr__)


def _can_be_bounded() -> bool:
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        return False
    return not signal.getitimer(signal.ITIMER_REAL)[0]


def _stop_the_loop() -> bool:
    """Have an event loop of this thread stop when it turns the next time; return whether there is one."""
    asyncio = sys.modules.get("asyncio")
    try:
        loop = asyncio.get_running_loop() if asyncio is not None else None
    except RuntimeError:
        loop = None
    if loop is not None:
        loop.call_soon_threadsafe(loop.stop)
    return loop is not None


def _is_debugged(frame: FrameType | None) -> bool:
    """Return whether a person looks at what is stopped."""
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in _DEBUGGERS:
            return True
        frame = frame.f_back
    return False


def _told(frame: FrameType | None) -> str:
    """Return where tasks and threads wait, a line for each."""
    import asyncio  # pytest loads this module for tests of any kind: they do not wait for it

    lines = []
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        lines.append(f"It is in {place_of(frame)}.")
    else:
        current = asyncio.current_task(loop)
        if current is not None:
            lines.append(f"The task {current.get_name()} holds up the event loop in {place_of(frame)}.")
        for task in sorted(asyncio.all_tasks(loop) - {current}, key=lambda task: task.get_name()):
            places = list(awaited(task.get_coro()))
            if len(places) > _PLACES:
                places[1 : 1 - _PLACES] = ["…"]
            named = getattr(task.get_coro(), "__qualname__", task.get_coro())
            lines.append(f"The task {task.get_name()} waits: {' → '.join(places) or named}.")
    own = threading.get_ident()
    for thread in threading.enumerate():
        where = place_of(sys._current_frames().get(thread.ident or 0)) if thread.ident != own else None
        if where is not None:  # one that waits for work has none
            lines.append(f"The thread {thread.name} is in {where}.")
    return "\n".join(lines[:_MOST])
