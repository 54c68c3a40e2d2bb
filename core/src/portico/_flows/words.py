"""What the user said, word for word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import Any

from portico._schema.paths import EACH, JsonPath

_SHORTEST = 3
_APART = "—，。、；：！？（）「」“”…|"
_BEFORE, _AFTER = re.escape("\"'`([{<«‘„*#"), re.escape(".,;:!?\"'`)]}>»’*")
_START = rf"(?:^|[\s{_APART}])[{_BEFORE}]*(?:[a-z]+[:=][{_BEFORE}]*)?"
_END = rf"(?=[{_AFTER}]*(?:['’]s)?(?:$|[\s{_APART}]))"
_DIGITS = r"(-?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,300})(?:\.[0-9]+)?)"
_NUMBER = re.compile(rf"{_START}[$€£¥]?{_DIGITS}[a-z%$€£¥]{{0,3}}{_END}")


class UserWords:
    """The words of a user: texts and JSON values. A value that is made of them is the user's, wherever it is found.

    >>> words = UserWords(["Pay 20 to ada@example.org, from /home/ada/bills."])
    >>> [words.said(each) for each in ("Ada@example.org", "ada", "/home/ada", 20, 2, True)]
    [True, False, False, True, False, False]

    A text is said from the beginning of a word to the end of one, with or without the marks around it, in any case, as
    it stands there. Addresses may be parted by commas. No text of less than three characters is said, nor are true,
    false and null.
    """

    def __init__(self, words: Iterable[Any]) -> None:
        self.words = tuple(words)

    @cached_property
    def _texts(self) -> list[str]:
        return [_plain(each) for value in self.words for each in leaves(value) if isinstance(each, str)]

    @cached_property
    def _numbers(self) -> set[float]:
        found = {each for value in self.words for each in leaves(value) if type(each) in (int, float)}
        for match in (each for text in self._texts for each in _NUMBER.finditer(text)):
            digits = match[1].replace(",", "")
            found.add(float(digits) if "." in digits else int(digits))
        return found

    def said(self, value: Any, names: Collection[str] = ()) -> bool:
        """Tell whether the user said a value, or all that is inside a list or object, with the names of its members.

        The user need not say ``names``: they are the function's.
        """
        match value:
            case list():
                return bool(value) and all(self.said(each, names) for each in value)
            case dict():
                named = all(name in names or self.said(name) for name in value)
                return bool(value) and named and all(self.said(each, names) for each in value.values())
            case bool() | None:
                return False
            case str():
                text = _plain(value.strip())
                return len(text) >= _SHORTEST and self._has(text)
        return value in self._numbers

    def _has(self, text: str) -> bool:
        start, end = _START, _END
        if text[0] in "/\\":
            start = rf"(?:^|[\s{_APART}])[{_BEFORE}]*"  # after a word and a colon it is a part of an address
        if "@" in text:
            start, end = rf"(?:{start}|[,;])", rf"(?:{end}|(?=[,;]))"
        found = re.compile(f"{start}{re.escape(text)}{end}")
        return any(found.search(each) is not None for each in self._texts)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", text).lower()


def leaves(value: Any) -> Iterator[Any]:
    """Yield the scalars in a JSON value, the names of members among them."""
    if isinstance(value, list | tuple | dict):
        for each in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from leaves(each)
    else:
        yield value


def named_in(value: Any) -> set[str] | None:
    """Return the text that a value is, or those in its list, without case; None where it is or has anything else."""
    every = value if isinstance(value, list) else [value]
    return {_plain(each.strip()) for each in every} if all(isinstance(each, str) for each in every) else None


def readers_at(value: Any, path: JsonPath) -> set[str]:
    """Return those who are at every place that a path leads to in a value; none where one of them is missing."""
    try:
        every = [
            {_plain(each.strip()) for each in leaves(found) if isinstance(each, str)} for found in _at(value, path)
        ]
    except LookupError:
        return set()
    return set.intersection(*every) if every else set()


def parts_at(value: Any, path: JsonPath) -> Iterator[Any]:
    """Yield what a value has at a path of names, numbers and [*]; the whole of what is not as the path says."""
    if path and path[0] == EACH and isinstance(value, list):
        for each in value:
            yield from parts_at(each, path[1:])
    elif path and isinstance(path[0], str) and isinstance(value, dict):
        yield from parts_at(value[path[0]], path[1:]) if path[0] in value else ()
    elif path and isinstance(path[0], int) and isinstance(value, list):
        yield from parts_at(value[path[0]], path[1:]) if path[0] < len(value) else ()
    else:
        yield value


def is_absent(value: Any, path: JsonPath) -> bool:
    """Tell whether there is nothing at a path for the reason alone that an object has no member of a name."""
    for part in path:
        if part == EACH or not isinstance(value, dict):
            return False
        if part not in value:
            return True
        value = value[part]
    return False


def _at(value: Any, path: JsonPath) -> Iterator[Any]:
    """Yield what is at a path of names, numbers and [*]; raises ``LookupError`` where anything is missing."""
    if not path:
        yield value
        return
    part, rest = path[0], path[1:]
    if part == EACH:
        if not isinstance(value, list):
            raise LookupError(part)
        for each in value:
            yield from _at(each, rest)
    elif isinstance(value, dict) if isinstance(part, str) else isinstance(value, list):
        yield from _at(value[part], rest)
    else:
        raise LookupError(part)
