"""Request bodies: which of the document's forms is sent, which parameters it makes, and how it is written."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import quote

from portico import Parameter
from portico_openapi import _styles
from portico_openapi._documents import Target
from portico_openapi._errors import Unusable, Within, describe, flag, mapping, show, text
from portico_openapi._names import word
from portico_openapi._parameters import new_parameter
from portico_openapi._schemas import Schemas, behind
from portico_openapi._styles import Unwritable, encode, is_json, is_media_type, is_text, name_of

_Kind: TypeAlias = Literal["json", "form", "multipart", "text", "file"]

_PREFERRED: tuple[_Kind, ...] = ("json", "form", "multipart", "text", "file")
_FORMS = ("form", "multipart")
_SAYS_NO_MORE = frozenset({"type", "properties", "required", "$defs", "title", "description", "examples", "default"})
_SIMPLE = frozenset({"string", "integer", "number", "boolean"})
_OCTETS = "application/octet-stream"
_BASE64 = {"type": "string", "contentEncoding": "base64"}


def _file_in(key: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = {key: schema, "filename": {"type": "string"}, "media_type": {"type": "string"}}
    return {"type": "object", "properties": properties, "required": [key], "additionalProperties": False}


_FILE_OBJECTS = [_file_in("base64", _BASE64), _file_in("text", {"type": "string"})]
FILE_SCHEMA: Mapping[str, Any] = {
    "anyOf": [{**_BASE64, "description": "The file's content in base64."}, *_FILE_OBJECTS]
}
"""A file: its content in base64, or an object with ``base64`` or ``text``, a name and a media type."""

_ANY_FIELD: Mapping[str, Any] = {"type": ["string", "number", "boolean", "array"]}
_ANY_FIELDS: Mapping[str, Any] = {
    "type": "object",
    "description": "The fields of a form, by their names; the service's document does not describe them.",
}


class FileContent(NamedTuple):
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
    given = value if isinstance(value, Mapping) else {"base64": value}
    filename, media_type = given.get("filename"), given.get("media_type")
    if media_type and not is_media_type(media_type):
        raise Unwritable(f"{show(media_type)!r} is no media type")
    if isinstance(words := given.get("text"), str):
        return FileContent(encode(words), filename, media_type)
    if not isinstance(words := given.get("base64"), str):
        raise Unwritable('it is no file: give its content in base64, or {"text": …}')
    try:
        return FileContent(base64.b64decode("".join(words.split()), validate=True), filename, media_type)
    except ValueError as error:
        raise Unwritable('it is not base64; text goes as {"text": …}') from error


@dataclass(frozen=True, slots=True)
class Encoding:
    """How one property of a form is sent; ``style`` is None where the media type decides."""

    content_type: str | None = None
    style: str | None = None
    explode: bool = True
    reserved: bool = False
    file: bool = False

    @property
    def as_json(self) -> bool:
        """Whether a value is sent as JSON, lists and texts too."""
        return self.content_type is not None and is_json(self.content_type)

    def write(self, value: Any) -> str:
        """Return a value as text."""
        return _styles.as_json(value) if self.as_json else _styles.scalar(value)


_PLAIN = Encoding()
_OTHERS = ""
"""The name under which the encoding of properties without their own stands."""


def _fields(value: Any, encodings: Mapping[str, Encoding]) -> Iterator[tuple[str, Any, Encoding]]:
    """Yield the fields of a form: one for each element of an array that is not sent as a whole. Null is left out."""
    if not isinstance(value, Mapping):
        raise Unwritable("a form is an object")
    for name, part in value.items():
        encoding = encodings.get(name) or encodings.get(_OTHERS) or _PLAIN
        repeated = isinstance(part, list | tuple) and encoding.style is None and not encoding.as_json
        for one in part if repeated else [part]:
            if one is not None:
                yield name, one, Encoding(file=_is_file_object(one)) if encoding is _PLAIN else encoding


def _is_file_object(value: Any) -> bool:
    """Return whether the value of a field that no document describes is a file."""
    keys = value.keys() if isinstance(value, Mapping) else set()
    return not keys.isdisjoint(("base64", "text")) and keys <= {"base64", "text", "filename", "media_type"}


@contextmanager
def _member(name: str) -> Iterator[None]:
    """Say of what cannot be written which member of the body it is."""
    try:
        yield
    except Unwritable as error:
        error.member = name
        raise


def write_form(value: Any, encodings: Mapping[str, Encoding]) -> bytes:
    """Return a form's pairs; without its own style a property is written as HTML forms do.

    >>> write_form({"a": "x y", "b": [1, 2], "c": {"d": True}}, {})
    b'a=x+y&b=1&b=2&c=%7B%22d%22%3Atrue%7D'
    """
    pairs: list[str] = []
    for name, one, encoding in _fields(value, encodings):
        with _member(name):
            if encoding.style is None:
                pairs.append(f"{_plus(name)}={_plus(encoding.write(one))}")
            else:
                explode, reserved = encoding.explode, encoding.reserved
                pairs += _styles.query(encoding.style, name, one, explode=explode, reserved=reserved)
    return "&".join(pairs).encode("ascii")


def _plus(text: str) -> str:
    """Encode as application/x-www-form-urlencoded does (WHATWG URL, section 5.2)."""
    return quote(encode(text), safe="*-._ ").replace("~", "%7E").replace(" ", "+")


def write_multipart(value: Any, encodings: Mapping[str, Encoding], media_type: str) -> tuple[str, bytes]:
    """Return the media type with its boundary, and the parts (RFC 7578)."""
    boundary = secrets.token_hex(16)
    body = bytearray()
    for name, one, encoding in _fields(value, encodings):
        with _member(name):
            body += f"--{boundary}\r\n".encode() + _part(name, one, encoding) + b"\r\n"
    return f"{name_of(media_type)}; boundary={boundary}", bytes(body) + f"--{boundary}--\r\n".encode()


def _part(name: str, value: Any, encoding: Encoding) -> bytes:
    disposition = f'Content-Disposition: form-data; name="{_escape(name)}"'
    content_type = encoding.content_type
    if encoding.file or isinstance(value, bytes):
        content, filename, media_type = content_of(value)
        disposition += f'; filename="{_escape(filename or name)}"'
        content_type = media_type or content_type or _OCTETS
    else:
        if isinstance(value, dict | list | tuple):
            content_type = content_type or "application/json"
        content = encode(encoding.write(value))
    head = disposition + (f"\r\nContent-Type: {content_type}" if content_type else "")
    return encode(head) + b"\r\n\r\n" + content


def _escape(name: str) -> str:
    """Escape a name as HTML forms do: three characters only."""
    return name.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22")


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
        if self.kind == "form":
            return self.media_type, write_form(value, self.encodings)
        if self.kind == "multipart":
            return write_multipart(value, self.encodings, self.media_type)
        if self.kind == "file":
            file = content_of(value)
            return file.media_type or self.media_type, file.content
        return self.media_type, encode(_styles.as_json(value) if self.kind == "json" else _styles.scalar(value))

    def argument_of(self, member: str | None) -> str:
        """Return the argument that a member of the body comes from, or its place in the argument."""
        for argument, name in (self.members or {}).items():
            if name == member:
                return argument
        whole = "body" if self.members else self.parameters[0].name
        return f"{whole}.{member}" if member else whole


def read_body(operation: Mapping[str, Any], base: str, schemas: Schemas, taken: Collection[str]) -> Body | None:
    """Return the body of an operation; ``taken`` are the names of its other parameters.

    The rule for parameters: the properties of an object become their own parameters when that says all there is
    to say. It does not when a name is taken already, when other properties or rules between properties are declared,
    or when the body may be left out although a property may not. Then the whole is one parameter, ``body``. An
    optional form without fields makes no body. Raises `Unusable`.
    """
    if operation.get("requestBody") is None:
        return None
    with Within("requestBody"):
        target = schemas.documents.follow(operation["requestBody"], base)
        if type(target.value) is not dict:
            raise Unusable(f"expected an object, not {describe(target.value)}")
        content, uri = schemas.documents.member(mapping, target.value, "content", target.uri)
        media_type, kind = _choose_form(content)
        with Within("content", media_type):
            media = schemas.documents.follow(content[media_type] or {}, uri)
            if type(media.value) is not dict:
                raise Unusable(f"expected an object, not {describe(media.value)}")
            kind, schema = _body_schema(kind, media_type, media, schemas)
            encodings: dict[str, Encoding] = {}
            if kind in _FORMS:
                schema = _form(media, schema, schemas, kind, encodings=encodings, definitions=schema.get("$defs", {}))
    required = flag(target.value, "required") is True
    if name_of(media_type) in ("*/*", "application/*"):
        media_type = "application/json"
    if kind in _FORMS and not schema.get("properties") and set(schema) <= _SAYS_NO_MORE:
        if "properties" in schema and not required:
            return None
        fields = _ANY_FIELD if kind == "form" else {"anyOf": [_ANY_FIELD, *_FILE_OBJECTS]}
        schema = {**schema, **_ANY_FIELDS, "additionalProperties": fields}
    if kind in ("json", *_FORMS) and (names := _spread(schema, taken, required=required)):
        parameters = []
        for argument, name in names.items():
            part, needed = schema["properties"][name], name in schema.get("required", ())
            about = (part if isinstance(part, dict) else {}, behind(part, schema.get("$defs", {})))
            parameters.append(new_parameter(argument, schemas.standing_alone(part), required=needed, about=about))
        return Body(media_type, kind, required, tuple(parameters), names, encodings)
    argument = "body" if "body" not in taken else "request_body"
    words = {"description": text(target.value, "description") or ""}
    whole = new_parameter(argument, schema, required=required, about=(words, schema))
    return Body(media_type, kind, required, (whole,), None, encodings)


def _choose_form(content: Mapping[str, Any]) -> tuple[str, _Kind]:
    """Return the media type into which arguments go best; of the kinds of JSON, the plain one first."""
    names = ("application/json", "*/*", "application/*", "application/merge-patch+json")

    def rank(form: tuple[str, _Kind]) -> tuple[int, int]:
        name = name_of(form[0])
        return _PREFERRED.index(form[1]), names.index(name) if name in names else len(names)

    kinds = [(media_type, kind) for media_type in content if (kind := _kind(media_type)) is not None]
    if not kinds:
        reason = f"none of {', '.join(map(show, content))} can be written" if content else "it has no content"
        raise Unusable(reason, ("content",))
    return min(kinds, key=rank)


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


def _body_schema(kind: _Kind, media_type: str, media: Target, schemas: Schemas) -> tuple[_Kind, dict[str, Any]]:
    """Return the schema of a body; a form whose schema is a text is one."""
    if kind == "file":
        return kind, dict(FILE_SCHEMA)
    with Within("schema"):
        schema = schemas.compile(media.value.get("schema"), media.uri)
        named = schema.get("type", "object")
        types = [named] if isinstance(named, str) else named
        if kind in _FORMS and "object" not in types:
            if "string" not in types:
                raise Unusable(f"a form is an object, and its schema is of {' or '.join(types)}")
            if kind == "multipart":
                # What it says of a text, or of a file, is not how the fields are called.
                return kind, {}
            kind = "text"
    if kind == "text" and not _SIMPLE.issuperset(types):
        schema = {"type": "string", "description": f"The whole body, as {show(media_type)}."}
    return kind, schema


def _spread(schema: Mapping[str, Any], taken: Collection[str], *, required: bool) -> dict[str, str]:
    """Return the properties by the names of their own parameters; none where the body is one parameter."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    needed = schema.get("required", ())
    names = {word(name): name for name in properties}
    says_all = (
        schema.get("type", "object") == "object"
        and set(schema) - _SAYS_NO_MORE <= {"additionalProperties"}
        and schema.get("additionalProperties") in (None, False)
        and (required or not needed)
        and len(names) == len(properties)
        and names.keys().isdisjoint({"", *taken})
        and set(needed) <= set(properties)
    )
    return names if says_all else {}


