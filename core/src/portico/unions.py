"""Telling the members of a union apart."""

from __future__ import annotations

import threading
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from portico.scalars import SCALARS

__all__ = ["QUALIFIERS", "Tried", "instance_test", "required_keys"]

QUALIFIERS = (
    typing.Required,
    typing.NotRequired,
    typing.Final,
    typing.ClassVar,
    getattr(typing, "ReadOnly", typing.Final),
)
"""What a field's hint may be wrapped in without being another type; ``ReadOnly`` is of Python 3.13."""


class Tried(threading.local):
    """What came of trying a union on each part of the value that is being structured.

    Without it, alternatives that fit alike would be tried again on every level of a deep value, each time twice
    as often.
    """

    outcomes: dict[tuple[int, int], Any] | None = None


def required_keys(hint: Any, members: Mapping[str, object]) -> set[str]:
    """Tell which keys of a TypedDict must be there.

    Where annotations are postponed, ``__required_keys__`` has not seen ``NotRequired`` and ``Required``.
    """
    marks = {name: typing.get_origin(member) for name, member in members.items()}
    return {
        name
        for name, mark in marks.items()
        if mark is typing.Required or (mark is not typing.NotRequired and name in hint.__required_keys__)
    }


def instance_test(hint: Any) -> Callable[[Any], bool]:
    """Tell values of a union's members apart: enough to choose how to unstructure."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated or origin in QUALIFIERS:
        return instance_test(arguments[0])
    if hasattr(hint, "__supertype__"):
        return instance_test(hint.__supertype__)
    if origin is Literal:
        return lambda value: any(type(value) is type(option) and value == option for option in arguments)
    kind = origin or hint
    if typing.is_typeddict(kind):
        required = required_keys(kind, typing.get_type_hints(kind, include_extras=True))
        return lambda value: isinstance(value, dict) and required <= value.keys() <= kind.__annotations__.keys()
    if not isinstance(kind, type) or kind is object:
        return lambda value: True
    if f"{kind.__module__}.{kind.__qualname__}" in SCALARS:
        return lambda value: type(value) is kind
    if not arguments:
        return lambda value: isinstance(value, kind)
    tests = [instance_test(argument) for argument in arguments if argument is not Ellipsis]
    if issubclass(kind, Mapping):
        return lambda value: isinstance(value, kind) and all(map(tests[1], value.values()))
    if issubclass(kind, tuple) and Ellipsis not in arguments:
        return lambda value: (
            isinstance(value, kind)
            and len(value) == len(tests)
            and all(test(element) for test, element in zip(tests, value, strict=True))
        )

    def holds(value: Any) -> bool:
        elements: Iterable[Any] = value
        # A str is a Sequence of itself.
        return isinstance(value, kind) and not isinstance(value, str) and all(map(tests[0], elements))

    return holds
