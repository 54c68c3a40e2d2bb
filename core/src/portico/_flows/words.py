"""What the user said, word for word."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from portico._schema.paths import JsonPath, is_many, read_path

_SHORTEST = 3


class UserWords:
    """The words of a user: texts and JSON values. A value that is made of them is the user's, wherever it is found.

    >>> words = UserWords(["Pay 20 to ada@example.org."])
    >>> [words.said(each) for each in ("Ada@example.org", "da@example.org", 20, 2, True)]
    [True, False, True, False, False]

    Whole words count, without case, and no text of less than three characters. True, false and null are never said.
    """

    def __init__(self, words: Iterable[Any]) -> None:
        self.words = tuple(words)

    @cached_property
    def _text(self) -> str:
        written = (each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in self.words)
        return "\n".join(written).casefold()

    def said(self, value: Any) -> bool:
        """Tell whether the user said a value, or all that is inside a list or object."""
        match value:
            case list():
                return bool(value) and all(map(self.said, value))
            case dict():
                return bool(value) and all(map(self.said, value.values()))
            case bool() | None:
                return False
            case str():
                text = value.strip()
                if len(text) < _SHORTEST:
                    return False
            case _:
                text = json.dumps(value)
        return re.search(rf"(?<![\w.@-]){re.escape(text.casefold())}(?![\w@-]|\.\w)", self._text) is not None


def texts_in(value: Any) -> set[str]:
    """Return the texts in a value, without case."""
    if isinstance(value, str):
        return {value.strip().casefold()}
    inside = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
    return {text for each in inside for text in texts_in(each)}


def readers_at(value: Any, path: JsonPath) -> set[str]:
    """Return those who are at every place that a path leads to in a value; none where there is no such place."""
    try:
        found = read_path(value, path)
    except LookupError:
        return set()
    every = [texts_in(one) for one in found] if is_many(path) else [texts_in(found)]
    return set.intersection(*every) if every else set()
