"""The server of raw bytes ends with its block, whatever its connections are at."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest

from portico_testkit.raw_server import RawServer, whole


@pytest.mark.parametrize("turns", range(8))
async def test_a_connection_that_has_only_just_begun_ends_with_the_server(turns: int) -> None:
    async with RawServer(whole()) as server:
        # Not by the event loop, in which the server would come to its turn meanwhile.
        client = socket.create_connection(("127.0.0.1", server.port), timeout=5)
        for _ in range(turns):
            await asyncio.sleep(0)
    # It is reset where nobody had taken it yet.
    with client, contextlib.suppress(ConnectionResetError):
        assert await asyncio.to_thread(client.recv, 1) == b""