def _form(
    media: Target,
    schema: Mapping[str, Any],
    schemas: Schemas,
    kind: _Kind,
    *,
    encodings: dict[str, Encoding],
    definitions: Mapping[str, Any],
    is_whole: bool = True,
) -> dict[str, Any]:
    """Return the schema of a form with files as arguments hold them; ``encodings`` gets how each property is sent."""
    declared, uri = schemas.documents.member(mapping, media.value, "encoding", media.uri)
    form = {**schema, "properties": dict(schema["properties"])} if "properties" in schema else dict(schema)
    for name, part in schema.get("properties", {}).items():
        with Within("encoding", name):
            one = schemas.documents.follow(declared.get(name), uri).value or {}
            if type(one) is not dict:
                raise Unusable(f"expected an object, not {describe(one)}")
            encodings[name] = _encoding(one, kind)
        if kind == "multipart":
            content_type = encodings[name].content_type
            file = _file_argument(part, content_type, definitions, old=schemas.old)
            form["properties"][name] = file or part
            encodings[name] = Encoding(content_type, file=file is not None)
    others = schema.get("additionalProperties")
    if kind == "multipart" and isinstance(others, dict) and others:
        file = _file_argument(others, None, definitions, old=schemas.old)
        form["additionalProperties"] = file or others
        encodings |= {_OTHERS: Encoding(file=True)} if file else {}
    # Alternatives of alternatives may double without end.
    for key in {"anyOf", "allOf"} & schema.keys() if is_whole else ():
        inner = partial(_form, encodings=encodings, definitions=definitions, is_whole=False)
        form[key] = [inner(media, behind(one, definitions), schemas, kind) for one in schema[key]]
    return form


