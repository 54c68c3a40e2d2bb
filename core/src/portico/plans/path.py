"""Paths into JSON values: the singular queries of RFC 9535 (names and indexes, exactly one value)."""

from __future__ import annotations

import json
import re
from typing import Any, TypeAlias

from portico.errors import PlanFormatError

__all__ = ["JsonPath", "parse_path", "print_path", "read_path"]

JsonPath: TypeAlias = tuple[str | int, ...]

_NAME = re.compile(r"[A-Za-z_\u0080-\U0010FFFF][0-9A-Za-z_\u0080-\U0010FFFF]*")
_INDEX = re.compile(r"0|-?[1-9][0-9]*")
_BLANK = re.compile(r"[ \t\n\r]*")
_LARGEST_INDEX = 2**53 - 1
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "/": "/", "\\": "\\"}
_HEX4 = re.compile(r"[0-9A-Fa-f]{4}")


def parse_path(text: str) -> JsonPath:
    r"""Parse a singular query.

    >>> parse_path("$.days[0]['max temp']")
    ('days', 0, 'max temp')

    Raises ``PlanFormatError`` with the position for anything else, wildcards and slices included.
    """
    if not text.startswith("$"):
        raise PlanFormatError(f"The path {_short(text)!r} does not begin with '$'.")
    parts: list[str | int] = []
    position = 1
    while position < len(text):
        start = _BLANK.match(text, position).end()  # type: ignore[union-attr]
        if start == len(text):
            raise _error(text, position, "white space at the end")
        if text[start] == ".":
            match = _NAME.match(text, start + 1)
            if not match:
                raise _error(text, start + 1, "a name must follow '.'")
            parts.append(match[0])
            position = match.end()
        elif text[start] == "[":
            part, position = _bracket(text, start + 1)
            parts.append(part)
        else:
            raise _error(text, start, "'.' or '[' expected")
    return tuple(parts)


def print_path(path: JsonPath) -> str:
    """Write a path in its shortest form.

    >>> print_path(("days", 0, "max temp"))
    '$.days[0]["max temp"]'
    """
    return "$" + "".join(
        f"[{part}]"
        if isinstance(part, int)
        else f".{part}"
        if _NAME.fullmatch(part)
        else f"[{json.dumps(part, ensure_ascii=False)}]"
        for part in path
    )


def read_path(value: Any, path: JsonPath) -> Any:
    """Return what the path leads to; negative indexes count from the end.

    Raises ``LookupError`` when there is nothing.
    """
    for depth, part in enumerate(path):
        wanted = dict if isinstance(part, str) else list
        if not isinstance(value, wanted):
            raise LookupError(f"{print_path(path[:depth])} is not {'an object' if wanted is dict else 'an array'}")
        try:
            value = value[part]  # type: ignore[index]
        except LookupError:
            raise LookupError(f"there is nothing at {print_path(path[: depth + 1])}") from None
    return value


def _bracket(text: str, position: int) -> tuple[str | int, int]:
    position = _BLANK.match(text, position).end()  # type: ignore[union-attr]
    part: str | int
    if text[position : position + 1] in ("'", '"'):
        part, position = _string(text, position)
    else:
        match = _INDEX.match(text, position)
        if not match or len(match[0]) > 17 or abs(int(match[0])) > _LARGEST_INDEX:
            raise _error(text, position, "a quoted name or an index expected")
        part, position = int(match[0]), match.end()
    position = _BLANK.match(text, position).end()  # type: ignore[union-attr]
    if text[position : position + 1] != "]":
        raise _error(text, position, "']' expected")
    return part, position + 1


def _string(text: str, position: int) -> tuple[str, int]:
    quote = text[position]
    position += 1
    letters: list[str] = []
    while position < len(text):
        letter = text[position]
        if letter == quote:
            return "".join(letters), position + 1
        if letter < " ":
            raise _error(text, position, "a control character must be escaped")
        if letter != "\\":
            letters.append(letter)
            position += 1
            continue
        escaped = text[position + 1 : position + 2]
        if escaped == "u":
            code, position = _unicode_escape(text, position)
            letters.append(code)
        elif escaped == quote or (escaped and escaped in _ESCAPES):
            letters.append(_ESCAPES.get(escaped, escaped))
            position += 2
        else:
            raise _error(text, position, "unknown escape")
    raise _error(text, position, "the quote is not closed")


def _unicode_escape(text: str, position: int) -> tuple[str, int]:
    start = position
    match = _HEX4.match(text, position + 2)
    if not match:
        raise _error(text, position, "four hexadecimal digits expected")
    code = int(match[0], 16)
    position = match.end()
    if 0xD800 <= code < 0xDC00 and text.startswith("\\u", position):
        low = _HEX4.match(text, position + 2)
        if low and 0xDC00 <= int(low[0], 16) < 0xE000:
            return chr(0x10000 + ((code - 0xD800) << 10) + int(low[0], 16) - 0xDC00), low.end()
    if 0xD800 <= code < 0xE000:
        raise _error(text, start, "half of a surrogate pair")
    return chr(code), position


def _error(text: str, position: int, problem: str) -> PlanFormatError:
    return PlanFormatError(f"The path {_short(text)!r} is wrong at character {position + 1}: {problem}.")


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"
