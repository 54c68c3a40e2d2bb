"""The types of a class's fields, with the arguments of a generic class put in."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping
from typing import Any

from portico.errors import SchemaUnsupported

__all__ = ["field_hints", "require_arguments"]


def field_hints(hint: Any) -> dict[str, Any]:
    """Resolve the annotations of a class: ``Box[int]`` has the item of ``Box`` as an int.

    A type variable without an argument stands for its bound, or for anything. Raises ``SchemaUnsupported`` for a
    name that cannot be found.
    """
    cls = typing.get_origin(hint) or hint
    try:
        hints = typing.get_type_hints(cls, localns={cls.__name__: cls}, include_extras=True)
    except (NameError, TypeError) as error:
        raise SchemaUnsupported(f"The annotations of {cls.__qualname__} cannot be resolved: {error}.") from error
    arguments = _arguments(hint)
    return {name: _filled(member, arguments) for name, member in hints.items()}


def _arguments(hint: Any) -> dict[Any, Any]:
    """Return what the type variables of a class and of its bases stand for."""
    cls = typing.get_origin(hint) or hint
    found = dict(zip(getattr(cls, "__parameters__", ()), typing.get_args(hint), strict=False))
    for base in getattr(cls, "__orig_bases__", ()):
        if typing.get_origin(base) not in (None, typing.Generic, typing.Protocol):
            found = _arguments(_filled(base, found)) | found
    for base in cls.__bases__:
        if "__orig_bases__" in vars(base):
            found = {key: value for key, value in _arguments(base).items() if key not in found} | found
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
    import inspect

    cls = typing.get_origin(hint) or hint
    parameters = inspect.signature(cls).parameters.values()
    given = {parameter.name for parameter in parameters if parameter.kind is not parameter.POSITIONAL_ONLY}
    anything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    missing = [name for name in needed if name not in given and not anything]
    if missing:
        raise SchemaUnsupported(f"{cls.__qualname__} is not made from {missing[0]!r}: it has an __init__ of its own.")
