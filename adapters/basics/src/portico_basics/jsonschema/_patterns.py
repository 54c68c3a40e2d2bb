"""Regular expressions of JSON Schema (ECMA-262) for Python, without the worst of those that never end.

Python's engine tries every way of matching, and cannot be interrupted. A repeated group that can match the same
text in several ways, ``(a+)+``, takes time that doubles with each letter: it is refused. A pattern with any
repetition may still take the square of a text's length, so texts are bounded where one is used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn

_REPEAT = re.compile(r"\*|\+|\?|\{(\d+)(?:,(\d*))?\}")
_IN_CLASS = frozenset("[&|~")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern as it was written, in Python's words, and whether it repeats anything without bound."""

    written: str
    python: str
    repeats: bool


@dataclass(slots=True)
class _Sequence:
    """Atoms that follow each other: how many must match something, and whether one stretches.

    A part stretches when it can match texts of any length in a run: ``a+``, or a group of nothing else.
    """

    needed: int = 0
    stretchy_needed: bool = False
    stretchy_optional: bool = False

    def stretches(self) -> bool:
        """Tell whether nothing but one part that stretches has to match."""
        return (self.stretchy_needed and self.needed == 1) or (self.stretchy_optional and self.needed == 0)

    def add(self, *, optional: bool, stretchy: bool) -> None:
        self.needed += not optional
        self.stretchy_optional |= stretchy and optional
        self.stretchy_needed |= stretchy and not optional


@dataclass(slots=True)
class _Group:
    """A group that is being read: its alternatives so far, and whether it matches no text."""

    zero_width: bool = False
    done: list[_Sequence] = field(default_factory=list)
    now: _Sequence = field(default_factory=_Sequence)

    def alternatives(self) -> list[_Sequence]:
        return [*self.done, self.now]


def read_pattern(written: str) -> Pattern:
    r"""Read a pattern. Raises ``ValueError`` for one that Python cannot match, or that may never end.

    >>> read_pattern("^[a-z]+$").python
    '(?a:^[a-z]+\\Z)'
    """
    reader = _Reader(written)
    python = f"(?a:{reader.read()})"
    try:
        re.compile(python)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"the pattern {written!r} cannot be used: {error}") from error
    return Pattern(written, python, reader.repeats)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.repeats = False
        self.groups = [_Group()]

    def read(self) -> str:
        parts: list[str] = []
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter == "(":
                parts.append(self.open())
            elif letter == ")":
                if len(self.groups) == 1:
                    self.fail("a group is closed that was not opened")
                self.at += 1
                parts.append(")")
                parts.append(self.close())
            elif letter == "|":
                self.at += 1
                group = self.groups[-1]
                group.done.append(group.now)
                group.now = _Sequence()
                parts.append("|")
            elif letter in "^$":
                self.at += 1
                # In Python "$" matches in front of a last line break, too.
                parts.append(r"\Z" if letter == "$" else letter)
            else:
                parts.append(self.atom(letter))
                parts.append(self.quantifier(nullable=False, stretchy=False))
        if len(self.groups) > 1:
            self.fail("a group is not closed")
        return "".join(parts)

    def fail(self, reason: str) -> NoReturn:
        raise ValueError(f"the pattern {self.text!r} cannot be used: {reason}")

    def open(self) -> str:
        found = re.compile(r"\((\?(?:[:=!]|<[=!]|<(\w+)>))?").match(self.text, self.at)
        assert found is not None  # noqa: S101 - it begins with "("
        self.at = found.end()
        self.groups.append(_Group(zero_width=(found[1] or "")[1:] in ("=", "!", "<=", "<!")))
        return f"(?P<{found[2]}>" if found[2] else found[0]

    def close(self) -> str:
        group = self.groups.pop()
        alternatives = group.alternatives()
        nullable = group.zero_width or any(each.needed == 0 for each in alternatives)
        stretchy = not group.zero_width and any(each.stretches() for each in alternatives)
        return self.quantifier(nullable=nullable, stretchy=stretchy)

    def quantifier(self, *, nullable: bool, stretchy: bool) -> str:
        """Read what may stand behind an atom, and add both to the sequence."""
        found = _REPEAT.match(self.text, self.at)
        sequence = self.groups[-1].now
        if found is None:
            sequence.add(optional=nullable, stretchy=stretchy)
            return ""
        self.at = found.end()
        lazy = self.text.startswith("?", self.at)
        self.at += lazy
        unbounded = found[0] in "*+" or (found[1] is not None and found[2] == "")
        many = unbounded or (found[1] is not None and int(found[2] or found[1]) > 1)
        if stretchy and many:
            raise ValueError(
                f"the pattern {self.text!r} repeats what itself repeats, and may take time without end: "
                "write what stands between the repetitions, or repeat once"
            )
        self.repeats |= many
        optional = nullable or found[0] in "*?" or found[1] == "0"
        sequence.add(optional=optional, stretchy=stretchy or unbounded)
        return found[0] + "?" * lazy

    def atom(self, letter: str) -> str:
        if letter == "[":
            return self.character_class()
        if letter != "\\":
            self.at += 1
            # To Python "{,2}" is a quantifier.
            return r"\{" if letter == "{" else letter
        named = re.compile(r"\\k<(\w+)>").match(self.text, self.at)
        if named:
            self.at = named.end()
            return f"(?P={named[1]})"
        escape = self.text[self.at : self.at + 2]
        self.at += 2
        return escape

    def character_class(self) -> str:
        """Copy a class; what Python may one day read as an operation on sets is escaped."""
        start = self.at
        self.at += 2 if self.text.startswith("[^", start) else 1
        parts = [self.text[start : self.at]]
        while self.at < len(self.text) and self.text[self.at] != "]":
            letter = self.text[self.at]
            size = 2 if letter == "\\" else 1
            part = self.text[self.at : self.at + size]
            doubled = part == parts[-1] == "-"
            parts.append(f"\\{letter}" if letter in _IN_CLASS or doubled else part)
            self.at += size
        if self.at >= len(self.text):
            self.fail("a class is not closed")
        self.at += 1
        if len(parts) == 1:
            # Python takes the bracket for a member: here there is none.
            return r"[\s\S]" if parts[0] == "[^" else "(?!)"
        return "".join(parts) + "]"
