"""Whatever a server does is refused or cut, in time, with an error that says which bound or rule it was."""

from __future__ import annotations

import asyncio
import gzip
import time
import zlib
from typing import Any

import attrs
import pytest

from portico.errors import (
    AccessRefused,
    LimitExceeded,
    RateLimited,
    ResponseInvalid,
    ServiceTimeout,
    ServiceUnavailable,
)

PAGE = "http://site.example/page"


async def fails(world: Any, error: type[Exception], *words: str, link: str = PAGE, **settings: Any) -> str:
    """Read a page that cannot be read; return the message, which has the words."""
    began = time.monotonic()
    with pytest.raises(error) as raised:
        await world.reader(**settings).read(link)
    assert type(raised.value) is error
    assert time.monotonic() - began < 30, "it took too long to give up"
    message = str(raised.value)
    for word in words:
        assert word in message, f"{word!r} is not in {message!r}"
    return message


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "//169.254.169.254/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[fd00:ec2::254]/",
        "http://localhost/",
        "http://metadata.google.internal/computeMetadata/v1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://017700000001/",
        "http://private.example/",
        "http://site.example:22/",
        "http://user:password@site.example/",
        "file:///etc/passwd",
        "ftp://site.example/",
        "data:text/html,hello",
        "javascript:alert(1)",
    ],
)
async def test_a_redirect_to_what_is_not_read_is_refused(world: Any, moved: Any, target: str) -> None:
    world.names["private.example"] = [["10.0.0.7"]]
    world.site.routes["/page"] = moved(target)
    await fails(world, AccessRefused, link=PAGE)
    assert {address for address, _ in world.network.connected} == {"93.184.215.14"}, "something else was reached"
    assert world.site.paths == ["/page"]


async def test_the_last_of_several_redirects_is_checked_too(world: Any, moved: Any) -> None:
    world.site.routes |= {"/page": moved("/second"), "/second": moved("http://other.example/third")}
    world.site.routes["/third"] = moved("http://169.254.169.254/")
    await fails(world, AccessRefused, "169.254.169.254", "redirects")


async def test_a_chain_of_redirects_ends_at_the_bound(world: Any, moved: Any) -> None:
    world.site.routes |= {f"/{number}": moved(f"/{number + 1}") for number in range(50)}
    await fails(world, LimitExceeded, "5 times", link="http://site.example/0")
    assert len(world.site.paths) == 6


@pytest.mark.parametrize("location", [None, "http://[", "http://site.example:port/", "http://" + "x" * 9_000])
async def test_a_redirect_to_nowhere_is_told(world: Any, answer: Any, location: str | None) -> None:
    headers = {} if location is None else {"Location": location}
    world.site.routes["/page"] = answer(b"", None, "301 Moved Permanently", **headers)
    with pytest.raises((ResponseInvalid, AccessRefused)):
        await world.reader().read(PAGE)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "x-gzip"])
async def test_a_bomb_is_cut_while_it_goes_off(world: Any, encoding: str) -> None:
    zeros = b"\0" * 100_000_000
    packed = zlib.compress(zeros, 9) if encoding == "deflate" else gzip.compress(zeros, 9)
    world.serve("/page", packed, "text/html", Content_Encoding=encoding)
    await fails(world, LimitExceeded, "1,000,000 bytes", "max_bytes", max_bytes=1_000_000)


@pytest.mark.parametrize("encoding", ["br", "zstd", "compress", "gzip, br", "nonsense"])
async def test_an_encoding_that_was_not_asked_for_is_refused(world: Any, encoding: str) -> None:
    world.serve("/page", b"x" * 100, "text/html", Content_Encoding=encoding)
    await fails(world, ResponseInvalid, "not asked for")


@pytest.mark.parametrize(
    "body",
    [b"no gzip data", gzip.compress(b"door " * 1000)[:-20], b"\x1f\x8b" + b"\xff" * 50],
    ids=["not packed", "cut off", "nonsense"],
)
async def test_damaged_packed_data_is_told(world: Any, body: bytes) -> None:
    world.serve("/page", body, "text/plain", Content_Encoding="gzip")
    await fails(world, ResponseInvalid, "gzip")


