"""What single settings take: the strict readers of scalars, and how each type is described to people."""

from __future__ import annotations

import datetime as dt
import typing
from collections import deque
from collections.abc import Callable, Iterable, Mapping, MutableMapping, MutableSequence, MutableSet, Sequence, Set
from enum import Enum
from pathlib import Path
from typing import Any

from portico.registration import Secret
from portico_host.faults import Wrong, kind_of, shown
from portico_host.fields import bare, named_elements, union_members
from portico_host.given import parsed
from portico_host.secret_source import EXPECTED

__all__ = ["SCALARS", "array_maker", "enumeration", "expected", "is_literal", "is_table", "literal", "nothing", "plain"]

_ARRAYS: Mapping[Any, Callable[[Iterable[Any]], Any]] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    Sequence: tuple,
    Iterable: tuple,
    Set: frozenset,
    MutableSequence: list,
    MutableSet: set,
    deque: deque,
}
_NATIVE: Mapping[Any, str] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a string",
    Path: "a path",
    Secret: EXPECTED,
    dt.datetime: "a date and time",
    dt.date: "a date",
    dt.time: "a time",
    None: "nothing",
    type(None): "nothing",
    Any: "any value",
}


def expected(hint: Any) -> str:
    """Say what a setting of this type takes."""
    hint = bare(hint)
    members = union_members(hint)
    if members is not None:
        return " or ".join(dict.fromkeys(expected(m) for m in members if bare(m) is not type(None)))
    if is_literal(hint):
        return _one_of([raw for raw, _ in _literal_pairs(hint)])
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _one_of([member.value for member in hint])
    if array_maker(hint) is not None:
        inner = [argument for argument in typing.get_args(hint) if argument is not Ellipsis]
        return f"an array, each {expected(inner[0])}" if len(inner) == 1 else "an array"
    if hint in _NATIVE:
        return _NATIVE[hint]
    return "a table"


def _boolean(value: Any) -> bool:
    value = parsed(value)
    if not isinstance(value, bool):
        raise Wrong("true or false", shown(value))
    return value


def _integer(value: Any) -> int:
    value = parsed(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise Wrong("an integer", shown(value))
    return value


def _number(value: Any) -> float:
    value = parsed(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise Wrong("a number", shown(value))
    try:
        return float(value)
    except OverflowError:
        raise Wrong("a number", "an integer too large for one") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Wrong("a string", shown(value))
    return str(value)


def nothing(value: Any) -> None:
    """Accept None only."""
    if value is not None:
        raise Wrong("nothing", kind_of(value))


def plain(value: Any) -> Any:
    """Return a value without the marks of where it came from."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return str(value) if isinstance(value, str) else value


def _native(kind: type[Any]) -> Callable[[Any], Any]:
    def structure(value: Any) -> Any:
        value = parsed(value)
        # A datetime is a date to Python; to TOML it is not.
        if not isinstance(value, kind) or (kind is dt.date and isinstance(value, dt.datetime)):
            raise Wrong(_NATIVE[kind], shown(value))
        return value

    return structure


def _choose(value: Any, options: Sequence[tuple[Any, Any]], one_of: str) -> Any:
    for candidate in (plain(value), plain(parsed(value))):
        for raw, option in options:
            if type(raw) is type(candidate) and raw == candidate:
                return option
    raise Wrong(one_of, shown(value))


def literal(hint: Any) -> Callable[[Any, Any], Any]:
    """Return the reader of a ``Literal``."""
    pairs = _literal_pairs(hint)
    words = _one_of([raw for raw, _ in pairs])
    options = typing.get_args(hint)
    return lambda value, _: value if isinstance(value, Enum) and value in options else _choose(value, pairs, words)


def _literal_pairs(hint: Any) -> list[tuple[Any, Any]]:
    """Return what a file says for each option of a ``Literal``, with the option; of an ``Enum`` the value."""
    options = typing.get_args(hint)
    return [(option.value if isinstance(option, Enum) else option, option) for option in options]


def enumeration(hint: Any) -> Callable[[Any, Any], Any]:
    """Return the reader of an ``Enum``: by value, and a member as it is."""
    pairs = [(member.value, member) for member in hint]
    words = _one_of([member.value for member in hint])
    return lambda value, _: value if isinstance(value, hint) else _choose(value, pairs, words)


def _one_of(options: Iterable[Any]) -> str:
    return "one of " + ", ".join(
        str(option).lower() if isinstance(option, bool) else repr(option) for option in options
    )


def array_maker(hint: Any) -> Callable[[Iterable[Any]], Any] | None:
    """Return what makes the collection of an array type, None for other types."""
    hint = bare(hint)
    if named_elements(hint) is not None:
        make: Callable[[Iterable[Any]], Any] = hint._make
        return make
    return _ARRAYS.get(typing.get_origin(hint) or hint) if _hashable(hint) else None


def is_literal(hint: Any) -> bool:
    """Return whether it is a ``Literal``."""
    origin: Any = typing.get_origin(hint)
    return origin is typing.Literal


def is_table(hint: Any) -> bool:
    """Return whether it is a type of open tables, any key to one type of value."""
    return (typing.get_origin(hint) or hint) in (dict, Mapping, MutableMapping)


def _hashable(hint: Any) -> bool:
    try:
        hash(hint)
    except TypeError:
        return False
    return True


SCALARS: Mapping[type[Any], Callable[[Any], Any]] = {
    bool: _boolean,
    int: _integer,
    float: _number,
    str: _text,
    dt.datetime: _native(dt.datetime),
    dt.date: _native(dt.date),
    dt.time: _native(dt.time),
}
"""The readers of scalar types; each raises `Wrong`."""
