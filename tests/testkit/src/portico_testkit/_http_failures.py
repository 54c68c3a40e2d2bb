"""What every HttpClient must do where a service is busy, slow, boundless, away or no service at all."""

from __future__ import annotations

import gzip
from collections.abc import Awaitable
from typing import ClassVar, TypeVar

import pytest

from portico.errors import LimitExceeded, ServiceTimeout, ServiceUnavailable
from portico.plugins import HttpRequest
from portico.ports import HttpClient
from portico_testkit.http_cases import SLOW, bomb, endless
from portico_testkit.raw_server import Play, RawServer, whole
from portico_testkit.tasks import in_time

__all__ = ["HttpFailures"]

T = TypeVar("T")

_PATIENCE = 10.0
"""Seconds beyond the client's own bound, for a busy machine."""


class HttpFailures:
    """A part of `portico_testkit.http_client.HttpClientKit`, which is the one to subclass."""

    seconds: ClassVar[float]
    most: ClassVar[int]
    times: ClassVar[int]

    async def soon(self, awaitable: Awaitable[T]) -> T:
        """Wait for something that is to be over in ``seconds``, or a while later."""
        what = f"there is no end, though the client is to give up after {self.seconds:g} seconds; it goes on"
        return await in_time(awaitable, what, seconds=self.seconds + _PATIENCE)

    @pytest.mark.asyncio
    @pytest.mark.parametrize("status", [429, 503])
    async def test_who_asks_for_patience_is_asked_again(self, http_client: HttpClient, status: int) -> None:
        """After the time that it names, a few times; then its answer comes back, with what it asks for."""
        busy = whole(status, b"busy", {"Retry-After": "0"})
        async with RawServer(busy, whole(200, b"ready")) as server:
            response = await self.soon(http_client.send(HttpRequest(server.url, {"q": "a"}, json={"b": 1})))
        assert (response.status, response.body) == (200, b"ready"), "a busy service was not asked again"
        first, second = server.requests
        assert first == second, "the second request is not the first"
        async with RawServer(busy) as server:
            response = await self.soon(http_client.send(HttpRequest(server.url)))
        assert (response.status, response.headers.get("retry-after")) == (status, "0")
        assert len(server.requests) == self.times, f"it was asked {len(server.requests)} times, not {self.times}"
        async with RawServer(whole(status), whole(200, b"ready")) as server:
            response = await self.soon(http_client.send(HttpRequest(server.url)))
        assert response.body == b"ready", "a busy service that names no time was not asked again"

    @pytest.mark.asyncio
    async def test_other_failures_are_not_repeated(self, http_client: HttpClient) -> None:
        """What is wrong with a request stays wrong."""
        for status in (400, 401, 403, 404, 500):
            async with RawServer(whole(status, b"no")) as server:
                await self.soon(http_client.send(HttpRequest(server.url)))
            assert len(server.requests) == 1, f"after {status} the request was sent {len(server.requests)} times"

    @pytest.mark.asyncio
    async def test_a_connection_that_fails_is_tried_again(self, http_client: HttpClient) -> None:
        """Connections are lost now and then."""
        async with RawServer(b"", whole(200, b"here")) as server:
            response = await self.soon(http_client.send(HttpRequest(server.url)))
        assert response.body == b"here"
        async with RawServer(b"") as server:
            with pytest.raises(ServiceUnavailable) as raised:
                await self.soon(http_client.send(HttpRequest(server.url)))
        assert len(server.requests) == self.times, f"it was asked {len(server.requests)} times, not {self.times}"
        assert "127.0.0.1" in str(raised.value), f"the error does not say whose it is: {raised.value}"

    @pytest.mark.asyncio
    async def test_nobody_there_is_unavailable(self, http_client: HttpClient) -> None:
        """The message says where."""
        async with RawServer(whole()) as server:
            port = server.port
        with pytest.raises(ServiceUnavailable, match=str(port)):
            await self.soon(http_client.send(HttpRequest(f"http://127.0.0.1:{port}/find")))

    @pytest.mark.asyncio
    @pytest.mark.parametrize("slow", SLOW, ids=lambda play: play.__name__)
    async def test_slowness_is_bounded(self, http_client: HttpClient, slow: Play) -> None:
        """Also where a byte comes now and then, in the head or in the body."""
        async with RawServer(slow) as server:
            with pytest.raises(ServiceTimeout) as raised:
                await self.soon(http_client.send(HttpRequest(server.url)))
        assert str(server.port) in str(raised.value), f"the error does not say whose it is: {raised.value}"
        assert any(letter.isdigit() for letter in str(raised.value).replace(str(server.port), "")), "no bound is named"

    @pytest.mark.asyncio
    async def test_size_is_bounded(self, http_client: HttpClient) -> None:
        """What is allowed comes whole, and a byte more is refused, compressed or not; nothing is read to its end."""
        for body in (b"x" * self.most, b"x" * (self.most + 1)):
            for play in (whole(200, body), whole(200, gzip.compress(body), {"Content-Encoding": "gzip"})):
                async with RawServer(play) as server:
                    if len(body) == self.most:
                        assert (await self.soon(http_client.send(HttpRequest(server.url)))).body == body
                        continue
                    with pytest.raises(LimitExceeded) as raised:
                        await self.soon(http_client.send(HttpRequest(server.url)))
                    assert f"{self.most:,}" in str(raised.value), f"the bound is not in the error: {raised.value}"
        for unbounded in (endless, bomb):
            async with RawServer(unbounded) as server:
                with pytest.raises(LimitExceeded):
                    await self.soon(http_client.send(HttpRequest(server.url)))
                assert len(server.requests) == 1, "what is too large was asked for again"
