"""An HTTP client that answers from what was recorded, for tests and examples of connectors."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

from portico.plugins import HttpRequest, HttpResponse, Secret

__all__ = ["Recorded", "RecordedHttpClient"]

Recorded: TypeAlias = HttpResponse | Path | bytes | Exception | dict[str, Any] | list[Any] | str
"""An answer: whole, or the file, bytes or value of a body of JSON with the status 200; an exception is raised."""

_JSON = {"content-type": "application/json"}


class RecordedHttpClient:
    """Answer requests from a mapping of addresses, or by a function of the request.

    >>> import asyncio
    >>> client = RecordedHttpClient(
    ...     {
    ...         "https://api.example/find": {"items": ["of any other query"]},
    ...         "https://api.example/find?q=ports": {"items": ["a", "b"]},
    ...         "https://api.example/find?q=ports&page=2": HttpResponse(429, headers={"retry-after": "7"}),
    ...     }
    ... )
    >>> async def ask(**params):
    ...     return await client.send(HttpRequest("https://api.example/find", params))
    >>> asyncio.run(ask(q="ports")).json()
    {'items': ['a', 'b']}
    >>> asyncio.run(ask(q="ports", page=2)).status
    429
    >>> client.requests[0].params
    {'q': 'ports'}

    The address with the most parameters that a request has answers it. A function takes a request, may be
    asynchronous, and returns an answer of the same kinds. A request that nothing answers is a ``LookupError`` that
    lists what is recorded. ``requests`` keeps what was sent.
    """

    def __init__(
        self,
        answers: Mapping[str, Recorded] | Callable[[HttpRequest], Recorded | Awaitable[Recorded]],
        *,
        name: str = "recorded",
    ) -> None:
        self.name = name
        self.requests: list[HttpRequest] = []
        self._answer = answers if callable(answers) else None
        self._by_address = {} if callable(answers) else {address: _split(address) for address in answers}
        self._answers: Mapping[str, Recorded] = {} if callable(answers) else answers

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Return what was recorded for such a request."""
        self.requests.append(request)
        if self._answer is None:
            return _response(self._answers[self._found(request)])
        answer = self._answer(request)
        return _response(await answer if isawaitable(answer) else answer)

    def _found(self, request: HttpRequest) -> str:
        url, sent = _split(request.url)
        sent |= {(name, _written(value)) for name, value in request.params.items() if value is not None}
        fitting = [
            (len(params), address) for address, (of, params) in self._by_address.items() if of == url and params <= sent
        ]
        if not fitting:
            asked = "&".join(f"{name}={value}" for name, value in sorted(_shown(request)))
            raise LookupError(
                f"Nothing is recorded for {request.method} {request.url} with the parameters {asked or '(none)'}. "
                f"Recorded: {', '.join(self._by_address) or 'nothing'}."
            )
        return max(fitting)[1]


def _split(address: str) -> tuple[str, set[tuple[str, str]]]:
    url, _, query = address.partition("?")
    return url, set(parse_qsl(query, keep_blank_values=True))


def _shown(request: HttpRequest) -> list[tuple[str, str]]:
    return [
        (name, str(value) if isinstance(value, Secret) else _written(value))
        for name, value in request.params.items()
        if value is not None
    ]


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.reveal() if isinstance(value, Secret) else str(value)


def _response(recorded: Recorded) -> HttpResponse:
    match recorded:
        case HttpResponse():
            return HttpResponse(
                recorded.status, recorded.body, {name.lower(): value for name, value in recorded.headers.items()}
            )
        case Exception():
            raise recorded
        case Path():
            return HttpResponse(200, recorded.read_bytes(), _JSON)
        case bytes():
            return HttpResponse(200, recorded, _JSON)
        case _:
            return HttpResponse(200, json.dumps(recorded).encode(), _JSON)
