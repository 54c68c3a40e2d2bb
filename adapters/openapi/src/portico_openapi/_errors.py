"""What is wrong with a part of a document, and ways to read a part without trusting it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")

_SHOWN = 80


class Unusable(Exception):
    """A part of a document cannot be used: what needs it is lost, with this reason.

    ``keys`` lead to the place; `Within` adds those further out.
    """

    def __init__(self, reason: str, keys: tuple[str | int, ...] = ()) -> None:
        self.reason = reason
        self.keys = keys
        super().__init__(reason)

    def __str__(self) -> str:
        keys = (f"[{key}]" if isinstance(key, int) else f".{show(key)}" for key in self.keys)
        place = "".join(keys).lstrip(".")
        return f"{place}: {self.reason}" if place else self.reason


class Within:
    """Adds the place to what is wrong inside: ``with Within("schema"): …``."""

    def __init__(self, *keys: str | int) -> None:
        self._keys = keys

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Unusable):
            error.keys = (*self._keys, *error.keys)


_TRUTHS = {**dict.fromkeys(("true", "yes", "on"), True), **dict.fromkeys(("false", "no", "off"), False)}


def truth(value: Any) -> Any:
    """Return the truth value that a text means, anything else as it is: many documents quote theirs."""
    return _TRUTHS.get(value.strip().casefold(), value) if type(value) is str else value


def mapping(parent: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the object at ``key``, an empty one where there is none."""
    return _member(parent, key, dict, "an object") or {}


def listing(parent: Mapping[str, Any], key: str) -> list[Any]:
    """Return the list at ``key``, an empty one where there is none."""
    return _member(parent, key, list, "a list") or []


def text(parent: Mapping[str, Any], key: str) -> str | None:
    """Return the text at ``key``."""
    return _member(parent, key, str, "text")


def flag(parent: Mapping[str, Any], key: str) -> bool | None:
    """Return the truth value at ``key``."""
    return _member({key: truth(parent.get(key))}, key, bool, "true or false")


def _member(parent: Mapping[str, Any], key: str, kind: type[T], noun: str) -> T | None:
    value = parent.get(key)
    if value is None or type(value) is kind:
        return value
    raise Unusable(f"expected {noun}, not {describe(value)}", (key,))


def describe(value: Any) -> str:
    """Show a value of a document in an error: its kind, or itself when short."""
    kinds: dict[type, str] = {dict: "an object", list: "a list", type(None): "nothing"}
    return kinds.get(type(value)) or repr(show(value) if isinstance(value, str) else value)[:_SHOWN]


def show(word: str) -> str:
    """Cut a word of a document to what a message can hold."""
    return shorten(" ".join(word.split()), _SHOWN)


def shorten(words: str, most: int) -> str:
    """Cut text to ``most`` characters, at a space where there is one."""
    if len(words) <= most:
        return words
    cut = words[: most - 1]
    space = cut.rfind(" ", most // 2)
    return (cut[:space] if space > 0 else cut).rstrip() + "…"
