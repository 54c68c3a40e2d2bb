"""Classes of attrs: their fields with aliases, defaults, converters and validators."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable
from typing import Any

import attrs

from portico.plugins import Compiled, Fault
from portico_basics.type_codecs._faults import reason
from portico_basics.type_codecs._hints import field_hints, require_arguments
from portico_basics.type_codecs._limits import Limits
from portico_basics.type_codecs._records import EMPTY, Member, Record, as_object

_BOUNDS = {">=": "ge", ">": "gt", "<=": "le", "<": "lt"}


def compile_class(hint: Any, inner: Callable[[object], Compiled]) -> Compiled:
    """Compile a class of attrs; its keys are the names by which it is called.

    A field with ``init=False`` is the class's own matter, as it is for dataclasses. Raises ``SchemaUnsupported``.
    """
    cls = typing.get_origin(hint) or hint
    fields = [field for field in attrs.fields(cls) if field.init]
    require_arguments(cls, [field.alias for field in fields])
    hints = field_hints(hint)

    def member(field: attrs.Attribute[Any]) -> Member:
        kind = hints.get(field.name, field.type or Any)
        compiled = _limits(field).apply(inner(kind))
        name = str(field.alias)
        return Member(name, field.name, name, kind, compiled, field.default is attrs.NOTHING, _default(field))

    return as_object(
        Record(
            cls,
            [member(field) for field in fields],
            lambda values: cls(**values),
            lambda values, error: _explained(cls, values, error),
            lambda values: _blank(cls, values),
        )
    )


def _default(field: attrs.Attribute[Any]) -> tuple[Any, ...]:
    """Return the default that can be told ahead, or nothing: other factories than these may read a clock."""
    default: Any = field.default
    if hasattr(default, "takes_self"):
        return (default.factory(),) if default.factory in EMPTY else ()
    return () if default is attrs.NOTHING else (default,)


def _limits(field: attrs.Attribute[Any]) -> Limits:
    """Read the limits that can be put in a schema off the validators; attrs checks all of them anyway.

    Of a field with a converter, what comes is not what is validated.
    """
    if field.converter is not None or field.validator is None:
        return Limits()
    given: dict[str, Any] = {}
    validators: Iterable[Any] = getattr(field.validator, "_validators", (field.validator,))
    for validator in validators:
        # The classes of attrs' validators are not public; one that is built otherwise adds nothing here.
        kind = type(validator).__name__
        if kind == "_NumberValidator" and type(validator.bound) in (int, float):
            name = _BOUNDS.get(validator.compare_op)
            if name is not None:
                given[name] = validator.bound
        elif kind == "_MinLengthValidator":
            given["min_length"] = validator.min_length
        elif kind == "_MaxLengthValidator":
            given["max_length"] = validator.max_length
    return Limits(**given)


def _explained(cls: type[Any], values: dict[str, Any], error: Exception) -> list[Fault]:
    """Tell which fields a class refuses: attrs itself stops at the first."""
    faults: list[Fault] = []
    probe = object.__new__(cls)
    fields = attrs.fields(cls)
    for field in fields:
        try:
            _set(probe, field, values)
        except Exception as fault:  # noqa: BLE001 - a converter refuses in whatever way it does
            faults.append(_fault(field, fault))
    for field in fields:
        if field.validator is not None and field.alias in values and hasattr(probe, field.name):
            try:
                field.validator(probe, field, getattr(probe, field.name))
            except AttributeError as fault:
                # Where a field could not be set, it may have looked at that one, which is a fault already.
                if not faults:
                    faults.append(_fault(field, fault))
            except Exception as fault:  # noqa: BLE001 - and so does a validator
                faults.append(_fault(field, fault))
    return faults or [Fault((), f"a valid {cls.__name__}", reason(error))]


def _fault(field: attrs.Attribute[Any], error: Exception) -> Fault:
    name = str(field.alias)
    return Fault((name,), f"a valid {name}", reason(error))


def _blank(cls: type[Any], values: dict[str, Any]) -> Any:
    """Make an object without its ``__init__``, which would validate what has not come yet."""
    made = object.__new__(cls)
    for field in attrs.fields(cls):
        object.__setattr__(made, field.name, None)
        try:
            _set(made, field, values)
        except Exception:  # noqa: BLE001 - what a converter needs may not have come yet
            object.__setattr__(made, field.name, values.get(field.alias))
    return made


def _set(made: Any, field: attrs.Attribute[Any], values: dict[str, Any]) -> None:
    if field.alias in values:
        value = values[field.alias]
    elif hasattr(field.default, "takes_self"):
        factory: Any = field.default
        value = factory.factory(made) if factory.takes_self else factory.factory()
    elif field.default is attrs.NOTHING:
        return
    else:
        value = field.default
    object.__setattr__(made, field.name, _converted(made, field, value))


def _converted(made: Any, field: attrs.Attribute[Any], value: Any) -> Any:
    converter: Any = field.converter
    if converter is None:
        return value
    if not hasattr(converter, "takes_self"):
        return converter(value)
    given = [*([made] if converter.takes_self else []), *([field] if converter.takes_field else [])]
    return converter.converter(value, *given)
