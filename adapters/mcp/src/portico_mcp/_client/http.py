"""The HTTP client for a server that is reached by a URL: with its headers, and bounded in every answer."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2

from portico_mcp.config import MCPSettings


def open_client(settings: MCPSettings) -> httpx2.AsyncClient:
    """Return a client with the headers of the settings. It is closed on leaving its context.

    An answer may have `maximum_result_bytes`. None may be packed, since it would be unpacked before it is counted.
    """

    async def bound(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.DecodingError("the server packs its answer although it was asked not to")
        # A stream of events has a bound for each event.
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _Bounded(response.stream, settings.maximum_result_bytes)

    headers = {name: secret.reveal() for name, secret in settings.headers.items()}
    return httpx2.AsyncClient(
        headers={**headers, "Accept-Encoding": "identity"},
        timeout=httpx2.Timeout(30.0, read=settings.timeout),
        event_hooks={"response": [bound]},
    )


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: object, most: int) -> None:
        assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - the client is asynchronous
        self._stream, self._left, self._most = stream, most, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            self._left -= len(part)
            if self._left < 0:
                raise httpx2.ReadError(f"the server sent a message of more than {self._most:,} bytes")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()
