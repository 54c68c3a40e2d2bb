"""A way to a server that can be cut: by an end, by silence, or so that only the answers are lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

__all__ = ["TcpProxy"]

_PIECE = 65_536
_PATIENCE = 10.0
"""Seconds that the proxy takes at most to do what it is told; only a machine without any time needs more."""


class TcpProxy:
    """Listen on 127.0.0.1, at ``port``, and forward to a server: to its socket file, or to a host and a port.

    It runs in a thread of its own, so that tests with and without an event loop use it alike, as a context manager.
    What it is told has happened when the method returns.

    >>> import socket
    >>> with socket.create_server(("127.0.0.1", 0)) as server, TcpProxy(server.getsockname()) as proxy:
    ...     near = socket.create_connection(("127.0.0.1", proxy.port))
    ...     far, _ = server.accept()
    ...     near.sendall(b"hello")
    ...     said = far.recv(5)
    ...     proxy.cut()
    ...     left = far.recv(5)
    ...     near.close(), far.close()
    (None, None)
    >>> said, left
    (b'hello', b'')

    Raises:
        OSError: nothing can listen on loopback, on entering
    """

    def __init__(self, to: Path | tuple[str, int]) -> None:
        self.port = 0
        self._to = to
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tcp-proxy", daemon=True)
        self._forwarding = asyncio.Event()
        self._answering = True
        self._connections: dict[asyncio.Task[None], set[asyncio.StreamWriter]] = {}

    def __enter__(self) -> TcpProxy:
        self._thread.start()
        try:
            self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(_PATIENCE)
        except BaseException:
            self._end()
            raise
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(_PATIENCE)
        finally:
            self._end()

    def stall(self) -> None:
        """Forward nothing from now on, as a network that is cut; what connects meanwhile is kept waiting too."""
        self._do(self._forwarding.clear)

    def go_on(self) -> None:
        """Forward again, first what was held back."""
        self._do(self._forwarding.set)

    def lose_answers(self) -> None:
        """Forward what is asked and throw away what is answered, until `cut`."""
        self._do(self._lose)

    def cut(self) -> None:
        """End every connection without a word; new ones are forwarded in both directions."""
        self._do(self._abort)

    def _do(self, change: Callable[[], None]) -> None:
        async def make() -> None:
            change()
            await _turns()

        asyncio.run_coroutine_threadsafe(make(), self._loop).result(_PATIENCE)

    def _lose(self) -> None:
        self._answering = False

    def _abort(self) -> None:
        self._answering = True
        for writers in self._connections.values():
            for writer in writers:
                writer.transport.abort()

    async def _listen(self) -> asyncio.Server:
        self._forwarding.set()
        return await asyncio.start_server(self._connected, "127.0.0.1", 0)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = {writer}
        task = self._loop.create_task(self._serve(reader, writer, writers))
        self._connections[task] = writers
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        # Not in the task: one that is given up before it has begun does nothing at all.
        for writer in self._connections.pop(task):
            writer.transport.abort()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, writers: set[asyncio.StreamWriter]
    ) -> None:
        await self._forwarding.wait()
        if writer.is_closing():
            return
        with suppress(OSError):
            if isinstance(self._to, Path):
                answers, there = await asyncio.open_unix_connection(self._to)
            else:
                answers, there = await asyncio.open_connection(*self._to)
            writers.add(there)
            await asyncio.gather(self._forward(reader, there), self._forward(answers, writer, answers=True))

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool = False
    ) -> None:
        with suppress(OSError):
            while piece := await reader.read(_PIECE):
                await self._forwarding.wait()
                if self._answering or not answers:
                    writer.write(piece)
                    await writer.drain()
        writer.close()

    async def _close(self) -> None:
        # What comes is not accepted any more; what is accepted comes to `_connected` first, or asyncio would lose it.
        for listening in self._server.sockets:
            self._loop.remove_reader(listening.fileno())
        await _turns()
        self._server.close()
        tasks = list(self._connections)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await _turns()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE)
        self._loop.close()


async def _turns() -> None:
    """Let the event loop close what it was told to, and give us each connection that it has accepted."""
    for _ in range(4):
        await asyncio.sleep(0)