def _file_argument(
    part: Any, content_type: str | None, definitions: Mapping[str, Any], *, old: bool
) -> dict[str, Any] | None:
    """Return the schema of the argument for a file or for a list of files; None for any other part."""
    schema = behind(part, definitions)
    items = behind(schema.get("items"), definitions)
    words = {"description": part["description"]} if isinstance(part, dict) and "description" in part else {}
    if _is_file(schema, content_type, old=old):
        return {**FILE_SCHEMA, **words}
    if schema.get("type") == "array" and _is_file(items, content_type, old=old):
        return {"type": "array", "items": dict(FILE_SCHEMA), **words}
    return None


def _encoding(declared: Mapping[str, Any], kind: _Kind) -> Encoding:
    # Of several types the first that is one: the others are for who knows better.
    named = [one.strip() for one in (text(declared, "contentType") or "*").split(",")]
    content_type = next((one for one in named if "*" not in one), None)
    if content_type is not None and not is_media_type(content_type):
        raise Unusable(f"{show(content_type)!r} is no media type")
    style, explode, reserved = text(declared, "style"), flag(declared, "explode"), flag(declared, "allowReserved")
    if kind == "multipart" or (style is None and explode is None and reserved is None):
        return Encoding(content_type)
    style = style or "form"
    if style not in ("form", "spaceDelimited", "pipeDelimited", "deepObject"):
        raise Unusable(f"the style {show(style)!r} is none of a form")
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
