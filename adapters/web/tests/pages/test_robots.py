"""robots.txt as RFC 9309 says, and when it cannot be had."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico.errors import AccessRefused, RateLimited, ResponseInvalid, ServiceTimeout
from portico_web.pages.robots import Robots

PAGE = "http://site.example/page"


def allows(text: str, path: str, agent: str = "PorticoPageReader") -> bool:
    return Robots.parse(text.encode(), agent).allows(path)


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("", "/", True),
        ("User-agent: *\nDisallow: /", "/a", False),
        ("User-agent: *\nDisallow: /", "/robots.txt", True),
        ("User-agent: *\nDisallow:", "/a", True),
        ("user-AGENT: porticoPAGEreader\ndisallow: /a", "/a", False),
        ("User-agent: PorticoPageReader/2.0\nDisallow: /a", "/a", False),
        ("User-agent: Portico\nDisallow: /", "/a", True),
        ("User-agent: *\nDisallow: /\n\nUser-agent: PorticoPageReader\nDisallow: /b", "/a", True),
        ("User-agent: PorticoPageReader\nDisallow: /a\nUser-agent: *\nDisallow: /b", "/b", True),
        ("User-agent: Other\nUser-agent: PorticoPageReader\nDisallow: /a", "/a", False),
        ("User-agent: PorticoPageReader\nDisallow: /a\n\nUser-agent: PorticoPageReader\nDisallow: /b", "/b", False),
        ("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b", True),
        ("User-agent: *\nAllow: /a/b\nDisallow: /a", "/a/c", False),
        ("User-agent: *\nDisallow: /a\nAllow: /a", "/a", True),
        ("User-agent: *\nDisallow: /*.gif$", "/x/y.gif", False),
        ("User-agent: *\nDisallow: /*.gif$", "/x/y.gif?z", True),
        ("User-agent: *\nDisallow: /*/secret", "/a/b/secret/c", False),
        ("User-agent: *\nDisallow: /a*b*c", "/acb", True),
        ("User-agent: *\nDisallow: /$", "/", False),
        ("User-agent: *\nDisallow: /$", "/a", True),
        ("User-agent: *\nDisallow: *", "/a", False),
        ("User-agent: *\nDisallow: /%61", "/a", False),
        ("User-agent: *\nDisallow: /ツ", "/%E3%83%84", False),
        ("User-agent: *\nDisallow: /%e3%83%84", "/%E3%83%84", False),
        ("User-agent: *\nDisallow: /a%2Fb", "/a/b", True),
        ("User-agent: *\nDisallow: /a%2fb", "/a%2Fb", False),
        ("User-agent: *\nDisallow: /p?q=1", "/p?q=1&r", False),
        ("# a remark\nUser-agent: * # all\nDisallow: /a # this\nSitemap: x\nCrawl-delay: 9\nnonsense", "/a", False),
        ("Disallow: /", "/a", True),
        ("User-agent: *\nSitemap: http://x/\nDisallow: /a", "/a", False),
        ("\ufeffUser-agent: *\r\nDisallow: /a\r\n", "/a", False),
        ("User-agent: *\rDisallow: /a\r", "/a", False),
        ("<html>Not found</html>", "/a", True),
    ],
)
def test_the_rules_are_read_as_the_standard_says(text: str, path: str, expected: bool) -> None:
    assert allows(text, path) is expected


@given(st.binary(max_size=300) | st.text("aAbB:*$%/#\n\r ureg-tdisloUWD2Ff", max_size=300).map(str.encode), st.text())
def test_any_file_is_read(data: bytes, path: str) -> None:
    assert Robots.parse(data, "Reader").allows(f"/{path}") in {True, False}


@given(st.text("/ab*", min_size=1, max_size=12).map(lambda path: f"/{path}"), st.text("/ab", max_size=12))
def test_a_pattern_matches_what_it_does_as_a_regular_expression(pattern: str, path: str) -> None:
    import re

    expected = re.match(re.escape(pattern).replace(r"\*", ".*"), f"/{path}") is None
    assert allows(f"User-agent: *\nDisallow: {pattern}", f"/{path}") is expected
    at_the_end = re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), f"/{path}") is None
    assert allows(f"User-agent: *\nDisallow: {pattern}$", f"/{path}") is at_the_end


@pytest.mark.parametrize(
    "rule", ["Disallow: /" + "a*" * 200 + "b", "Disallow: /" + "*a" * 5_000, "Disallow: /*a*b*c*d*e*f*g*h$"]
)
def test_patterns_that_are_made_to_be_slow_are_not(rule: str) -> None:
    text = "User-agent: *\n" + f"{rule}\n" * (500_000 // len(rule))
    began = time.monotonic()
    allows(text, "/" + "a" * 4_000)
    assert time.monotonic() - began < 20


def rules(text: str) -> bytes:
    return f"User-agent: *\n{text}".encode()


async def test_what_robots_txt_forbids_is_not_asked_for(world: Any) -> None:
    world.serve("/page", "A page.")
    world.serve("/robots.txt", rules("Disallow: /page"))
    with pytest.raises(AccessRefused, match=r"robots\.txt of its site forbids it to PorticoPageReader"):
        await world.reader().read(PAGE)
    assert world.site.paths == []
    assert (await world.reader(robots=False).read(PAGE)).text == "A page."


async def test_it_is_read_for_the_name_that_is_sent(world: Any) -> None:
    world.serve("/page", "A page.")
    world.serve("/robots.txt", b"User-agent: PorticoPageReader\nDisallow: /")
    with pytest.raises(AccessRefused, match="PorticoPageReader"):
        await world.reader(contact="https://acme.example/bot").read(PAGE)
    (request,) = world.site.requests
    assert request.headers["user-agent"] == "PorticoPageReader/0.1.0 (+https://acme.example/bot)"
    world.serve("/robots.txt", b"User-agent: AcmeReader\nDisallow: /")
    assert (await world.reader().read(PAGE)).text == "A page."


async def test_it_is_asked_for_once_for_many_pages_of_a_site_and_port(world: Any) -> None:
    for number in range(3):
        world.serve(f"/{number}", "A page.")
    reader = world.reader()
    for number in range(3):
        await reader.read(f"http://site.example/{number}")
    await reader.read("http://site.example:8080/0")
    await reader.read("http://other.example/0")
    asked = [request.headers["host"] for request in world.site.requests if request.path == "/robots.txt"]
    assert asked == ["site.example", "site.example:8080", "other.example"]


async def test_reads_that_begin_together_ask_for_it_once(world: Any) -> None:
    links = [world.serve(f"/{number}", "A page.") for number in range(8)]
    reader = world.reader(per_host=4)
    pages = await asyncio.gather(*(reader.read(link) for link in links))
    assert {page.text for page in pages} == {"A page."}
    assert [request.path for request in world.site.requests].count("/robots.txt") == 1


async def test_a_read_that_is_cancelled_while_it_asks_leaves_that_to_the_next(world: Any, answer: Any) -> None:
    release = asyncio.Event()

    async def slow(request: Any, writer: Any) -> None:
        await release.wait()
        writer.write(answer("User-agent: *\nAllow: /"))

    world.site.routes["/robots.txt"] = slow
    world.serve("/page", "A page.")
    reader = world.reader()
    first, second = (asyncio.create_task(reader.read(PAGE)) for _ in range(2))
    await asyncio.sleep(0.05)
    first.cancel()
    await asyncio.wait({first})
    release.set()
    assert (await second).text == "A page."


async def test_the_target_of_a_redirect_is_asked_about_too(world: Any, moved: Any) -> None:
    world.site.routes["/page"] = moved("/private")
    world.serve("/private", "Secret.")
    world.serve("/robots.txt", rules("Disallow: /private"))
    with pytest.raises(AccessRefused, match=r"/private.*robots\.txt"):
        await world.reader().read(PAGE)
    assert world.site.paths == ["/page"]


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden", "404 Not Found", "410 Gone"])
async def test_without_a_file_everything_may_be_read(world: Any, answer: Any, status: str) -> None:
    world.serve("/page", "A page.")
    world.site.routes["/robots.txt"] = answer("No.", "text/plain", status)
    assert (await world.reader().read(PAGE)).text == "A page."


@pytest.mark.parametrize("status", ["500 Internal Server Error", "503 Service Unavailable", "600 What"])
async def test_a_server_that_fails_forbids_everything(world: Any, answer: Any, status: str) -> None:
    world.serve("/page", "A page.")
    world.site.routes["/robots.txt"] = answer("No.", "text/plain", status)
    reader = world.reader()
    for _ in range(2):
        with pytest.raises(AccessRefused, match=r"robots\.txt.* answered [56]"):
            await reader.read(PAGE)
    assert world.site.paths == []


async def test_a_server_that_asks_to_wait_is_waited_for(world: Any, answer: Any) -> None:
    world.site.routes["/robots.txt"] = answer("No.", "text/plain", "429 Too Many Requests", Retry_After="9")
    with pytest.raises(RateLimited) as raised:
        await world.reader().read(PAGE)
    assert raised.value.retry_after == 9


async def test_redirects_of_it_are_followed_and_too_many_count_as_no_file(world: Any, moved: Any) -> None:
    world.serve("/page", "A page.")
    world.site.routes["/robots.txt"] = moved("http://other.example/rules")
    world.serve("/rules", rules("Disallow: /page"))
    with pytest.raises(AccessRefused, match="forbids"):
        await world.reader().read(PAGE)
    world.site.routes["/robots.txt"] = moved("/robots.txt")
    assert (await world.reader().read(PAGE)).text == "A page."


async def test_of_an_endless_file_the_beginning_counts(world: Any) -> None:
    async def endless(request: Any, writer: Any) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nUser-agent: *\nDisallow: /page\n")
        while True:
            writer.write(b"# and so on\n" * 1_000)
            await writer.drain()

    world.site.routes["/robots.txt"] = endless
    with pytest.raises(AccessRefused, match="forbids"):
        await world.reader().read(PAGE)


async def test_a_file_that_is_cut_off_forbids_nothing_but_the_reading(world: Any) -> None:
    world.site.routes["/robots.txt"] = b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\nUser-agent: *"
    with pytest.raises(ResponseInvalid, match=r"robots\.txt"):
        await world.reader().read(PAGE)


async def test_waiting_for_it_is_part_of_the_time_for_the_page(world: Any) -> None:
    async def silent(request: Any, writer: Any) -> None:
        await asyncio.sleep(60)

    world.site.routes["/robots.txt"] = silent
    with pytest.raises(ServiceTimeout):
        await world.reader(seconds=0.2).read(PAGE)
