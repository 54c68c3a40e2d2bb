"""What values are to a template: what counts as true, what can be read of them by name, and what their text is."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence, Set
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from portico.errors import LimitExceeded
from portico.plugins import TextForm
from portico.ports import TypeCodec

_TYPES_KEPT = 512
_MOST_PARTS = 1_000_000
_INDEX = re.compile(r"(?:0|[1-9][0-9]{0,17})")
_BYTES = (bytes, bytearray, memoryview)
_SCALARS = (str, int, float, bool, type(None))
_NO_MAPPINGS = frozenset([*_SCALARS, list, tuple])  # Asking whether it is a `Mapping` takes longer.
_INTEGERS_TO = 1e21
_PLAIN_FROM = 1e-6


class Missing(Enum):
    """The type of `MISSING`, which JavaScript calls undefined: it is false and has no text."""

    MISSING = "missing"

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "MISSING"

    def __str__(self) -> str:
        return ""


MISSING: Final = Missing.MISSING


class SafeString(str):
    """A text that is HTML already: where a language escapes, it stays as it is.

    >>> SafeString("<b>") == "<b>"
    True

    It does not make a text part of the template; `portico.Trusted` does.
    """

    __slots__ = ()


@lru_cache(_TYPES_KEPT)
def _is_array_type(kind: Any) -> bool:
    is_named_tuple = issubclass(kind, tuple) and hasattr(kind, "_fields")
    return issubclass(kind, Sequence | Set | deque) and not (is_named_tuple or issubclass(kind, (str, *_BYTES)))


def is_array(value: object) -> bool:
    """Tell whether a value is a list to a template: a sequence or a set, but no text and no named tuple."""
    kind: Any = type(value)
    return _is_array_type(kind)


def is_true(value: object) -> bool:
    """Tell whether a value counts as true, as `if` has it: an empty list and zero do not, an empty mapping does.

    >>> [is_true(value) for value in ("", "0", 0, 0.5, [], [0], {}, None)]
    [False, True, False, True, False, True, True, False]
    """
    return not is_empty(value) and not (isinstance(value, int | float | Decimal) and value == 0)


def is_empty(value: object) -> bool:
    """Tell whether a value is nothing, false, an empty text, an empty list or no number; zero is not empty."""
    if value is None or value is MISSING or value is False:
        return True
    if isinstance(value, str):
        return not value
    if isinstance(value, float | Decimal):
        return value != value  # noqa: PLR0124 - only what is no number differs from itself
    return is_array(value) and not value


def format_number(number: float) -> str:
    """Write a number as JavaScript does: with an exponent from 1e21 on and below 1e-6.

    >>> [format_number(number) for number in (1.0, 2.50, 1e21, 1e-7, float("nan"))]
    ['1', '2.5', '1e+21', '1e-7', 'NaN']

    Raises ``ValueError`` for an integer with more digits than Python writes.
    """
    if isinstance(number, int):
        return str(int(number))
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number.is_integer() and abs(number) < _INTEGERS_TO:
        return str(int(number))
    if _PLAIN_FROM <= abs(number) < 1:
        return format(Decimal(repr(number)), "f")
    mantissa, mark, exponent = repr(number).partition("e")
    return f"{mantissa}e{exponent[0]}{exponent[1:].lstrip('0')}" if mark else mantissa


def is_hidden(name: object) -> bool:
    """Tell whether a field or a key of a mapping is kept from templates: its name begins with ``_``."""
    return isinstance(name, str) and name.startswith("_")


@lru_cache(_TYPES_KEPT)
def all_fields(kind: Any) -> tuple[str, ...]:
    """Return the names of the fields that a class declares."""
    names: Iterable[str] = ()
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
    elif issubclass(kind, tuple):
        names = getattr(kind, "_fields", ())
    else:
        names = [field.name for field in getattr(kind, "__attrs_attrs__", ())]
        for declared in ("model_fields", "__struct_fields__"):  # Pydantic's and msgspec's
            names = [*names, *getattr(kind, declared, ())]
    return tuple(names)


@lru_cache(_TYPES_KEPT)
def declared_fields(kind: Any) -> tuple[str, ...]:
    """Return the names of the fields that a class declares, without those that are hidden."""
    return tuple(name for name in all_fields(kind) if not is_hidden(name))


def visible(value: Any) -> Any:
    """Return a mapping without its hidden keys; other values as they are."""
    if type(value) in _NO_MAPPINGS:
        return value
    if isinstance(value, Mapping) and "_" in [key[:1] for key in value if isinstance(key, str)]:
        return {key: element for key, element in value.items() if not is_hidden(key)}
    return value


class Values:
    """Reads and writes the values of one language.

    ``codecs`` are asked how to write values of types that the standard library does not know. Texts are written as
    every prompt language does, or as JavaScript does. A value with more than 1,000,000 parts or ``limit`` characters is
    not written: if it shares parts, a value of a few bytes can have a text without end.
    """

    def __init__(self, codecs: Iterable[TypeCodec] = (), *, javascript: bool = False, limit: int = 16_000_000) -> None:
        self._form = TextForm(codecs)
        self._javascript = javascript
        self._limit = limit

    def read(self, value: Any, name: str) -> Any:
        """Return what is under a key, an index or the name of a declared field; MISSING where there is nothing."""
        if isinstance(value, Mapping):
            return _read_mapping(value, name)
        kind: Any = type(value)
        if name in declared_fields(kind):
            return getattr(value, name, MISSING)
        if isinstance(value, Sequence | deque) and not isinstance(value, _BYTES):
            return _read_sequence(value, name)
        return MISSING

    def items(self, value: Any) -> list[tuple[str, Any]] | None:
        """Return keys and values of a mapping or of an object with fields; None for other values."""
        if isinstance(value, Mapping):
            return list(visible(value).items())
        kind: Any = type(value)
        return [(name, getattr(value, name, MISSING)) for name in declared_fields(kind)] or None

    def text(self, value: Any) -> str:
        """Return the text; raises ``ValueError`` for a value that has none and ``LimitExceeded``."""
        if isinstance(value, str):
            return str(value)
        if value is None or value is MISSING:
            return ""
        if not isinstance(value, _SCALARS):
            self.measure(value)
        return self._javascript_text(value) if self._javascript else self._form(_without_missing(value))

    def key(self, value: Any) -> str:
        """Return the name that a value is as a key, which JavaScript decides: ``true``, ``null``, ``1``."""
        if isinstance(value, str):
            return str(value)
        if value is None or value is MISSING:
            return "null" if value is None else "undefined"
        self.measure(value)
        return self._javascript_text(value)

    def json(self, value: Any) -> str:
        """Return the value as JSON, text in quotes as well."""
        if value is MISSING or value is None:
            return "null"
        if isinstance(value, str | bool | int | float):
            return json.dumps(value, ensure_ascii=False)
        self.measure(value)
        return self._form(_without_missing(value))

    def measure(self, value: Any) -> int:
        """Count the parts of a value; raises ``LimitExceeded`` before it has counted too far."""
        count = characters = 0
        waiting = [value]
        while waiting:
            one = waiting.pop()
            count += 1
            if isinstance(one, str):
                characters += len(one)
            elif isinstance(one, Mapping):
                waiting += one.values()
            elif is_array(one):
                waiting += one
            elif not isinstance(one, _SCALARS):
                kind: Any = type(one)
                waiting += [getattr(one, name, None) for name in all_fields(kind)]
            if count > _MOST_PARTS or characters > self._limit:
                raise LimitExceeded(
                    f"A value with more than {_MOST_PARTS:,} parts or {self._limit:,} characters is not written; "
                    f"one that contains itself has no end."
                )
        return count

    def _javascript_text(self, value: Any) -> str:
        if value is MISSING:
            return ""
        if isinstance(value, str):
            return str(value)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int | float):
            return format_number(value)
        if isinstance(value, Mapping):
            return "[object Object]"
        if not is_array(value):
            return self._form(value)
        try:
            return ",".join([self._javascript_text(one) if one is not None else "" for one in value])
        except RecursionError as error:
            raise ValueError("The value is nested too deeply, or contains itself.") from error


def _without_missing(value: Any) -> Any:
    """Return None for what is missing in a list that a template made."""
    return [None if one is MISSING else one for one in value] if type(value) is list else value


def _read_mapping(value: Mapping[Any, Any], name: str) -> Any:
    if is_hidden(name):
        return MISSING
    found = value.get(name, MISSING)
    if found is MISSING and _INDEX.fullmatch(name):
        found = value.get(int(name), MISSING)
    return found


def _read_sequence(value: Any, name: str) -> Any:
    if name == "length":
        return len(value)
    if _INDEX.fullmatch(name) and int(name) < len(value):
        return value[int(name)]
    return MISSING
