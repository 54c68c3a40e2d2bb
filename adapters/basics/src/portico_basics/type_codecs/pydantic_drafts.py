"""Values of pydantic's types from a part of their JSON: what has come is validated, the rest is not asked for."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import pydantic
from pydantic.fields import FieldInfo

from portico.errors import SchemaUnsupported
from portico.plugins import Compiled, Fault, Mismatch
from portico_basics.type_codecs._faults import line
from portico_basics.type_codecs.pydantic_schema import first_alias

Draft: typing.TypeAlias = Callable[[Any], Any]


def drafting(hint: Any, structure: Draft, part: Callable[[Any], Compiled], *, aliased: bool) -> Draft | None:
    """Return what makes drafts of a type, None where it has no parts.

    ``part`` compiles what is inside; it is first called for the first draft, when a model that contains itself is
    compiled already.
    """
    cls = typing.get_origin(hint) or hint
    partial: Callable[[], Draft] | None
    if cls is Annotated:
        partial = functools.cache(lambda: _inside(part, typing.get_args(hint)[0]))
    elif not isinstance(cls, type) or not hasattr(cls, "__pydantic_fields__"):
        return None
    elif issubclass(cls, pydantic.RootModel):
        partial = functools.cache(lambda: _root(cls, part))
    else:
        partial = functools.cache(lambda: _fields(cls, part, aliased=aliased))

    def draft(value: Any) -> Any:
        try:
            return structure(value)
        except Mismatch as error:
            try:
                return partial()(value)
            except SchemaUnsupported:
                raise error from None

    return draft


def _inside(part: Callable[[Any], Compiled], hint: Any) -> Draft:
    compiled = part(hint)
    if compiled.draft is None:
        # A text or number that does not keep to its bounds yet is left out.
        raise SchemaUnsupported("This has no parts.")
    return compiled.draft


def _root(cls: type[pydantic.RootModel[Any]], part: Callable[[Any], Compiled]) -> Draft:
    inside = _inside(part, cls.model_fields["root"].rebuild_annotation())
    return lambda value: cls.model_construct(inside(value))


def _fields(cls: Any, part: Callable[[Any], Compiled], *, aliased: bool) -> Draft:
    fields: Mapping[str, FieldInfo] = cls.__pydantic_fields__
    parts: dict[str, tuple[str, Draft]] = {}
    for name, info in fields.items():
        try:
            compiled = part(info.rebuild_annotation())
        except SchemaUnsupported:
            # A generic model refers to itself in a way that only pydantic understands: shown when all is there.
            continue
        key = (aliased and first_alias(info.validation_alias)) or name
        parts[key] = (name, compiled.draft or compiled.structure)

    def draft(value: Any) -> Any:
        if type(value) is not dict:
            Mismatch.refuse("an object", value)
        values: dict[str, Any] = {}
        for key in value.keys() & parts.keys():
            name, inside = parts[key]
            try:
                values[name] = inside(value[key])
            except Mismatch:
                continue
        try:
            return _made(cls, values, fields)
        except Exception as error:  # what a class does to itself when it is made may need all of its fields
            raise Mismatch([Fault((), f"more of a {cls.__name__}", line(str(error)))]) from error

    return draft


def _made(cls: Any, values: dict[str, Any], fields: Mapping[str, FieldInfo]) -> Any:
    """Make an object without validation; a required field that is missing is None."""
    came = set(values)
    for name, info in fields.items():
        if name not in values:
            missing = info.is_required()
            values[name] = None if missing else info.get_default(call_default_factory=True, validated_data=values)
    if issubclass(cls, pydantic.BaseModel):
        return cls.model_construct(came, **values)
    made = object.__new__(cls)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made
