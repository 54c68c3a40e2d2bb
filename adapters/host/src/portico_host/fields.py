"""What a settings class is made of: its fields, their types, their documentation."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from portico.registration import Secret
from portico_host.limits import limits_of

__all__ = [
    "Field",
    "bare",
    "holds_secret",
    "is_settings_class",
    "named_elements",
    "secret_values",
    "settings_classes",
    "settings_fields",
    "union_members",
]


@dataclass(frozen=True, slots=True)
class Field:
    """One setting: the key it has in the configuration, its type, its default, and one line on it.

    ``service`` is the port whose services it names, empty for a setting that names none; ``limits`` are the keywords
    of JSON Schema that its validators stand for, and those that its metadata says of checks that are code.
    """

    key: str
    hint: Any
    required: bool
    default: Any
    doc: str
    service: str = ""
    limits: Mapping[str, Any] = field(default_factory=dict)


def is_settings_class(hint: object) -> bool:
    """Return whether it is an attrs class or a stdlib dataclass."""
    return isinstance(hint, type) and (dataclasses.is_dataclass(hint) or hasattr(hint, "__attrs_attrs__"))


def settings_fields(cls: type[Any]) -> tuple[Field, ...]:
    """Return the fields that a constructor takes, with resolved types.

    A default is the value itself; one made by a factory is made here, and None when that needs the instance.
    Raises whatever resolving a forward reference raises, and ``TypeError`` for limits that are no mapping.
    """
    hints = typing.get_type_hints(cls, include_extras=True)
    if hasattr(cls, "__attrs_attrs__"):
        return tuple(_from_attrs(cls, hints))
    return tuple(_from_dataclass(cls, hints))


def settings_classes(cls: type[Any]) -> tuple[type[Any], ...]:
    """Return a settings class and all that its fields may hold, at any depth, each once.

    Raises what `settings_fields` raises for any of them.
    """
    found = {cls: None}
    waiting = [cls]
    while waiting:
        for member in settings_fields(waiting.pop()):
            for inner in _classes_in(member.hint):
                if inner not in found:
                    found[inner] = None
                    waiting.append(inner)
    return tuple(found)


def _classes_in(hint: Any) -> Iterator[type[Any]]:
    hint = bare(hint)
    if is_settings_class(hint):
        yield hint
    elif typing.get_origin(hint) is not typing.Literal:
        for argument in typing.get_args(hint):
            yield from _classes_in(argument)


def _from_attrs(cls: type[Any], hints: Mapping[str, Any]) -> Iterator[Field]:
    import attrs

    for attribute in attrs.fields(cls):
        if not attribute.init:
            continue
        default = attribute.default
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
            default = None if default.takes_self else default.factory()
        required = attribute.default is attrs.NOTHING
        yield Field(
            attribute.alias or attribute.name,
            hints.get(attribute.name, Any),
            required,
            None if required else default,
            str(attribute.metadata.get("doc", "")),
            str(attribute.metadata.get("service", "")),
            {**limits_of(attribute.validator), **_told_limits(attribute.name, attribute.metadata)},
        )


def _from_dataclass(cls: type[Any], hints: Mapping[str, Any]) -> Iterator[Field]:
    for member in dataclasses.fields(cls):
        if not member.init:
            continue
        default = member.default
        if member.default_factory is not dataclasses.MISSING:
            default = member.default_factory()
        required = default is dataclasses.MISSING
        yield Field(
            member.name,
            hints[member.name],
            required,
            None if required else default,
            str(member.metadata.get("doc", "")),
            str(member.metadata.get("service", "")),
            _told_limits(member.name, member.metadata),
        )


def _told_limits(name: str, metadata: Mapping[Any, Any]) -> Mapping[str, Any]:
    limits = metadata.get("limits", {})
    if not isinstance(limits, Mapping):
        raise TypeError(f"the limits in the metadata of {name} are no mapping but of the type {type(limits).__name__}")
    return limits


def bare(hint: Any) -> Any:
    """Strip ``Annotated``, ``Final``, ``NewType`` and the names of type aliases."""
    while True:
        if typing.get_origin(hint) in (typing.Annotated, typing.Final):
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
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return None


def named_elements(hint: Any) -> tuple[Any, ...] | None:
    """Return the types of a named tuple's elements; None for anything else."""
    hint = bare(hint)
    if not (isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields")):
        return None
    hints = typing.get_type_hints(hint, include_extras=True)
    return tuple(hints.get(name, Any) for name in hint._fields)


def holds_secret(hint: Any) -> bool:
    """Return whether a value of this type may have a `Secret` anywhere in it."""
    return _holds_secret(hint, frozenset())


def _holds_secret(hint: Any, above: frozenset[Any]) -> bool:
    hint = bare(hint)
    if hint is Secret:
        return True
    if is_settings_class(hint):
        if hint in above:
            return False
        return any(_holds_secret(field.hint, above | {hint}) for field in settings_fields(hint))
    if typing.get_origin(hint) is typing.Literal:
        return False
    return any(_holds_secret(argument, above) for argument in typing.get_args(hint))


def secret_values(hint: Any, value: Any, key: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield, with its key, every part of a raw ``value`` that goes into a `Secret`, or may.

    Errs on the side of too many: what does not fit the type counts as secret when the type may hold one.
    """
    hint = bare(hint)
    if not holds_secret(hint):
        return
    members = [member for member in union_members(hint) or () if holds_secret(member)]
    if len(members) == 1:
        yield from secret_values(members[0], value, key)
    elif is_settings_class(hint) and isinstance(value, Mapping):
        known = {field.key: field.hint for field in settings_fields(hint)}
        for name, part in value.items():
            if name in known:
                yield from secret_values(known[name], part, (*key, str(name)))
    elif isinstance(value, list | tuple) and hint is not Secret:
        arguments = typing.get_args(hint)
        for index, part in enumerate(value):
            inner = arguments[min(index, len(arguments) - 1)] if arguments else Secret
            yield from secret_values(arguments[0] if inner is Ellipsis else inner, part, (*key, str(index)))
    elif isinstance(value, Mapping) and hint is not Secret and len(typing.get_args(hint)) == 2:
        for name, part in value.items():
            yield from secret_values(typing.get_args(hint)[1], part, (*key, str(name)))
    else:
        yield key, value
