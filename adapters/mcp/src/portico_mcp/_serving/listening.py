"""Serve over the standard streams, or over HTTP on loopback."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import queue
import secrets
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.server import Server
    from starlette.types import ASGIApp, Receive, Scope, Send

_log = logging.getLogger(__name__)

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LONGEST = 16_000_000
"""Bytes of one message at most."""
_PIECE = 65_536
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


async def _read_lines(descriptor: int) -> AsyncIterator[str]:
    """Yield the lines of a descriptor; a thread reads, because any kind of file may be the standard input.

    The thread is no part of the loop: it must not keep a process that was stopped from ending.
    """
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[bytes] = asyncio.Queue(16)

    def read() -> None:
        piece = b"-"
        while piece:
            try:
                piece = os.read(descriptor, _PIECE)
            except OSError:
                piece = b""
            try:
                asyncio.run_coroutine_threadsafe(pieces.put(piece), loop).result()
            except (RuntimeError, asyncio.CancelledError):
                return  # the loop has ended

    threading.Thread(target=read, daemon=True, name="portico-mcp-input").start()
    waiting = bytearray()
    while piece := await pieces.get():
        waiting += piece
        if b"\n" in piece:
            *lines, waiting = waiting.split(b"\n")
            for line in lines:
                yield line.decode("utf-8", "replace")
        if len(waiting) > _LONGEST:
            _log.error("The client sent a message of more than %s bytes: the connection ends.", f"{_LONGEST:,}")
            return


class _Output:
    """Writes to a descriptor in a thread, for the same reason: a client may have stopped to read."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._waiting: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True, name="portico-mcp-output").start()

    async def write(self, text: str) -> None:
        """Write a text, and wait until it is written."""
        written = asyncio.get_running_loop().create_future()
        self._waiting.put((text.encode("utf-8"), written))
        await written

    async def flush(self) -> None:
        """Do nothing: nothing is held back."""

    def _work(self) -> None:
        while True:
            data, written = self._waiting.get()
            failed: OSError | None = None
            try:
                while data:
                    data = data[os.write(self._descriptor, data) :]
            except OSError as error:
                failed = error
            with suppress(RuntimeError):  # the loop has ended
                written.get_loop().call_soon_threadsafe(_end, written, failed)


def _end(written: asyncio.Future[None], failed: OSError | None) -> None:
    if written.done():
        return
    if failed is None:
        written.set_result(None)
    else:
        written.set_exception(failed)


async def serve_http(server: Server[Any], host: str, port: int, token: str | None) -> None:
    """Serve on loopback until a signal stops the process; each request needs the token.

    Without one it is made, and written to standard error with the URL. Raises ``OSError`` where the port is taken.
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
    with socket.create_server((host, port), family=family) as listening:
        shown = f"[{host}]" if ":" in host else host
        lines = [f"Serving at http://{shown}:{listening.getsockname()[1]}/mcp"]
        lines += [] if token else [f"Authorization: Bearer {made}"]
        sys.stderr.write("\n".join(lines) + "\n")
        sys.stderr.flush()
        config = uvicorn.Config(
            app,
            http="h11",  # httptools, which may be installed, leaves spaces at the end of headers
            ws="none",
            lifespan="on",
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=_GRACE,
        )
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
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._expected):
                await self._refuse(send)
                return
        await self._app(scope, receive, send)

    @staticmethod
    async def _refuse(send: Send) -> None:
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
