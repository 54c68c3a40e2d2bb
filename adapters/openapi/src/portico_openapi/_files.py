"""Files in arguments: bytes as JSON can hold them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from portico_openapi._styles import Unwritable

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
