"""What a package's own code costs while it is imported, in a measure that is the same on every machine.

Processor time is counted, and not what the packages of others take while they are imported. It is told as a multiple
of a sum that the same process does: a slow machine is slow at both.
"""

from __future__ import annotations

import builtins
import time
from collections.abc import Collection
from types import ModuleType
from typing import Any

__all__ = ["OwnTime", "yardstick"]

_ROUNDS = 3
_NUMBERS = 200_000


def yardstick() -> float:
    """Return the processor time that the sum of the squares of a million numbers takes here, in seconds."""
    fastest = min(_timed() for _ in range(_ROUNDS))
    return fastest * 1_000_000 / _NUMBERS


def _timed() -> float:
    start = time.process_time()
    sum(number * number for number in range(_NUMBERS))
    return time.process_time() - start


class OwnTime:
    """A clock that stands still while a package imports what is not its ``own``.

    >>> clock = OwnTime({"portico_acme"})
    >>> clock.seconds() >= 0.0
    True
    """

    def __init__(self, own: Collection[str]) -> None:
        self._own = own
        self._others = 0.0
        self._start = time.process_time()
        self._depth = 0

    def seconds(self) -> float:
        """Return the processor time since this clock was made, without that of others' imports."""
        return time.process_time() - self._start - self._others

    def install(self) -> None:
        """Have every import statement counted from now on. For a process of its own."""
        importing = builtins.__import__

        def counted(name: str, *arguments: Any, **options: Any) -> ModuleType:
            level = arguments[3] if len(arguments) > 3 else options.get("level", 0)
            if self._depth or level or name.partition(".")[0] in self._own:
                return importing(name, *arguments, **options)
            self._depth += 1
            start = time.process_time()
            try:
                return importing(name, *arguments, **options)
            finally:
                self._depth -= 1
                self._others += time.process_time() - start

        builtins.__import__ = counted
