"""HTTP for connectors: a request and an answer as data, and the error that an answer means.

The `HttpClient` port sends requests. Nothing here opens a connection.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import unquote

from portico._plugins.registration import Secret
from portico.errors import (
    AuthenticationFailed,
    QuotaExceeded,
    RateLimited,
    ResponseInvalid,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
)

_SENT = (str, int, float, bool, Secret, type(None))
_WORDS_SHOWN = 300
_PLACES = (
    *("message", "msg", "error_message", "errorMessage", "error_description", "detail", "details", "description"),
    *("info", "error", "errors", "reason", "title"),
)
_NESTED = 6
_READ = 10_000


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request. Secrets in it are revealed only on the wire.

    >>> HttpRequest("https://api.example/search", params={"q": "ports"}, headers={"X-Key": Secret("k")})
    HttpRequest(url='https://api.example/search', params={'q': 'ports'}, headers={'X-Key': Secret(literal)}, \
json=None, method='GET')
    >>> HttpRequest("https://api.example/search", params={"fields": ["title", "url"]})
    Traceback (most recent call last):
        ...
    TypeError: the parameter 'fields' is list, not text, a number, a bool, a Secret or None

    A parameter or a header is text, a number, a bool (sent as ``true`` or ``false``), a `Secret`, or None, which leaves
    it out; anything else is a ``TypeError``. ``json`` is the body. The default ``method`` is POST with a body and GET
    without.
    """

    url: str
    params: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, object] = field(default_factory=dict)
    json: Any = None
    method: str = ""

    def __post_init__(self) -> None:
        # A type checker does not find this: a dict of texts and numbers is one of objects to it.
        for what, values in (("parameter", self.params), ("header", self.headers)):
            for name, value in values.items():
                if not isinstance(value, _SENT):
                    kind = type(value).__name__
                    raise TypeError(f"the {what} {name!r} is {kind}, not text, a number, a bool, a Secret or None")
        if not self.method:
            object.__setattr__(self, "method", "GET" if self.json is None else "POST")

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """The secrets in it, with the user and the password of the address."""
        user = re.match(r"[^/?#]*//([^/?#]*)@", self.url)
        found, parts = [], [*self.params.values(), *self.headers.values(), self.json, user and Secret(unquote(user[1]))]
        for part in parts:
            parts += part.values() if isinstance(part, Mapping) else part if isinstance(part, list | tuple) else ()
            found += [part] if isinstance(part, Secret) else []
        return tuple(found)


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An answer of any status. Names in ``headers`` are in lower case; ``body`` is decompressed."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the status means success."""
        return 200 <= self.status < 300

    def json(self) -> Any:
        """Return the body as JSON; ``ValueError`` if it is not JSON or too deeply nested."""
        try:
            return json.loads(self.body)
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error

    @staticmethod
    def retry_after(headers: Mapping[str, str]) -> float | None:
        """Return how many seconds an answer asks to wait, or None.

        ``Retry-After`` is seconds or a date (RFC 9110, section 10.2.3). Without it, ``RateLimit-Reset`` or
        ``X-RateLimit-Reset`` says when the used-up limit begins again: in seconds, or as seconds since 1970. It is a
        list where there are several limits.

        >>> HttpResponse.retry_after({"retry-after": "7"})
        7.0
        >>> HttpResponse.retry_after({"x-ratelimit-remaining": "0, 1985", "x-ratelimit-reset": "1, 86400"})
        1.0
        """
        written = headers.get("retry-after", "").strip()
        if written:
            seconds = _number(written)
            return _seconds_until(written) if seconds is None else seconds
        for prefix in ("ratelimit-", "x-ratelimit-"):
            resets = [_number(part) for part in headers.get(f"{prefix}reset", "").split(",")]
            left = [_number(part) for part in headers.get(f"{prefix}remaining", "0").split(",")]
            if len(left) != len(resets):
                left = [0.0] * len(resets)
            waits = [reset for reset, rest in zip(resets, left, strict=True) if reset is not None and rest == 0]
            if waits:
                longest = max(waits)
                return max(0.0, longest - time.time()) if longest > _LONG_AGO else longest
        return None

    def error(
        self,
        service: str,
        kind: type[ServiceError] | ServiceError | None = None,
        *,
        hidden: Iterable[Secret] = (),
        advice: str | None = None,
    ) -> ServiceError:
        """Return the error that an answer means, with the words of the service.

        ``service`` begins the message, as in ``"Text search 'brave'"``. The status decides (RFC 9110, section 15),
        unless ``kind`` is given; an error as ``kind`` has the words to show. ``hidden`` are secrets that the service
        may repeat. ``advice`` replaces the usual advice.

        >>> raise HttpResponse(429, b'{"error": "Slowly!"}', {"retry-after": "7"}).error("Acme")
        Traceback (most recent call last):
            ...
        portico.errors.RateLimited: Acme asks for fewer requests (429). Try again in 7 seconds. It says: Slowly!
        """
        status = self.status
        given = str(kind) if isinstance(kind, ServiceError) else ""
        if isinstance(kind, ServiceError):
            kind = None if type(kind) is ServiceError and not self.ok else type(kind)
        kind = kind or _kind(status)
        words = printable(given or _words_of(self), hidden := tuple(hidden))
        said = f" It says: {words}" if words else ""
        # Some services fail with the status of success; showing it would puzzle.
        shown = "" if self.ok else f" ({status})"
        if issubclass(kind, RateLimited):
            wait = HttpResponse.retry_after(self.headers)
            when = "later" if wait is None else f"in {math.ceil(wait)} second{'' if math.ceil(wait) == 1 else 's'}"
            then = f" {advice}" if advice else ""
            return kind(f"{service} asks for fewer requests{shown}. Try again {when}.{then}{said}", retry_after=wait)
        if kind is ResponseInvalid and 300 <= status < 400:
            where = printable(self.headers.get("location", "another address"), hidden)
            return kind(f"{service} points to {where} ({status}), which is not followed. Check its address.")
        happened, usual = _SENTENCES.get(kind, ("refused the request", "Check what it was asked."))
        if status == 404 and kind is ServiceError:
            happened, usual = "has nothing at this address", "Check its address."
        return kind(f"{service} {happened}{shown}. {advice or usual}{said}")


