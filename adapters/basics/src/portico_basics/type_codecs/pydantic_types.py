"""Types of pydantic: compiled once, read in strict JSON mode, written so that they can be read again."""

from __future__ import annotations

import functools
import math
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import pydantic
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, to_json

from portico.errors import SchemaUnsupported
from portico.plugins import Compiled, Fault, Mismatch, compile_type
from portico.ports import TypeCodec
from portico_basics.type_codecs._faults import got, line, reason
from portico_basics.type_codecs.pydantic_faults import faults_of, located
from portico_basics.type_codecs.pydantic_schema import (
    ClosedSchema,
    OpenSchema,
    aliases_agree,
    first_alias,
    lets_extra_in,
    require_written,
    serializes_itself,
    writes_all,
)

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


_OLDEST = (2, 12)
"""The first pydantic that can be told on a call what becomes of unknown keys."""


def compile_class(hint: Any, codec: TypeCodec) -> Compiled:
    """Compile a model, a dataclass or another class that pydantic knows. Raises ``SchemaUnsupported``."""
    if hint is pydantic.BaseModel:
        raise SchemaUnsupported("BaseModel itself has no fields: name a model.")
    return _compile(hint, codec)


def compile_noted(hint: Any, inner: Callable[[object], Compiled], codec: TypeCodec) -> Compiled:
    """Compile an ``Annotated`` type. What is only described stays the type that it is, whoever compiles that."""
    kind, *notes = typing.get_args(hint)
    texts = [_only_text(note) for note in notes]
    if None not in texts:
        compiled = inner(kind)
        text = next((text for text in texts if text), None)
        if not text:
            return compiled
        return replace(compiled, schema={**compiled.schema, "description": text})
    compiled = _compile(hint, codec)
    text = next((note for note in notes if isinstance(note, str)), None)
    if text is None or "description" in compiled.schema:
        return compiled
    return replace(compiled, schema={**compiled.schema, "description": text})


def _only_text(note: Any) -> str | None:
    """Return the text of a note that says nothing else, None for one that does."""
    if isinstance(note, str):
        return note
    if not isinstance(note, FieldInfo):
        return None
    text = note.description or ""
    return text if repr(note) == repr(pydantic.Field(description=note.description)) else None


def _compile(hint: Any, codec: TypeCodec) -> Compiled:
    kind = typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint
    name = getattr(kind, "__name__", None) or str(kind)
    if tuple(map(int, pydantic.VERSION.split(".")[:2])) < _OLDEST:
        raise SchemaUnsupported(f"{name} needs pydantic 2.12 or newer, not {pydantic.VERSION}. Upgrade pydantic.")
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(hint)
        aliased = aliases_agree(adapter)
        closed = not lets_extra_in(adapter)
        schema = adapter.json_schema(by_alias=aliased, schema_generator=ClosedSchema if closed else OpenSchema)
    except PydanticSchemaGenerationError as error:
        raise SchemaUnsupported(f"{name} holds a type that pydantic does not know. {_sentence(error)}") from error
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        if error.code in ("class-not-fully-defined", "undefined-annotation"):
            undefined = "a type that is not defined yet, or not where pydantic looks for it"
            raise SchemaUnsupported(
                f"{name} refers to {undefined}. Call its model_rebuild when all are there."
            ) from error
        raise SchemaUnsupported(f"{name} has no JSON form: {_sentence(error)}") from error
    except ImportError as error:
        raise SchemaUnsupported(f"{name} needs another package: {_sentence(error)}") from error
    require_written(adapter, schema, name)
    checked = serializes_itself(adapter)

    def validate(text: bytes) -> Any:
        return adapter.validate_json(
            text, strict=True, extra="forbid" if closed else None, by_alias=aliased, by_name=not aliased
        )

    def structure(value: Any) -> Any:
        text = _text(value)
        try:
            return validate(text)
        except ValidationError as error:
            told = error.errors(include_url=False)
            if told[0]["type"] == "json_invalid" and told[0]["input"] in (text, text.decode()):
                Mismatch.refuse(_limit(told[0]), value)
            found = located(value, told)
            whole = _with_integers(value, [each.path for each in found if each.error["type"] == "int_type"])
            if whole is None:
                raise Mismatch(faults_of(found, name, schema)) from error
        except Exception as error:
            # Raised by a validator of the model itself; pydantic lets all but ValueError and AssertionError through.
            raise Mismatch([Fault((), f"a valid {name}", reason(error))]) from error
        return structure(whole)

    def unstructure(value: Any) -> Any:
        try:
            written = adapter.dump_python(value, mode="json", by_alias=aliased, round_trip=True, warnings="error")
        except UnicodeDecodeError as error:
            raise SchemaUnsupported(
                f"{name} holds bytes that are no text in UTF-8. Set ser_json_bytes and val_json_bytes to 'base64' "
                "in its model_config."
            ) from error
        except PydanticSerializationError as error:
            raise ValueError(f"This {name} cannot be written: {_unexpected(error)}") from error
        if checked:
            _require_readable(written)
        return written

    def _require_readable(written: Any) -> None:
        try:
            structure(written)
        except Mismatch as error:
            raise SchemaUnsupported(f"What the serializer of {name} writes does not fit {name}: {error}") from error

    draft = drafting(hint, structure, partial(_part, codec=codec), aliased=aliased)
    return Compiled(schema, structure, unstructure, draft, whole=writes_all(adapter))


