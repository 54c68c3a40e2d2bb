"""One check of one value: how many steps it took so far, and what is known of its parts already."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jsonschema.exceptions import ValidationError

from portico_basics.jsonschema._patterns import Pattern


class TooMuch(Exception):
    """A check needed more steps than it may take."""


@dataclass(frozen=True, slots=True)
class Known:
    """A fault as it is kept: an error cannot be, for whoever passes it on adds to its path."""

    path: tuple[str | int, ...]
    keyword: str | None
    message: str
    within: tuple[Known, ...] = ()

    @classmethod
    def of(cls, error: ValidationError) -> Known:
        """Keep what an error says."""
        within = tuple(map(cls.of, error.context or ()))
        return cls(tuple(error.relative_path), error.validator, error.message, within)

    def error(self) -> ValidationError:
        """Return a fresh error that says it."""
        context = [known.error() for known in self.within]
        return ValidationError(self.message, validator=self.keyword, path=self.path, context=context)


@dataclass(slots=True)
class Run:
    """The check that is going on in a thread: its steps, what is known, and the patterns of its schema."""

    steps_left: int = 0
    known: dict[tuple[int, int], tuple[Known, ...]] | None = None
    patterns: Mapping[str, Pattern] = field(default_factory=dict)

    def step(self) -> None:
        """Count one keyword. Raises ``RecursionError`` before there is no stack left."""
        self.steps_left -= 1
        if self.steps_left < 0:
            raise TooMuch
        # Below the vendor is native code that panics when Python's stack ends in it, and a panic is no Exception:
        # it would pass by every handler. So the last quarter of the stack is not entered.
        try:
            sys._getframe(sys.getrecursionlimit() * 3 // 4)  # noqa: SLF001
        except ValueError:
            return
        raise RecursionError

    def once(self, key: tuple[int, int], errors: Iterable[Any]) -> Iterable[ValidationError]:
        """Find errors once for each key: ways through a schema may meet again at every level of a value."""
        if self.known is None:
            return errors
        if key not in self.known:
            # Two ways to one fault would make four at the next level.
            self.known[key] = tuple(dict.fromkeys(map(Known.of, errors)))
        return [known.error() for known in self.known[key]]


class Runs(threading.local):
    """The run of each thread."""

    now: Run = Run()
