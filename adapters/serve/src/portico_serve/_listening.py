"""Serve an application with uvicorn on sockets that are open already, until it is told to end."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from portico.errors import ConfigurationError
from portico_serve._guard.security import Guard

DEFAULT_PORT = 8321
_NEXT_PORTS = 20
_GRACE = 2
"""Seconds for answers that do not stream, when the server ends."""
_MOST_CONNECTIONS = 1_000
_LONGEST_HEAD = 32_768


def open_socket(host: str, port: int | None) -> socket.socket:
    """Listen to a port, or without one to the default, or the next that is free.

    Raises ``ConfigurationError`` if that cannot be done.
    """
    address = "127.0.0.1" if host == "localhost" else host
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    first = DEFAULT_PORT if port is None else port
    ports = range(first, first + _NEXT_PORTS) if port is None else range(first, first + 1)
    for each in ports:
        try:
            return socket.create_server((address, each), family=family)
        except OSError as error:
            failed = error
    shown = f"[{host}]" if ":" in host else host
    which = f"{shown}:{first}" if port is not None else f"{shown}, ports {ports[0]} to {ports[-1]},"
    advice = "Give another --port" if port else "Give another --host or --port"
    raise ConfigurationError(f"{which} cannot be served: {failed.strerror or failed}. {advice}.") from failed


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # By itself, it ends the process by the signal before the kernel is closed.
        yield


class _Protocol(H11Protocol):
    """Closes a connection on which no request comes in time, also while what was refused is still being sent."""

    seconds: float
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._timer is not None:
            self._timer.cancel()

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(self.seconds, self._give_up, self.cycle)

    def _give_up(self, last: object) -> None:
        if self.cycle is last:
            self.transport.abort()


@asynccontextmanager
async def serving(app: Guard, listening: socket.socket, *, debug: bool = False) -> AsyncIterator[asyncio.Task[None]]:
    """Serve while the context is open; yield the task that serves."""
    # What goes wrong in an answer is reported by the guard; the rest is the noise of clients.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING if debug else logging.CRITICAL)
    config = uvicorn.Config(
        app,
        # httptools, which may be installed, leaves spaces at the end of headers and takes two of Host.
        http=type("Protocol", (_Protocol,), {"seconds": app.limits.head_seconds}),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        h11_max_incomplete_event_size=_LONGEST_HEAD,
        timeout_graceful_shutdown=_GRACE,
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve([listening]))
    try:
        yield task
    finally:
        app.end()
        server.should_exit = True
        await task


@contextmanager
def stopped_by_signals(stop: Callable[[], object], again: Callable[[], object]) -> Iterator[None]:
    """Call ``stop`` at the first Ctrl-C or SIGTERM, and ``again`` at the second; the third ends the process."""
    loop, signals = asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM)
    steps = [stop, again]

    def step() -> None:
        steps.pop(0)()
        if not steps:
            remove()

    def remove() -> None:
        for each in signals:
            loop.remove_signal_handler(each)

    # On Windows, or off the main thread, there are no handlers: Ctrl-C is an exception there.
    with suppress(RuntimeError, ValueError):
        for each in signals:
            loop.add_signal_handler(each, step)
    try:
        yield
    finally:
        with suppress(RuntimeError, ValueError):
            remove()
