"""Request bodies: which of the document's forms is sent, which parameters it makes, and how it is written."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from portico import Parameter
from portico_openapi import _styles
from portico_openapi._documents import Target
from portico_openapi._files import FILE_SCHEMA, content_of
from portico_openapi._forms import Encoding, read_encodings, write_form, write_multipart
from portico_openapi._media_types import is_json, is_media_type, is_text, name_of
from portico_openapi._names import word
from portico_openapi._parameters import description_of
from portico_openapi._schemas import Schemas
from portico_openapi._styles import Unwritable
from portico_openapi._validation import checked, not_given
from portico_openapi._wrong import Wrong, described, flag, mapping, shown, text

_Kind: TypeAlias = Literal["json", "form", "multipart", "text", "file"]

_SAYS_NO_MORE = frozenset({"type", "properties", "required", "$defs", "title", "description", "examples", "default"})
_SIMPLE = frozenset({"string", "integer", "number", "boolean"})
_PREFERRED: tuple[_Kind, ...] = ("json", "form", "multipart", "text", "file")


@dataclass(frozen=True, slots=True)
class Body:
    """A request's body: the parameters that it makes, and how their values become bytes.

    ``members`` are the properties by parameter, when each has a parameter of its own; None when the whole body is
    one parameter.
    """

    media_type: str
    kind: _Kind
    required: bool
    parameters: tuple[Parameter, ...]
    members: Mapping[str, str] | None
    encodings: Mapping[str, Encoding]

    def write(self, arguments: Mapping[str, Any]) -> tuple[str, bytes] | None:
        """Return the media type and the bytes; None when an optional body is not given. Raises `Unwritable`."""
        if self.members is not None:
            value: Any = {name: arguments[argument] for argument, name in self.members.items() if argument in arguments}
            if not value and not self.required:
                return None
        elif self.parameters[0].name in arguments:
            value = arguments[self.parameters[0].name]
        else:
            return None
        return self._written(value)

    def _written(self, value: Any) -> tuple[str, bytes]:
        if self.kind == "form":
            return self.media_type, write_form(value, self.encodings)
        if self.kind == "multipart":
            return write_multipart(value, self.encodings, self.media_type)
        if self.kind == "file":
            file = content_of(value)
            if file.media_type and not is_media_type(file.media_type):
                raise Unwritable(f"{shown(file.media_type)!r} is no media type")
            return file.media_type or self.media_type, file.content
        written = _styles.as_json(value) if self.kind == "json" else _styles.scalar(value)
        try:
            return self.media_type, written.encode()
        except UnicodeEncodeError:
            raise Unwritable("it has characters that no text can be sent with (lone surrogates)") from None


class _Form(NamedTuple):
    """The form of a body that was chosen."""

    media_type: str
    kind: _Kind
    schema: dict[str, Any]
    encodings: Mapping[str, Encoding]


def read_body(operation: Mapping[str, Any], base: str, schemas: Schemas, taken: Collection[str]) -> Body | None:
    """Return the body of an operation; ``taken`` are the names of its other parameters.

    The rule for parameters: the properties of an object become parameters of their own when that says all there is
    to say. It does not when a name is taken already, when other properties or rules between properties are declared,
    or when the body may be left out although a property may not. Then the whole is one parameter, ``body``.
    Raises `Wrong`.
    """
    if operation.get("requestBody") is None:
        return None
    try:
        body = _read(schemas.documents.follow(operation["requestBody"], base), schemas, taken)
        return None if _holds_nothing(body) else body
    except Wrong as error:
        raise error.under("requestBody") from None


def _holds_nothing(body: Body) -> bool:
    """Return whether a body is a form without fields that may be left out, as some documents give every operation."""
    if body.kind not in ("form", "multipart") or body.required or body.members is not None:
        return False
    schema = body.parameters[0].compiled.schema
    return schema.get("properties") == {} and not set(schema) - {"type", "properties", "title", "description"}


def _read(target: Target, schemas: Schemas, taken: Collection[str]) -> Body:
    if type(target.value) is not dict:
        raise Wrong(f"expected an object, not {described(target.value)}")
    content = mapping(target.value, "content")
    kinds = {media_type: kind for media_type in content if (kind := _kind(media_type)) is not None}
    if not kinds:
        reason = f"none of {', '.join(map(shown, content))} can be written" if content else "it has no content"
        raise Wrong(reason, ("content",))
    media_type, kind = min(kinds.items(), key=_rank)
    try:
        media = schemas.documents.follow(content[media_type], target.uri)
        if type(media.value) is not dict:
            raise Wrong(f"expected an object, not {described(media.value)}")
        schema = _body_schema(kind, media_type, media, schemas)
        if kind in ("form", "multipart") and "object" not in (types := _types(schema)):
            if kind == "multipart" or "string" not in types:
                raise Wrong(f"a form is an object, and its schema is of {' or '.join(types)}", ("schema",))
            kind = "text"
        encodings = read_encodings(media, schema, schemas, kind)
    except Wrong as error:
        raise error.under("content", media_type) from None
    return _planned(target.value, _Form(media_type, kind, schema, encodings), schemas, taken)


def _rank(form: tuple[str, _Kind]) -> tuple[int, int]:
    """Order media types by how well arguments go into them; of the kinds of JSON, the plain one first."""
    media_type, kind = form
    names = ("application/json", "*/*", "application/*", "application/merge-patch+json")
    name = name_of(media_type)
    return _PREFERRED.index(kind), names.index(name) if name in names else len(names)


def _kind(media_type: str) -> _Kind | None:
    """Tell how a body of a media type is written; None for what cannot be."""
    name = name_of(media_type)
    if not is_media_type(media_type):
        return None
    if is_json(name):
        return "json"
    if name == "application/x-www-form-urlencoded":
        return "form"
    if name.startswith("multipart/"):
        return "multipart" if name == "multipart/form-data" else None
    return "text" if is_text(name) else "file"


def _body_schema(kind: _Kind, media_type: str, media: Target, schemas: Schemas) -> dict[str, Any]:
    if kind == "file":
        return dict(FILE_SCHEMA)
    try:
        compiled = schemas.compile(media.value.get("schema"), media.uri, "request")
    except Wrong as error:
        raise error.under("schema") from None
    if kind == "text" and ("type" not in compiled or not set(_types(compiled)) <= _SIMPLE):
        return {"type": "string", "description": f"The whole body, as {shown(media_type)}."}
    return compiled


def _types(schema: Mapping[str, Any]) -> list[str]:
    """Return the types of a compiled schema; one that does not say may be an object."""
    kinds = schema.get("type", "object")
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _planned(declared: Mapping[str, Any], form: _Form, schemas: Schemas, taken: Collection[str]) -> Body:
    media_type, kind, schema, encodings = form
    required = flag(declared, "required") is True
    if name_of(media_type) in ("*/*", "application/*"):
        media_type = "application/json"
    properties: Mapping[str, Any] = schema.get("properties", {})
    if kind in ("form", "multipart"):
        properties = {name: encodings[name].file_schema(part) for name, part in properties.items()}
        schema = {**schema, "properties": properties} if properties else schema
    needed = schema.get("required", ())
    names = {name: word(name) for name in properties}
    spread = (
        kind in ("json", "form", "multipart")
        and bool(properties)
        and schema.get("type", "object") == "object"
        and set(schema) - _SAYS_NO_MORE <= {"additionalProperties"}
        and schema.get("additionalProperties") in (None, False)
        and (required or not needed)
        and all(names.values())
        and len(set(names.values())) == len(names)
        and not set(names.values()) & set(taken)
        and set(needed) <= set(properties)
    )
    if not spread:
        argument = "body" if "body" not in taken else "request_body"
        words = {"description": text(declared, "description") or ""}
        default = schema.get("default", not_given(schema))
        whole = Parameter(argument, description_of(words, schema), checked(schema), required, default)
        return Body(media_type, kind, required, (whole,), None, encodings)
    definitions = schema.get("$defs", {})
    parameters = []
    for name, part in properties.items():
        own = schemas.standing_alone(part, "request")
        default = own.get("default", not_given(own))
        about = description_of({}, _said_of(part, definitions))
        parameters.append(Parameter(names[name], about, checked(own), name in needed, default))
    members = {names[name]: name for name in properties}
    return Body(media_type, kind, required, tuple(parameters), members, encodings)


def _said_of(schema: Any, definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema that has the words on a property: its own, or that which it refers to."""
    if not isinstance(schema, dict):
        return {}
    reference = schema.get("$ref")
    if "description" in schema or not isinstance(reference, str):
        return schema
    behind = definitions.get(reference.removeprefix("#/$defs/"))
    return behind if isinstance(behind, dict) else {}
