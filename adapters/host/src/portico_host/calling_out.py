"""Calls into packages that an interrupt may break off in the middle: their imports, and the making of services."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["call_out", "is_called_out", "is_from_outside"]


def call_out(work: Callable[..., Any], *arguments: object) -> Any:
    """Call what a package brings.

    It may take seconds, in which an event loop does nothing else, and ``asyncio`` only notes a Ctrl-C. That nothing is
    lost when it is broken off, the handler of a command line knows by `is_called_out`.
    """
    return work(*arguments)


def is_called_out(frame: FrameType | None) -> bool:
    """Tell whether such a call goes on in a frame that a signal handler is given."""
    while frame is not None:
        if frame.f_code is call_out.__code__:
            return True
        frame = frame.f_back
    return False


def is_from_outside(error: BaseException) -> bool:
    """Tell whether what an awaited call raised is of somebody who stops it, and not of the package.

    A ``CancelledError`` is the package's own where nobody has asked to cancel; so is a ``SystemExit`` always, since no
    package is to end the program.
    """
    import asyncio

    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0
    return isinstance(error, KeyboardInterrupt | GeneratorExit)
