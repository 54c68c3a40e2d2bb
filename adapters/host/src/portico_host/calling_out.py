"""Call into packages: an interrupt may stop them, and their prints go to standard error."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType, ModuleType
from typing import Any, cast

__all__ = ["call_out", "import_quietly", "is_called_out", "is_from_outside", "printing_to_stderr"]


def call_out(work: Callable[..., Any], *arguments: object) -> Any:
    """Call code of a package.

    The call may block the event loop for seconds, and ``asyncio`` delays a Ctrl-C for that time. The signal handler of
    a command line uses `is_called_out` to see that it can safely interrupt at once.
    """
    return work(*arguments)


def is_called_out(frame: FrameType | None) -> bool:
    """Return whether ``frame``, as a signal handler gets it, is inside `call_out`."""
    while frame is not None:
        if frame.f_code is call_out.__code__:
            return True
        frame = frame.f_back
    return False


def is_from_outside(error: BaseException) -> bool:
    """Return whether an awaited call was stopped by its caller and did not fail by itself.

    A ``CancelledError`` without a request to cancel is a failure of the package. A ``SystemExit`` always is one,
    because a package must not end the program.
    """
    import asyncio

    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0
    return isinstance(error, KeyboardInterrupt | GeneratorExit)


def import_quietly(module: str) -> ModuleType:
    """Import a module; what it prints meanwhile goes to standard error.

    One that is imported already prints nothing, so standard output is left alone.
    """
    if module in sys.modules:
        return import_module(module)  # which waits until another thread has imported it
    with printing_to_stderr():
        return cast("ModuleType", call_out(import_module, module))


_lock = threading.Lock()
_replaced: list[Any] = []


@contextmanager
def printing_to_stderr() -> Iterator[None]:
    """Send what is printed to standard error, by other threads too.

    `contextlib.redirect_stdout` would not do: if two threads overlap, the later one restores what the earlier one has
    set. Here the first one sets it and the last one restores it. No lock is held inside, because an import may wait
    for that of another thread.
    """
    with _lock:
        _replaced.append(sys.stdout)
        sys.stdout = sys.stderr
    try:
        yield
    finally:
        with _lock:
            original = _replaced.pop()
            if not _replaced:
                sys.stdout = original
