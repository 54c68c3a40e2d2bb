"""Classes of attrs, compiled as the dataclass with the same fields."""

from __future__ import annotations

import dataclasses
import threading
import typing
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Annotated, Any

import attrs

from portico.errors import SchemaUnsupported
from portico.plugins import Compiled, Fault, Mismatch

_BOUNDS = {">=": "minimum", ">": "exclusiveMinimum", "<=": "maximum", "<": "exclusiveMaximum"}
_LENGTHS = {"string": "Length", "array": "Items", "object": "Properties"}
_LOCK = threading.Lock()
_DRAFTING: ContextVar[bool] = ContextVar("portico_attrs_drafting", default=False)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Validated:
    """A note on the type of a field that attrs validates."""

    field: attrs.Attribute[Any]


def compile_class(hint: Any, inner: Callable[[object], Compiled]) -> Compiled:
    """Compile a class of attrs. Its keys are the names of its arguments; a field with ``init=False`` has none.

    Raises ``SchemaUnsupported`` for annotations that cannot be resolved.
    """
    cls = typing.get_origin(hint) or hint
    with _LOCK:  # two threads must not make two dataclasses of one class
        mirror = _mirror(hint)
    compiled = inner(mirror)
    names = {str(field.alias): field.name for field in attrs.fields(cls) if field.init}

    def unstructure(value: Any) -> Any:
        return compiled.unstructure(SimpleNamespace(**{alias: getattr(value, name) for alias, name in names.items()}))

    def draft(value: Any) -> Any:
        try:
            return compiled.structure(value)
        except Mismatch:
            token = _DRAFTING.set(True)
            try:
                return (compiled.draft or compiled.structure)(value)
            finally:
                _DRAFTING.reset(token)

    renamed = any(alias != name for alias, name in names.items())
    return replace(compiled, unstructure=unstructure if renamed else compiled.unstructure, draft=draft)


def compile_validated(hint: Any, inner: Callable[[object], Compiled]) -> Compiled:
    """Compile the type of a field with its validator, so that a refusal has the place of the field."""
    kind, *notes = typing.get_args(hint)
    field = next(note.field for note in notes if isinstance(note, Validated))
    rest = tuple(note for note in notes if not isinstance(note, Validated))
    compiled = inner(Annotated[(kind, *rest)] if rest else kind)
    validate: Any = field.validator

    def structure(value: Any) -> Any:
        made = compiled.structure(value)
        try:
            validate(None, field, made)
        except AttributeError:
            pass  # it looks at the object; attrs calls it again when there is one
        except Exception as error:  # validators may raise anything
            raise Mismatch([Fault((), f"a valid {field.alias}", _reason(error))]) from error
        return made

    schema = {**compiled.schema, **_limits(field, compiled.schema.get("type"))}
    return Compiled(schema, structure, compiled.unstructure, compiled.draft or structure)


@lru_cache(256)
def _mirror(hint: Any) -> Any:
    """Return a dataclass with the fields of a class of attrs, which makes objects of that class.

    Core compiles it, and recognises it where a class contains itself.
    """
    cls = typing.get_origin(hint) or hint
    hints = _hints(cls, typing.get_args(hint))
    fields = []
    for field in attrs.fields(cls):
        if not field.init:
            continue
        kind = hints.get(field.name, field.type or Any)
        if field.validator is not None and field.converter is None:
            kind = Annotated[kind, Validated(field)]
        fields.append((str(field.alias), kind, _default(field)))

    def make(mirror: Any, **values: Any) -> Any:
        try:
            return cls(**values)
        except Exception as error:  # converters and validators may raise anything
            if _DRAFTING.get():
                return _make_unfinished(cls, values)
            raise ValueError(_reason(error)) from error

    mirror = dataclasses.make_dataclass(cls.__name__, fields, kw_only=True, namespace={"__new__": make})
    mirror.__doc__ = cls.__doc__
    return mirror


def _make_unfinished(cls: type[Any], values: dict[str, Any]) -> Any:
    """Make an object without its ``__init__``, which would validate what has not come yet."""
    made = object.__new__(cls)
    for field in attrs.fields(cls):
        default = None if field.default is attrs.NOTHING or hasattr(field.default, "takes_self") else field.default
        object.__setattr__(made, field.name, values.get(str(field.alias), default))
    return made


def _default(field: attrs.Attribute[Any]) -> Any:
    default: Any = field.default
    if default is attrs.NOTHING:
        return dataclasses.field()
    if hasattr(default, "takes_self"):
        return dataclasses.field(default_factory=default.factory)
    if default.__hash__ is None:
        return dataclasses.field(default_factory=lambda: default)
    return dataclasses.field(default=default)


def _hints(cls: Any, arguments: tuple[Any, ...]) -> dict[str, Any]:
    """Resolve the annotations: ``Box[int]`` has the item of ``Box`` as an int."""
    for base in getattr(cls, "__orig_bases__", ()):
        if typing.get_args(base) and typing.get_origin(base) not in (typing.Generic, typing.Protocol):
            raise SchemaUnsupported(f"{cls.__qualname__} derives from {base}: write its fields in one class.")
    try:
        hints = typing.get_type_hints(cls, localns={cls.__name__: cls}, include_extras=True)
    except (NameError, TypeError) as error:
        raise SchemaUnsupported(f"The annotations of {cls.__qualname__} cannot be resolved: {error}.") from error
    given = dict(zip(getattr(cls, "__parameters__", ()), arguments, strict=False))
    return {name: _fill(hint, given) for name, hint in hints.items()}


def _fill(hint: Any, given: dict[Any, Any]) -> Any:
    if isinstance(hint, typing.TypeVar):
        return given.get(hint, hint.__bound__ if isinstance(hint.__bound__, type) else Any)
    parameters = () if isinstance(hint, type) else getattr(hint, "__parameters__", ())
    return hint[tuple(_fill(parameter, given) for parameter in parameters)] if parameters else hint


def _limits(field: attrs.Attribute[Any], kind: Any) -> dict[str, Any]:
    """Return the limits that a schema can show; attrs checks them."""
    limits: dict[str, Any] = {}
    validators: Iterable[Any] = getattr(field.validator, "_validators", (field.validator,))
    for validator in validators:
        # The classes of attrs' validators are not public; one that looks different adds nothing.
        name = type(validator).__name__
        if name == "_NumberValidator" and type(validator.bound) in (int, float) and validator.compare_op in _BOUNDS:
            limits[_BOUNDS[validator.compare_op]] = validator.bound
        elif name == "_MinLengthValidator" and kind in _LENGTHS:
            limits[f"min{_LENGTHS[kind]}"] = validator.min_length
        elif name == "_MaxLengthValidator" and kind in _LENGTHS:
            limits[f"max{_LENGTHS[kind]}"] = validator.max_length
    return limits


def _reason(error: Exception) -> str:
    """Return what an error says; those of attrs carry the attribute and the value behind their text."""
    text = " ".join(str(error.args[0] if error.args else error).split())
    return text if isinstance(error, ValueError | TypeError) else f"{type(error).__name__}: {text}"
