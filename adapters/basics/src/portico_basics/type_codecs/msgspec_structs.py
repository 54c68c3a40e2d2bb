"""Structs of msgspec, and types that carry a ``msgspec.Meta``."""

from __future__ import annotations

import functools
import operator
import re
import typing
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import msgspec

from portico.errors import SchemaUnsupported
from portico.plugins import Compiled, Fault, Mismatch
from portico_basics.type_codecs._faults import reason
from portico_basics.type_codecs._hints import field_hints, require_arguments
from portico_basics.type_codecs._limits import Limits
from portico_basics.type_codecs._records import EMPTY, Member, Record, as_array, as_object

_PLACE = re.compile(r" - at (`key` in )?`\$(.*)`$")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")


def compile_struct(hint: Any, inner: Callable[[object], Compiled]) -> Compiled:
    """Compile a Struct in the form that msgspec itself writes: names, tags, arrays, defaults left out.

    A key that it does not have is a fault, also without ``forbid_unknown_fields``. Raises ``SchemaUnsupported``.
    """
    cls = typing.get_origin(hint) or hint
    if cls is msgspec.Struct:
        raise SchemaUnsupported("Struct itself has no fields: name a class of it.")
    config = cls.__struct_config__
    fields = msgspec.structs.fields(cls)
    require_arguments(cls, [field.name for field in fields])
    hints = field_hints(hint)
    members = []
    for field in fields:
        kind, unset = _without_unset(hints[field.name])
        if unset and config.array_like:
            raise SchemaUnsupported(f"{cls.__qualname__}.{field.name} may be UNSET, for which an array has no form.")
        left_out = _is_unset if unset else _is_default(field) if config.omit_defaults else None
        compiled = _compiled(kind, inner)
        default = _default(field)
        members.append(
            Member(field.encode_name, field.name, field.name, kind, compiled, field.required, default, left_out)
        )

    def make(values: dict[str, Any]) -> Any:
        return cls(**values)

    def explain(values: dict[str, Any], error: Exception) -> list[Fault]:
        return [Fault((), f"a valid {cls.__name__}", reason(error))]

    def blank(values: dict[str, Any]) -> Any:
        return cls(**({field.name: None for field in fields if field.required} | values))

    tag = None if config.tag is None else (config.tag_field, config.tag)
    record = Record(cls, members, make, explain, blank, tag)
    return as_array(record) if config.array_like else as_object(record)


def compile_noted(hint: Any, inner: Callable[[object], Compiled]) -> Compiled:
    """Compile an ``Annotated`` type: msgspec's notes become limits, what else it carries stays for others."""
    kind, *notes = typing.get_args(hint)
    others = [note for note in notes if not isinstance(note, msgspec.Meta)]
    base = Annotated[(kind, *others)] if others else kind
    compiled = _compiled(base, inner)
    for meta in notes:
        if isinstance(meta, msgspec.Meta):
            compiled = _limits(meta).apply(compiled)
            if meta.tz is not None:
                compiled = _zoned(compiled, aware=meta.tz)
    return compiled


def _limits(meta: msgspec.Meta) -> Limits:
    keywords: dict[str, Any] = {
        "title": meta.title,
        "description": meta.description,
        "examples": meta.examples,
        **(meta.extra_json_schema or {}),
    }
    return Limits(
        meta.ge,
        meta.gt,
        meta.le,
        meta.lt,
        meta.multiple_of,
        meta.pattern,
        meta.min_length,
        meta.max_length,
        {keyword: value for keyword, value in keywords.items() if value is not None},
    )


def _zoned(compiled: Compiled, *, aware: bool) -> Compiled:
    def structure(value: Any) -> Any:
        made = compiled.structure(value)
        if (getattr(made, "tzinfo", None) is not None) is not aware:
            Mismatch.refuse("a time with its offset" if aware else "a time without an offset", value)
        return made

    return replace(compiled, structure=structure)


def _without_unset(hint: Any) -> tuple[Any, bool]:
    members = typing.get_args(hint)
    if msgspec.UnsetType not in members:
        return hint, False
    return functools.reduce(operator.or_, [member for member in members if member is not msgspec.UnsetType]), True


def _default(field: msgspec.structs.FieldInfo) -> tuple[Any, ...]:
    if field.default is not msgspec.NODEFAULT:
        return () if field.default is msgspec.UNSET else (field.default,)
    factory: Any = field.default_factory
    return (factory(),) if factory in EMPTY else ()


def _is_unset(value: Any) -> bool:
    return value is msgspec.UNSET


def _is_default(field: msgspec.structs.FieldInfo) -> Callable[[Any], bool]:
    """Tell defaults as msgspec does when it leaves them out."""
    if field.default is not msgspec.NODEFAULT:
        default = field.default
        return lambda value: type(value) is type(default) and bool(value == default)
    if field.default_factory in (list, dict, set):
        return lambda value: not value
    return lambda value: False


def _compiled(hint: Any, inner: Callable[[object], Compiled]) -> Compiled:
    """Compile a type as anywhere else, or in msgspec's way where it alone has one: bytes, durations."""
    try:
        return inner(hint)
    except SchemaUnsupported as error:
        try:
            (schema,), definitions = msgspec.json.schema_components([hint])
        except (TypeError, RuntimeError):
            raise error from None
        if definitions or _is_raw(hint):
            raise

    def structure(value: Any) -> Any:
        try:
            return msgspec.convert(value, hint, strict=True, str_keys=True)
        except msgspec.ValidationError as error:
            raise Mismatch([_fault(error)]) from error
        except UnicodeEncodeError as error:
            raise Mismatch([Fault((), "text of whole characters", "half of a surrogate pair")]) from error

    return Compiled(schema, structure, lambda value: msgspec.to_builtins(value, str_keys=True))


def _is_raw(hint: Any) -> bool:
    """Tell whether a type holds JSON that is not read, and never equals what was written."""
    return hint is msgspec.Raw or any(map(_is_raw, typing.get_args(hint)))


def _fault(error: msgspec.ValidationError) -> Fault:
    """Read a fault off msgspec's message; of several it tells the first."""
    text = str(error)
    place = _PLACE.search(text)
    text = text[: place.start()] if place else text
    steps = _STEP.findall(place[2]) if place else []
    expected, _, came = text.removeprefix("Expected ").replace("`", "").partition(", got ")
    path = tuple(word or int(number) for word, number in steps)
    expected = f"a key that is of {expected}" if place and place[1] else expected
    return Fault(path, expected if came else "a valid value", came or text)
