"""Where code is at work, or waits."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from functools import cache
from types import CodeType, FrameType
from typing import Any

__all__ = ["awaited", "place", "place_of"]


def place_of(frame: FrameType | None) -> str | None:
    """Return the innermost place outside the standard library from which a frame was called; None where all is in it.

    >>> import sys
    >>> place_of(sys._getframe()) is not None
    True
    """
    while frame is not None:
        if not _is_standard(frame.f_code.co_filename):
            return place(frame.f_code, frame.f_lineno)
        frame = frame.f_back
    return None


def place(code: CodeType, line: int) -> str:
    """Return how a line is told to people."""
    return f"{code.co_name} ({code.co_filename}:{line})"


def awaited(coroutine: Any) -> Iterator[str]:
    """Yield the places outside the standard library where a coroutine waits, from the outermost to the innermost."""
    while coroutine is not None:
        # An asynchronous generator names its own in another way, and a future has none.
        frame = next((getattr(coroutine, each, None) for each in ("cr_frame", "ag_frame", "gi_frame")), None)
        if frame is not None and not _is_standard(frame.f_code.co_filename):
            yield place(frame.f_code, frame.f_lineno)
        coroutine = next((getattr(coroutine, each, None) for each in ("cr_await", "ag_await", "gi_yieldfrom")), None)


@cache
def _is_standard(file: str) -> bool:
    if file.startswith("<frozen "):
        return True
    paths = sysconfig.get_paths()
    if file.startswith((paths["purelib"], paths["platlib"])):  # they may lie below the standard library
        return False
    return file.startswith((paths["stdlib"], paths["platstdlib"]))
