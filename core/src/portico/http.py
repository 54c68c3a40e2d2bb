"""HTTP as connectors see it: a request and an answer as data, and which error of ours an answer is.

What sends a request is the `HttpClient` port. Nothing here opens anything.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, TypeAlias

from portico.errors import (
    AuthenticationFailed,
    QuotaExceeded,
    RateLimited,
    ResponseInvalid,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
)
from portico.registration import Secret

__all__ = ["HttpRequest", "HttpResponse", "Sent", "retry_after", "service_error"]

Sent: TypeAlias = str | int | float | bool | Secret | None
"""What a parameter or a header may be. None leaves it out, a bool is ``true`` or ``false``."""

_WORDS_SHOWN = 300
_PLACES = ("message", "detail", "description", "info", "error", "errors", "title")
_NESTED = 6


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request: where to, and what goes with it. Secrets are revealed on the wire only.

    >>> HttpRequest("https://api.example/search", params={"q": "ports"}, headers={"X-Key": Secret("k")})
    HttpRequest(url='https://api.example/search', params={'q': 'ports'}, headers={'X-Key': Secret(literal)}, \
json=None, method='GET')

    ``json`` is sent as the body. ``method`` is GET without one and POST with one, unless given.
    """

    url: str
    params: Mapping[str, Sent] = field(default_factory=dict)
    headers: Mapping[str, Sent] = field(default_factory=dict)
    json: Any = None
    method: str = ""

    def __post_init__(self) -> None:
        if not self.method:
            object.__setattr__(self, "method", "GET" if self.json is None else "POST")


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An answer, whatever its status. The names of ``headers`` are in lower case; ``body`` is as decoded."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the status is one of success."""
        return 200 <= self.status < 300

    def json(self) -> Any:
        """Return the body as JSON; ``ValueError`` where it is none, or is nested beyond what Python reads."""
        try:
            return json.loads(self.body)
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error


def service_error(
    response: HttpResponse, service: str, kind: type[ServiceError] | None = None, *, hidden: Iterable[Secret] = ()
) -> ServiceError:
    """Return the error that an answer is, with what the service says of it.

    ``service`` begins the message, as in ``"Text search 'brave'"``. The status decides (RFC 9110, section 15), unless
    ``kind`` says what the service means by it. ``hidden`` are secrets that the service may repeat.

    >>> raise service_error(HttpResponse(429, b'{"error": "Slowly!"}', {"retry-after": "7"}), "Acme")
    Traceback (most recent call last):
        ...
    portico.errors.RateLimited: Acme asks for fewer requests (429). Try again in 7 seconds. It says: Slowly!
    """
    status = response.status
    kind = kind or _kind(status)
    words = _words_of(response)
    for secret in hidden:
        words = words.replace(secret.reveal(), str(secret)) if secret.reveal() else words
    said = f" It says: {words}" if words else ""
    if issubclass(kind, RateLimited):
        wait = retry_after(response.headers)
        when = "later" if wait is None else f"in {math.ceil(wait)} seconds"
        return kind(f"{service} asks for fewer requests ({status}). Try again {when}.{said}", retry_after=wait)
    if kind is ResponseInvalid and 300 <= status < 400:
        where = response.headers.get("location", "another address")
        return kind(f"{service} points to {where} ({status}), which is not followed. Check its address.")
    sentence = _SENTENCES.get(kind, "refused the request ({status}). Check what it was asked.")
    if status == 404 and kind is ServiceError:
        sentence = "has nothing at this address ({status}). Check its address."
    return kind(f"{service} {sentence.format(status=status)}{said}")


_SENTENCES: Mapping[type[ServiceError], str] = {
    AuthenticationFailed: "refused access ({status}). Check the key and what it may do.",
    QuotaExceeded: "has no quota left for this key ({status}). Wait for the next period or raise the quota.",
    ServiceTimeout: "had no answer in time ({status}). Try again later.",
    ServiceUnavailable: "failed on its side ({status}). Try again later.",
    ResponseInvalid: "answered in another form than agreed ({status}). Check its address.",
}
_KINDS: Mapping[int, type[ServiceError]] = {
    401: AuthenticationFailed,
    402: QuotaExceeded,
    403: AuthenticationFailed,
    407: ServiceUnavailable,
    408: ServiceTimeout,
    429: RateLimited,
    504: ServiceTimeout,
}


def _kind(status: int) -> type[ServiceError]:
    if status < 400:
        return ResponseInvalid
    return _KINDS.get(status, ServiceUnavailable if status >= 500 else ServiceError)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds an answer asks to wait: its ``Retry-After``, seconds or a date (RFC 9110, 10.2.3)."""
    written = headers.get("retry-after", "").strip()
    if written.replace(".", "", 1).isdecimal() and written.isascii():
        return float(written)
    try:
        return max(0.0, parsedate_to_datetime(written).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _words_of(response: HttpResponse) -> str:
    """Return what a service says of a failure, from the places where services say it; empty where it says nothing."""
    try:
        words = _sentence(response.json(), _NESTED)
    except ValueError:
        kind = response.headers.get("content-type", "")
        words = response.body[: 4 * _WORDS_SHOWN].decode("utf-8", "replace") if kind.startswith("text/plain") else ""
    words = " ".join("".join(letter if letter.isprintable() else " " for letter in words).split())
    return words if len(words) <= _WORDS_SHOWN else f"{words[: _WORDS_SHOWN - 1]}…"


def _sentence(answer: object, depth: int) -> str:
    if isinstance(answer, str):
        return answer
    if depth and isinstance(answer, list) and answer:
        return _sentence(answer[0], depth - 1)
    if depth and isinstance(answer, Mapping):
        return next((words for place in _PLACES if (words := _sentence(answer.get(place), depth - 1))), "")
    return ""
