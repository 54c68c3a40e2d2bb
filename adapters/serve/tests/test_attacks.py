"""What other sites and odd clients try: none of it begins a run, is read into memory, or leaves the static files."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from tests.support.desks import PATIENCE
from tests.support.guarded import TOKEN, Served, guarded

from portico_serve._guard.limits import Limits

GOAL = {"goal": json.dumps({"plans": []})}
FORM = "application/x-www-form-urlencoded"
FROM_ELSEWHERE = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {},
    {"origin": "http://127.0.0.1"},
    {"origin": "http://127.0.0.1:1"},
    {"origin": "http://127.0.0.1:{port}.evil.example"},
    {"origin": "http://evil.example#http://127.0.0.1:{port}"},
    {"origin": "https://127.0.0.1:{port}"},
    {"origin": "http://localhost:{port}"},
    {"origin": "HTTP://127.0.0.1:{port}"},
    {"origin": "http://127.0.0.1:{port}/"},
    {"origin": "http://user@127.0.0.1:{port}"},
    {"origin": "http://127.0.0.1:{port}", "sec-fetch-site": "cross-site"},
    {"origin": "http://127.0.0.1:{port}", "sec-fetch-site": "same-site"},
    {"referer": "http://127.0.0.1:{port}/"},
]


@pytest.fixture
async def victim(served: Served) -> AsyncIterator[httpx.AsyncClient]:
    """Return a browser with a session that says of no page that it is ours."""
    async with served.client() as client:
        await served.log_in(client)
        yield client


@pytest.mark.parametrize("headers", FROM_ELSEWHERE, ids=str)
async def test_a_post_from_elsewhere_is_refused(
    served: Served, victim: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    given = {name: value.format(port=served.port) for name, value in headers.items()}

    for path in ("/api/runs", "/api/chats", "/v1/chat/completions", "/runs"):
        assert (await victim.post(path, json=GOAL, headers=given)).status_code == 403
    assert (await victim.delete("/api/chats/x", headers=given)).status_code == 403
    assert await served.runs() == 0


async def test_two_origins_are_none(served: Served) -> None:
    async with served.browser() as client:
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    body = json.dumps(GOAL).encode()
    status, _ = await served.say(
        "POST /api/runs HTTP/1.1",
        f"host: 127.0.0.1:{served.port}",
        f"cookie: {cookie}",
        f"origin: {served.url}",
        "origin: https://evil.example",
        "content-type: application/json",
        f"content-length: {len(body)}",
        body=body,
    )

    assert status == 403


async def test_another_page_reads_and_embeds_nothing(served: Served, victim: httpx.AsyncClient) -> None:
    for site in ("cross-site", "same-site"):
        for path in ("/api/runs", "/static/page.css", "/"):
            headers = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}
            assert (await victim.get(path, headers=headers)).status_code == 403
    response = await victim.get("/api/runs", headers={"origin": "https://evil.example"})
    assert "access-control-allow-origin" not in response.headers
    assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
    assert response.headers["cross-origin-resource-policy"] == "same-origin"


async def test_a_link_in_another_page_leads_to_a_page_of_ours(served: Served, victim: httpx.AsyncClient) -> None:
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}

    assert (await victim.get("/api/runs", headers=headers)).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.:{port}",
        "127.0.0.1.:{port}",
        "user@127.0.0.1:{port}",
        "127.0.0.1:{port}@evil.example",
        "evil.example",
        "localhost.evil.example:{port}",
        "127.0.0.1:{port}, evil.example",
        "127.0.0.1:0{port}",
        "0x7f000001:{port}",
        "2130706433:{port}",
        "127.1:{port}",
        "0.0.0.0:{port}",
        "[::]:{port}",
        "[::ffff:127.0.0.1]:{port}",
        "",
    ],
)
async def test_a_name_that_is_not_ours_is_refused(served: Served, host: str) -> None:
    # A rebound name reaches this server with whatever it knows: here, even with the right token.
    status, answer = await served.say(
        "GET /api/runs HTTP/1.1", f"host: {host.format(port=served.port)}", f"authorization: Bearer {TOKEN}"
    )

    assert status in (400, 421)
    assert b'"runs"' not in answer


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}"])
async def test_our_names_are_served(served: Served, host: str) -> None:
    status, _ = await served.say(
        "GET /api/runs HTTP/1.1", f"host: {host.format(port=served.port)}", f"authorization: Bearer {TOKEN}"
    )

    assert status == 200


@pytest.mark.parametrize(
    "lines",
    [
        ("GET /api/runs HTTP/1.1",),
        ("GET /api/runs HTTP/1.0",),
        ("GET /api/runs HTTP/1.1", "host: 127.0.0.1:{port}", "host: evil.example"),
        ("GET /api/runs HTTP/1.1", "host: 127.0.0.1:{port}", "host: 127.0.0.1:{port}"),
        ("GET /api/runs HTTP/1.1", "host: evil.example", "x-forwarded-host: 127.0.0.1:{port}"),
        ("GET /api/runs HTTP/1.1", "host: evil.example", "forwarded: host=127.0.0.1:{port}"),
        ("GET http://127.0.0.1:{port}/api/runs HTTP/1.1", "host: 127.0.0.1:{port}"),
        ("GET http://evil.example/api/runs HTTP/1.1", "host: 127.0.0.1:{port}"),
        ("GET //evil.example/api/runs HTTP/1.1", "host: 127.0.0.1:{port}"),
        ("GET /api/runs HTTP/1.1", "host : 127.0.0.1:{port}"),
        ("GET /api/runs HTTP/1.1", "host: 127.0.0.1:{port}", " evil.example"),
        ("GET /api/../api/runs HTTP/1.1", "host: 127.0.0.1:{port}"),
        ("* /api/runs HTTP/1.1", "host: 127.0.0.1:{port}"),
        ("OPTIONS * HTTP/1.1", "host: 127.0.0.1:{port}"),
        ("CONNECT 127.0.0.1:{port} HTTP/1.1", "host: 127.0.0.1:{port}"),
    ],
    ids=str,
)
async def test_odd_requests_are_refused(served: Served, lines: tuple[str, ...]) -> None:
    status, answer = await served.say(
        *(each.format(port=served.port) for each in lines), f"authorization: Bearer {TOKEN}"
    )

    assert 400 <= status < 500
    assert b'"runs"' not in answer
    assert served.reported == []


@pytest.mark.parametrize(
    "path",
    [
        "/static/../_app.py",
        "/static/%2e%2e/_app.py",
        "/static/%2e%2e%2f_app.py",
        "/static/..%2f_app.py",
        "/static/%252e%252e/_app.py",
        "/static/..%252f_app.py",
        "/static/..%5c_app.py",
        "/static/..\\_app.py",
        "/static/%00",
        "/static/page.css%00.py",
        "/static/%c0%ae%c0%ae/_app.py",
        "/static//etc/passwd",
        "/static/%2fetc/passwd",
        "/static/link/passwd",
        "/static/outside.txt",
        "/static/folder",
        "/static/",
        "/static/" + "x" * 5_000,
        "/static/" + "../" * 40 + "etc/passwd",
    ],
)
async def test_only_static_files_are_given(folder: Path, path: str) -> None:
    static = folder / "static"
    (static / "folder").mkdir(parents=True)
    (static / "page.css").write_text("body { }")
    (static / "link").symlink_to("/etc")
    (folder / "outside.txt").write_text("a secret")
    (static / "outside.txt").symlink_to(folder / "outside.txt")
    async with guarded(folder, static=static) as served:
        async with served.browser() as client:
            good = await client.get("/static/page.css")
            cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        status, answer = await served.say(f"GET {path} HTTP/1.1", f"host: 127.0.0.1:{served.port}", f"cookie: {cookie}")

        assert (good.status_code, good.headers["cache-control"]) == (200, "no-cache")
        assert status in (400, 404)
        assert not any(each in answer for each in (b"Starlette", b"root:", b"a secret"))
        assert served.reported == []


async def test_a_large_goal_is_refused_by_its_length(served: Served) -> None:
    async with served.browser() as client:
        response = await client.post("/api/runs", content=b'{"goal": "' + b"x" * 10_000_000 + b'"}')
        response_of_json = await client.post("/api/runs", json={"goal": "x" * 10_000_000})

    assert response.status_code == 415
    assert response_of_json.status_code == 413
    assert await served.runs() == 0


async def test_a_large_body_without_a_length_is_refused_before_it_ends(served: Served) -> None:
    chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    head = f"POST /api/runs HTTP/1.1\r\nhost: 127.0.0.1:{served.port}\r\nauthorization: Bearer {TOKEN}\r\n"
    writer.write(f"{head}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n".encode() + chunk)
    async with asyncio.timeout(PATIENCE):
        status = await reader.readline()
        tracemalloc.start()
        try:
            for _ in range(60):
                writer.write(chunk)
                await writer.drain()
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    writer.close()

    assert status.split()[1] == b"413"
    assert peak < 20_000_000
    assert await served.runs() == 0


async def test_a_body_without_a_session_is_not_read(served: Served) -> None:
    status, _ = await served.say(
        "POST /api/runs HTTP/1.1",
        f"host: 127.0.0.1:{served.port}",
        "content-type: application/json",
        "content-length: 10000000",
    )

    assert status == 401


async def test_a_slow_body_is_given_up(folder: Path) -> None:
    async with guarded(folder, limits=Limits(body_seconds=0.2)) as served:
        status, _ = await served.say(
            "POST /api/runs HTTP/1.1",
            f"host: 127.0.0.1:{served.port}",
            f"authorization: Bearer {TOKEN}",
            "content-type: application/json",
            "content-length: 20",
            body=b'{"goal":',
        )

    assert status == 408


async def test_a_client_that_says_nothing_is_given_up(folder: Path) -> None:
    async with guarded(folder, limits=Limits(head_seconds=0.2)) as served:
        for data in (b"", b"GET / HTTP/1.1\r\nhost: "):
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
            writer.write(data)
            async with asyncio.timeout(PATIENCE):
                await reader.read()
            writer.close()


async def test_huge_headers_are_refused(served: Served) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(b"GET / HTTP/1.1\r\nx-long: " + b"x" * 1_000_000)
    async with asyncio.timeout(PATIENCE):
        try:
            answer = await reader.read()
        except ConnectionResetError:
            answer = b" 400 "
    writer.close()

    assert answer.split(b" ")[1] == b"400"


async def test_too_many_requests_have_to_wait_each_session_for_itself(folder: Path) -> None:
    limits = Limits(requests=5, requests_a_second=0.001)
    async with guarded(folder, limits=limits) as served, served.browser() as one, served.browser() as two:
        statuses = [(await one.get("/api/runs")).status_code for _ in range(7)]
        other = await two.get("/api/runs")
        last = await one.get("/api/runs")

    assert statuses == [200] * 5 + [429] * 2
    assert int(last.headers["retry-after"]) >= 1
    assert other.status_code == 200


async def test_too_many_streams_are_refused_and_one_that_ends_makes_room(folder: Path) -> None:
    async with guarded(folder, limits=Limits(streams=2)) as served, served.browser() as client:
        chat = (await client.post("/api/chats", json={})).json()["chat"]
        address = f"/api/chats/{chat}/events"
        async with client.stream("GET", address), client.stream("GET", address) as second:
            refused = await client.get(address)
            await second.aclose()
            async with asyncio.timeout(PATIENCE):
                while True:
                    async with client.stream("GET", address) as again:
                        if again.status_code == 200:
                            break
                    await asyncio.sleep(0.02)

    assert refused.status_code == 503
    assert "retry-after" in refused.headers


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
async def test_other_methods_are_refused(served: Served, method: str) -> None:
    async with served.program() as client:
        response = await client.request(method, "/api/runs")

    assert response.status_code == 405
    assert "access-control-allow-origin" not in response.headers


async def test_a_method_in_a_header_or_a_query_changes_nothing(served: Served) -> None:
    async with served.program() as client:
        chat = (await client.post("/api/chats", json={})).json()["chat"]
        for name in ("x-http-method-override", "x-http-method", "x-method-override"):
            await client.get(f"/api/chats/{chat}", headers={name: "DELETE"}, params={"_method": "DELETE"})

        assert (await client.get(f"/api/chats/{chat}")).status_code == 200


async def test_the_head_of_an_answer_has_no_body(served: Served) -> None:
    async with served.program() as client:
        response = await client.head("/api/runs")

        chat = (await client.post("/api/chats", json={})).json()["chat"]
        stream = await client.head(f"/api/chats/{chat}/events")

    assert (response.status_code, response.content) == (200, b"")
    assert stream.status_code == 405


@pytest.mark.parametrize(
    "kind", [FORM, "text/plain", "multipart/form-data; boundary=x", "", "application/jsonx", "text/json", None]
)
async def test_what_a_form_can_send_is_no_json(served: Served, kind: str | None) -> None:
    headers = {} if kind is None else {"content-type": kind}
    async with served.browser() as client:
        response = await client.post("/api/runs", content=json.dumps(GOAL), headers=headers)

    assert response.status_code == 415
    assert await served.runs() == 0


async def test_json_may_say_its_charset_and_nothing_needs_no_type(served: Served) -> None:
    async with served.browser() as client:
        kind = {"content-type": "Application/JSON; charset=utf-8"}
        assert (await client.post("/api/chats", content="{}", headers=kind)).status_code == 201
        assert (await client.post("/api/chats")).status_code == 201


async def test_no_connection_becomes_a_websocket(served: Served) -> None:
    status, _ = await served.say_bytes(
        f"GET /api/runs HTTP/1.1\r\nhost: 127.0.0.1:{served.port}\r\nauthorization: Bearer {TOKEN}\r\n"
        "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
        "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
    )

    assert status == 400


async def test_two_lengths_of_one_body_are_refused(served: Served) -> None:
    head = f"POST /api/chats HTTP/1.1\r\nhost: 127.0.0.1:{served.port}\r\nauthorization: Bearer {TOKEN}\r\n"
    both = head + "content-type: application/json\r\ncontent-length: 2\r\ncontent-length: 4\r\n\r\n{}{}"
    smuggled = head + "connection: close\r\ncontent-type: application/json\r\ncontent-length: 2\r\n"
    smuggled += "transfer-encoding: chunked\r\n\r\n0\r\n\r\n"

    assert (await served.say_bytes(both.encode()))[0] == 400
    assert (await served.say_bytes(smuggled.encode()))[0] == 400


async def test_a_fault_of_ours_is_one_sentence_and_is_reported(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(**given: object) -> None:
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr(served.desk.runs, "listing", fail)
    async with served.program() as client:
        response = await client.get("/api/runs")

        page = await client.get("/nothing")

    assert response.status_code == 500
    assert "secret" not in response.text + page.text
    assert "Traceback" not in response.text
    assert [str(each) for each in served.reported] == ["a secret of the inside"]


async def test_every_answer_says_what_browsers_may_do_with_it(served: Served) -> None:
    async with served.browser() as client:
        answers = [await client.get(path) for path in ("/", "/api/runs", "/api/nothing", "/static/nothing.css")]
    async with served.client() as client:
        answers += [await client.get("/"), await client.get("/api/runs", headers={"host": "evil.example"})]

    for each in answers:
        assert each.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        assert each.headers["x-content-type-options"] == "nosniff"
        assert each.headers["cross-origin-opener-policy"] == "same-origin"
        assert each.headers["cache-control"] in ("no-store", "no-cache")
        assert "server" not in each.headers
