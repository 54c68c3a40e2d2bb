"""What every HttpClient must do."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import logging
import zlib
from typing import ClassVar

import pytest

from portico.errors import PorticoError
from portico.http import HttpRequest, HttpResponse
from portico.ports.http_client import HttpClient
from portico.registration import Secret
from portico_testkit._http_failures import HttpFailures as _HttpFailures
from portico_testkit.http_cases import SECRET, VALUES, endless, hanging, seen_of, silent
from portico_testkit.raw_server import Play, RawServer, whole
from portico_testkit.tasks import in_time, no_tasks_but

__all__ = ["HttpClientKit"]


class HttpClientKit(_HttpFailures):
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
        """The command line lists it by that."""
        assert isinstance(http_client.name, str), f"name is {http_client.name!r}"
        assert http_client.name.strip(), "name is empty"

    @pytest.mark.asyncio
    @pytest.mark.parametrize(
        "status", [200, 201, 204, 301, 302, 304, 307, 400, 401, 402, 403, 404, 408, 418, 429, 432, 500, 502, 503, 504]
    )
    async def test_every_answer_comes_back_whatever_its_status(self, http_client: HttpClient, status: int) -> None:
        """Which error an answer is, connectors know. A redirect is an answer too: it may lead anywhere."""
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
        """Behind those of the address, whatever is in them; None is left out, a secret is revealed here only."""
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
    async def test_headers_reach_the_service_as_they_are(self, http_client: HttpClient) -> None:
        """None is left out, a secret is revealed, and what the connector says goes before what is usual."""
        headers: dict[str, object] = {
            "X-Key": Secret(SECRET),
            "X-Int": 7,
            "X-Yes": True,
            "X-None": None,
            "X-Text": 'a, b; c="d" ü',
        }
        request = HttpRequest("", headers={**headers, "User-Agent": "mine/1", "accept": "application/json"})
        async with RawServer(whole()) as server:
            await self.soon(http_client.send(HttpRequest(server.url, headers=request.headers)))
            await self.soon(http_client.send(HttpRequest(server.url)))
        first, second = server.requests
        expected = {"x-key": SECRET, "x-int": "7", "x-yes": "true", "x-text": str(headers["X-Text"])}
        expected |= {"user-agent": "mine/1", "accept": "application/json"}
        for name, value in expected.items():
            assert first.header(name) == [value], f"the header {name} came as {first.header(name)}"
        assert first.header("x-none") == [], "a header that is None was sent"
        assert second.header("x-key") == [], "a header of one request reached the next"
        assert second.header("user-agent") not in ([], ["mine/1"]), "a service is not told who asks"

    @pytest.mark.asyncio
    async def test_no_value_becomes_a_header_of_its_own(self, http_client: HttpClient) -> None:
        """A line break in a value would end it; the error does not show a secret."""
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
        """Posted unless another method is given."""
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
    async def test_a_body_comes_decoded(self, http_client: HttpClient) -> None:
        """However it was sent: in one piece, in many, to the end of the connection, compressed."""
        text = ('{"text": "' + "ü" * 5_000 + '"}').encode()
        chunks = b"".join(
            b"%x\r\n%s\r\n" % (len(text[i : i + 999]), text[i : i + 999]) for i in range(0, len(text), 999)
        )
        raw = zlib.compressobj(wbits=-zlib.MAX_WBITS)

        async def to_the_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + text)
            writer.close()

        plays: dict[str, Play] = {
            "whole": whole(200, text),
            "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n",
            "to the end of the connection": to_the_end,
            "gzip": whole(200, gzip.compress(text), {"Content-Encoding": "gzip"}),
            "deflate": whole(200, zlib.compress(text), {"Content-Encoding": "deflate"}),
            "bare deflate": whole(200, raw.compress(text) + raw.flush(), {"Content-Encoding": "deflate"}),
        }
        for how, play in plays.items():
            async with RawServer(play) as server:
                response = await self.soon(http_client.send(HttpRequest(server.url)))
            assert response.body == text, f"a body sent {how} came as {response.body[:60]!r}…"

    @pytest.mark.asyncio
    async def test_secrets_are_neither_in_errors_nor_in_logs(
        self, http_client: HttpClient, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Not in a parameter, not in a header, whatever happens and however much is logged."""
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
        """One client serves a whole application."""
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
    async def test_nothing_of_one_answer_goes_with_the_next_request(self, http_client: HttpClient) -> None:
        """A service is asked, not visited: cookies are not kept."""
        async with RawServer(whole(200, b"", {"Set-Cookie": "session=1; Path=/"})) as server:
            for _ in range(2):
                await self.soon(http_client.send(HttpRequest(server.url)))
        assert server.requests[1].header("cookie") == [], "a cookie was sent back"

    @pytest.mark.asyncio
    async def test_a_cancelled_request_is_let_go(self, http_client: HttpClient) -> None:
        """The service sees the connection closed, and the client goes on working."""
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
        """No task and no connection, whatever became of a request, and however often it is closed."""
        async with RawServer(b"", silent, whole()) as server:
            before = asyncio.all_tasks()
            for _ in range(3):
                with contextlib.suppress(PorticoError):
                    await self.soon(http_client.send(HttpRequest(server.url)))
            for _ in range(2):
                await _close(http_client)
            await in_time(_all_closed(server), "connections were open")
        await no_tasks_but(before)

    @pytest.mark.asyncio
    async def test_event_loops_use_it_side_by_side_and_one_after_another(self, http_client: HttpClient) -> None:
        """A script runs a loop for each question; a server has one in each thread."""
        async with RawServer(whole(200, b"here")) as server:

            def in_a_loop_of_its_own(times: int) -> list[bytes]:
                async def ask() -> bytes:
                    return (await http_client.send(HttpRequest(server.url))).body

                return [asyncio.run(ask()) for _ in range(times)]

            asked = [asyncio.to_thread(in_a_loop_of_its_own, 3) for _ in range(3)]
            answers = await self.soon(asyncio.gather(*asked))
            assert answers == [[b"here"] * 3] * 3
            assert (await self.soon(http_client.send(HttpRequest(server.url)))).body == b"here"


async def _all_closed(server: RawServer) -> None:
    while server.open:
        await asyncio.sleep(0.01)


async def _close(client: object) -> None:
    """Close what can be closed."""
    if (aclose := getattr(client, "aclose", None)) is not None:
        await aclose()
