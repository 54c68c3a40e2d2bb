"""Calls of functions as they are written in a template."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["CallPlaces", "FunctionCall"]


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a function as it is written in a template, for checking it before anything runs.

    ``positional`` is how many arguments have no name, ``named`` the names of the others. Line and column count from 1.
    """

    function: str
    positional: int
    named: tuple[str, ...]
    line: int
    column: int


class CallPlaces:
    r"""The lines of a source, looked through once, for the places of the calls in it.

    >>> CallPlaces("Dear\n{{Tone-shout 'Ada'}}").call("Tone-shout", 1, (), at=7)
    FunctionCall(function='Tone-shout', positional=1, named=(), line=2, column=3)
    """

    __slots__ = ("_begins",)

    def __init__(self, source: str) -> None:
        self._begins = [0]
        end = source.find("\n")
        while end >= 0:
            self._begins.append(end + 1)
            end = source.find("\n", end + 1)

    def call(self, function: str, positional: int, named: Iterable[str], *, at: int) -> FunctionCall:
        """Return the call whose name stands at the index ``at``."""
        line = bisect_right(self._begins, at)
        return FunctionCall(function, positional, tuple(named), line, at - self._begins[line - 1] + 1)
