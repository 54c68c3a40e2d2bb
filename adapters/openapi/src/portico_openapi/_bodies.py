"""Request bodies: which of the document's forms is sent, which parameters it makes, and how it is written."""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import quote

from portico import Parameter
from portico_openapi import _styles
from portico_openapi._documents import Target
from portico_openapi._names import word
from portico_openapi._parameters import description_of
from portico_openapi._schemas import Schemas
from portico_openapi._styles import Unwritable, is_json, is_media_type, is_text, name_of
from portico_openapi._validation import checked, not_given
from portico_openapi._wrong import Within, Wrong, described, flag, mapping, shown, text

_FURTHER = {"filename": {"type": "string"}, "media_type": {"type": "string"}}


def _one_of(key: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = {key: schema, **_FURTHER}
    return {"type": "object", "properties": properties, "required": [key], "additionalProperties": False}


FILE_SCHEMA: Mapping[str, Any] = {
    "anyOf": [
        {"type": "string", "contentEncoding": "base64", "description": "The file's content in base64."},
        _one_of("base64", {"type": "string", "contentEncoding": "base64"}),
        _one_of("text", {"type": "string"}),
    ]
}
"""A file: its content in base64, or an object with ``base64`` or ``text``, a name and a media type."""


@dataclass(frozen=True, slots=True)
class FileContent:
    """The bytes of a file, and what the argument said of it."""

    content: bytes
    filename: str | None = None
    media_type: str | None = None


def content_of(value: Any) -> FileContent:
    """Return the file that an argument stands for; code may give bytes.

    >>> content_of({"text": "Hello", "filename": "a.txt"})
    FileContent(content=b'Hello', filename='a.txt', media_type=None)

    Raises `Unwritable`.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return FileContent(bytes(value))
    if isinstance(value, str):
        return FileContent(_decoded(value))
    if isinstance(value, Mapping):
        filename, media_type = value.get("filename"), value.get("media_type")
        if isinstance(content := value.get("text"), str):
            try:
                return FileContent(content.encode(), filename, media_type)
            except UnicodeEncodeError:
                raise Unwritable("its text has lone surrogates") from None
        if isinstance(content := value.get("base64"), str):
            return FileContent(_decoded(content), filename, media_type)
    raise Unwritable('it is no file: give its content in base64, or {"text": …}')


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise Unwritable('it is not base64; text goes as {"text": …}') from error


_OCTETS = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Encoding:
    """How one property of a form is sent; ``style`` is None where the media type decides."""

    content_type: str | None = None
    style: str | None = None
    explode: bool = True
    reserved: bool = False
    file: bool = False
    files: bool = False

    def file_schema(self, schema: Any) -> Any:
        """Return the schema of the property's argument: a file is one that JSON can hold."""
        if not self.file and not self.files:
            return schema
        words = {"description": schema["description"]} if isinstance(schema, dict) and "description" in schema else {}
        return {**FILE_SCHEMA, **words} if self.file else {"type": "array", "items": dict(FILE_SCHEMA), **words}


_PLAIN = Encoding()


def read_encodings(media: Target, schema: Mapping[str, Any], schemas: Schemas, kind: str) -> dict[str, Encoding]:
    """Return how each property is sent, by the ``encoding`` of a media type and by the property's schema.

    ``schema`` is the compiled one. Raises `Wrong`.
    """
    if kind not in ("form", "multipart"):
        return {}
    declared = mapping(media.value, "encoding")
    made = {}
    definitions = schema.get("$defs", {})
    for name, part in schema.get("properties", {}).items():
        with Within("encoding", name):
            one = schemas.documents.follow(declared.get(name), media.uri).value
            if one is not None and type(one) is not dict:
                raise Wrong(f"expected an object, not {described(one)}")
            made[name] = _encoding(one or {}, _behind(part, definitions), definitions, old=schemas.old, kind=kind)
    return made


def _encoding(
    declared: Mapping[str, Any], schema: Mapping[str, Any], definitions: Mapping[str, Any], *, old: bool, kind: str
) -> Encoding:
    content_type = text(declared, "contentType")
    if content_type is not None:
        # Of several types the first that is one: the others are for who knows better.
        named = [one.strip() for one in content_type.split(",")]
        content_type = next((one for one in named if "*" not in one), None)
        if content_type is not None and not is_media_type(content_type):
            raise Wrong(f"{shown(content_type)!r} is no media type")
    if kind == "multipart":
        items = _behind(schema.get("items"), definitions)
        is_file = _is_file(schema, content_type, old=old)
        files = schema.get("type") == "array" and _is_file(items, content_type, old=old)
        return Encoding(content_type, file=is_file, files=files)
    style = text(declared, "style")
    if style not in (None, "form", "spaceDelimited", "pipeDelimited", "deepObject"):
        raise Wrong(f"the style {shown(style or '')!r} is none of a form")
    explode, reserved = flag(declared, "explode"), flag(declared, "allowReserved")
    if style is None and explode is None and reserved is None:
        return Encoding(content_type)
    style = style or "form"
    return Encoding(None, style, style == "form" if explode is None else explode, reserved is True)


def _is_file(schema: Mapping[str, Any], content_type: str | None, *, old: bool) -> bool:
    if schema.get("format") == "binary":
        return bool(schema.get("type", "string") == "string")
    if old or "contentEncoding" in schema or schema.get("type", "string") != "string":
        return False
    if "contentMediaType" in schema:
        return not _reads(str(schema["contentMediaType"]))
    # In 3.1 a part without a type is bytes.
    return not set(schema) - {"description", "title", "examples"} and not (content_type and _reads(content_type))


def _reads(media_type: str) -> bool:
    return is_json(media_type) or is_text(media_type)


def _behind(schema: Any, definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    for _ in range(len(definitions) + 1):
        if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
            break
        schema = definitions.get(schema["$ref"].removeprefix("#/$defs/"))
    return schema if isinstance(schema, dict) else {}


def write_form(value: Any, encodings: Mapping[str, Encoding]) -> bytes:
    """Return a form's pairs; without its own style a property is written as HTML forms do.

    >>> write_form({"a": "x y", "b": [1, 2], "c": {"d": True}}, {})
    b'a=x+y&b=1&b=2&c=%7B%22d%22%3Atrue%7D'
    """
    pairs: list[str] = []
    for name, part in _members(value):
        try:
            pairs += _pairs(name, part, encodings.get(name, _PLAIN))
        except Unwritable as error:
            raise error.inside(name) from None
    return "&".join(pairs).encode("ascii")


def _pairs(name: str, value: Any, encoding: Encoding) -> list[str]:
    if encoding.style is not None:
        return _styles.query(encoding.style, name, value, explode=encoding.explode, reserved=encoding.reserved)
    as_json = encoding.content_type is not None and is_json(encoding.content_type)
    repeated = value if isinstance(value, list | tuple) and not as_json else [value]
    write = _styles.as_json if as_json else _styles.scalar
    return [f"{_plus(name)}={_plus(write(one))}" for one in repeated if one is not None]


def write_multipart(value: Any, encodings: Mapping[str, Encoding], media_type: str) -> tuple[str, bytes]:
    """Return the media type with its boundary, and the parts (RFC 7578): of an array, one for each element."""
    parts: list[bytes] = []
    for name, part in _members(value):
        encoding = encodings.get(name, _PLAIN)
        as_json = encoding.content_type is not None and is_json(encoding.content_type)
        repeated = part if isinstance(part, list | tuple) and not as_json else [part]
        try:
            parts += [_part(name, one, encoding, as_json=as_json) for one in repeated if one is not None]
        except Unwritable as error:
            raise error.inside(name) from None
    boundary = secrets.token_hex(16)
    while any(boundary.encode() in part for part in parts):
        boundary = secrets.token_hex(16)
    mark = f"--{boundary}".encode()
    body = b"".join(mark + b"\r\n" + part + b"\r\n" for part in parts) + mark + b"--\r\n"
    return f"{media_type.partition(';')[0].strip()}; boundary={boundary}", body


def _part(name: str, value: Any, encoding: Encoding, *, as_json: bool) -> bytes:
    disposition = f'Content-Disposition: form-data; name="{_quoted(name)}"'
    content_type = encoding.content_type
    if encoding.file or encoding.files or isinstance(value, bytes):
        file = content_of(value)
        disposition += f'; filename="{_quoted(file.filename or name)}"'
        content_type = file.media_type or content_type or _OCTETS
        if not is_media_type(content_type):
            raise Unwritable(f"{shown(content_type)!r} is no media type")
        content = file.content
    else:
        if isinstance(value, dict | list | tuple) and not as_json:
            content_type = content_type or "application/json"
        try:
            content = (_styles.as_json(value) if as_json else _styles.scalar(value)).encode()
        except UnicodeEncodeError:
            raise Unwritable("it has characters that no text can be sent with (lone surrogates)") from None
    head = disposition + (f"\r\nContent-Type: {content_type}" if content_type else "")
    return head.encode() + b"\r\n\r\n" + content


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        raise Unwritable("a form is an object")
    return iter(value.items())


def _plus(text: str) -> str:
    """Encode as application/x-www-form-urlencoded does (WHATWG URL, section 5.2)."""
    try:
        return quote(text, safe="*-._ ").replace("~", "%7E").replace(" ", "+")
    except UnicodeEncodeError:
        raise Unwritable("it has characters that no text can be sent with (lone surrogates)") from None


def _quoted(name: str) -> str:
    """Escape a name as HTML forms do: three characters only."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise Unwritable("its name has lone surrogates") from None
    return name.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22")


_Kind: TypeAlias = Literal["json", "form", "multipart", "text", "file"]

_SAYS_NO_MORE = frozenset({"type", "properties", "required", "$defs", "title", "description", "examples", "default"})
_SIMPLE = frozenset({"string", "integer", "number", "boolean"})
_PREFERRED: tuple[_Kind, ...] = ("json", "form", "multipart", "text", "file")


@dataclass(frozen=True, slots=True)
class Body:
    """A request's body: the parameters that it makes, and how their values become bytes.

    ``members`` are the properties by parameter, when each has its own parameter; None when the whole body is
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

    The rule for parameters: the properties of an object become their own parameters when that says all there is
    to say. It does not when a name is taken already, when other properties or rules between properties are declared,
    or when the body may be left out although a property may not. Then the whole is one parameter, ``body``.
    Raises `Wrong`.
    """
    if operation.get("requestBody") is None:
        return None
    with Within("requestBody"):
        body = _read(schemas.documents.follow(operation["requestBody"], base), schemas, taken)
        return None if _holds_nothing(body) else body


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
    with Within("content", media_type):
        media = schemas.documents.follow(content[media_type], target.uri)
        if type(media.value) is not dict:
            raise Wrong(f"expected an object, not {described(media.value)}")
        schema = _body_schema(kind, media_type, media, schemas)
        if kind in ("form", "multipart") and "object" not in (types := _types(schema)):
            if kind == "multipart" or "string" not in types:
                raise Wrong(f"a form is an object, and its schema is of {' or '.join(types)}", ("schema",))
            kind = "text"
        encodings = read_encodings(media, schema, schemas, kind)
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
    with Within("schema"):
        compiled = schemas.compile(media.value.get("schema"), media.uri, "request")
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
