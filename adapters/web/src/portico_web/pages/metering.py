"""Connections that are read in small pieces, and only so far."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Any

import httpcore

from portico.errors import LimitExceeded

__all__ = ["MeteredNetwork", "MeteredStream"]

# What a parser makes of one piece keeps the event loop from everything else: of 64 KB, ten thousand chunks of one
# byte or four thousand hints (103) take it a quarter of a second.
_PIECE = 8_192
# h11 takes no head beyond 100 KB; what comes before the head (answers of 1xx) has no bound of its own.
_HEAD = 256_000


class MeteredStream(httpcore.AsyncNetworkStream):
    """A stream of which so many bytes are read after what was last written; then it raises ``LimitExceeded``.

    That is enough for the head of an answer. Whoever has the head and wants the body calls `allow`.
    """

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._most = self._left = _HEAD

    def allow(self, size: int) -> None:
        """Let so many bytes be read from here on."""
        self._most = self._left = size

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore's own
        """Return what is there, in a small piece."""
        if self._left <= 0:
            raise LimitExceeded(f"sent more than {self._most:,} bytes in one answer")
        data = await self._stream.read(min(max_bytes, _PIECE), timeout=timeout)
        self._left -= len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - httpcore's own
        """Send; what is read next is another answer."""
        self._most = self._left = _HEAD
        await self._stream.write(buffer, timeout=timeout)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's own interface
    ) -> httpcore.AsyncNetworkStream:
        """Return the same over TLS."""
        try:
            return MeteredStream(await self._stream.start_tls(ssl_context, server_hostname, timeout))
        except BaseException:
            # A caller who is cancelled in the handshake has nothing to close yet, and httpcore does not.
            await self._stream.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        """Return what is known of the connection."""
        return self._stream.get_extra_info(info)


class MeteredNetwork(httpcore.AsyncNetworkBackend):
    """Opens metered streams."""

    def __init__(self, network: httpcore.AsyncNetworkBackend) -> None:
        self._network = network

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's own interface
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect."""
        return MeteredStream(
            await self._network.connect_tcp(
                host, port, timeout=timeout, local_address=local_address, socket_options=socket_options
            )
        )

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's own interface
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect, if the network beneath does."""
        return MeteredStream(await self._network.connect_unix_socket(path, timeout, socket_options))

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await self._network.sleep(seconds)
