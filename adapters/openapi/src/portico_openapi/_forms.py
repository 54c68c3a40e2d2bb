"""Bodies that forms send: application/x-www-form-urlencoded and multipart/form-data."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from portico_openapi import _styles
from portico_openapi._documents import Target
from portico_openapi._files import FILE_SCHEMA, content_of
from portico_openapi._media_types import is_json, is_media_type, is_text
from portico_openapi._schemas import Schemas
from portico_openapi._styles import Unwritable
from portico_openapi._wrong import Wrong, described, flag, mapping, shown, text

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
        try:
            one = schemas.documents.follow(declared.get(name), media.uri).value
            if one is not None and type(one) is not dict:
                raise Wrong(f"expected an object, not {described(one)}")
            made[name] = _encoding(one or {}, _behind(part, definitions), definitions, old=schemas.old, kind=kind)
        except Wrong as error:
            raise error.under("encoding", name) from None
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
    """Return a form's pairs; without a style of its own a property is written as HTML forms do.

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
