"""Types of pydantic: read in its strict JSON mode, written so that they can be read again."""

from __future__ import annotations

import functools
import json
import re
import typing
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pydantic
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticSerializationError, to_json

from portico.errors import SchemaUnsupported
from portico.plugins import Compiled, Fault, Mismatch, compile_type
from portico.ports import TypeCodec
from portico_basics.type_codecs._plain_schema import plain_schema

_OLDEST = (2, 12)
"""The first pydantic that takes ``extra`` with each call."""
_SHOULD = re.compile(r"(\w+) should (be|have|match) (.+)")
_WORDS = {"be": "", "have": "with ", "match": "matching "}
_UNKNOWN_KEY = ("extra_forbidden", "unexpected_keyword_argument")


def compile_pydantic(hint: Any, codec: TypeCodec) -> Compiled:
    """Compile a model, a dataclass, another class that pydantic knows, or an ``Annotated`` type.

    Keys are aliases where every field is read and written under the same one, the names of the fields otherwise.
    Raises ``SchemaUnsupported``.
    """
    annotated = typing.get_origin(hint) is typing.Annotated
    kind = typing.get_args(hint)[0] if annotated else hint
    name = getattr(kind, "__name__", None) or str(kind)
    if kind is pydantic.BaseModel:
        raise SchemaUnsupported("BaseModel itself has no fields: name a model.")
    if tuple(map(int, pydantic.VERSION.split(".")[:2])) < _OLDEST:
        raise SchemaUnsupported(f"{name} needs pydantic 2.12 or newer, not {pydantic.VERSION}. Upgrade pydantic.")
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(hint)
        aliased = _aliases_agree(adapter)
        closed = not _lets_extra_in(adapter)
        schema = plain_schema(adapter.json_schema(by_alias=aliased, schema_generator=_Schema), closed=closed)
    except (PydanticUserError, PydanticUndefinedAnnotation, ImportError) as error:
        raise SchemaUnsupported(f"{name} has no JSON form: {str(error).partition(chr(10))[0]}") from error
    _require_readable(adapter, schema, name)
    text = next((note for note in typing.get_args(hint)[1:] if isinstance(note, str)), None) if annotated else None
    if text is not None:
        schema.setdefault("description", text)

    def structure(value: Any) -> Any:
        try:
            # From JSON text: only there does the strict mode of pydantic take dates.
            text = to_json(value)
            if b"NaN" in text or b"Infinity" in text:
                json.dumps(value, allow_nan=False)  # raises an error for the numbers, not for the words
            return adapter.validate_json(
                text, strict=True, extra="forbid" if closed else None, by_alias=aliased, by_name=not aliased
            )
        except ValidationError as error:
            faults = dict.fromkeys(_fault(value, each) for each in error.errors(include_url=False))
            raise Mismatch(list(faults)) from error
        except Exception as error:  # a value that JSON cannot hold, or whatever a validator raised
            raise Mismatch([Fault((), f"a valid {name}", f"{type(error).__name__}: {error}")]) from error

    def unstructure(value: Any) -> Any:
        try:
            return adapter.dump_python(value, mode="json", by_alias=aliased, round_trip=True, warnings="error")
        except (PydanticSerializationError, UnicodeDecodeError) as error:
            raise ValueError(f"This {name} cannot be written: {' '.join(str(error).split())}") from error

    draft = None
    if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel) and "root" not in kind.model_fields:
        draft = _draft_of(kind, structure, codec, aliased=aliased)
    return Compiled(schema, structure, unstructure, draft)


class _Schema(GenerateJsonSchema):
    """Pydantic's JSON Schema, without warnings."""

    def emit_warning(self, kind: Any, detail: str) -> None:
        """Refuse a union of which pydantic would leave a member out."""
        if kind == "skipped-choice":
            raise SchemaUnsupported(f"A member of a union has no JSON Schema: {detail}")

    def model_schema(self, schema: Any) -> JsonSchemaValue:
        """Describe a model, with the texts of ``Annotated[int, "how many"]``."""
        described = super().model_schema(schema)
        properties = described.get("properties", {})
        for name, info in schema["cls"].model_fields.items():
            text = next((note for note in info.metadata if isinstance(note, str)), None)
            key = info.validation_alias if self.by_alias and isinstance(info.validation_alias, str) else name
            if text is not None and key in properties:
                properties[key].setdefault("description", text)
        return described

    def decimal_schema(self, schema: Any) -> JsonSchemaValue:
        """Describe a decimal; pydantic's own pattern has no exponents."""
        options = super().decimal_schema(schema).get("anyOf", [])
        text = {"type": "string", "format": "decimal"}
        return {"anyOf": [*(option for option in options if option.get("type") != "string"), text]}


