"""Describe a settings class: its fields, their types, documentation and limits."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePath
from typing import Any

from portico.plugins import Secret


@dataclass(frozen=True, slots=True)
class Field:
    """One setting: the key it has in the configuration, its type, its default, and one line on it.

    ``service`` is the port whose services it names, empty for a setting that names none; ``limits`` are keywords
    of JSON Schema, from its validators and its metadata; ``name`` is the attribute's.
    """

    key: str
    hint: Any
    required: bool
    default: Any
    doc: str = ""
    service: str = ""
    limits: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""


def is_settings_class(hint: object) -> bool:
    """Return whether it is an attrs class or a stdlib dataclass."""
    return isinstance(hint, type) and (dataclasses.is_dataclass(hint) or hasattr(hint, "__attrs_attrs__"))


def settings_fields(cls: type[Any]) -> tuple[Field, ...]:
    """Return the fields that a constructor takes, with resolved types.

    A default is the value itself; one made by a factory is made here, and None when that needs the instance.
    Raises whatever resolving a forward reference raises.
    """
    hints = typing.get_type_hints(cls, include_extras=True)
    members = _attrs_members(cls) if hasattr(cls, "__attrs_attrs__") else _dataclass_members(cls)
    return tuple(
        Field(
            getattr(member, "alias", None) or member.name,
            hints.get(member.name, Any),
            default is dataclasses.MISSING,
            None if default is dataclasses.MISSING else default,
            str(member.metadata.get("doc", "")),
            str(member.metadata.get("service", "")),
            {**_limits(getattr(member, "validator", None)), **member.metadata.get("limits", {})},
            member.name,
        )
        for member, default in members
        if member.init
    )


def _attrs_members(cls: type[Any]) -> Iterator[tuple[Any, Any]]:
    import attrs

    for member in attrs.fields(cls):
        default: Any = member.default
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
            default = None if default.takes_self else default.factory()
        yield member, dataclasses.MISSING if default is attrs.NOTHING else default


def _dataclass_members(cls: type[Any]) -> Iterator[tuple[Any, Any]]:
    for member in dataclasses.fields(cls):
        factory: Any = member.default_factory
        yield member, member.default if factory is dataclasses.MISSING else factory()


def bare(hint: Any) -> Any:
    """Strip ``Annotated``, ``NewType`` and the names of type aliases."""
    while True:
        if typing.get_origin(hint) is typing.Annotated:
            hint = typing.get_args(hint)[0]
        elif hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":  # of `typing` from Python 3.12 on, of typing_extensions before
            hint = hint.__value__
        else:
            return hint


def union_members(hint: Any) -> tuple[Any, ...] | None:
    """Return the alternatives of a union, in the order of writing; None for anything else."""
    hint = bare(hint)
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else None


def options_of(hint: Any) -> tuple[tuple[Any, Any], ...] | None:
    """Return what a file says for each option of a ``Literal`` or ``Enum``, with the option; None for other types."""
    if typing.get_origin(hint) is typing.Literal:
        return tuple((option, option) for option in typing.get_args(hint))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return tuple((member.value, member) for member in hint)
    return None


def holds_secret(hint: Any, above: frozenset[Any] = frozenset()) -> bool:
    """Return whether a value of this type may have a `Secret` anywhere in it."""
    hint = bare(hint)
    if hint is Secret:
        return True
    if is_settings_class(hint):
        inner = above | {hint}
        return hint not in above and any(holds_secret(member.hint, inner) for member in settings_fields(hint))
    return any(holds_secret(argument, above) for argument in typing.get_args(hint))


_BOUNDS = {">=": "minimum", ">": "exclusiveMinimum", "<=": "maximum", "<": "exclusiveMaximum"}


def _limits(validator: Any) -> dict[str, Any]:
    """Return the keywords that a validator stands for: attrs' own, and ``portico.plugins.ValueForm``.

    Other validators give none. Of two limits of one kind the last counts.
    """
    kind = type(validator).__name__
    if kind == "_OptionalValidator":
        return _limits(validator.validator)
    parts = validator._validators if kind == "_AndValidator" else validator  # noqa: SLF001 - attrs shows them nowhere else
    if isinstance(parts, list | tuple):
        return {name: value for part in parts for name, value in _limits(part).items()}
    if kind == "_NumberValidator":
        return {_BOUNDS[validator.compare_op]: validator.bound}
    if kind == "_MinLengthValidator":
        return {"length": validator.min_length}
    if kind == "_InValidator" and isinstance(validator.options, range):
        return {"minimum": validator.options.start, "maximum": validator.options.stop - 1}
    if kind == "_InValidator" and isinstance(validator.options, list | tuple):
        return {"enum": list(validator.options)}
    pattern = getattr(validator, "pattern", None)
    return {"pattern": f"^(?:{pattern})$"} if isinstance(pattern, str) else {}


def limit(schema: Mapping[str, Any], limits: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with those limits that are about its type."""
    kind = schema.get("type")
    made = dict(schema)
    if kind in ("integer", "number"):
        made |= {name: value for name, value in limits.items() if name in _BOUNDS.values()}
    if kind == "string" and "pattern" in limits:
        made["pattern"] = limits["pattern"]
    if kind in ("string", "integer", "number") and "enum" in limits:
        made["enum"] = limits["enum"]
    length = {"string": "minLength", "array": "minItems", "object": "minProperties"}.get(str(kind))
    if "length" in limits and length:
        made[length] = limits["length"]
    return made


def json_value(value: Any) -> Any:
    """Return a value as it stands in JSON, and in a file of TOML; a path is text.

    Raises ``TypeError`` for what has no such form: any object, and the numbers that JSON does not have.
    """
    if isinstance(value, Enum):
        return json_value(value.value)
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, str | PurePath):
        return str(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [json_value(part) for part in value]
    if isinstance(value, Mapping):
        return {str(key): json_value(part) for key, part in value.items()}
    raise TypeError(f"{type(value).__qualname__} has no form in JSON")
