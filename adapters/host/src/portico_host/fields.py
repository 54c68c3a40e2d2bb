"""Describe a settings class: its fields, their types, documentation and limits."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, reduce
from pathlib import PurePath
from typing import Any, TypeGuard

from portico.plugins import Secret

__all__ = [
    "Field",
    "NotJson",
    "bare",
    "holds_secret",
    "is_number",
    "is_settings_class",
    "json_members",
    "json_value",
    "limited",
    "limits_of",
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


_BOUNDS = {">=": "minimum", ">": "exclusiveMinimum", "<=": "maximum", "<": "exclusiveMaximum"}
_MOST_OPTIONS = 200
# What Python's regular expressions have and those of JSON Schema (ECMA 262) have not.
_PYTHONS_OWN = re.compile(r"\(\?(?![:=!])|\\[AZ]|[+*?}]\+")


def limits_of(validator: object) -> dict[str, Any]:
    """Return the keywords that a field's validator stands for; none for one that is code and nothing else.

    Understood are attrs' own, by what they show of themselves, and ``portico.plugins.ValueForm``. Of those that hold
    others only what asks for all of them is looked into: ``not_`` means the opposite of what is in it.
    """
    if isinstance(validator, list | tuple):
        return reduce(_both, map(limits_of, validator), {})
    optional, every = _of_attrs()
    if isinstance(validator, optional):
        return limits_of(validator.validator)
    if isinstance(validator, every):
        return limits_of(tuple(validator._validators))  # noqa: SLF001 - attrs shows them nowhere else
    if hasattr(validator, "compare_op") and hasattr(validator, "bound"):
        known = validator.compare_op in _BOUNDS and is_number(validator.bound)
        return {_BOUNDS[validator.compare_op]: validator.bound} if known else {}
    if hasattr(validator, "options"):
        return _options(validator.options)
    if hasattr(validator, "min_length"):
        return {"length": (validator.min_length, None)}
    if hasattr(validator, "max_length"):
        return {"length": (None, validator.max_length)}
    pattern = getattr(validator, "pattern", None)
    if isinstance(pattern, str) and not _PYTHONS_OWN.search(pattern):
        return {"pattern": f"^(?:{pattern})$"}
    return {}


def limited(schema: Mapping[str, Any], limits: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with those limits that are about its type and that JSON has."""
    kind = schema.get("type")
    made = dict(schema)
    if "enum" in limits and ("enum" in schema or kind in ("string", "integer", "number")):
        members = json_members(limits["enum"])
        made |= {"enum": members} if members else {}
    if kind in ("integer", "number"):
        made |= {name: value for name, value in limits.items() if name in _BOUNDS.values() and is_number(value)}
    if kind == "string" and isinstance(limits.get("pattern"), str):
        made["pattern"] = limits["pattern"]
    suffix = {"string": "Length", "array": "Items", "object": "Properties"}.get(str(kind))
    if "length" in limits and suffix:
        for word, number in zip(("min", "max"), limits["length"], strict=True):
            if is_number(number):
                made[f"{word}{suffix}"] = number
    return made


@cache
def _of_attrs() -> tuple[type[Any], type[Any]]:
    """Return the classes of attrs' ``optional`` and ``and_``, which it does not name."""
    from attrs import validators

    return type(validators.optional(validators.instance_of(object))), type(validators.and_())


def _both(some: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits of what must keep within both; of two patterns one stands for both."""
    made = {**others, **some}
    for name in some.keys() & others.keys():
        if name in _NARROWER:
            made[name] = _NARROWER[name](some[name], others[name])
    return made


def _lengths(one: tuple[Any, Any], other: tuple[Any, Any]) -> tuple[Any, Any]:
    least = [bounds[0] for bounds in (one, other) if bounds[0] is not None]
    most = [bounds[1] for bounds in (one, other) if bounds[1] is not None]
    return max(least, default=None), min(most, default=None)


_NARROWER: Mapping[str, Callable[[Any, Any], Any]] = {
    "minimum": max,
    "exclusiveMinimum": max,
    "maximum": min,
    "exclusiveMaximum": min,
    "length": _lengths,
    "enum": lambda some, others: [option for option in some if option in others],
}


def _options(options: Any) -> dict[str, Any]:
    if isinstance(options, range) and options.step == 1 and len(options) > 0:
        return {"minimum": options.start, "maximum": options.stop - 1}
    # Whatever is part of a text is "in" it.
    if not isinstance(options, Collection) or isinstance(options, str | bytes | range):
        return {}
    found = [*options] if 0 < len(options) <= _MOST_OPTIONS else []
    plain = all(isinstance(option, str | int | float | bool) for option in found)
    return {"enum": found} if plain and found else {}


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
