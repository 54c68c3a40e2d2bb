"""Values of Python as JSON has them, for what a schema holds: defaults, members of enumerations, bounds."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any, TypeGuard

__all__ = ["NotJson", "is_number", "json_members", "json_value"]


class NotJson(Exception):
    """A value is nothing that JSON has."""


def json_value(value: Any) -> Any:
    """Return a value as it stands in JSON, and in a file of TOML; times and paths are text.

    Raises `NotJson` for what has no such form: any object, and the numbers that JSON has not (RFC 8259, section 6).
    """
    if isinstance(value, Enum):
        return json_value(value.value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if is_number(value):
        return value
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [json_value(part) for part in value]
    if isinstance(value, Mapping):
        return {str(key): json_value(part) for key, part in value.items()}
    raise NotJson(type(value).__qualname__)


def json_members(values: Iterable[Any]) -> list[Any]:
    """Return what JSON has of some values, each once; `True` and 1 are two."""
    found: dict[tuple[str, str], Any] = {}
    for value in values:
        try:
            member = json_value(value)
        except NotJson:
            continue
        found.setdefault((type(member).__name__, repr(member)), member)
    return [*found.values()]


def is_number(value: object) -> TypeGuard[int | float]:
    """Tell whether it is a number that JSON has; a truth value is none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
