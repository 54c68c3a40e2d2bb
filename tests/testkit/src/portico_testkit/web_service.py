"""A small web to search, and a real HTTP server on loopback that speaks as a search service does.

What a service says is a function: from the request that came and the pages there are, to a reply.
"""

from __future__ import annotations

import json as json_format
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from portico.plugins import HttpRequest, Secret
from portico_testkit.recorded_server import Exchange, RecordedAnswer, RecordedServer

__all__ = ["WEB", "LocalService", "Reply", "ServedRequest", "Speak", "WebPage", "find", "split_operators"]

_HELD = 20.0


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page of the small web."""

    title: str
    url: str
    text: str
    date: date
    site: str
    language: str


def _web() -> Iterator[WebPage]:
    sites = ("alpha.example", "beta.example", "gamma.example")
    languages = ("en", "en", "de", "fr")
    written = (
        ("A door", "A door is painted red."),
        ("Doors & <windows>", 'A door that says "push" is 2 < 3 & a half metres high.'),
        ("Türen", "Die Tür heißt door, mit Umlaut: äöü ß."),
        ("The handle", "The handle of a door is brass; a door without one is a wall."),
        ("It's a gate", "A garden door isn't a gate, it's a door."),
        ("中文", "门 door 中文 \U0001f9e6"),
        ("Slate", "A roof of slate keeps the rain out."),
        ("Oak", "A door of oak under a roof of straw."),
        ("Hinges", "Three hinges hold a heavy door."),
        ("Locks", "A lock makes a door a secret."),
        ("Cats", "The cat has a door of her own."),
        ("Roof tiles", "A roof of tiles lasts a hundred years."),
        ("Porches", "Before the door stands a porch."),
        ("Gutters", "Below the roof runs a gutter."),
    )
    for number, (title, text) in enumerate(written):
        site = sites[number % 3]
        day = date(2024, 1, 31) + timedelta(days=61 * number)
        yield WebPage(title, f"https://{site}/{number}?a=b&c=%20", text, day, site, languages[number % 4])
    for number in range(260):
        site = sites[number % 3]
        day = date(2020, 2, 29) + timedelta(days=number)
        text = f"A brick, number {number} of many."
        yield WebPage(f"Brick {number}", f"https://{site}/brick/{number}", text, day, site, languages[number % 4])


WEB: tuple[WebPage, ...] = tuple(_web())
"""Pages of three sites in three languages: eleven on ``door``, four on ``roof``, 260 on ``brick``."""


def find(
    query: str,
    pages: Sequence[WebPage] = WEB,
    *,
    sites: Sequence[str] = (),
    languages: Sequence[str] = (),
    since: date | None = None,
    until: date | None = None,
) -> list[WebPage]:
    """Return the pages with any word of the query, those with most of them first.

    >>> [page.title for page in find("slate tiles roof")[:2]]
    ['Slate', 'Roof tiles']

    A site includes what is below it; ``since`` and ``until`` are days that are in.
    """
    words = query.casefold().split()
    found = []
    for page in pages:
        known = set("".join(mark if mark.isalnum() else " " for mark in f"{page.title} {page.text}").casefold().split())
        if (
            (score := sum(word in known for word in words))
            and (not sites or any(page.site == site or page.site.endswith(f".{site}") for site in sites))
            and (not languages or page.language in languages)
            and (since is None or page.date >= since)
            and (until is None or page.date <= until)
        ):
            found.append((score, page))
    return [page for _, page in sorted(found, key=lambda scored: -scored[0])]


def split_operators(query: str, *names: str) -> tuple[str, dict[str, list[str]]]:
    """Return a query without its ``name:value`` operators, and the values by name.

    >>> split_operators('red door site:alpha.example intitle:"two words"', "site", "intitle")
    ('red door', {'site': ['alpha.example'], 'intitle': ['two words']})
    """
    operators: dict[str, list[str]] = {}
    kept = []
    words = iter(query.split(" "))
    for word in words:
        name, colon, value = word.partition(":")
        if not colon or name not in names:
            kept.append(word)
            continue
        while value.startswith('"') and (len(value) == 1 or not value.endswith('"')):
            value = f"{value} {next(words)}"
        operators.setdefault(name, []).append(value.strip('"'))
    return " ".join(kept), operators


@dataclass(frozen=True, slots=True)
class ServedRequest:
    """A request as it came to the service: ``params`` decoded, header names in lower case, the body as JSON."""

    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    json: Any = None

    @classmethod
    def of(cls, request: HttpRequest) -> ServedRequest:
        """Return what a service would see of a request of ours, for a client that sends nothing."""
        address = urlsplit(request.url)
        sent = {name: _sent(value) for name, value in request.params.items() if value is not None}
        headers = {name.lower(): _sent(value) for name, value in request.headers.items() if value is not None}
        params = {**dict(parse_qsl(address.query, keep_blank_values=True)), **sent}
        if request.json is not None:
            headers.setdefault("content-type", "application/json")
        return cls(request.method, address.path, params, headers, request.json)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a service says: JSON, or any bytes."""

    json: Any = None
    status: int = 200
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def content(self) -> bytes:
        """Return the bytes of the body."""
        return json_format.dumps(self.json).encode() if self.body is None else self.body


Speak: TypeAlias = Callable[[ServedRequest, Sequence[WebPage]], Reply]


class LocalService(RecordedServer):
    """A service on loopback while the ``with`` block lasts.

    >>> import urllib.request
    >>> def speak(request, pages):
    ...     return Reply({"found": len(find(request.params["q"], pages))})
    >>> with LocalService(speak) as service:
    ...     urllib.request.urlopen(f"{service.url}/search?q=roof").read()
    ...     service.requests[0].params
    b'{"found": 4}'
    {'q': 'roof'}

    ``requests`` are those that came, in order; ``busiest`` is how many were under way at once; ``delay`` is how many
    seconds each takes. ``speak`` may be replaced at any time. Its errors are raised at the end of the block.
    """

    def __init__(self, speak: Speak, pages: Sequence[WebPage] = WEB) -> None:
        super().__init__()
        self.speak = speak
        self.pages = pages
        self.delay = 0.0
        self.requests: list[ServedRequest] = []
        self.busiest = 0
        self._under_way = 0
        self._lock = threading.Lock()
        self._free = threading.Event()
        self._free.set()
        self._faults: list[Exception] = []

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        self._free.set()
        self.stop()
        if self._faults and kind is None:
            raise self._faults[0]

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Take requests and answer none until the block ends."""
        self._free.clear()
        try:
            yield
        finally:
            self._free.set()

    def answer(self, exchange: Exchange) -> RecordedAnswer:
        """Return the reply to a request, and keep the request."""
        document = json_format.loads(exchange.body) if exchange.body else None
        request = ServedRequest(exchange.method, exchange.path, exchange.parameters, exchange.headers, document)
        with self._lock:
            self.requests.append(request)
            self._under_way += 1
            self.busiest = max(self.busiest, self._under_way)
        try:
            self._free.wait(_HELD)
            time.sleep(self.delay)
            reply = self.speak(request, self.pages)
        except Exception as fault:
            self._faults.append(fault)
            reply = Reply({"error": f"the test's service failed: {fault!r}"}, 500)
        finally:
            with self._lock:
                self._under_way -= 1
        media_type = "application/json" if reply.body is None else "text/html; charset=utf-8"
        return RecordedAnswer(reply.content(), media_type, reply.status, reply.headers)


def _sent(value: object) -> str:
    if isinstance(value, Secret):
        return value.reveal()
    return str(value).lower() if isinstance(value, bool) else str(value)
