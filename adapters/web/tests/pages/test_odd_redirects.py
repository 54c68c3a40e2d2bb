"""However odd a redirect is written, it leads to a public page or nowhere."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from portico.errors import AccessRefused, PorticoError
from portico_web.pages.addresses import Allowed, LinkRules

PAGE = "http://site.example/page"
PUBLIC = {"93.184.215.14", "93.184.215.15"}


@pytest.mark.parametrize(
    "location",
    [
        b"http://[::ffff:7f00:1]/",
        b"http://[::ffff:0:127.0.0.1]/",
        b"http://[::]/",
        b"http://[0:0:0:0:0:0:0:1]/",
        b"http://[fe80::1%25eth0]/",
        b"http://[fe80::1%eth0]/",
        b"http://[2002:7f00:1::]/",
        b"http://[2002:a9fe:a9fe::1]/",
        b"http://[64:ff9b::127.0.0.1]/",
        b"http://[64:ff9b::a9fe:a9fe]/",
        b"http://[64:ff9b:1::7f00:1]/",
        b"http://[2001:0:7f00:1::]/",
        b"http://[2001:0:4136:e378:8000:63bf:80ff:fffe]/",
        b"http://0/",
        b"http://0x7f.1/",
        b"http://127.1/",
        b"http://127.0.0.1./",
        b"http://0177.0.0.01/",
        b"//127.0.0.1/",
        b"///127.0.0.1/",
        b"http:///127.0.0.1/",
        b"http:/\\127.0.0.1/",
        b"\\\\127.0.0.1\\",
        b"/\\127.0.0.1/",
        b"http://site.example\\@127.0.0.1/",
        b"http://127.0.0.1\\@site.example/",
        b"http://site.example@127.0.0.1/",
        b"http://user:s3cret@127.0.0.1/",
        b"http://site.example:s3cret@other.example/there",
        b"http://127.0.0.1#@site.example/",
        b"http://127.0.0.1?@site.example/",
        b"http://127.0.0.1%2f@site.example/",
        b"http://127.0.0.1%00.site.example/",
        b"http://127%2e0%2e0%2e1/",
        "http://１２７.０.０.１/".encode(),
        "http://127。0。0。1/".encode(),
        "http://①⑥⑨.②⑤④.①⑥⑨.②⑤④/".encode(),
        "http://ｌocalhost/".encode(),
        "http://localho\u017ft/".encode(),
        "http://lo\u00adcalhost/".encode(),
        "http://bücher.example/".encode(),
        b"http://b\xfccher.example/",
        b"http://xn--/",
        b"http://xn--a/",
        b"http://localhost./",
        b"http://LOCALHOST:80/",
        b"http://site.example:22/",
        b"http://site.example:99999/",
        b"http://site.example:-80/",
        b"http://site.example:8 0/",
        b"http://site.example:0x50/",
        b"http://site.example.:6379/",
        b"http://site..example/",
        b"http://.site.example/",
        b"http://private.example/",
        b"http://mixed.example/",
        b"gopher://127.0.0.1:6379/_FLUSHALL",
        b"HTTP+unix://%2Fvar%2Frun%2Fdocker.sock/",
        b"\tfile:///etc/passwd",
        b"http://127.0.0.1\t/",
        b"//[::1]:80/",
        b"http://%5B::1%5D/",
        b"http://site.example\r\n there/",
    ],
)
async def test_an_odd_redirect_leads_nowhere(world: Any, location: bytes) -> None:
    world.names["private.example"] = [["10.0.0.7"]]
    world.names["mixed.example"] = [["93.184.215.15", "2606:2800:21f::1", "::ffff:10.0.0.7"]]
    world.site.routes["/page"] = (
        b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nConnection: close\r\nLocation: " + location + b"\r\n\r\n"
    )
    with pytest.raises(PorticoError) as raised:
        await world.reader(robots=False).read(PAGE)
    assert "s3cret" not in str(raised.value)
    assert {address for address, _ in world.network.connected} <= PUBLIC, "something else was reached"
    assert {port for _, port in world.network.connected} == {80}


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        (b"there", "http://site.example/there"),
        (b"./a/../there", "http://site.example/there"),
        (b"//other.example/there", "http://other.example/there"),
        (b"?q=1", "http://site.example/page?q=1"),
        (b"http://SITE.example/there", "http://site.example/there"),
        (b"/th%65re\xc3\xbc", "http://site.example/th%65re%C3%BC"),
        ("/ü".encode("latin-1"), "http://site.example/%C3%BC"),
        (b"  /there  ", "http://site.example/there"),
        (b"http://other.example./there", "http://other.example./there"),
    ],
)
async def test_a_redirect_in_another_spelling_is_followed(world: Any, location: bytes, expected: str) -> None:
    world.names["other.example."] = [["93.184.215.15"]]
    world.site.routes["/page"] = (
        b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nConnection: close\r\nLocation: " + location + b"\r\n\r\n"
    )
    for path in ("/there", "/page?q=1", "/th%65re%C3%BC", "/%C3%BC"):
        world.serve(path, "A page.")
    page = await world.reader(robots=False).read(PAGE)
    assert (page.text, page.link) == ("A page.", expected)


hosts = st.one_of(
    st.ip_addresses().map(lambda address: f"[{address}]" if address.version == 6 else str(address)),
    st.text("0123456789.xX:[]%@\\/abcdef\uff10\u3002\u2460", min_size=1, max_size=20),
    st.text(min_size=1, max_size=8),
)


@given(hosts, st.sampled_from(["http://", "//", "https:", "/\\", "http:\\\\", ""]), st.sampled_from(["", ":80", ":1"]))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_what_passes_the_rules_is_a_public_address_or_a_plain_name(host: str, start: str, port: str) -> None:
    import re
    from ipaddress import ip_address

    import httpx

    rules = LinkRules(Allowed.parse([]), (80, 443))
    try:
        url = rules.check(str(httpx.URL("http://site.example/page").join(f"{start}{host}{port}/")))
    except (AccessRefused, httpx.InvalidURL, ValueError):
        return
    spelt = url.raw_host.decode("ascii").strip("[]")
    if ":" in spelt or spelt.replace(".", "").isdigit():
        address = ip_address(spelt)
        assert (getattr(address, "ipv4_mapped", None) or address).is_global, f"{spelt} passes"
    else:
        assert re.fullmatch(r"[a-z0-9._-]+", spelt), f"{spelt!r} passes as a name"


async def test_reads_that_are_cancelled_at_any_moment_leave_nothing_behind(world: Any) -> None:
    world.serve("/page", "<p>A door behind the stairs.</p>" * 2_000, "text/html")
    reader = world.reader()
    before = asyncio.all_tasks()
    for seconds in (0.0, 0.002, 0.005, 0.01, 0.02, 0.05):
        reading = asyncio.create_task(reader.read(PAGE))
        await asyncio.sleep(seconds)
        reading.cancel()
        await asyncio.wait({reading})
    assert "A door" in (await reader.read(PAGE)).text, "a read that was cancelled holds a place"
    await reader.aclose()
    await asyncio.sleep(0)
    mine = {task for task in asyncio.all_tasks() - before if "Site.handle" not in str(task)}
    assert not mine