def _part(hint: Any, codec: TypeCodec) -> Compiled:
    """Compile what stands inside of a type of pydantic, for drafts: lists and unions in parts, as core has them."""
    try:
        return compile_type(hint, [codec])
    except SchemaUnsupported:
        return _compile(hint, codec)


def _limit(error: Mapping[str, Any]) -> str:
    """Say which of its limits pydantic's reader came to: what it is given is JSON otherwise."""
    if "recursion" in str(error["ctx"]["error"]):
        return "a value that is nested less deeply"
    return "numbers of at most 4,300 digits"


def _text(value: Any) -> bytes:
    """Write a JSON value for pydantic, whose strict mode takes a date from JSON text only."""
    try:
        text = to_json(value)
    except (PydanticSerializationError, ValueError) as error:
        raise Mismatch(
            _faults_of_json(value) or [Fault((), "a value that is nested less deeply", got(value))]
        ) from error
    if b"NaN" in text or b"Infinity" in text:
        faults = _faults_of_json(value)
        if faults:
            raise Mismatch(faults)
    return text


def _faults_of_json(value: Any) -> list[Fault]:
    """Find what JSON has no form for; Python's own parser lets it in."""
    try:
        return list(_unwritable(value, ()))
    except RecursionError:
        return []


def _unwritable(value: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    if isinstance(value, dict):
        for key, element in value.items():
            yield from _unwritable(key, path)
            yield from _unwritable(element, (*path, key))
    elif isinstance(value, list):
        for index, element in enumerate(value):
            yield from _unwritable(element, (*path, index))
    elif isinstance(value, float) and not math.isfinite(value):
        yield Fault(path, "a finite number", repr(value))
    elif isinstance(value, str) and not _is_text(value):
        yield Fault(path, "text of whole characters", "half of a surrogate pair")


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _with_integers(value: Any, places: list[tuple[str | int, ...]]) -> Any:
    """Return the value with 2 for 2.0 at these places, None where there is none: to JSON they are one number."""
    whole = None
    for place in places:
        ends = value
        for step in place:
            ends = ends[step]
        if type(ends) is float and ends.is_integer():
            whole = _replaced(value if whole is None else whole, place, int(ends))
    return whole


def _replaced(value: Any, place: tuple[str | int, ...], part: Any) -> Any:
    if not place:
        return part
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = _replaced(value[place[0]], place[1:], part)
    return copy


def _unexpected(error: PydanticSerializationError) -> str:
    """Return what pydantic says of a value that is not of its type, without its words on warnings."""
    text = " ".join(str(error).removeprefix("Pydantic serializer warnings:").split())
    return text.replace("PydanticSerializationUnexpectedValue(", "").removesuffix(")").rstrip(".") + "."


def _sentence(error: Exception) -> str:
    """Return the first sentence: what follows in pydantic's messages advises on pydantic, not on this."""
    return str(getattr(error, "message", error)).partition("\n")[0].partition(". ")[0].strip(" .") + "."
