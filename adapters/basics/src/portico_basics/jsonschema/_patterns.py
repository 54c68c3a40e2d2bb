"""Regular expressions of JSON Schema (ECMA-262) for Python.

Python's engine tries every way of matching, and cannot be interrupted. A repeated group that can match the same text in
several ways, ``(a+)+``, takes time that doubles with each letter, and is refused. A pattern with one repetition may
still take the square of a text's length, so texts are bounded where a pattern is used.
"""

from __future__ import annotations

import re
from re import _constants as sre, _parser  # type: ignore[attr-defined]
from typing import Any

_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
_DIFFERENT = re.compile(r"\\k<(\w+)>|\\.|\(\?<(?=\w)|\[\^?(?:\\.|[^\]\\])*\]|\$", re.DOTALL)
"""What Python writes in another way, and escapes, so that nothing is found inside of them."""


def python_pattern(written: str) -> str:
    r"""Return a pattern as Python has it. Raises ``ValueError`` for one that it cannot match, or that may never end.

    Give up on what is rare: ``\p{…}``, ``\c``, and classes without letters.

    >>> python_pattern("^[a-z]+$")
    '(?a:^[a-z]+\\Z)'
    """
    try:
        inner = _DIFFERENT.sub(_in_python, written)
        re.compile(inner)
        python = f"(?a:{inner})"
        re.compile(python)
        tree = _parser.parse(python)
    except (re.error, OverflowError, RecursionError, Warning) as error:
        raise ValueError(f"the pattern {written!r} cannot be used: {error}") from error
    if _repeats_itself(tree):
        raise ValueError(
            f"the pattern {written!r} repeats what itself repeats, and may take time without end: "
            "write what stands between the repetitions, or repeat once"
        )
    return python


def written_pattern(python: str) -> str:
    """Return a pattern as it was written, nearly: for people."""
    return python.removeprefix("(?a:").removesuffix(")").replace(r"\Z", "$").replace("(?P<", "(?<")


def _in_python(match: re.Match[str]) -> str:
    text = match[0]
    if text == "$":
        return r"\Z"  # in Python "$" matches before a last line break, too
    if match[1]:
        return f"(?P={match[1]})"
    if text[0] == "[":
        # What Python may one day read as an operation on sets.
        return "[" + re.sub(r"(\\.)|[\[&|~]", lambda part: part[1] or f"\\{part[0]}", text[1:], flags=re.DOTALL)
    return "(?P<" if text == "(?<" else text


def _repeats_itself(sequence: Any) -> bool:
    """Tell whether a part that stretches, alone or among optional parts, is itself repeated."""
    try:
        _stretches(sequence)
    except _Endless:
        return True
    return False


class _Endless(Exception):
    """A repetition repeats what itself repeats."""


def _stretches(sequence: Any) -> tuple[bool, bool]:
    """Return whether a sequence can match texts of any length by one part alone, and whether it can match no text."""
    needed, stretchy, stretchy_optional = 0, False, False
    for operation, argument in sequence:
        part_stretches, optional = _part_stretches(operation, argument)
        needed += not optional
        stretchy |= part_stretches and not optional
        stretchy_optional |= part_stretches and optional
    return (stretchy and needed == 1) or (stretchy_optional and needed == 0), needed == 0


def _part_stretches(operation: Any, argument: Any) -> tuple[bool, bool]:
    if operation in _REPEATS:
        least, most, inside = argument
        stretches, empty = _stretches(inside)
        if stretches and most > 1:
            raise _Endless
        return stretches or most is sre.MAXREPEAT, empty or least == 0
    if operation is sre.BRANCH:
        parts = [_stretches(option) for option in argument[1]]
        return any(stretches for stretches, _ in parts), any(empty for _, empty in parts)
    if operation is sre.SUBPATTERN or operation is sre.ATOMIC_GROUP:
        return _stretches(argument[-1] if operation is sre.SUBPATTERN else argument)
    if operation in (sre.ASSERT, sre.ASSERT_NOT):
        _stretches(argument[1])
    return False, operation in (sre.AT, sre.ASSERT, sre.ASSERT_NOT)
