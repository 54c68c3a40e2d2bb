"""What is read of pages of every kind: text, title, encoding, link, and what is kept."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from typing import Any

import pytest

from portico.errors import ResponseInvalid

PAGE = "http://site.example/page"

ARTICLE = """<!doctype html><html><head><title> The red &amp; the blue
door </title><style>p {{}}</style></head><body>
<nav><a href="/">Home</a> <a href="/about">About us</a> <a href="/login">Log in</a></nav>
<article><h1>Doors</h1><p>The red door is behind the stairs, and it is always locked at night because of the cat.</p>
<p>The blue door is in the garden, where the roses are, and nobody has had its key since the old man died.</p></article>
<footer>Copyright, imprint, and all rights reserved.</footer><script>var door = "script";</script></body></html>"""


async def test_the_main_text_of_html_is_read_without_what_is_around_it(world: Any) -> None:
    world.serve("/page", ARTICLE, "text/html; charset=utf-8")
    page = await world.reader().read(PAGE)
    assert "The red door is behind the stairs" in page.text
    assert "The blue door is in the garden" in page.text
    for word in ("Log in", "imprint", "script"):
        assert word not in page.text
    assert (page.title, page.link, page.media_type, page.cut) == ("The red & the blue door", PAGE, "text/html", None)


async def test_a_page_of_few_words_is_read(world: Any) -> None:
    world.serve("/page", "<p>A door.</p>", "text/html")
    assert (await world.reader().read(PAGE)).text == "A door."


@pytest.mark.parametrize(
    ("content_type", "body", "media_type"),
    [
        ("text/plain", "A door.\r\nA roof.", "text/plain"),
        ("text/markdown; charset=utf-8", "# Doors\n\nA *door*.", "text/markdown"),
        ("application/json", '{"door": [1, 2]}', "application/json"),
        ("application/ld+json", '{"door": 1}', "application/ld+json"),
        ("text/csv", "door,roof\n1,2", "text/csv"),
        ("application/xml", "<doors><door/></doors>", "application/xml"),
        ("application/octet-stream", "A door.", "application/octet-stream"),
        (None, "A door.", "text/plain"),
        ("nonsense", "A door.", "text/plain"),
    ],
)
async def test_text_is_read_as_it_is(world: Any, content_type: str | None, body: str, media_type: str) -> None:
    world.serve("/page", body, content_type)
    page = await world.reader().read(PAGE)
    assert page.text == body.replace("\r\n", "\n")
    assert page.media_type == media_type


@pytest.mark.parametrize("content_type", ["application/octet-stream", None, "text/html", "application/xhtml+xml"])
async def test_html_is_known_by_its_beginning_where_the_type_does_not_say(world: Any, content_type: str | None) -> None:
    world.serve("/page", ARTICLE, content_type)
    page = await world.reader().read(PAGE)
    assert page.title == "The red & the blue door"
    assert "html" in page.media_type


WORDS = "Die Tür führt zur Küche – „öffne“ sie."


@pytest.mark.parametrize(
    ("header", "meta", "encoding"),
    [
        ("text/html; charset=utf-8", "", "utf-8"),
        ("text/html; charset=UTF-8; boundary=x", "", "utf-8"),
        ('text/html; charset="windows-1252"', "", "cp1252"),
        ("text/html", '<meta charset="windows-1252">', "cp1252"),
        ("text/html", '<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-1">', "cp1252"),
        ("text/html", "", "utf-8"),
        ("text/html", "", "cp1252"),
        ("text/html", "", "utf-8-sig"),
        ("text/html; charset=iso-8859-1", "", "utf-16"),
        ("text/html; charset=iso-8859-1", "", "utf-8"),
        ("text/html; charset=utf-8", '<meta charset="windows-1252">', "cp1252"),
        ("text/html; charset=ascii", "", "cp1252"),
        ("text/html; charset=nonsense", "", "utf-8"),
        ("text/html; charset=idna", "", "utf-8"),
        ("text/html; charset=unicode_escape", "", "utf-8"),
        ("text/html", '<meta charset="utf-16">', "utf-8"),
        ("text/html", '<?xml version="1.0" encoding="windows-1252"?>', "cp1252"),
    ],
)
async def test_each_way_to_say_an_encoding_is_understood(world: Any, header: str, meta: str, encoding: str) -> None:
    world.serve("/page", f"{meta}<html><body><p>{WORDS}</p></body></html>".encode(encoding), header)
    assert (await world.reader().read(PAGE)).text == WORDS


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("shift_jis", "これはドアです"),
        ("gb18030", "这是一扇门"),
        ("euc_kr", "이것은 문이다"),
        ("koi8_r", "это дверь"),
        ("big5", "這是一扇門"),
    ],
)
async def test_encodings_of_other_scripts_are_understood(world: Any, encoding: str, words: str) -> None:
    world.serve("/page", words.encode(encoding), f"text/plain; charset={encoding.replace('_', '-')}")
    world.serve("/html", f"<meta charset={encoding}><p>{words}</p>".encode(encoding), "text/html")
    reader = world.reader()
    assert (await reader.read(PAGE)).text == words
    assert (await reader.read("http://site.example/html")).text == words


async def test_a_charset_that_is_wrong_for_some_bytes_loses_those_and_no_more(world: Any) -> None:
    world.serve("/page", b"A d\xc3\xb6or \xff and \xe4 roof.", "text/plain; charset=utf-8")
    text = (await world.reader().read(PAGE)).text
    assert text.startswith("A d")
    assert text.endswith("roof.")


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "identity"])
async def test_packed_pages_are_unpacked(world: Any, encoding: str) -> None:
    text = "A door behind the stairs. " * 10_000
    data = text.encode()
    packed = {"gzip": gzip.compress(data), "deflate": zlib.compress(data), "identity": data}[encoding]
    world.serve("/page", packed, "text/plain", Content_Encoding=encoding)
    assert (await world.reader().read(PAGE)).text == text.strip()


async def test_a_pdf_is_read_with_its_title(world: Any, pdf: Any) -> None:
    world.serve("/page", pdf(["A door.", "A roof."], title="Houses"), "application/pdf")
    page = await world.reader().read(PAGE)
    assert (page.text, page.title, page.media_type, page.cut) == (
        "A door.\n\nA roof.",
        "Houses",
        "application/pdf",
        None,
    )


@pytest.mark.parametrize(
    "content_type", ["application/octet-stream", "text/html", "application/pdf; charset=utf-8", None]
)
async def test_a_pdf_is_known_by_its_beginning(world: Any, content_type: str | None, pdf: Any) -> None:
    world.serve("/page", pdf(["A door."]), content_type)
    page = await world.reader().read(PAGE)
    assert (page.text, page.media_type) == ("A door.", "application/pdf")


async def test_a_pdf_of_very_many_pages_is_cut_and_says_so(world: Any, pdf: Any) -> None:
    world.serve("/page", pdf([f"Page {number}." for number in range(3_000)]), "application/pdf")
    page = await world.reader(max_characters=20).read(PAGE)
    assert page.text == "Page 0.\n\nPage 1.\n\nPa"
    assert page.cut == "3 of 3,000 pages"


async def test_a_pdf_that_needs_a_password_is_told_and_one_that_is_only_protected_is_read(world: Any, pdf: Any) -> None:
    world.serve("/page", pdf(["A door."], user="secret"), "application/pdf")
    with pytest.raises(ResponseInvalid, match="is encrypted"):
        await world.reader().read(PAGE)
    world.serve("/page", pdf(["A door."], password="owner"), "application/pdf")
    assert (await world.reader().read(PAGE)).text == "A door."


@pytest.mark.parametrize("damage", ["cut", "garbage", "header only", "no pages", "zeros"])
async def test_a_broken_pdf_is_told(world: Any, damage: str, pdf: Any) -> None:
    whole = pdf(["A door."])
    body = {
        "cut": whole[: len(whole) // 3],
        "garbage": b"%PDF-1.7\n" + bytes(range(256)) * 100,
        "header only": b"%PDF-",
        "no pages": pdf([]),
        "zeros": b"%PDF-1.4\n" + b"\0" * 100_000,
    }[damage]
    world.serve("/page", body, "application/pdf")
    with pytest.raises(ResponseInvalid, match=r"is damaged|has no text"):
        await world.reader().read(PAGE)


async def test_a_text_that_is_too_long_is_cut_and_says_so(world: Any) -> None:
    world.serve("/page", "door " * 1_000)
    page = await world.reader(max_characters=100).read(PAGE)
    assert len(page.text) == 100
    assert page.cut == "the first 100 of 4,999 characters (max_characters)"


async def test_the_link_is_where_the_page_was_found(world: Any, moved: Any) -> None:
    world.site.routes |= {"/page": moved("http://other.example/a%20b?x=1"), "/gone": moved("/page#here", "301 Moved")}
    world.serve("/a%20b?x=1", "A page.")
    reader = world.reader()
    assert (await reader.read(f"{PAGE}#top")).link == "http://other.example/a%20b?x=1#top"
    assert (await reader.read("http://site.example/gone")).link == "http://other.example/a%20b?x=1#here"


@pytest.mark.parametrize("status", ["301 A", "302 B", "303 C", "307 D", "308 E"])
async def test_each_kind_of_redirect_is_followed(world: Any, moved: Any, status: str) -> None:
    world.site.routes["/page"] = moved("/there", status)
    world.serve("/there", "A page.")
    assert (await world.reader().read(PAGE)).text == "A page."


async def test_cookies_are_not_kept(world: Any, answer: Any) -> None:
    world.site.routes["/page"] = answer(b"", None, "302 Found", Location="/there", Set_Cookie="session=1; Path=/")
    world.serve("/there", "A page.", Set_Cookie="session=2; Path=/")
    reader = world.reader()
    for _ in range(2):
        await reader.read(PAGE)
    assert len(world.site.paths) == 4
    for request in world.site.requests:
        assert not {"cookie", "authorization", "referer"} & set(request.headers)


async def test_what_is_asked_for_is_named(world: Any) -> None:
    world.serve("/page", "A page.")
    await world.reader(contact="who@acme.example").read(PAGE)
    headers = world.site.requests[-1].headers
    assert headers["user-agent"].startswith("PorticoPageReader/")
    assert headers["user-agent"].endswith("(+who@acme.example)")
    assert headers["accept-encoding"] == "gzip"


async def test_one_host_is_asked_so_often_at_a_time_and_all_together_so_often(world: Any) -> None:
    async def slow(request: Any, writer: Any) -> None:
        await asyncio.sleep(0.02)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 7\r\n\r\nA page.")

    for number in range(12):
        world.site.routes[f"/{number}"] = slow
    reader = world.reader(per_host=2, concurrency=3, robots=False)
    await asyncio.gather(*(reader.read(f"http://site.example/{number}") for number in range(12)))
    assert world.site.most_connections == 2
    hosts = ("site", "other")
    await asyncio.gather(*(reader.read(f"http://{hosts[number % 2]}.example/{number}") for number in range(12)))
    assert world.site.most_connections == 3


async def test_a_closed_reader_says_so(world: Any) -> None:
    reader = world.reader()
    await reader.aclose()
    with pytest.raises(RuntimeError, match="closed"):
        await reader.read(PAGE)


async def test_a_link_that_is_no_text_is_a_mistake(world: Any) -> None:
    with pytest.raises(TypeError, match="str"):
        await world.reader().read(None)