def _draft_of(
    model: type[pydantic.BaseModel], structure: Callable[[Any], Any], codec: TypeCodec, *, aliased: bool
) -> Callable[[Any], Any]:
    """Return a function that makes a model of the fields that have come."""
    fields = model.model_fields

    @functools.cache
    def parts() -> dict[str, tuple[str, Callable[[Any], Any]]]:
        found = {}
        for name, info in fields.items():
            with suppress(SchemaUnsupported):
                compiled = compile_type(info.rebuild_annotation(), [codec])
                key = info.validation_alias if aliased and isinstance(info.validation_alias, str) else name
                found[key] = (name, compiled.draft or compiled.structure)
        return found

    def draft(value: Any) -> Any:
        try:
            return structure(value)
        except Mismatch:
            if type(value) is not dict:
                raise
        values: dict[str, Any] = {name: None for name, info in fields.items() if info.is_required()}
        for key, (name, read) in parts().items():
            if key in value:
                with suppress(Mismatch):
                    values[name] = read(value[key])
        return model.model_construct(**values)

    return draft


def _fault(value: Any, error: Any) -> Fault:
    """Return an error of pydantic as a fault. Of a union each member that was tried has its faults."""
    kind, place = error["type"], error["loc"]
    missing = kind.startswith("missing")
    path: tuple[str | int, ...] = ()
    here = value
    for step in place[:-1] if missing else place:
        # A step that is no key is the name of a union's member.
        is_key = isinstance(here, dict) and step in here
        if is_key or (isinstance(here, list) and isinstance(step, int) and step < len(here)):
            path, here = (*path, step), here[step]
    if missing:
        return Fault((*path, *place[-1:]), "a value", "nothing")
    if kind in _UNKNOWN_KEY:
        return Fault(path, "a known key", "an unknown key")
    message = " ".join(error["msg"].split())
    should = _SHOULD.fullmatch(message)
    if should is None:
        return Fault(path, "a valid value", message)
    noun, verb, what = should.groups()
    expected = what if (noun, verb) == ("Input", "be") else f"a {noun.lower()} {_WORDS[verb]}{what}"
    try:
        Mismatch.refuse(expected, error["input"])
    except Mismatch as mismatch:
        return replace(mismatch.faults[0], path=path)


def _aliases_agree(adapter: TypeAdapter[Any]) -> bool:
    """Tell whether every field has the same key for reading and writing."""
    return all(
        field.get("validation_alias", name) == (field.get("serialization_alias") or name)
        for name, field in _fields(adapter)
    )


def _lets_extra_in(adapter: TypeAdapter[Any]) -> bool:
    """Tell whether the configuration of a model inside of a type allows unknown keys."""
    return any(
        node.get("extra_behavior") == "allow"
        or (node.get("config") or {}).get("extra_fields_behavior") in ("allow", "ignore")
        for node in _nodes(adapter.core_schema)
    )


def _require_readable(adapter: TypeAdapter[Any], schema: JsonSchemaValue, name: str) -> None:
    """Refuse a type of which a part would not come back from JSON, or that imports code."""
    for field, node in _fields(adapter):
        if node.get("serialization_exclude"):
            raise SchemaUnsupported(f"{name} does not write its field {field!r}: no value would come back whole.")
    functions = {getattr(node.get("function"), "__name__", "") for node in _nodes(adapter.core_schema)}
    if any(function.startswith("_serialize_secret") for function in functions) or any(
        node.get("writeOnly") is True for node in _nodes(schema)
    ):
        raise SchemaUnsupported(f"{name} holds a secret, which is masked when it is written. Use a str.")
    if "import_string" in functions:
        raise SchemaUnsupported(f"{name} imports what a text names; a text from outside must not choose code.")


def _fields(adapter: TypeAdapter[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and description of every field inside of a type."""
    for node in _nodes(adapter.core_schema):
        fields = node.get("fields")
        if isinstance(fields, dict):
            yield from fields.items()
        elif isinstance(fields, list) and node.get("type") == "dataclass-args":
            yield from ((field["name"], field) for field in fields)


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a nested structure, each once."""
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict | list | tuple) or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        else:
            waiting.extend(node)