async def test_an_endless_body_is_cut(world: Any) -> None:
    async def endless(request: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
        while True:
            writer.write(b"<p>door</p>" * 5_000)
            await writer.drain()

    world.site.routes["/page"] = endless
    await fails(world, LimitExceeded, "300,000 bytes", "max_bytes", max_bytes=300_000)


async def test_an_endless_body_in_chunks_of_one_byte_is_cut(world: Any) -> None:
    async def endless(request: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"1\r\nx\r\n" * 1_000)
            await writer.drain()

    world.site.routes["/page"] = endless
    await fails(world, LimitExceeded, "max_bytes", max_bytes=5_000)


async def test_a_length_beyond_the_bound_is_not_read_at_all(world: Any) -> None:
    sent = 0

    async def large(request: Any, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 90000000000\r\n\r\n")
        while sent < 90_000_000_000:
            writer.write(b"x" * 10_000)
            await writer.drain()
            sent += 10_000

    world.site.routes["/page"] = large
    await fails(world, LimitExceeded, "10,000,000 bytes")
    assert sent < 10_000_000


async def slowly(writer: asyncio.StreamWriter, start: bytes, drip: bytes) -> None:
    writer.write(start)
    while True:
        writer.write(drip)
        await writer.drain()
        await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("start", "drip"),
    [
        (b"", b"H"),
        (b"HTTP/1.1 200 OK\r\n", b"X-Drip: 1\r\n"),
        (b"HTTP/1.1 200 OK\r\n", b""),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    ],
    ids=["status", "headers", "silence", "body", "chunks", "hints"],
)
async def test_a_slow_drip_ends_with_the_time(world: Any, start: bytes, drip: bytes) -> None:
    async def drips(request: Any, writer: asyncio.StreamWriter) -> None:
        await slowly(writer, start, drip)

    world.site.routes["/page"] = drips
    message = await fails(world, ServiceTimeout, seconds=0.5)
    assert "0.5 seconds" in message


async def test_a_server_that_never_answers_for_robots_txt_is_given_up(world: Any) -> None:
    async def silent(request: Any, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    world.site.routes["/robots.txt"] = silent
    world.serve("/page", "A page.")
    await fails(world, ServiceTimeout, "0.3 seconds", seconds=0.3)


async def test_huge_headers_are_refused(world: Any, answer: Any) -> None:
    world.site.routes["/page"] = answer("A page.", X_Large="x" * 1_000_000)
    await fails(world, ResponseInvalid, "HTTP")


async def test_endless_headers_are_refused(world: Any) -> None:
    async def endless(request: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X-More: and more\r\n" * 500)
            await writer.drain()

    world.site.routes["/page"] = endless
    await fails(world, ResponseInvalid, "HTTP")


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 500\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: nine\r\n\r\nA page.",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nA page.",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nno chunk",
        b"no HTTP at all\r\n\r\n",
        b"HTTP/9.9 999 What\r\n\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\nbad header line\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
    ],
)
async def test_a_server_that_breaks_the_protocol_is_told(world: Any, response: bytes) -> None:
    world.site.routes["/page"] = response
    with pytest.raises((ResponseInvalid, ServiceUnavailable)) as raised:
        await world.reader().read(PAGE)
    assert "site.example/page" in str(raised.value)


async def test_more_than_the_length_it_gave_is_not_read(world: Any) -> None:
    world.site.routes["/page"] = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 7\r\n\r\nA page. And a smuggled one."
    )
    assert (await world.reader().read(PAGE)).text == "A page."


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("401 Unauthorized", AccessRefused),
        ("403 Forbidden", AccessRefused),
        ("404 Not Found", ServiceUnavailable),
        ("410 Gone", ServiceUnavailable),
        ("418 I'm a Teapot", ServiceUnavailable),
        ("429 Too Many Requests", RateLimited),
        ("451 Unavailable For Legal Reasons", AccessRefused),
        ("500 Internal Server Error", ServiceUnavailable),
        ("503 Service Unavailable", ServiceUnavailable),
        ("599 Whatever", ServiceUnavailable),
        ("204 No Content", ResponseInvalid),
        ("206 Partial Content", ResponseInvalid),
        ("300 Multiple Choices", ResponseInvalid),
        ("304 Not Modified", ResponseInvalid),
    ],
)
async def test_each_status_is_told(world: Any, answer: Any, status: str, error: type[Exception]) -> None:
    body = "" if status[:3] in {"204", "304"} else "<p>Sorry, this is not the page.</p>"
    world.site.routes["/page"] = answer(body, "text/html", status)
    await fails(world, error, status[:3], "site.example/page")


