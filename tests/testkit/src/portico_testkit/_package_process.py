"""What a package does at import that a whole process has to live with: where others look for modules, and the like.

None of it has an audit event, so each function that does it is replaced. This is for a process of its own, before
anything of the package is imported. Only the standard library is imported here.
"""

from __future__ import annotations

import _thread
import atexit
import logging
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any

__all__ = ["process_is_watched"]

_ATTRIBUTES = ("setLevel", "addHandler", "removeHandler", "addFilter")
_CHANGING = ("append", "extend", "insert", "remove", "pop", "clear", "__setitem__", "__delitem__", "__iadd__")


def process_is_watched(note: Callable[[str], None]) -> None:
    """Have ``note`` called from now on, from the place that does it, with each change of what belongs to all."""
    _told(_thread, "start_new_thread", note, "starts a thread")
    _told(signal, "signal", note, "takes a signal for itself (signal.signal)")
    _told(atexit, "register", note, "has something done at the end of the process (atexit.register)")
    _told(logging, "disable", note, "sets up logging for everybody (logging.disable)")
    _told(logging, "captureWarnings", note, "sets up logging for everybody (logging.captureWarnings)")
    for name in _ATTRIBUTES:
        _told(type(logging.root), name, note, f"sets up logging for everybody ({name} of the root logger)", _is_root)
    _filters_are_watched(note)
    sys.path = _path_class(note)(sys.path)


def _told(
    owner: Any, name: str, note: Callable[[str], None], what: str, when: Callable[..., bool] = lambda *_: True
) -> None:
    """Replace a function by one that notes its call first."""
    function = getattr(owner, name)

    def noted(*arguments: Any, **options: Any) -> Any:
        if when(*arguments):
            note(what)
        return function(*arguments, **options)

    setattr(owner, name, noted)


def _is_root(logger: object, *_: object) -> bool:
    return logger is logging.root


def _filters_are_watched(note: Callable[[str], None]) -> None:
    """Note filters of warnings, but not those in a block of `catch_warnings`, which takes them back."""
    inside = 0
    enter, leave = warnings.catch_warnings.__enter__, warnings.catch_warnings.__exit__

    def entered(self: Any) -> Any:
        nonlocal inside
        inside += 1
        return enter(self)

    def left(self: Any, *error: Any) -> Any:
        nonlocal inside
        inside -= 1
        return leave(self, *error)

    warnings.catch_warnings.__enter__ = entered  # type: ignore[method-assign]
    warnings.catch_warnings.__exit__ = left  # type: ignore[method-assign]
    for name in ("filterwarnings", "simplefilter", "resetwarnings"):
        what = f"changes which warnings everybody sees (warnings.{name})"
        _told(warnings, name, note, what, lambda *_: not inside)


def _path_class(note: Callable[[str], None]) -> type[list[str]]:
    """Return a list that notes when it is changed."""

    class Path(list[str]):
        __slots__ = ()

    for name in _CHANGING:
        _told(Path, name, note, "changes where everybody's modules are found (sys.path)")
    return Path
