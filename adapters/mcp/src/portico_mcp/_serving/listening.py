"""Serve over the standard streams, or over HTTP on loopback."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import frozen

from portico.errors import ConfigurationError

if TYPE_CHECKING:
    from mcp.server import Server
    from starlette.types import ASGIApp, Receive, Scope, Send

T = TypeVar("T")
_log = logging.getLogger(__name__)

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LONGEST = 16_000_000
"""Bytes of one message at most."""
_GRACE = 1
"""Seconds for calls that are under way when the server ends; then they are cancelled."""


@contextmanager
def standard_streams() -> Iterator[tuple[int, int]]:
    """Take the standard streams for the protocol, and yield the descriptors of the input and the output.

    Meanwhile the standard input is empty, and what functions and their programs print goes to standard error.
    """
    given, taken = os.dup(0), os.dup(1)
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        yield given, taken
    finally:
        os.dup2(taken, 1)
        # Threads may still read and write: their descriptors stay open until the process ends.


async def serve_streams(server: Server[Any], given: int, taken: int) -> None:
    """Serve one client over two descriptors until its input ends, it goes away, or a signal stops the process."""
    from mcp.server.stdio import stdio_server

    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in a task
    stopped = False

    def stop() -> None:
        nonlocal stopped
        stopped = True
        task.cancel()

    with _stopped_by_signals(stop):
        try:
            # One is only iterated, and the other only written to.
            streams: Any = _read_lines(given), _Output(taken)
            async with stdio_server(*streams) as (reading, writing):
                await server.run(reading, writing, server.create_initialization_options())
        except* BrokenPipeError:
            pass  # the client has gone
        except* asyncio.CancelledError:
            if not stopped:
                raise


async def _in_thread(work: Callable[[], T]) -> T:
    """Await what may wait long, in a thread that is no part of the loop: it keeps no process from ending."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def carry_out() -> None:
        try:
            future.set_result(work())
        except OSError as error:
            future.set_exception(error)

    threading.Thread(target=carry_out, daemon=True, name="portico-mcp").start()
    return await asyncio.wrap_future(future)


async def _read_lines(descriptor: int) -> AsyncIterator[str]:
    """Yield the lines of a descriptor; a thread reads, because any kind of file may be the standard input."""
    waiting = bytearray()
    with suppress(OSError):
        while piece := await _in_thread(lambda: os.read(descriptor, 65_536)):
            waiting += piece
            if b"\n" in piece:
                *lines, waiting = waiting.split(b"\n")
                for line in lines:
                    yield line.decode("utf-8", "replace")
            if len(waiting) > _LONGEST:
                _log.error("The client sent a message of more than %s bytes: the connection ends.", f"{_LONGEST:,}")
                return


@frozen
class _Output:
    """Writes to a descriptor, in a thread too: a client may have stopped to read."""

    descriptor: int

    async def write(self, text: str) -> None:
        """Write a text, and wait until it is written."""
        data = text.encode("utf-8")
        while data:
            data = data[await _in_thread(partial(os.write, self.descriptor, data)) :]

    async def flush(self) -> None:
        """Do nothing: nothing is held back."""


async def serve_http(server: Server[Any], host: str, port: int, token: str | None) -> None:
    """Serve on loopback until a signal stops the process; each request needs the token.

    Without one it is made, and written to standard error with the URL. Raises ``ConfigurationError`` for a taken port.
    """
    import uvicorn

    class Serving(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            # By itself, it ends the process by the signal before the kernel is closed.
            yield

    made = token or secrets.token_urlsafe(32)
    app = _Guarded(server.streamable_http_app(host=host), made)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    shown = f"[{host}]" if ":" in host else host
    try:
        made_socket = socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigurationError(f"{shown}:{port} cannot be served: {error.strerror}.") from error
    with made_socket as listening:
        lines = [f"Serving at http://{shown}:{listening.getsockname()[1]}/mcp"]
        lines += [] if token else [f"Authorization: Bearer {made}"]
        sys.stderr.write("\n".join([*lines, ""]))
        # httptools, which may be installed, leaves spaces at the end of headers.
        config = uvicorn.Config(app, http="h11", ws="none", lifespan="on", log_level="warning", access_log=False)
        config.timeout_graceful_shutdown = _GRACE
        serving = Serving(config)

        def stop() -> None:
            serving.should_exit = True
            # Otherwise each call that is cancelled leaves a traceback or a warning.
            for name in ("uvicorn.error", "mcp"):
                logging.getLogger(name).setLevel(logging.CRITICAL)

        with _stopped_by_signals(stop):
            await serving.serve([listening])


class _Guarded:
    """Answers requests without the token with 401."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = dict(scope["headers"]).get(b"authorization", b"") if scope["type"] == "http" else self._expected
        if hmac.compare_digest(given, self._expected):
            await self._app(scope, receive, send)
            return
        words = b'{"error": "This server needs its token: send the header `Authorization: Bearer TOKEN`."}'
        headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": words})


@contextmanager
def _stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    loop, signals = asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM)
    # On Windows, or off the main thread, there are no handlers: Ctrl-C is an exception there.
    with suppress(RuntimeError, ValueError):
        for each in signals:
            loop.add_signal_handler(each, stop)
    try:
        yield
    finally:
        with suppress(RuntimeError, ValueError):
            for each in signals:
                loop.remove_signal_handler(each)
