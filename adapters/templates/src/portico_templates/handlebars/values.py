"""What values are to a template: missing, safe, true, empty, an array."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence, Set
from decimal import Decimal
from enum import Enum
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Final

_TYPES_KEPT = 512


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


_arrays: dict[type, bool] = {list: True, tuple: True, dict: False, str: False}


def is_array(value: object) -> bool:
    """Tell whether a value is a list to a template: a sequence or a set, but no text and no named tuple."""
    kind = type(value)
    known = _arrays.get(kind)
    if known is None:
        known = issubclass(kind, Sequence | Set | deque) and not (
            issubclass(kind, str | bytes | bytearray | memoryview | Mapping)
            or (issubclass(kind, tuple) and hasattr(kind, "_fields"))
        )
        if len(_arrays) >= _TYPES_KEPT:
            _arrays.clear()
        _arrays[kind] = known
    return known


def is_callable(value: object) -> bool:
    """Tell whether a value in the data is a function to a template: no class, and no object that can be called."""
    return isinstance(value, FunctionType | MethodType | BuiltinFunctionType | partial)


def is_true(value: object) -> bool:
    """Tell whether a value counts as true, as `if` has it: an empty list and zero do not, an empty mapping does.

    >>> [is_true(value) for value in ("", "0", 0, 0.5, [], [0], {}, None)]
    [False, True, False, True, False, True, True, False]
    """
    if type(value) is str:
        return value != ""
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
