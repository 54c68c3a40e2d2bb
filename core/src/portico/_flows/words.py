"""What the user said, word for word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import Any

from portico._schema.paths import EACH, JsonPath

_SHORTEST = 3
_BEFORE, _AFTER = "\"'`([{<«“‘„", ".,;:!?\"'`)]}>»”’…"
_MONEY = "$€£¥%"
_NUMBER, _GROUPED = re.compile(r"-?\d{1,300}(\.\d+)?"), re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?")


class UserWords:
    """The words of a user: texts and JSON values. A value that is made of them is the user's, wherever it is found.

    >>> words = UserWords(["Pay 20 to ada@example.org, from /home/ada/bills."])
    >>> [words.said(each) for each in ("Ada@example.org", "ada", "/home/ada", 20, 2, True)]
    [True, False, False, True, False, False]

    Whole words count, from one blank to the next with or without the marks around them, in any case; several are said
    if they follow each other. No text of less than three characters is said, nor are true, false and null.
    """

    def __init__(self, words: Iterable[Any]) -> None:
        self.words = tuple(words)

    @cached_property
    def _said(self) -> dict[str, list[tuple[int, int]]]:
        """The places of each word, in each of the forms that it counts in: the number of its text, and its own."""
        found: dict[str, list[tuple[int, int]]] = {}
        for number, text in enumerate(each for value in self.words for each in _texts(value)):
            for place, word in enumerate(_plain(text).split()):
                start, bare = word.lstrip(_BEFORE), word.rstrip(_AFTER)
                for form in {word, start, bare, bare.lstrip(_BEFORE)}:
                    found.setdefault(form, []).append((number, place))
        return found

    @cached_property
    def _numbers(self) -> set[float]:
        found = {each for value in self.words for each in _leaves(value) if type(each) in (int, float)}
        for word in self._said:
            bare = word.strip(_MONEY)
            bare = bare.replace(",", "") if _GROUPED.fullmatch(bare) else bare
            if _NUMBER.fullmatch(bare):
                found.add(float(bare) if "." in bare else int(bare))
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
                return len(value.strip()) >= _SHORTEST and self._follow(_plain(value).strip(" ").split(" "))
        return value in self._numbers

    def _follow(self, words: list[str]) -> bool:
        """Tell whether the user said these words one after the other."""
        first, *others = (self._said.get(word, []) for word in words)
        ends = set(first)
        for places in others:
            ends = {(number, place + 1) for number, place in ends}.intersection(places)
        return bool(ends)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", text).lower()


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | dict):
        for each in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _leaves(each)
    else:
        yield value


def _texts(value: Any) -> Iterator[str]:
    return (each for each in _leaves(value) if isinstance(each, str))


def named_in(value: Any) -> set[str] | None:
    """Return the text that a value is, or those in its list, without case; None where it is or has anything else."""
    every = value if isinstance(value, list) else [value]
    return {each.strip().lower() for each in every} if all(isinstance(each, str) for each in every) else None


def readers_at(value: Any, path: JsonPath) -> set[str]:
    """Return those who are at every place that a path leads to in a value; none where one of them is missing."""
    try:
        every = [{text.strip().lower() for text in _texts(found)} for found in _at(value, path)]
    except LookupError:
        return set()
    return set.intersection(*every) if every else set()


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
