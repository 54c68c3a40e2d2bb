"""What an operation answers: the schema of its result, and the value of an answer."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from portico.errors import ServiceError
from portico_openapi._documents import read_json
from portico_openapi._errors import Unusable, Within, describe, mapping, show
from portico_openapi._schemas import Schemas
from portico_openapi._styles import is_json, is_media_type, is_text, name_of

_Kind: TypeAlias = Literal["json", "text", "bytes", "nothing"]

_SUCCESS = re.compile(r"2(?:[0-9]{2}|XX)", re.IGNORECASE)

BYTES_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "media_type": {"type": "string"},
        "base64": {"type": "string", "contentEncoding": "base64", "description": "The content in base64."},
    },
    "required": ["media_type", "base64"],
    "additionalProperties": False,
}
"""The result of an operation that answers with neither JSON nor text; it may be the argument of an upload."""


@dataclass(frozen=True, slots=True)
class Responses:
    """The schema of the result, what to ask for, and the kinds of answers that the document names."""

    schema: Mapping[str, Any]
    accept: str
    kinds: frozenset[_Kind]

    def value(self, content_type: str, content: bytes) -> Any:
        """Return the result that an answer stands for. Raises ``ValueError`` where it should be JSON and is not.

        What the document names decides where that is one kind, and else the answer's own label. JSON is given as
        it is, whether it fits the schema or not: a service that strays from its own document is still of use.
        """
        if not content:
            return None
        named = self.kinds - {"nothing"}
        kind = next(iter(named)) if len(named) == 1 else _kind_of(content_type)
        if kind == "json":
            return read_json(_decode(content_type, content))
        if kind == "text":
            return _decode(content_type, content)
        return {"media_type": name_of(content_type), "base64": base64.b64encode(content).decode("ascii")}


def read_responses(operation: Mapping[str, Any], base: str, schemas: Schemas) -> Responses:
    """Return what the document says of successful answers, 2xx or else ``default``. Raises `Unusable`."""
    declared, uri = schemas.documents.member(mapping, operation, "responses", base)
    wanted = [status for status in declared if _SUCCESS.fullmatch(status)]
    if not wanted and "default" in declared and not any(status[:1] == "3" for status in declared):
        wanted = ["default"]
    found: list[tuple[str, _Kind, dict[str, Any]]] = []
    for status in wanted:
        with Within("responses", status):
            target = schemas.documents.follow(declared[status], uri)
            if type(target.value) is not dict:
                raise Unusable(f"expected an object, not {describe(target.value)}")
            content, place = schemas.documents.member(mapping, target.value, "content", target.uri)
            found.append(_best(content, place, schemas))
    media_types = dict.fromkeys(media_type for media_type, _, _ in found if media_type and "*" not in media_type)
    kinds = frozenset(kind for _, kind, _ in found)
    accept = ", ".join(media_types) or ("*/*" if kinds and "json" not in kinds else "application/json, */*;q=0.5")
    return Responses(_together(schema for _, _, schema in found), accept, kinds)


def _best(content: Mapping[str, Any], base: str, schemas: Schemas) -> tuple[str, _Kind, dict[str, Any]]:
    """Return the media type that is most use: JSON, else text, else whatever there is."""
    if not content:
        return "", "nothing", {"type": "null"}
    media_type = min(content, key=lambda one: (not is_json(one), not is_text(one)))
    if not is_media_type(media_type):
        raise Unusable(f"{show(media_type)!r} is no media type", ("content",))
    if not is_json(media_type):
        return (
            (media_type, "text", {"type": "string"})
            if is_text(media_type)
            else (media_type, "bytes", dict(BYTES_SCHEMA))
        )
    with Within("content", media_type):
        media = schemas.documents.follow(content[media_type], base)
        if type(media.value) is not dict and media.value is not None:
            raise Unusable(f"expected an object, not {describe(media.value)}")
        schema = (media.value or {}).get("schema")
        with Within("schema"):
            return media_type, "json", schemas.compile(schema, media.uri)


def _together(schemas: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return one schema for several answers."""
    definitions: dict[str, Any] = {}
    different: list[dict[str, Any]] = []
    for schema in schemas:
        definitions |= schema.get("$defs", {})
        bare = {key: part for key, part in schema.items() if key != "$defs"}
        if bare not in different:
            different.append(bare)
    if not different or {} in different:
        return {}
    whole = different[0] if len(different) == 1 else {"anyOf": different}
    return {**whole, "$defs": definitions} if definitions else whole


def _kind_of(content_type: str) -> _Kind:
    if not content_type or is_text(content_type):
        return "text"
    return "json" if is_json(content_type) else "bytes"


def _decode(content_type: str, content: bytes) -> str:
    """Return an answer's text, by the charset that its label names; UTF-8 without one."""
    found = re.search(r"charset\s*=\s*\"?([^\s;\"]+)", content_type, re.IGNORECASE)
    try:
        text = content.decode(found[1] if found else "utf-8", errors="replace")
    except (LookupError, ValueError):
        text = content.decode("utf-8", errors="replace")
    return text.removeprefix("\ufeff")


class RequestFailed(ServiceError):
    """The service refused a request for a reason that no narrower error has; ``status`` is HTTP's."""

    def __init__(self, message: str, *, status: int) -> None:
        self.status = status
        super().__init__(message)