@pytest.mark.parametrize(("header", "seconds"), [("7", 7.0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0), ("soon", None)])
async def test_a_server_that_asks_to_wait_says_how_long(
    world: Any, answer: Any, header: str, seconds: float | None
) -> None:
    world.site.routes["/page"] = answer("No.", "text/plain", "429 Too Many Requests", Retry_After=header)
    with pytest.raises(RateLimited) as raised:
        await world.reader().read(PAGE)
    assert raised.value.retry_after == seconds


async def test_a_picture_is_refused_by_its_type_without_being_read(world: Any) -> None:
    async def picture(request: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 5000000\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(60)

    world.site.routes["/page"] = picture
    await fails(world, ResponseInvalid, "image/png")


async def test_binary_data_that_says_it_is_html_is_refused(world: Any) -> None:
    world.serve("/page", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 50, "text/html")
    await fails(world, ResponseInvalid, "is no text")


@pytest.mark.parametrize("body", [b"", b" \r\n\t ", b"<html><head><title>T</title></head><body> <br> </body></html>"])
async def test_an_empty_page_is_told(world: Any, body: bytes) -> None:
    world.serve("/page", body, "text/html")
    await fails(world, ResponseInvalid, "has no text")


@pytest.mark.parametrize(
    "body",
    [
        "<div>" * 100_000 + "A door behind the stairs." + "</div>" * 100_000,
        "<html><body>" + "<b>" * 100_000 + "A door behind the stairs.",
        "<table><tr><td>" * 30_000 + "A door behind the stairs.",
        f"<p title='{'x' * 3_000_000}'>A door behind the stairs.</p>",
        "<p " + " ".join(f"a{number}=1" for number in range(5_000)) + ">A door behind the stairs.</p>",
        "<" * 500_000 + "p>A door behind the stairs.</p>",
    ],
    ids=["divs", "unclosed", "tables", "attribute", "attributes", "brackets"],
)
async def test_html_that_is_nested_or_long_beyond_reason_is_read(world: Any, body: str) -> None:
    world.serve("/page", body, "text/html")
    page = await world.reader().read(PAGE)
    assert "A door behind the stairs." in page.text


async def test_html_that_takes_too_long_ends_its_process_and_the_next_page_is_read(world: Any) -> None:
    world.serve("/page", "<p>a" * 2_400_000, "text/html")
    world.serve("/next", "The next page.")
    reader = world.reader(robots=False, seconds=2.0)
    with pytest.raises((LimitExceeded, ServiceTimeout), match=r"seconds \(seconds\)"):
        await reader.read(PAGE)
    # It starts a process again, for which a busy host may take its time.
    reader._settings = attrs.evolve(reader._settings, seconds=40.0)
    assert (await reader.read("http://site.example/next")).text == "The next page."


async def test_a_name_that_cannot_be_looked_up_is_told(world: Any) -> None:
    await fails(world, ServiceUnavailable, "nowhere.example", "no address", link="http://nowhere.example/")


async def test_a_server_that_is_not_there_is_told(world: Any) -> None:
    world.network.dead.add("93.184.215.14")
    await fails(world, ServiceUnavailable, "site.example", "cannot be reached")
    await fails(world, ServiceUnavailable, "cannot be reached", robots=False)
