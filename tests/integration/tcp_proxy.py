"""A proxy on loopback that can stop forwarding, as a network does that is cut: nothing is closed, nothing comes."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType

_PIECE = 65_536


class TcpProxy:
    """Forward connections to a socket file of this machine, from a thread of its own.

    ``with TcpProxy(socket) as proxy:`` listens on 127.0.0.1 at ``proxy.port``; `cut` holds everything back, also what
    connects meanwhile, until `mend`.
    """

    def __init__(self, to: Path) -> None:
        self.port = 0
        self._to = to
        self._loop = asyncio.new_event_loop()
        self._open = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> TcpProxy:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def cut(self) -> None:
        """Forward nothing from now on."""
        self._loop.call_soon_threadsafe(self._open.clear)

    def mend(self) -> None:
        """Forward again, first what was held back."""
        self._loop.call_soon_threadsafe(self._open.set)

    async def _listen(self) -> asyncio.Server:
        self._open.set()
        return await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._open.wait()
            inner_reader, inner_writer = await asyncio.open_unix_connection(self._to)
            ways = [
                asyncio.ensure_future(self._forward(reader, inner_writer)),
                asyncio.ensure_future(self._forward(inner_reader, writer)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                inner_writer.close()
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(_PIECE):
                await self._open.wait()
                writer.write(piece)
                await writer.drain()

    async def _close(self) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
