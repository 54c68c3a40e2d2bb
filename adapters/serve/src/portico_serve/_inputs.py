"""What others send: checked piece by piece, with a sentence for each mistake."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, overload

from portico.errors import PorticoError

T = TypeVar("T")

LONGEST_TEXT = 65_536
"""The most bytes of a goal, a message or a reason."""
_WORDS: Mapping[type, str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    list: "a list",
    dict: "an object",
}


class InputInvalid(PorticoError):
    """A request says something that cannot be meant."""


class NotJson(PorticoError):
    """The body of a request is not JSON."""


class NotFound(PorticoError):
    """There is no such conversation, step or passage."""


class Fields:
    """The members of a JSON object, taken one by one.

    >>> Fields({"goal": 1}, "goal").text("goal")
    Traceback (most recent call last):
    portico_serve._inputs.InputInvalid: goal is a text, not a whole number.

    Raises ``InputInvalid`` for a value that is no object, and for a member that is not ``known``.
    """

    def __init__(self, body: object, *known: str) -> None:
        if not isinstance(body, dict):
            raise InputInvalid(f"The body is a JSON object, not {_kind(body)}.")
        unknown = sorted(body.keys() - set(known))
        if unknown:
            may = f"It may have {', '.join(known)}." if known else "It has none."
            raise InputInvalid(f"{unknown[0]!r:.80} is no member here. {may}")
        self._body = body

    @overload
    def take(self, name: str, kind: type[T]) -> T | None: ...
    @overload
    def take(self, name: str, kind: type[T], default: T) -> T: ...
    def take(self, name: str, kind: type[T], default: T | None = None) -> T | None:
        """Return a member of a type, the default where it is not there or null."""
        value = self._body.get(name)
        if value is None:
            return default
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise InputInvalid(f"{name} is {_WORDS[kind]}, not {_kind(value)}.")
        return value

    def text(self, name: str, *, longest: int = LONGEST_TEXT) -> str:
        """Return a text that has to be there and is not blank."""
        value = self.take(name, str, "")
        if not value.strip():
            raise InputInvalid(f"{name} is missing or blank.")
        return short(name, value, longest)

    def name(self, name: str) -> str | None:
        """Return a short text, None where there is none."""
        value = self.take(name, str)
        return None if value is None else short(name, value, 1_000)

    def names(self, name: str) -> list[str] | None:
        """Return a list of short texts, None where there is none."""
        values = self.take(name, list)
        for each in values or ():
            if not isinstance(each, str):
                raise InputInvalid(f"{name} is a list of texts, and {_kind(each)} is among them.")
            short(name, each, 1_000)
        return values

    def value(self, name: str) -> Any:
        """Return a member of any type."""
        return self._body.get(name)


def short(name: str, text: str, longest: int) -> str:
    """Return a text that is well formed and not too long."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InputInvalid(f"{name} has half of a character in it.") from None
    if size > longest:
        raise InputInvalid(f"{name} is too long: {size:,} bytes, and {longest:,} are the most.")
    return text


def _kind(value: object) -> str:
    return "null" if value is None else next((_WORDS[each] for each in _WORDS if type(value) is each), "a number")
