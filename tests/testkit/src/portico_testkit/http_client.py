"""What HTTP clients are given: odd addresses and values, and servers that are slow, boundless or no servers at all."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import logging
import traceback
import zlib
from collections.abc import Awaitable
from typing import ClassVar, TypeVar

import pytest

from portico.errors import LimitExceeded, PorticoError, ServiceTimeout, ServiceUnavailable
from portico.plugins import HttpRequest, HttpResponse, Secret
from portico.ports import HttpClient
from portico_testkit.raw_server import Play, RawServer, whole
from portico_testkit.tasks import in_time, no_tasks_but

__all__ = [
    "SECRET",
    "SLOW",
    "VALUES",
    "HttpClientKit",
    "T",
    "bomb",
    "dripping_body",
    "endless",
    "hanging",
    "seen_of",
    "silent",
]

VALUES = ("a b", "a&b=c#d", "100%", "+", "中文 ü", "line\nbreak\r\n", "'\"<>\\", "", "/?:@", "..", "%20")
SECRET = "k3y-0f-the-4ccount"
"""What is passed as a secret, with nothing in it that a URL would encode."""

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say nothing until the client has gone."""
    await reader.read()
    writer.close()


async def hanging(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Begin an answer and say no more."""
    writer.write(_HEAD + b"Content-Length: 10\r\n\r\nhalf")
    await silent(reader, writer)


async def dripping_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say a body for ever, a letter every twentieth of a second."""
    writer.write(_HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    await _drip(writer, b"1\r\nx\r\n")


async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say a body as fast as it is taken, for ever."""
    writer.write(_HEAD + b"\r\n")
    while not writer.is_closing():
        writer.write(b"x" * 65_536)
        await writer.drain()


async def bomb(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say a gigabyte in a megabyte, as long as it is taken."""
    deflate = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    writer.write(_HEAD + b"Content-Encoding: gzip\r\n\r\n")
    for _ in range(1_000):
        if writer.is_closing():
            return
        writer.write(deflate.compress(bytes(1_000_000)))
        await writer.drain()
        await asyncio.sleep(0)
    writer.write(deflate.flush())
    writer.close()


async def _drip(writer: asyncio.StreamWriter, drop: bytes) -> None:
    while not writer.is_closing():
        writer.write(drop)
        await writer.drain()
        await asyncio.sleep(0.05)


SLOW: tuple[Play, ...] = (silent, hanging, dripping_body)
"""What takes for ever, each in another way."""


def seen_of(error: BaseException) -> str:
    """Return all that can be seen of an error and what caused it."""
    seen = "".join(traceback.format_exception(error))
    cause: BaseException | None = error
    while cause is not None:
        seen += f" {cause!r} {cause.args!r}"
        for value in vars(cause).values():
            held = getattr(value, "__dict__", {})
            seen += f" {value!r} {held!r} {getattr(value, 'url', '')} {getattr(value, 'headers', '')!r}"
        cause = cause.__cause__ or cause.__context__
    return seen


T = TypeVar("T")

_PATIENCE = 10.0
"""Seconds beyond the client's own bound, for a busy machine."""


class HttpClientKit:
    """Subclass it and give a fixture named ``http_client``::

        class TestAcmeHttp(HttpClientKit):
            @pytest.fixture
            async def http_client(self) -> AsyncIterator[AcmeHttp]:
                client = AcmeHttp(AcmeSettings(total=2, silence=1, max_bytes=100_000, retries=2, max_wait=1), None)
                yield client
                await client.aclose()

    It is to give up after ``seconds``, to take ``most`` bytes, to send a request up to ``times`` in all, and to wait
    a second at most before it sends again. Servers on loopback are all that it talks to.
    """

    seconds: ClassVar[float] = 2.0
    most: ClassVar[int] = 100_000
    times: ClassVar[int] = 3

    @pytest.mark.asyncio
    async def test_it_has_a_name(self, http_client: HttpClient) -> None:
        assert isinstance(http_client.name, str), f"name is {http_client.name!r}"
        assert http_client.name.strip(), "name is empty"

    @pytest.mark.asyncio
    @pytest.mark.parametrize(
        "status", [200, 201, 204, 301, 302, 304, 307, 400, 401, 402, 403, 404, 408, 418, 429, 432, 500, 502, 503, 504]
    )
    async def test_every_answer_comes_back_whatever_its_status(self, http_client: HttpClient, status: int) -> None:
        body = b"" if status in (204, 304) else b'{"status": "\xc3\xbc"}'
        headers = {"Location": "/elsewhere", "X-Why": "So", "Retry-After": "0", "Content-Type": "application/json"}
        async with RawServer(whole(status, body, headers)) as server:
            response = await self.soon(http_client.send(HttpRequest(f"{server.url}/find")))
        assert isinstance(response, HttpResponse), f"send returned {type(response).__name__}, not HttpResponse"
        assert (response.status, response.body) == (status, body)
        names = set(response.headers)
        assert names == {name.lower() for name in names}, f"names of headers are not in lower case: {names}"
        for name, value in headers.items():
            assert response.headers[name.lower()] == value, f"the header {name} is {response.headers[name.lower()]!r}"
        assert {request.path for request in server.requests} == {"/find"}, "a redirect was followed"

    @pytest.mark.asyncio
    async def test_parameters_reach_the_service_as_they_are(self, http_client: HttpClient) -> None:
        params = {f"p{number}": value for number, value in enumerate(VALUES)}
        sent: dict[str, object] = {**params, "int": 7, "float": 0.5, "yes": True, "no": False, "none": None}
        sent |= {"key": Secret(SECRET), "ü&": 1}
        async with RawServer(whole()) as server:
            for base in ("/find", "/find?fixed=1", "/find?fixed=1&"):
                await self.soon(http_client.send(HttpRequest(server.url + base, sent)))
            await self.soon(http_client.send(HttpRequest(f"{server.url}/plain?a=b%20c")))
        plain = server.requests.pop()
        assert plain.target == "/plain?a=b%20c", f"an address without parameters became {plain.target}"
        expected = [*params.items(), ("int", "7"), ("float", "0.5"), ("yes", "true"), ("no", "false")]
        expected += [("key", SECRET), ("ü&", "1")]
        for request, fixed in zip(server.requests, ([], [("fixed", "1")], [("fixed", "1")]), strict=True):
            assert request.path == "/find"
            came = [pair for pair in request.params if pair != ("", "")]
            assert came == fixed + expected, f"the service was given {came}"
            assert request.method == "GET", f"a request without a body came as {request.method}"
            assert request.body == b""

    @pytest.mark.asyncio
    async def test_no_value_becomes_a_header_of_its_own(self, http_client: HttpClient) -> None:
        async with RawServer(whole()) as server:
            for value in (f"{SECRET}\r\nX-Added: 1", Secret(f"{SECRET}\nX-Added: 1"), "nul\x00"):
                with pytest.raises(PorticoError) as raised:
                    await self.soon(http_client.send(HttpRequest(server.url, headers={"X-Key": value})))
                assert "X-Key" in str(raised.value), f"the error does not name the header: {raised.value}"
                assert SECRET not in seen_of(raised.value), "the error shows the value"
            await self.soon(http_client.send(HttpRequest(server.url, headers={"X-Key": Secret(f" {SECRET}\n")})))
        assert [request.header("x-key") for request in server.requests] == [[SECRET]], "space around a value is no part"

    @pytest.mark.asyncio
    async def test_a_body_is_json(self, http_client: HttpClient) -> None:
        value = {"query": "ü 中 \ud800", "n": [1, 0.5, True, None], "": {}}
        async with RawServer(whole()) as server:
            await self.soon(http_client.send(HttpRequest(server.url, {"a": 1}, json=value)))
            await self.soon(http_client.send(HttpRequest(server.url, json=[], method="PUT")))
        posted, put = server.requests
        assert (posted.method, put.method) == ("POST", "PUT")
        assert json.loads(posted.body) == value
        assert json.loads(put.body) == []
        assert posted.params == [("a", "1")]
        assert posted.header("content-type") == ["application/json"]

    @pytest.mark.asyncio
    async def test_secrets_are_neither_in_errors_nor_in_logs(
        self, http_client: HttpClient, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        said = {"Location": f"/x?key={SECRET}", "X-Key": f"{SECRET} is wrong"}
        redirect, refusal = whole(302, b"", said), whole(403, SECRET.encode(), said)
        plays: tuple[Play, ...] = (whole(), redirect, refusal, b"", b"nonsense\r\n\r\n", silent, hanging, endless)
        for play in plays:
            async with RawServer(play) as server:
                address = f"{server.url}/find"
                request = HttpRequest(address, {"key": Secret(SECRET)}, {"X-Key": Secret(SECRET)})
                with contextlib.suppress(PorticoError):
                    await self._discreetly(http_client, request)
        with contextlib.suppress(PorticoError):
            await self._discreetly(http_client, HttpRequest(address, request.params, request.headers))
        logged = " ".join(f"{record.getMessage()} {record.args}" for record in caplog.records)
        assert SECRET not in logged, f"a secret was logged: …{logged[max(0, logged.index(SECRET) - 200) :][:260]}…"

    async def _discreetly(self, http_client: HttpClient, request: HttpRequest) -> None:
        try:
            await self.soon(http_client.send(request))
        except PorticoError as error:
            assert SECRET not in seen_of(error), f"an error shows a secret: {type(error).__name__}"
            raise

    @pytest.mark.asyncio
    async def test_concurrent_requests_do_not_mix(self, http_client: HttpClient) -> None:
        count = 60

        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            number = server.requests[-1].params[0][1]
            await asyncio.sleep(0.001 * (count - int(number)))
            writer.write(whole(200 + int(number) % 2, number.encode()))

        async with RawServer(echo) as server:
            sending = [http_client.send(HttpRequest(server.url, {"n": number})) for number in range(count)]
            responses = await self.soon(asyncio.gather(*sending))
        assert [int(response.body) for response in responses] == list(range(count))
        assert [response.status for response in responses] == [200 + number % 2 for number in range(count)]

    @pytest.mark.asyncio
    async def test_a_cancelled_request_is_let_go(self, http_client: HttpClient) -> None:
        for begun in (b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"):
            waiting, gone = asyncio.Event(), asyncio.Event()

            async def hold(
                reader: asyncio.StreamReader,
                writer: asyncio.StreamWriter,
                begun: bytes = begun,
                waiting: asyncio.Event = waiting,
                gone: asyncio.Event = gone,
            ) -> None:
                writer.write(begun)
                waiting.set()
                await reader.read()
                gone.set()
                writer.close()

            async with RawServer(hold, whole(200, b"after")) as server:
                sending = asyncio.create_task(http_client.send(HttpRequest(server.url)))
                await self.soon(waiting.wait())
                await asyncio.sleep(0.05)
                sending.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await self.soon(sending)
                await self.soon(gone.wait())
                assert (await self.soon(http_client.send(HttpRequest(server.url)))).body == b"after"

    @pytest.mark.asyncio
    async def test_it_leaves_nothing_behind(self, http_client: HttpClient) -> None:
        async with RawServer(b"", silent, whole()) as server:
            before = asyncio.all_tasks()
            for _ in range(3):
                with contextlib.suppress(PorticoError):
                    await self.soon(http_client.send(HttpRequest(server.url)))
            for _ in range(2):
                await _close(http_client)
            await in_time(_all_closed(server), "connections were open")
        await no_tasks_but(before)

    async def soon(self, awaitable: Awaitable[T]) -> T:
        """Wait for something that is to be over in ``seconds``, or a while later."""
        what = f"there is no end, though the client is to give up after {self.seconds:g} seconds; it goes on"
        return await in_time(awaitable, what, seconds=self.seconds + _PATIENCE)

    @pytest.mark.asyncio
    @pytest.mark.parametrize("status", [429, 503])
    async def test_who_asks_for_patience_is_asked_again(self, http_client: HttpClient, status: int) -> None:
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
        for status in (400, 401, 403, 404, 500):
            async with RawServer(whole(status, b"no")) as server:
                await self.soon(http_client.send(HttpRequest(server.url)))
            assert len(server.requests) == 1, f"after {status} the request was sent {len(server.requests)} times"

    @pytest.mark.asyncio
    async def test_a_connection_that_fails_is_tried_again(self, http_client: HttpClient) -> None:
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
        async with RawServer(whole()) as server:
            port = server.port
        with pytest.raises(ServiceUnavailable, match=str(port)):
            await self.soon(http_client.send(HttpRequest(f"http://127.0.0.1:{port}/find")))

    @pytest.mark.asyncio
    @pytest.mark.parametrize("slow", SLOW, ids=lambda play: play.__name__)
    async def test_slowness_is_bounded(self, http_client: HttpClient, slow: Play) -> None:
        async with RawServer(slow) as server:
            with pytest.raises(ServiceTimeout) as raised:
                await self.soon(http_client.send(HttpRequest(server.url)))
        assert str(server.port) in str(raised.value), f"the error does not say whose it is: {raised.value}"
        assert any(letter.isdigit() for letter in str(raised.value).replace(str(server.port), "")), "no bound is named"

    @pytest.mark.asyncio
    async def test_size_is_bounded(self, http_client: HttpClient) -> None:
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


async def _all_closed(server: RawServer) -> None:
    while server.open:
        await asyncio.sleep(0.01)


async def _close(client: object) -> None:
    """Close what can be closed."""
    if (aclose := getattr(client, "aclose", None)) is not None:
        await aclose()
