"""Failures of calls, as the errors of portico: which operation it was, what the service said, what to do."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import httpx

from portico.errors import (
    AuthenticationFailed,
    RateLimited,
    ResponseInvalid,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
)
from portico_openapi._media_types import is_json, is_text, name_of
from portico_openapi._responses import decoded_text
from portico_openapi._wrong import shortened

_LONGEST = 300
_MOST_PARTS = 5
_WORDS = ("title", "detail", "message", "msg", "error_description", "description", "error", "errors", "reason")
_LATEST_WAIT = 10_000_000.0


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
        wait = retry_after(headers)
        return RateLimited(message, retry_after=wait)
    if status in (408, 504):
        return ServiceTimeout(message)
    return ServiceUnavailable(message) if status >= 500 else RequestFailed(message, status=status)


def no_answer(operation: str, origin: str, error: Exception, timeout: float) -> ServiceError:
    """Return the error for a request that got no whole answer. The words of the client may hold no secret."""
    if isinstance(error, TimeoutError | httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
        return ServiceTimeout(f"{operation} failed: {origin} gave no whole answer within {timeout:g} seconds.")
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
        return ServiceUnavailable(f"{operation} failed: {origin} cannot be reached ({_reason(error)}).")
    if isinstance(error, httpx.DecodingError):
        return ResponseInvalid(f"{operation} failed: the answer of {origin} cannot be unpacked ({_reason(error)}).")
    if isinstance(error, httpx.LocalProtocolError | httpx.InvalidURL | httpx.UnsupportedProtocol):
        return ServiceError(f"{operation} failed: the request cannot be sent ({_reason(error)}).")
    return ServiceUnavailable(f"{operation} failed: the connection to {origin} broke ({_reason(error)}).")


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
    """Return what an answer says to people: the sentences of a JSON error, a page's title, or its first words."""
    text = decoded_text(content_type, content)
    if is_json(content_type) or text.lstrip()[:1] == "{":
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = text
        found = list(dict.fromkeys(_sentences(value, 0)))[:_MOST_PARTS]
        if found:
            return shortened(": ".join(found), _LONGEST)
    if name_of(content_type) == "text/html" or text.lstrip()[:1] == "<":
        title = re.search(r"<title[^>]*>([^<]*)", text[:10_000], re.IGNORECASE)
        words = " ".join(title[1].split()) if title else ""
        return shortened(f"an HTML page, {words!r}" if words else "an HTML page", _LONGEST)
    if not is_text(content_type) and not is_json(content_type) and "\ufffd" in text[:1000]:
        return f"{len(content)} bytes of {name_of(content_type) or 'an unknown kind'}"
    return shortened(" ".join(text[:10_000].split()), _LONGEST)


def _sentences(value: Any, depth: int) -> Iterator[str]:
    """Yield the words of an error: those of problem+json (RFC 9457) and of what services write in its place."""
    if isinstance(value, str):
        yield " ".join(value[:10_000].split())
    elif depth > 4:
        return
    elif isinstance(value, list):
        for part in value[:_MOST_PARTS]:
            yield from _sentences(part, depth + 1)
    elif isinstance(value, dict):
        words = [word for key in _WORDS if value.get(key) for word in _sentences(value[key], depth + 1) if word]
        location = value.get("loc") or value.get("field") or value.get("path")
        if words and location:
            parts = location if isinstance(location, list) else [location]
            words[0] = f"{'.'.join(str(part) for part in parts)}: {words[0]}"
        yield from words
