"""A real HTTP server on loopback that says again what a service once said."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, TypeAlias
from urllib.parse import parse_qs, urlsplit

__all__ = ["Exchange", "RecordedAnswer", "RecordedServer"]


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """What the server says at one path: JSON unless another media type is given."""

    body: bytes
    media_type: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request that came: its path, its parameters with their first values, its headers in lower case."""

    method: str
    path: str
    parameters: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


Answers: TypeAlias = Mapping[str, RecordedAnswer | bytes]


class RecordedServer:
    """Answer requests by their path; a path that is not there is 404. Use it as a context manager.

    >>> import urllib.request
    >>> with RecordedServer({"/search": b'{"found": []}'}) as server:
    ...     urllib.request.urlopen(f"{server.url}/search?q=ports").read()
    ...     server.exchanges[0].parameters
    b'{"found": []}'
    {'q': 'ports'}

    ``url`` is its address without a slash at the end, ``exchanges`` is what it was asked, in order of arrival.
    ``answers`` may be changed while it runs, to hold its own address for one.
    """

    def __init__(self, answers: Answers | None = None) -> None:
        self.exchanges: list[Exchange] = []
        self.answers: dict[str, RecordedAnswer | bytes] = dict(answers or {})
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Stop answering and close the socket."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, exchange: Exchange) -> RecordedAnswer:
        """Return what is said to a request, and keep the request."""
        self.exchanges.append(exchange)
        answer = self.answers.get(exchange.path, RecordedAnswer(b"not found", "text/plain", 404))
        return answer if isinstance(answer, RecordedAnswer) else RecordedAnswer(answer)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away."""


def _handler(server: RecordedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Without it an answer's head and body are two packets, and the second waits for the receipt of the first.
        wbufsize = -1

        def do_GET(self) -> None:
            address = urlsplit(self.path)
            parameters = {name: values[0] for name, values in parse_qs(address.query, keep_blank_values=True).items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            length = int(headers.get("content-length", 0))
            body = self.rfile.read(length)
            if len(body) < length:
                self.close_connection = True
                return  # a client that went away between head and body has asked nothing
            answer = server.answer(Exchange(self.command, address.path, parameters, headers, body))
            self.send_response(answer.status)
            for name, value in {"Content-Type": answer.media_type, **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
            self.wfile.flush()

        do_POST = do_GET  # noqa: N815 - the name is the standard library's

        def log_message(self, format: str, *arguments: Any) -> None:
            """Say nothing."""

    return Handler
