"""What an operation answers: the schema of its result, and the value of an answer."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Literal, TypeAlias

import httpx

from portico.errors import (
    AuthenticationFailed,
    RateLimited,
    ResponseInvalid,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
)
from portico_openapi._schemas import Schemas
from portico_openapi._styles import is_json, is_media_type, is_text, name_of
from portico_openapi._wrong import Within, Wrong, described, mapping, shortened, shown

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
            return _json(decoded_text(content_type, content))
        if kind == "text":
            return decoded_text(content_type, content)
        return {"media_type": name_of(content_type), "base64": base64.b64encode(content).decode("ascii")}


def read_responses(operation: Mapping[str, Any], base: str, schemas: Schemas) -> Responses:
    """Return what the document says of successful answers: 2xx, or ``default`` where there is none. Raises `Wrong`."""
    declared = mapping(operation, "responses")
    wanted = [status for status in declared if _SUCCESS.fullmatch(status)]
    if not wanted and "default" in declared and not any(status[:1] == "3" for status in declared):
        wanted = ["default"]
    found: list[tuple[str, _Kind, dict[str, Any]]] = []
    for status in wanted:
        with Within("responses", status):
            target = schemas.documents.follow(declared[status], base)
            if type(target.value) is not dict:
                raise Wrong(f"expected an object, not {described(target.value)}")
            found.append(_best(mapping(target.value, "content"), target.uri, schemas))
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
        raise Wrong(f"{shown(media_type)!r} is no media type", ("content",))
    if not is_json(media_type):
        return (
            (media_type, "text", {"type": "string"})
            if is_text(media_type)
            else (media_type, "bytes", dict(BYTES_SCHEMA))
        )
    with Within("content", media_type):
        media = schemas.documents.follow(content[media_type], base)
        if type(media.value) is not dict and media.value is not None:
            raise Wrong(f"expected an object, not {described(media.value)}")
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


def decoded_text(content_type: str, content: bytes) -> str:
    """Return an answer's text, by the charset that its label names; UTF-8 without one."""
    found = re.search(r"charset\s*=\s*\"?([^\s;\"]+)", content_type, re.IGNORECASE)
    charset = found[1] if found else json.detect_encoding(content) if is_json(content_type) else "utf-8"
    try:
        text = content.decode(charset, errors="replace")
    except (LookupError, ValueError):
        text = content.decode("utf-8", errors="replace")
    return text.removeprefix("\ufeff")


def _json(text: str) -> Any:
    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is no JSON number")

    def number(word: str) -> float:
        return made if math.isfinite(made := float(word)) else refuse(word)

    try:
        return json.loads(text, parse_constant=refuse, parse_float=number)
    except RecursionError:
        raise ValueError("it nests too deeply") from None


_LONGEST = 300
_MOST_PARTS = 5
_WORDS = ("title", "detail", "message", "msg", "error_description", "description", "error", "errors", "reason")
_LATEST_WAIT = 10_000_000.0
_DEEPEST = 4


class RequestFailed(ServiceError):
    """The service refused a request for a reason that no narrower error has; ``status`` is HTTP's."""

    def __init__(self, message: str, *, status: int) -> None:
        self.status = status
        super().__init__(message)


def refusal(
    operation: str, status: int, headers: Mapping[str, str], content: bytes, scrub: Callable[[str], str]
) -> ServiceError:
    """Return the error for an answer of status 400 or more."""
    words = scrub(words_of(headers.get("content-type", ""), content))
    said = f"{_phrase(status)}: {words}" if words else _phrase(status)
    message = f"{operation} failed: {said}"
    if not message.endswith((".", "!", "?", "…")):
        message += "."
    if status in (401, 403, 407):
        return AuthenticationFailed(f"{message} The credentials are missing, wrong, or may not do this.")
    if status == 429:
        return RateLimited(message, retry_after=retry_after(headers))
    if status in (408, 504):
        return ServiceTimeout(message)
    return ServiceUnavailable(message) if status >= 500 else RequestFailed(message, status=status)


def no_answer(operation: str, origin: str, error: Exception, timeout: float) -> ServiceError:
    """Return the error for a request that got no whole answer. The words of the client may hold no secret."""
    if isinstance(error, TimeoutError | httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
        return ServiceTimeout(f"{operation} failed: {origin} gave no whole answer within {timeout:g} seconds.")
    if isinstance(error, httpx.DecodingError):
        return ResponseInvalid(f"{operation} failed: the answer of {origin} cannot be unpacked ({_reason(error)}).")
    if isinstance(error, httpx.LocalProtocolError | httpx.InvalidURL | httpx.UnsupportedProtocol):
        return ServiceError(f"{operation} failed: the request cannot be sent ({_reason(error)}).")
    return ServiceUnavailable(f"{operation} failed: {origin} cannot be reached ({_reason(error)}).")


def _reason(error: Exception) -> str:
    return shortened(" ".join(str(error).split()), _LONGEST) or type(error).__name__


def _phrase(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a Retry-After header, given in seconds or as a date (RFC 9110, section 10.2.3)."""
    value = headers.get("retry-after", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            when = parsedate_to_datetime(value)
        except (TypeError, ValueError, OverflowError):
            return None
        seconds = (when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return min(max(seconds, 0.0), _LATEST_WAIT) if math.isfinite(seconds) else None


def words_of(content_type: str, content: bytes) -> str:
    """Return what an answer says to people: the sentences of a JSON error, or its first words."""
    text = decoded_text(content_type, content)
    start = text.lstrip()[:1]
    if is_json(content_type) or start == "{":
        try:
            found = list(dict.fromkeys(_sentences(json.loads(text), 0)))[:_MOST_PARTS]
        except (ValueError, RecursionError):
            found = []
        if found:
            return shortened(": ".join(found), _LONGEST)
    if start == "<":
        return "an HTML page"
    if "\ufffd" in text[:1000]:
        return f"{len(content)} bytes of {name_of(content_type) or 'an unknown kind'}"
    return shortened(" ".join(text[:10_000].split()), _LONGEST)


def _sentences(value: Any, depth: int) -> Iterator[str]:
    """Yield the words of an error: those of problem+json (RFC 9457) and of what services write in its place."""
    if isinstance(value, str):
        yield " ".join(value[:10_000].split())
    elif isinstance(value, list) and depth <= _DEEPEST:
        for part in value[:_MOST_PARTS]:
            yield from _sentences(part, depth + 1)
    elif isinstance(value, dict) and depth <= _DEEPEST:
        words = [word for key in _WORDS for word in _sentences(value.get(key), depth + 1) if word]
        location = value.get("loc") or value.get("field")
        if words and location:
            words[0] = f"{'.'.join(map(str, location)) if isinstance(location, list) else location}: {words[0]}"
        yield from words
