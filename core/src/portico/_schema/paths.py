"""Paths into results: the queries of RFC 9535 without filters and descent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from portico.errors import LimitExceeded, PlanFormatError

Slice: TypeAlias = tuple[int | None, int | None, int | None]
"""Start, end and step of a slice; None where it is not written."""


Selector: TypeAlias = str | int | Slice | None
"""A name, an index, a slice; None selects all."""


@dataclass(frozen=True, slots=True)
class Many:
    """A part of a path that selects any number of values."""

    selectors: tuple[Selector, ...]


JsonPath: TypeAlias = tuple[str | int | Many, ...]
EACH = Many((None,))

# ASCII letters, "_" and all that is not ASCII; then digits too. A set of what is left out compiles 20 times as fast.
_NAME = re.compile(r"[^\x00-@\[-^`{-\x7f][^\x00-/:-@\[-^`{-\x7f]*")
_BLANK = re.compile(r"[ \t\n\r]*")
_INTEGER, _BLANKS = r"(0|-?[1-9][0-9]*+)", r"[ \t\n\r]*+"  # possessive: what a path may be long in is read once
_SELECTOR = re.compile(
    rf"""{_BLANKS}(?:"((?:[^"\\\x00-\x1f]|\\.)*+)"|'((?:[^'\\\x00-\x1f]|\\.)*+)'|(\*)"""
    rf"""|{_INTEGER}?{_BLANKS}(:){_BLANKS}{_INTEGER}?{_BLANKS}(?::{_BLANKS}{_INTEGER}?)?|{_INTEGER})"""
    rf"""{_BLANKS}([],])"""
)
_ESCAPED = re.compile(r"""\\.|\"""")
_IN_DOUBLE = {'"': '\\"', "\\'": "'", '\\"': "\\'"}
"""What stands in single quotes, as it is written in double quotes; an escaped double quote is an error in both."""
_HALF = re.compile("[\ud800-\udfff]")
_LARGEST_INDEX = 2**53 - 1
_MOST_PARTS = 1_000
_MOST_VALUES = 1_000_000
_MOST_TRIED = 10_000_000


def read_path(value: Any, path: JsonPath) -> Any:
    """Return the value at a path; negative indexes count from the end.

    A path that may select several gives a list of those that there are. Raises ``LookupError`` if there is nothing at
    any other path, and ``LimitExceeded`` for more than 1,000,000 values or 10,000,000 places to look at.
    """
    for depth, part in enumerate(path):
        if isinstance(part, Many):
            return _select(value, path, depth)
        wanted = dict if isinstance(part, str) else list
        if not isinstance(value, wanted):
            if is_many(path):
                return []
            raise LookupError(f"{print_path(path[:depth])} is not {'an object' if wanted is dict else 'an array'}")
        try:
            value = value[part]  # type: ignore[index]
        except LookupError:
            if is_many(path):
                return []
            raise LookupError(f"there is nothing at {print_path(path[: depth + 1])}") from None
    return value


def is_many(path: JsonPath) -> bool:
    """Tell whether a path may select several values, so that what it gives is a list."""
    return any(isinstance(part, Many) for part in path)


def _select(value: Any, path: JsonPath, depth: int) -> list[Any]:
    values, tried = [value], 0
    for part in path[depth:]:
        found: list[Any] = []
        selectors = part.selectors if isinstance(part, Many) else (part,)
        tried += len(values) * len(selectors)
        if tried > _MOST_TRIED:
            raise _too_much(path)
        for each in values:
            for selector in selectors:
                found += select(each, selector)
                if len(found) > _MOST_VALUES:
                    raise _too_much(path)
        values = found
    return values


def _too_much(path: JsonPath) -> LimitExceeded:
    most = f"selects more than {_MOST_VALUES:,} values, or looks in more than {_MOST_TRIED:,} places"
    return LimitExceeded(f"The path {_short(print_path(path))} {most}.")


def select(value: Any, selector: Selector) -> Sequence[Any]:
    """Return what one selector selects of a value."""
    if isinstance(value, dict):
        if selector is None:
            return list(value.values())
        return [value[selector]] if isinstance(selector, str) and selector in value else []
    if not isinstance(value, list):
        return []
    match selector:
        case None:
            return value
        case int():
            return [value[selector]] if -len(value) <= selector < len(value) else []
        case (start, end, step):
            return [] if step == 0 else value[start:end:step]
    return []


