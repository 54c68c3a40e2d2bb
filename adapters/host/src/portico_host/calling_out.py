"""Calls into packages that an interrupt may break off in the middle: their imports, and the making of services."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["call_out", "is_called_out"]


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
