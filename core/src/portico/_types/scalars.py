"""The types whose JSON form is one string, number, bool or null; and those that say nothing of their form."""

from __future__ import annotations

import math
import types
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any

from portico._types.compiled import Compiled, Mismatch
from portico.errors import SchemaUnsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def choice(members: Iterable[Any]) -> Compiled:
    """Compile an enumeration of JSON values or `Enum` members.

    As in JSON Schema, 1 and 1.0 are one value, and 1 and true are two.
    """
    pairs = [(member.value if isinstance(member, Enum) else member, member) for member in members]
    for value, _ in pairs:
        if not isinstance(value, str | int | float | bool | types.NoneType):
            raise SchemaUnsupported(f"{value!r} is not a JSON value: an enumeration needs strings, numbers or bools.")
    by_key = {(type(value) is bool, value): member for value, member in pairs}
    expected = "one of " + ", ".join(repr(value) for value, _ in pairs)

    def structure(value: Any) -> Any:
        try:
            return by_key[type(value) is bool, value]
        except (KeyError, TypeError):
            return Mismatch.refuse(expected, value)

    def unstructure(value: Any) -> Any:
        return value.value if isinstance(value, Enum) else value

    return Compiled({"enum": [value for value, _ in pairs]}, structure, unstructure)


def copied(value: Any) -> Any:
    """Copy a JSON value, so that changing the copy does not change the original."""
    if type(value) is list:
        return [copied(element) for element in value]
    if type(value) is dict:
        return {key: copied(element) for key, element in value.items()}
    return value


def _text(value: Any) -> str:
    return value if type(value) is str else Mismatch.refuse("a string", value)


def _integer(value: Any) -> int:
    if type(value) is int:
        return value
    return int(value) if type(value) is float and value.is_integer() else Mismatch.refuse("an integer", value)


def _number(value: Any) -> float:
    # JSON has neither NaN nor infinity; Python's parser lets both in.
    if type(value) is float and math.isfinite(value):
        return value
    try:
        return float(value) if type(value) is int else Mismatch.refuse("a number", value)
    except OverflowError:
        return Mismatch.refuse("a number that a float can hold", value)


def _boolean(value: Any) -> bool:
    return value if type(value) is bool else Mismatch.refuse("true or false", value)


def _null(value: Any) -> None:
    if value is not None:
        Mismatch.refuse("null", value)


def _parsed(expected: str, parse: Callable[[str], Any]) -> Callable[[Any], Any]:
    def structure(value: Any) -> Any:
        if type(value) is not str:
            Mismatch.refuse(expected, value)
        try:
            return parse(value)
        except (ValueError, ArithmeticError):
            return Mismatch.refuse(expected, value)

    return structure


def _textual(name: str, format: str, expected: str, parse: str = "", show: str = "__str__") -> Callable[[], Compiled]:
    """Compile a class by its name; ``parse`` is its method that reads a string, ``show`` the one that writes it."""

    def build() -> Compiled:
        module, _, attribute = name.rpartition(".")
        kind = getattr(import_module(module), attribute)
        read = getattr(kind, parse) if parse else kind
        return Compiled({"type": "string", "format": format}, _parsed(expected, read), getattr(kind, show))

    return build


def _same(value: Any) -> Any:
    return value


def _plain(kind: str, structure: Callable[[Any], Any]) -> Callable[[], Compiled]:
    return lambda: Compiled({"type": kind}, structure, _same)


# By name, so that types which a program never uses are never imported.
SCALARS: Mapping[str, Callable[[], Compiled]] = {
    "builtins.str": _plain("string", _text),
    "builtins.int": _plain("integer", _integer),
    "builtins.float": _plain("number", _number),
    "builtins.bool": _plain("boolean", _boolean),
    "builtins.NoneType": _plain("null", _null),
} | {
    name: _textual(name, *more)
    for name, *more in (
        ("datetime.datetime", "date-time", "a date and time (ISO 8601)", "fromisoformat", "isoformat"),
        ("datetime.date", "date", "a date (ISO 8601)", "fromisoformat", "isoformat"),
        ("datetime.time", "time", "a time of day (ISO 8601)", "fromisoformat", "isoformat"),
        ("uuid.UUID", "uuid", "a UUID"),
        ("decimal.Decimal", "decimal", "a decimal number in a string"),
    )
}
