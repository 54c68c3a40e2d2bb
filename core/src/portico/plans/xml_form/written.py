"""A plan as it stands in the text, before its variables are references: what both parsers give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from portico.errors import PlanFormatError

__all__ = [
    "APPEND",
    "CONTROL_LENGTHS",
    "LIMIT_OF_CHARACTERS",
    "LIMIT_OF_STEPS",
    "SET",
    "Mend",
    "WrittenCall",
    "WrittenPlan",
    "control",
    "format_error",
    "places",
    "unlike_names",
]

LIMIT_OF_CHARACTERS = 1_000_000
LIMIT_OF_STEPS = 1_000

SET = "setcontextvariable"
APPEND = "appendtoresult"
_CONTROL = {"setContextVariable": SET, "appendToResult": APPEND}
CONTROL_LENGTHS = frozenset(map(len, _CONTROL))


class WrittenCall(NamedTuple):
    """One ``<function.…>``: what follows the dot, its attributes, the comments before it, and where it begins.

    A tuple for its speed: a plan is read while somebody waits. ``offset`` counts as the parser does.
    """

    function: str
    attributes: Mapping[str, str]
    reason: str
    offset: int


class WrittenPlan(NamedTuple):
    """The calls of one ``<plan>`` in their order, and the text of a ``<goal>`` where there is one.

    ``characters`` turns the offset of a call into one that counts characters of the text. ``strict`` says which parser
    read it.
    """

    calls: list[WrittenCall]
    goal: str
    characters: Callable[[int], int]
    strict: bool = True


@dataclass(frozen=True, slots=True)
class Mend:
    """Something that was put right while reading: where, counted from 1, and what."""

    line: int
    column: int
    what: str

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.what}"


Place: TypeAlias = tuple[int, int]


def places(text: str, offsets: Iterable[int]) -> list[Place]:
    """Return line and column of offsets, given in ascending order, in one pass over the text."""
    found: list[Place] = []
    line, start, seen = 1, 0, 0
    for offset in offsets:
        breaks = text.count("\n", seen, offset)
        if breaks:
            line += breaks
            start = text.rindex("\n", seen, offset) + 1
        seen = offset
        found.append((line, offset - start + 1))
    return found


def format_error(text: str, offset: int, problem: str) -> PlanFormatError:
    """Make the error of a plan's text, with its place."""
    [(line, column)] = places(text, [min(offset, len(text))])
    return PlanFormatError(f"line {line}, column {column}: {problem}.", line=line, column=column)


def control(name: str) -> str | None:
    """Return `SET` or `APPEND` for an attribute that is no argument, in whatever case it is written."""
    known = _CONTROL.get(name)
    if known is not None:
        return known
    lowered = name.lower()
    return lowered if lowered in (SET, APPEND) else None


def unlike_names(attributes: Mapping[str, str], fail: Callable[[str], PlanFormatError]) -> Mapping[str, str]:
    """Return the attributes, each once: names that differ in case only are one, and must have one value."""
    kept: dict[str, tuple[str, str]] = {}
    for name, value in attributes.items():
        first, other = kept.setdefault(name.lower(), (name, value))
        if other != value:
            raise fail(f"{first} and {name} are one argument with two values")
    return dict(kept.values())
