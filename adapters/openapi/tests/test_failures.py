"""Everything that goes wrong on the wire has an error of its own, and nothing hangs."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest

from portico import Kernel
from portico.errors import (
    ArgumentsInvalid,
    AuthenticationFailed,
    LimitExceeded,
    QuotaExceeded,
    RateLimited,
    ResponseInvalid,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
)
from portico_openapi._responses import RequestFailed
from portico_openapi.config import OpenAPISettings
from portico_openapi.functions import OpenAPIFunctions

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

GET = {"get": {"operationId": "look", "responses": {"200": {"content": {"application/json": {}}}}}}
POST = {"post": {"operationId": "do"}}


@asynccontextmanager
async def raw_server(answer: Answer) -> AsyncIterator[tuple[str, list[int]]]:
    """Serve with sockets; give the URL and a list that grows by one for each connection."""
    connections: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(1)
        try:
            await reader.readuntil(b"\r\n\r\n")
            await answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", connections


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, RequestFailed),
        (401, AuthenticationFailed),
        (403, AuthenticationFailed),
        (404, RequestFailed),
        (402, QuotaExceeded),
        (408, ServiceTimeout),
        (409, RequestFailed),
        (422, RequestFailed),
        (429, RateLimited),
        (499, RequestFailed),
        (500, ServiceUnavailable),
        (503, ServiceUnavailable),
        (504, ServiceTimeout),
        (599, ServiceUnavailable),
    ],
)
async def test_each_status_has_its_error(opened, call, described, service, status, kind):
    service.answer({"message": "No such pet"}, status)
    with pytest.raises(ServiceError, match=rf"service-look \(GET /\) .*\({status}\).*: No such pet") as raised:
        await call(await opened(described({"/": GET})), "look")
    assert type(raised.value) is kind
    assert getattr(raised.value, "status", status) == status


@pytest.mark.parametrize(
    ("content_type", "content", "said"),
    [
        ("application/problem+json", '{"title": "Out of stock", "detail": "Item 7 is gone"}', "Item 7 is gone"),
        ("application/json", '{"error": {"code": 5, "message": "bad token"}}', "bad token"),
        ("text/plain", "Sorry,\n no.", "Sorry, no"),
        ("text/html", "<html><head><title>Bad\ngateway</title></head><body>long…", "(400)"),
        ("image/png", b"\x89\xff\xfe", "(400)"),
    ],
)
async def test_the_services_own_words_are_passed_on(opened, call, described, service, content_type, content, said):
    service.answer(content, 400, content_type)
    with pytest.raises(RequestFailed) as raised:
        await call(await opened(described({"/": GET})), "look")
    assert said in str(raised.value)


async def test_long_words_are_cut(opened, call, described, service):
    service.answer("word " * 100_000, 400, "text/plain")
    with pytest.raises(RequestFailed) as raised:
        await call(await opened(described({"/": GET})), "look")
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(("header", "seconds"), [("7", 7.0), ("soon", None), (timedelta(hours=2), 7200.0)])
async def test_a_rate_limit_tells_how_long(opened, call, described, service, header, seconds):
    if isinstance(header, timedelta):
        header = format_datetime(datetime.now(UTC) + header, usegmt=True)
    service.answer("", 429, Retry_After=header)
    with pytest.raises(RateLimited) as raised:
        await call(await opened(described({"/": GET})), "look")
    assert raised.value.retry_after == (seconds if seconds is None else pytest.approx(seconds, abs=60))


async def test_what_may_pass_is_tried_again(opened, call, described, service):
    for status in (500, 503):
        service.answer("", status, Retry_After="0")
    service.answer([1])
    plugin = await opened(described({"/": GET}), retries=2)
    assert await call(plugin, "look") == [1]
    assert len(service.requests) == 3
    assert len({(one.target, tuple(sorted(one.headers.items()))) for one in service.requests}) == 1


async def test_it_is_not_tried_for_ever(opened, call, described, service):
    for _ in range(5):
        service.answer("", 503, Retry_After="0")
    with pytest.raises(ServiceUnavailable):
        await call(await opened(described({"/": GET}), retries=2), "look")
    assert len(service.requests) == 3


@pytest.mark.parametrize(("status", "wait"), [(503, "31"), (429, "3600"), (404, "0"), (401, "0")])
async def test_nothing_is_repeated_after_a_long_wait_or_a_clear_no(opened, call, described, service, status, wait):
    service.answer("", status, Retry_After=wait)
    with pytest.raises(ServiceError):
        await call(await opened(described({"/": GET}), retries=2), "look")
    assert len(service.requests) == 1


async def test_what_has_effects_is_never_sent_twice(opened, call, described, service):
    for _ in range(4):
        service.answer("", 503, Retry_After="0")
    plugin = await opened(described({"/": {**GET, **POST}}), retries=2, effects=["look"])
    for name in ("do", "look"):
        with pytest.raises(ServiceUnavailable):
            await call(plugin, name)
    assert len(service.requests) == 2


async def test_what_has_no_effects_by_the_settings_may_be(opened, call, described, service):
    service.answer("", 503, Retry_After="0")
    plugin = await opened(described({"/": POST}), retries=1, no_effects=["POST /"])
    assert not plugin["do"].effects
    assert await call(plugin, "do") == {}
    assert [one.method for one in service.requests] == ["POST", "POST"]


async def test_a_refused_connection_is_tried_again_and_told(opened, call, described):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    plugin = await opened(described({"/": POST}), server=url, retries=1)
    with pytest.raises(ServiceUnavailable, match=rf"service-do \(POST /\) failed: {url} cannot be reached"):
        await call(plugin, "do")


async def test_a_slow_answer_is_given_up(opened, call, described):
    async def never(reader: Any, writer: Any) -> None:
        await asyncio.sleep(30)

    async with raw_server(never) as (url, connections):
        plugin = await opened(described({"/": GET}), server=url, timeout=0.2, retries=2)
        with pytest.raises(ServiceTimeout, match=r"no whole answer within 0\.2 seconds"):
            await asyncio.wait_for(call(plugin, "look"), 10)
        assert len(connections) <= 1, "a call that took its time was repeated"


async def test_an_endless_answer_ends_by_time_or_size(opened, call, described):
    async def drip(reader: Any, writer: Any) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.02)

    async def pour(reader: Any, writer: Any) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        while True:
            writer.write(b" " * 65_536)
            await writer.drain()

    async with raw_server(drip) as (url, _):
        plugin = await opened(described({"/": GET}), server=url, timeout=0.3)
        with pytest.raises(ServiceTimeout):
            await asyncio.wait_for(call(plugin, "look"), 10)
    async with raw_server(pour) as (url, _):
        plugin = await opened(described({"/": GET}), server=url, timeout=20, maximum_response_bytes=1_000_000)
        with pytest.raises(LimitExceeded):
            await asyncio.wait_for(call(plugin, "look"), 30)


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"", ServiceUnavailable),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", ServiceUnavailable),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{", ServiceUnavailable),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", ServiceUnavailable),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", ResponseInvalid),
        (b"HTTP/1.1 302 Found\r\nLocation: http://[bad\r\nContent-Length: 0\r\n\r\n", ServiceError),
    ],
    ids=["nothing", "half", "half a chunk", "another protocol", "badly packed", "a bad redirect"],
)
async def test_a_broken_answer_is_told(opened, call, described, head, kind):
    async def cut(reader: Any, writer: Any) -> None:
        writer.write(head)
        await writer.drain()

    async with raw_server(cut) as (url, connections):
        plugin = await opened(described({"/": {**GET, **POST}}), server=url, retries=0)
        with pytest.raises(ServiceError, match=r"service-look \(GET /\) failed") as raised:
            await asyncio.wait_for(call(plugin, "look"), 10)
        assert isinstance(raised.value, kind)
        assert len(connections) == 1


async def test_a_line_of_ten_megabytes_is_refused(opened, call, described):
    async def long(reader: Any, writer: Any) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 10_000_000 + b"\r\n\r\n")
        await writer.drain()

    async with raw_server(long) as (url, _):
        plugin = await opened(described({"/": GET}), server=url)
        with pytest.raises(ServiceError):
            await asyncio.wait_for(call(plugin, "look"), 20)


async def test_cancelling_a_call_closes_its_connection(opened, call, described):
    closed = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: Any) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[")
        await writer.drain()
        await reader.read()
        closed.set()

    async with raw_server(wait) as (url, connections):
        plugin = await opened(described({"/": GET}), server=url)
        before = asyncio.all_tasks()
        calling = asyncio.create_task(call(plugin, "look"))
        while not connections:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await asyncio.wait_for(closed.wait(), 10)
        left = {task for task in asyncio.all_tasks() - before if "serve" not in repr(task)}
        assert not left, f"tasks are left: {left}"


async def test_redirects_inside_the_origin_are_followed(opened, call, described, service):
    plugin = await opened(described({"/": {**GET, **POST}}))
    service.answer("", 302, Location="/there?a=1#part")
    service.answer("", 308, Location=f"{service.url}/at/last")
    service.answer([1])
    assert await call(plugin, "look") == [1]
    assert [one.target for one in service.requests] == ["/", "/there?a=1", "/at/last"]


async def test_a_redirect_keeps_the_body_or_says_that_it_cannot(opened, call, described, service):
    post = {"post": {"operationId": "do", "requestBody": {"required": True, "content": {"text/plain": {}}}}}
    plugin = await opened(described({"/": post}))
    service.answer("", 307, Location="/there")
    await call(plugin, "do", body="text")
    assert [(one.method, one.target, one.body) for one in service.requests] == [
        ("POST", "/", b"text"),
        ("POST", "/there", b"text"),
    ]
    service.answer("", 303, Location="/result")
    await call(plugin, "do", body="text")
    assert (service.last.method, service.last.target, service.last.body) == ("GET", "/result", b"")
    assert "content-type" not in service.last.headers
    service.answer("", 301, Location="/new")
    with pytest.raises(ServiceError, match=r"it redirects a POST.* set `server`"):
        await call(plugin, "do", body="text")


async def test_redirects_end(opened, call, described, service):
    for _ in range(10):
        service.answer("", 302, Location="/")
    with pytest.raises(ServiceError, match="it redirects more than 5 times"):
        await call(await opened(described({"/": GET})), "look")
    assert len(service.requests) == 6


@pytest.mark.parametrize("target", ["https://localhost/", "//127.0.0.2/x?token=abc", "http://localhost:1/", "ftp://x/"])
async def test_redirects_to_another_origin_are_not_followed(opened, call, described, service, target):
    service.answer("", 302, Location=target)
    with pytest.raises(ServiceError, match="which is not followed") as raised:
        await call(await opened(described({"/": GET})), "look")
    assert "token" not in str(raised.value)


async def test_an_answer_without_content_where_it_was_not_modified(opened, call, described, service):
    service.answer("", 304)
    assert await call(await opened(described({"/": GET})), "look") is None


async def test_cookies_of_one_call_do_not_reach_the_next(opened, call, described, service):
    service.answer([1], Set_Cookie="session=abc; Path=/")
    plugin = await opened(described({"/": GET}))
    await call(plugin, "look")
    await call(plugin, "look")
    assert "cookie" not in service.last.headers


async def test_one_connection_serves_many_calls(opened, call, described):
    async def answer(reader: asyncio.StreamReader, writer: Any) -> None:
        while True:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]")
            await writer.drain()
            await reader.readuntil(b"\r\n\r\n")

    async with raw_server(answer) as (url, connections):
        plugin = await opened(described({"/": GET}), server=url)
        for _ in range(5):
            assert await call(plugin, "look") == []
        assert len(connections) == 1


async def test_a_given_client_is_used_and_left_open(described, service, tmp_path):
    import json

    (tmp_path / "d.json").write_text(json.dumps(described({"/": GET})))
    async with httpx.AsyncClient(headers={"X-Mine": "yes"}) as client:
        source = OpenAPIFunctions(OpenAPISettings(document=tmp_path / "d.json"), client=client)
        kernel = Kernel(plugins=[await source.load("service")])
        await kernel.invoke_json("service-look", {})
        await source.aclose()
        assert not client.is_closed
        assert service.last.headers["x-mine"] == "yes"
        with pytest.raises(ServiceUnavailable, match="closed"):
            await kernel.invoke_json("service-look", {})


def test_each_run_of_a_script_may_call(described, service, tmp_path):
    import json

    (tmp_path / "d.json").write_text(json.dumps(described({"/": GET})))
    source = OpenAPIFunctions(OpenAPISettings(document=tmp_path / "d.json"))
    kernel = Kernel()
    kernel.add_plugin(kernel.run_sync(source.load("service")))

    async def once() -> Any:
        try:
            return await kernel.invoke_json("service-look", {})
        finally:
            await source.aclose()

    assert kernel.run_sync(once()) == {}


async def test_faults_of_arguments_come_all_at_once(opened, described, service):
    parameters = [
        {"name": "a", "in": "path", "required": True, "schema": {"type": "string"}},
        {"name": "b", "in": "header", "schema": {"type": "string"}},
        {"name": "c", "in": "query", "required": True, "schema": {"type": "integer", "minimum": 1, "enum": [1, 2]}},
    ]
    plugin = await opened(described({"/{a}": {"get": {"operationId": "look", "parameters": parameters}}}))
    with pytest.raises(ArgumentsInvalid) as raised:
        plugin["look"].structure_arguments({"b": 5, "c": 0, "d": 1})
    assert raised.value.faults == (
        "a: missing",
        "b: expected string, got 5",
        "c: expected minimum 1, got 0",
        "c: expected one of 1, 2, got 0",
        "d: unknown; the parameters are a, b, c",
    )
    with pytest.raises(ArgumentsInvalid, match=r"a: it is empty.*; b: .*a header cannot"):
        await plugin["look"].callable(a="", b=" x", c=1)
    assert service.requests == []
