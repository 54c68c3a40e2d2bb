"""Whether the settings of a class can be set in a file: what TOML makes of each type, and what an editor is told."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime as dt
import json
import math
import types
import typing
from collections import deque
from collections.abc import Iterable, Iterator
from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from portico.registration import Secret
from portico_testkit._package_settings import settings_fields

__all__ = ["schema_faults", "unsettable"]

_SCALARS = (bool, int, float, str, Path, Secret, dt.datetime, dt.date, dt.time, Any)
_ARRAYS = (
    *(list, tuple, set, frozenset, deque),
    *(collections.abc.Sequence, collections.abc.Iterable, collections.abc.Set),
    *(collections.abc.MutableSequence, collections.abc.MutableSet),
)
_TABLES = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def unsettable(cls: Any) -> list[str]:
    """Return what no file can set of a settings class and of those inside it, each with the type that is to blame.

    >>> @dataclasses.dataclass
    ... class AcmeSettings:
    ...     languages: frozenset[str] = frozenset()
    ...     weights: set[complex] = dataclasses.field(default_factory=set)
    >>> unsettable(AcmeSettings)
    ["weights: <class 'complex'>"]

    Raises ``TypeError`` for a class that is none of settings, and ``NameError`` for a type that is not there.
    """
    return [*_of_class(cls, "", ())]


def _of_class(cls: Any, place: str, above: tuple[Any, ...]) -> Iterator[str]:
    try:
        fields = settings_fields(cls)
    except NameError as error:
        raise NameError(f"{cls.__qualname__}: {error}") from error
    for field in fields:
        yield from (f"{place}{field.key}{told}" for told in _of_type(field.hint, (*above, cls)))


def _of_type(hint: Any, above: tuple[Any, ...]) -> Iterator[str]:
    """Yield what is wrong with a type, each after what leads to it from the setting."""
    hint = _bare(hint)
    kind, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
    if kind in (typing.Union, types.UnionType):
        # None is what a file leaves out; one other member is enough to set it.
        found = [[*_of_type(member, above)] for member in arguments if member is not type(None)]
        if all(found):
            yield from (told for member in found for told in member)
    elif kind is typing.Literal:
        yield from _of_options(arguments, hint)
    elif _is_among(kind, _SCALARS) or hint is type(None):
        return
    elif isinstance(kind, type) and issubclass(kind, Enum):
        yield from _of_options(kind, hint)
    elif dataclasses.is_dataclass(kind) or hasattr(kind, "__attrs_attrs__"):
        if not _is_among(kind, above):
            yield from _of_class(kind, ".", above)
    elif typing.is_typeddict(kind) or hasattr(kind, "_fields"):
        members = {} if _is_among(kind, above) else typing.get_type_hints(kind, include_extras=True)
        for name, member in members.items():
            yield from (f".{name}{told}" for told in _of_type(member, (*above, kind)))
    elif _is_among(kind, _TABLES):
        if arguments and _bare(arguments[0]) is not str:
            yield f": the keys of {hint} are to be str"
        yield from (told for member in arguments[1:] for told in _of_type(member, above))
    elif _is_among(kind, _ARRAYS):
        yield from (told for member in arguments if member is not Ellipsis for told in _of_type(member, above))
    else:
        yield f": {hint}"


def _of_options(options: Iterable[Any], hint: Any) -> Iterator[str]:
    """Yield the type itself unless there is an option of it that a file can say."""
    values = [option.value if isinstance(option, Enum) else option for option in options]
    if not any(isinstance(value, bool | int | str) or _is_finite(value) for value in values):
        yield f": {hint}"


def _is_finite(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _is_among(kind: Any, kinds: tuple[Any, ...]) -> bool:
    return any(kind is each for each in kinds)  # a stranger's type may not be hashable, nor equal to anything


def _bare(hint: Any) -> Any:
    """Return a type without what annotates or names it."""
    while True:
        if typing.get_origin(hint) in (typing.Annotated, typing.Final, typing.Required, typing.NotRequired):
            hint = typing.get_args(hint)[0]
        elif hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
        else:
            return hint


def schema_faults(cls: Any) -> list[str]:
    """Return what is wrong with the JSON Schema that the host, where it is installed, makes of a settings class.

    That is what `portico config schema` gives to editors: a schema that is one, JSON, and fit for its own defaults.
    """
    return [*_of_schema(cls)] if find_spec("portico_host") is not None else []


def _of_schema(cls: Any) -> Iterator[str]:
    try:
        schema = import_module("portico_host.schema").settings_schema(cls)
        json.dumps(schema, allow_nan=False)
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        yield f"{error.json_path}: {error.message}"
    except Exception as error:
        # Made of types and values of strangers, it may fail in any way.
        yield f"{type(error).__name__}: {error}"
    else:
        for key, member in schema["properties"].items():
            if "default" in member:
                wrong = jsonschema.Draft202012Validator(member).iter_errors(member["default"])
                yield from (f"the default of {key}: {error.message}" for error in wrong)