_SENTENCES: Mapping[type[ServiceError], tuple[str, str]] = {
    AuthenticationFailed: ("refused access", "Check the key and what it may do."),
    QuotaExceeded: ("has no quota left for this key", "Wait for the next period or raise the quota."),
    ServiceTimeout: ("had no answer in time", "Try again later."),
    ServiceUnavailable: ("failed on its side", "Try again later."),
    ResponseInvalid: ("answered in another form than agreed", "Check its address."),
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


# More than this are seconds since 1970, not a time to wait.
_LONG_AGO = 1_000_000_000
_LONGEST = 10 * 366 * 86_400.0


def _number(written: str) -> float | None:
    """Return a number of seconds of a header, at most ten years."""
    written = written.strip()
    if not (written.isascii() and written.replace(".", "", 1).isdecimal()):
        return None
    return min(float(written), _LONG_AGO + time.time() + _LONGEST)


def _seconds_until(written: str) -> float | None:
    try:
        moment = parsedate_to_datetime(written)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, moment.timestamp() - time.time())
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _words_of(response: HttpResponse) -> str:
    """Return the words of a service on a failure, from the usual places; empty where there are none."""
    try:
        return _sentence(response.json(), _NESTED)
    except ValueError:
        kind = response.headers.get("content-type", "")
        return response.body[:_READ].decode("utf-8", "replace") if kind.startswith("text/plain") else ""


def secrets_of(settings: object) -> Iterator[Secret]:
    """Yield the secrets of settings; a header may contain one as a part."""
    for name in (*getattr(settings, "__dict__", ()), *getattr(type(settings), "__slots__", ())):
        if isinstance(value := getattr(settings, name, None), Secret):
            yield value


def printable(words: str, hidden: Iterable[Secret] = ()) -> str:
    """Return words from outside for a message: without secrets, on one line, and cut.

    >>> printable("The  key s3cret is wrong.", [Secret("s3cret")])
    'The key ******** is wrong.'
    """
    words = Secret.redact(words, hidden)
    words = " ".join("".join(letter if letter.isprintable() else " " for letter in words).split())
    return words if len(words) <= _WORDS_SHOWN else f"{words[: _WORDS_SHOWN - 1]}…"


def _sentence(answer: object, depth: int) -> str:
    if isinstance(answer, str):
        return answer
    if depth and isinstance(answer, list) and answer:
        return _sentence(answer[0], depth - 1)
    if depth and isinstance(answer, Mapping):
        words = next((words for place in _PLACES if (words := _sentence(answer.get(place), depth - 1))), "")
        where, details = answer.get("loc"), _sentence(answer.get("meta"), depth - 1)
        if words and isinstance(where, list):
            words = f"{'.'.join(map(str, where[:_NESTED]))}: {words}"
        return f"{words} ({details})" if words and details else words or details
    return ""