def parse_path(text: str) -> JsonPath:
    """Do what `From.parse_path` says."""
    if not text.startswith("$"):
        raise PlanFormatError(f"The path {_short(text)!r} does not begin with '$'.")
    parts: list[str | int | Many] = []
    position = 1
    while position < len(text):
        start = _BLANK.match(text, position).end()  # type: ignore[union-attr]
        if start == len(text):
            raise _error(text, position, "white space at the end")
        if len(parts) == _MOST_PARTS:
            raise _error(text, position, f"more than {_MOST_PARTS:,} names and indexes")
        if text.startswith("..", start):
            raise _error(text, start, "a path has no '..' here: it says where each value is")
        if text.startswith(".*", start):
            parts.append(Many((None,)))
            position = start + 2
        elif text[start] == ".":
            match = _NAME.match(text, start + 1)
            if not match:
                raise _error(text, start + 1, "a name or '*' must follow '.'")
            parts.append(match[0])
            position = match.end()
        elif text[start] == "[":
            part, position = _bracket(text, start + 1)
            parts.append(part)
        else:
            raise _error(text, start, "'.' or '[' expected")
    return tuple(parts)


def _bracket(text: str, position: int) -> tuple[str | int | Many, int]:
    """Return the part that is written in brackets, and where it ends."""
    selectors: list[Selector] = []
    end = ","
    while end == ",":
        match = _SELECTOR.match(text, position)
        try:
            if match is None:
                raise ValueError(text)
            double, single, every, start, is_slice, stop, step, index, end = match.groups()
            if every:
                selectors.append(None)
            elif is_slice:
                selectors.append((_integer(start), _integer(stop), _integer(step)))
            elif index is not None:
                selectors.append(int(_integer(index) or 0))
            else:
                selectors.append(_name(double, single))
        except OverflowError as error:
            raise _error(text, position, f"a number is at most {_LARGEST_INDEX}") from error
        except ValueError as error:
            if text.startswith("?", _BLANK.match(text, position).end()):  # type: ignore[union-attr]
                raise _error(text, position, "a path has no filter here: a step can choose") from error
            problem = "a name in quotes as JSON has it, an index, a slice or '*', and ']' or ',' expected"
            raise _error(text, position, problem) from error
        if len(selectors) > _MOST_PARTS:
            raise _error(text, position, f"more than {_MOST_PARTS:,} names and indexes")
        position = match.end()
    first = selectors[0]
    return (first if len(selectors) == 1 and isinstance(first, str | int) else Many(tuple(selectors))), position


def _integer(text: str | None) -> int | None:
    if text is not None and (len(text) > 17 or abs(int(text)) > _LARGEST_INDEX):
        raise OverflowError(text)
    return None if text is None else int(text)


def _name(double: str | None, single: str) -> str:
    if double is None:
        # JSON has the same escapes in double quotes.
        double = _ESCAPED.sub(lambda each: _IN_DOUBLE.get(each[0], each[0]), single)
    name: str = json.loads(f'"{double}"')
    if len(_HALF.findall(name)) > len(_HALF.findall(double)):
        raise ValueError(double)  # an escape may not be half of a surrogate pair
    return name


def print_path(path: JsonPath) -> str:
    """Do what `From.print_path` says."""
    return "$" + "".join(
        f".{part}" if isinstance(part, str) and _NAME.fullmatch(part) else f"[{','.join(_written(part))}]"
        for part in path
    )


def _written(part: str | int | Many) -> Iterator[str]:
    for selector in part.selectors if isinstance(part, Many) else (part,):
        match selector:
            case None:
                yield "*"
            case str():
                yield json.dumps(selector, ensure_ascii=False)
            case (start, end, step):
                bounds = [start, end] if step is None else [start, end, step]
                yield ":".join("" if bound is None else str(bound) for bound in bounds)
            case _:
                yield str(selector)


def _error(text: str, position: int, problem: str) -> PlanFormatError:
    return PlanFormatError(f"The path {_short(text)!r} is wrong at character {position + 1}: {problem}.")


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"
