"""Connections, loops, proxies and certificates."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from portico.errors import ConfigurationError, ServiceTimeout, ServiceUnavailable
from portico.plugins import HttpRequest, Secret
from portico_testkit.http_client import hanging, silent
from portico_testkit.raw_server import RawRequest, RawServer, whole
from portico_testkit.tasks import no_tasks_but
from portico_web.http.client import HttpxHttpClient
from portico_web.http.config import HttpxSettings

QUICK = {"read_timeout": 10.0, "total_timeout": 20.0, "max_wait": 0.05, "trust_env": False}
CERTIFICATE = Path(__file__).with_name("loopback.pem")


@contextlib.asynccontextmanager
async def opened(**settings: object) -> AsyncIterator[HttpxHttpClient]:
    client = HttpxHttpClient(HttpxSettings(**{**QUICK, **settings}), None)
    try:
        yield client
    finally:
        await client.aclose()


async def asked(**settings: object) -> RawRequest:
    async with RawServer(whole()) as server, opened(**settings) as client:
        await client.send(HttpRequest(server.url))
    return server.requests[0]


async def test_a_service_is_told_who_asks_and_how_to_reach_them() -> None:
    assert (await asked()).header("user-agent")[0].startswith("portico-web/")
    assert (await asked(contact="ports@example.org")).header("user-agent")[0].endswith(" (ports@example.org)")


async def test_connections_are_used_again() -> None:
    async with RawServer(whole()) as server, opened() as client:
        for _ in range(5):
            await client.send(HttpRequest(server.url))
    assert (len(server.requests), server.connections) == (5, 1)


async def test_no_more_connections_are_open_than_allowed_and_waiting_counts_as_time() -> None:
    async with RawServer(silent) as server, opened(max_connections=2, total_timeout=3, retries=0) as client:
        sending = asyncio.gather(*(client.send(HttpRequest(server.url)) for _ in range(6)), return_exceptions=True)
        while server.open < 2:
            await asyncio.sleep(0.01)
        for _ in range(20):
            await asyncio.sleep(0.01)
            assert server.open == 2
        outcomes = await sending
    assert [type(outcome) for outcome in outcomes] == [ServiceTimeout] * 6, outcomes


async def test_an_answer_that_has_begun_is_not_asked_for_again_when_it_falls_silent() -> None:
    async with RawServer(hanging) as server, opened(read_timeout=0.1) as client:
        with pytest.raises(ServiceTimeout, match=r"silent for 0\.1 seconds"):
            await client.send(HttpRequest(server.url))
    assert len(server.requests) == 1


async def test_an_answer_whose_connection_is_lost_is_asked_for_again() -> None:
    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        writer.close()

    async with RawServer(cut, whole(200, b"whole")) as server, opened() as client:
        assert (await client.send(HttpRequest(server.url))).body == b"whole"


async def test_a_wait_that_would_not_end_in_time_is_not_begun() -> None:
    busy = whole(503, b"", {"Retry-After": "5"})
    async with RawServer(busy) as server, opened(total_timeout=4, max_wait=10) as client:
        assert (await client.send(HttpRequest(server.url))).status == 503
    assert len(server.requests) == 1


async def test_without_retries_everything_is_sent_once() -> None:
    async with RawServer(b"") as server, opened(retries=0) as client:
        with pytest.raises(ServiceUnavailable):
            await client.send(HttpRequest(server.url))
    assert len(server.requests) == 1


async def test_what_waits_between_two_attempts_ends_when_it_is_cancelled() -> None:
    async with RawServer(whole(503, b"", {"Retry-After": "15"})) as server, opened(max_wait=15) as client:
        before = asyncio.all_tasks()
        sending = asyncio.create_task(client.send(HttpRequest(server.url)))
        while not server.requests:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(sending, 10)
        assert not {task for task in asyncio.all_tasks() - before if "_serve" not in repr(task)}
    assert len(server.requests) == 1


async def test_once_closed_it_says_so() -> None:
    client = HttpxHttpClient(HttpxSettings(**QUICK), None)
    await client.aclose()
    await client.aclose()
    with pytest.raises(ServiceUnavailable, match="closed"):
        await client.send(HttpRequest("http://127.0.0.1:9"))


async def test_closing_ends_what_is_under_way_with_an_error_of_ours() -> None:
    async with RawServer(silent) as server:
        before = asyncio.all_tasks()
        client = HttpxHttpClient(HttpxSettings(**QUICK), None)
        sending = [asyncio.create_task(client.send(HttpRequest(server.url))) for _ in range(3)]
        while len(server.requests) < 3:
            await asyncio.sleep(0.01)
        await client.aclose()
        for outcome in await asyncio.wait_for(asyncio.gather(*sending, return_exceptions=True), 10):
            assert isinstance(outcome, ServiceUnavailable | ServiceTimeout), repr(outcome)
    await no_tasks_but(before)


async def test_a_proxy_is_told_its_password_and_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with RawServer(whole(200, b"through"), whole(403)) as proxy:
        settings = {"proxy": proxy.url, "proxy_user": "me", "proxy_password": Secret("p4ss:word")}
        async with opened(**settings) as client:
            response = await client.send(HttpRequest("http://127.0.0.1:1/find", {"q": "a", "key": Secret("k3y")}))
            assert response.body == b"through"
            with pytest.raises(ServiceUnavailable) as raised:
                await client.send(HttpRequest("https://127.0.0.1:1/find"))
    plain, tunnel = proxy.requests[:2]
    assert plain.target == "http://127.0.0.1:1/find?q=a&key=k3y"
    assert (tunnel.method, tunnel.target) == ("CONNECT", "127.0.0.1:1")
    assert plain.header("proxy-authorization") == ["Basic bWU6cDRzczp3b3Jk"] == tunnel.header("proxy-authorization")
    seen = caplog.text + str(raised.value) + repr(HttpxSettings(**settings))
    for secret in ("p4ss", "k3y", "bWU6cDRz"):
        assert secret not in seen, f"{secret} is in {seen}"


async def test_a_proxy_that_refuses_is_named_as_the_reason() -> None:
    async with RawServer(whole(407, b"")) as proxy, opened(proxy=proxy.url) as client:
        with pytest.raises(ServiceUnavailable, match="proxy"):
            await client.send(HttpRequest("https://127.0.0.1:1/find"))
        assert (await client.send(HttpRequest("http://127.0.0.1:1/find"))).status == 407


async def test_the_environments_proxy_is_followed_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    async with RawServer(whole(200, b"through")) as proxy, RawServer(whole(200, b"straight")) as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        for follow, expected in ((True, b"through"), (False, b"straight")):
            async with opened(trust_env=follow) as client:
                assert (await client.send(HttpRequest(server.url))).body == expected
        monkeypatch.setenv("HTTP_PROXY", "socks9://127.0.0.1:1")
        async with opened(trust_env=True) as client:
            with pytest.raises(ConfigurationError, match=r"\[http\.httpx\]"):
                await client.send(HttpRequest(server.url))


@pytest.mark.parametrize("proxy", ["nonsense", "ftp://127.0.0.1:1", "http://[::1", "socks5://127.0.0.1:1"])
async def test_a_proxy_that_is_none_is_a_mistake_in_the_configuration(proxy: str) -> None:
    async with opened(proxy=proxy) as client:
        with pytest.raises(ConfigurationError, match=r"\[http\.httpx\]"):
            await client.send(HttpRequest("http://127.0.0.1:9"))


async def tls_server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError, OSError):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(whole(200, b"in private"))
        await writer.drain()
    writer.close()


async def test_certificates_are_checked_and_a_file_of_ones_own_is_trusted(tmp_path: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CERTIFICATE)
    server = await asyncio.start_server(tls_server, "127.0.0.1", 0, ssl=context)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/find"
    try:
        async with opened(ca_file=CERTIFICATE) as client:
            assert (await client.send(HttpRequest(url))).body == b"in private"
        async with opened() as client:
            with pytest.raises(ServiceUnavailable, match=r"certificate that is not trusted.*ca_file"):
                await client.send(HttpRequest(url))
    finally:
        server.close()
        await server.wait_closed()
    (tmp_path / "empty.pem").write_bytes(b"")
    for file in (tmp_path / "no such.pem", tmp_path / "empty.pem", tmp_path):
        async with opened(ca_file=file) as client:
            with pytest.raises(ConfigurationError, match="ca_file"):
                await client.send(HttpRequest(url))


async def test_what_an_error_holds_of_a_request_is_its_address() -> None:
    request = HttpRequest("http://127.0.0.1:1/find", {"key": Secret("k3y")}, {"X-Key": Secret("k3y")}, {"a": 1})
    async with opened(retries=0) as client:
        with pytest.raises(ServiceUnavailable) as raised:
            await client.send(request)
    cause = raised.value.__cause__
    assert isinstance(cause, httpx.ConnectError)
    assert str(cause.request.url) == "http://127.0.0.1:1"
    assert "k3y" not in str(cause.request.headers)
    assert cause.request.content == b""


@pytest.mark.parametrize(
    "wrong",
    [
        {"total_timeout": 0},
        {"read_timeout": -1},
        {"connect_timeout": 10_000},
        {"max_bytes": 0},
        {"retries": -1},
        {"retries": 100},
        {"max_wait": -0.1},
        {"max_connections": 0},
        {"contact": "two\nlines"},
        {"contact": "ümlaut"},
        {"proxy": "http://me:pw@proxy.example"},
        {"proxy_user": "me"},
        {"proxy": "http://proxy.example", "proxy_user": "me"},
    ],
    ids=str,
)
def test_settings_refuse_what_cannot_be(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        HttpxSettings(**wrong)


def test_registering_and_making_one_opens_nothing_and_imports_no_vendor() -> None:
    code = """
import sys
import portico_web._plugin, portico_web.http.config
[registration] = portico_web._plugin.portico_http_clients()
assert registration.name == "httpx"
assert not {"httpx", "httpcore", "ssl", "asyncio"} & set(sys.modules), sys.modules.keys()
from portico_web.http.client import HttpxHttpClient
HttpxHttpClient(None, None)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
