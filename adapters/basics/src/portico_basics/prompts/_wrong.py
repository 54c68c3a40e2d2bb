"""What is wrong with a prompt, and values of a document read without trusting them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from portico.errors import nearest

T = TypeVar("T")

_SHOWN = 60


class Wrong(Exception):
    """A prompt cannot be used: the reason, with the place in the file where it has one."""


class Fields:
    """The keys of one table of a document; each is taken once, and what is left at the end is not known.

    >>> fields = Fields({"name": "Summarise", "descripton": "…"}, "")
    >>> fields.text("name"), fields.text("description")
    ('Summarise', None)
    >>> fields.finish()
    Traceback (most recent call last):
    portico_basics.prompts._wrong.Wrong: descripton: this key is not known; did you mean 'description'?
    """

    def __init__(self, values: object, place: str) -> None:
        if type(values) is not dict:
            raise Wrong(_at(place, f"expected a table of keys and values, got {described(values)}"))
        self._values: dict[str, Any] = dict(values)
        self._place = place
        self._asked: list[str] = []

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def place(self, key: str | int) -> str:
        """Return where a key stands, for an error."""
        return f"{self._place}.{key}" if self._place else str(key)

    def wrong(self, key: str, reason: str) -> Wrong:
        """Return the error of a key."""
        return Wrong(_at(self.place(key), reason))

    def any(self, key: str) -> Any:
        """Take a value as it is; None where there is none."""
        self._asked.append(key)
        return self._values.pop(key, None)

    def text(self, key: str) -> str | None:
        """Take a text."""
        return self._of(key, str, "text")

    def flag(self, key: str) -> bool | None:
        """Take true or false."""
        return self._of(key, bool, "true or false")

    def number(self, key: str) -> float | None:
        """Take a number."""
        value = self.any(key)
        if value is None or type(value) is int or (type(value) is float and math.isfinite(value)):
            return value
        raise self.wrong(key, f"expected a number, got {described(value)}")

    def integer(self, key: str, least: int | None = None) -> int | None:
        """Take a whole number of at least ``least``."""
        noun = "a whole number" if least is None else f"a whole number of at least {least}"
        value = self._of(key, int, noun)
        if value is not None and least is not None and value < least:
            raise self.wrong(key, f"expected {noun}, got {value}")
        return value

    def texts(self, key: str) -> tuple[str, ...] | None:
        """Take a list of texts."""
        values = self._of(key, list, "a list of texts")
        if values is None:
            return None
        for index, value in enumerate(values):
            if type(value) is not str:
                raise Wrong(_at(f"{self.place(key)}[{index}]", f"expected text, got {described(value)}"))
        return tuple(values)

    def table(self, key: str) -> dict[str, Any] | None:
        """Take a table."""
        return self._of(key, dict, "a table of keys and values")

    def listing(self, key: str) -> list[Any] | None:
        """Take a list."""
        return self._of(key, list, "a list")

    def choice(self, key: str, options: Sequence[str]) -> str | None:
        """Take one of some words."""
        value = self.text(key)
        if value is not None and value not in options:
            raise self.wrong(key, f"expected one of {', '.join(options)}, got {described(value)}")
        return value

    def one_of(self, *keys: str) -> str:
        """Return the key that is there of several that mean the same, the first where none is."""
        there = [key for key in keys if key in self._values]
        self._asked += keys
        if len(there) > 1:
            raise Wrong(_at(self._place, f"{' and '.join(map(repr, there))} mean the same: keep one"))
        return there[0] if there else keys[0]

    def finish(self) -> None:
        """Refuse what was not taken."""
        for key in self._values:
            near = nearest(str(key), list(dict.fromkeys(self._asked)))
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise self.wrong(str(key)[:_SHOWN], f"this key is not known{hint}")

    def _of(self, key: str, kind: type[T], noun: str) -> T | None:
        value = self.any(key)
        if value is None or type(value) is kind:
            return value
        raise self.wrong(key, f"expected {noun}, got {described(value)}")


def described(value: object) -> str:
    """Show a value of a document in an error: its kind, or itself when short."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    words = repr(value)
    return words if len(words) <= _SHOWN else f"{words[: _SHOWN - 1]}…"


def _at(place: str, reason: str) -> str:
    return f"{place}: {reason}" if place else reason
