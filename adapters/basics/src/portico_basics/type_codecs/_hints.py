"""The types of a class's fields, with the arguments of a generic class put in."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from portico.errors import SchemaUnsupported


def field_hints(hint: Any) -> dict[str, Any]:
    """Resolve the annotations of a class: ``Box[int]`` has the item of ``Box`` as an int.

    A type variable without an argument stands for its bound, or for anything. Raises ``SchemaUnsupported`` for a
    name that cannot be found.
    """
    cls = typing.get_origin(hint) or hint
    arguments = _arguments(hint)
    found: dict[str, Any] = {}
    try:
        for base in reversed(cls.__mro__[:-1]):
            hints = typing.get_type_hints(base, localns={base.__name__: base}, include_extras=True)
            own = inspect.get_annotations(base)
            # One type variable may stand for one type in a class and for another in the class that it derives from.
            found |= {name: _filled(hints[name], arguments.get(base, {})) for name in own}
    except (NameError, TypeError) as error:
        raise SchemaUnsupported(f"The annotations of {cls.__qualname__} cannot be resolved: {error}.") from error
    return found


def _arguments(hint: Any) -> dict[Any, dict[Any, Any]]:
    """Return what the type variables of a class and of each of its bases stand for."""
    cls = typing.get_origin(hint) or hint
    own = dict(zip(getattr(cls, "__parameters__", ()), typing.get_args(hint), strict=False))
    found = {cls: own}
    for base in getattr(cls, "__orig_bases__", cls.__bases__):
        if typing.get_origin(base) not in (typing.Generic, typing.Protocol):
            found |= _arguments(_filled(base, own))
    return found


def _filled(hint: Any, arguments: Mapping[Any, Any]) -> Any:
    if isinstance(hint, typing.TypeVar):
        return arguments.get(hint, hint.__bound__ if isinstance(hint.__bound__, type) else Any)
    parameters = getattr(hint, "__parameters__", ())
    if isinstance(hint, type) or not parameters:
        return hint
    return hint[tuple(_filled(parameter, arguments) for parameter in parameters)]


def require_arguments(hint: Any, needed: Iterable[str]) -> None:
    """Refuse a class that cannot be called with its fields, because it has an ``__init__`` of its own."""
    cls = typing.get_origin(hint) or hint
    parameters = inspect.signature(cls).parameters.values()
    given = {parameter.name for parameter in parameters if parameter.kind is not parameter.POSITIONAL_ONLY}
    anything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    missing = [name for name in needed if name not in given and not anything]
    if missing:
        raise SchemaUnsupported(f"{cls.__qualname__} is not made from {missing[0]!r}: it has its own __init__.")
