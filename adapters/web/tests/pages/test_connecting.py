"""What is connected to is what was checked: the name is looked up once, and goes on as Host and in the certificate."""

from __future__ import annotations

import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from portico.errors import AccessRefused, ServiceUnavailable

PUBLIC = "93.184.215.14"
PAGE = "http://site.example/page"
CERTIFICATE = Path(__file__).parent / "site.example.pem"


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "100.64.1.1",
        "169.254.169.254",
        "172.31.0.1",
        "192.168.1.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "168.63.129.16",
        "::1",
        "::",
        "fe80::1",
        "fe80::1%eth0",
        "fd00:ec2::254",
        "ff02::1",
        "::ffff:10.0.0.1",
        "::ffff:7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2001:0:7f00:1::",
        "::127.0.0.1",
    ],
)
async def test_a_name_with_an_address_that_is_not_public_is_refused(world: Any, address: str) -> None:
    world.serve("/page", "Secret.")
    world.names["site.example"] = [[address]]
    with pytest.raises(AccessRefused, match="not public"):
        await world.reader().read(PAGE)
    assert world.network.connected == []


@pytest.mark.parametrize("addresses", [[PUBLIC, "10.0.0.1"], ["::1", PUBLIC], [PUBLIC] * 9 + ["169.254.169.254"]])
async def test_one_private_address_among_public_ones_condemns_the_name(world: Any, addresses: list[str]) -> None:
    world.names["site.example"] = [addresses]
    with pytest.raises(AccessRefused, match="not public"):
        await world.reader().read(PAGE)
    assert world.network.connected == []


async def test_a_name_that_changes_its_address_is_never_asked_again_for_the_connection(world: Any) -> None:
    world.serve("/page", "A page.")
    world.names["site.example"] = [[PUBLIC], ["127.0.0.1"]]
    page = await world.reader(robots=False).read(PAGE)
    assert page.text == "A page."
    assert world.names.asked == ["site.example"]
    assert world.network.connected == [(PUBLIC, 80)]


async def test_a_name_that_is_private_the_second_time_is_refused_the_second_time(world: Any) -> None:
    world.serve("/page", "A page.")
    world.names["site.example"] = [[PUBLIC], ["127.0.0.1"]]
    reader = world.reader(robots=False)
    await reader.read(PAGE)
    with pytest.raises(AccessRefused, match="not public"):
        await reader.read(PAGE)
    assert world.network.connected == [(PUBLIC, 80)]


async def test_robots_txt_is_fetched_from_checked_addresses_too(world: Any) -> None:
    world.names["site.example"] = [["10.0.0.1"], [PUBLIC]]
    with pytest.raises(AccessRefused, match="not public"):
        await world.reader().read(PAGE)
    assert world.network.connected == []


async def test_a_robots_txt_that_leads_to_a_private_address_is_not_followed(world: Any, moved: Any) -> None:
    world.serve("/page", "A page.")
    world.site.routes["/robots.txt"] = moved("http://169.254.169.254/robots.txt")
    with pytest.raises(AccessRefused, match="169"):
        await world.reader().read(PAGE)
    assert {address for address, _ in world.network.connected} == {PUBLIC}


async def test_the_next_address_is_tried_when_one_is_dead(world: Any) -> None:
    world.serve("/page", "A page.")
    world.names["site.example"] = [["2606:2800:21f::1", PUBLIC]]
    world.network.dead.add("2606:2800:21f::1")
    assert (await world.reader(robots=False).read(PAGE)).text == "A page."
    assert world.network.connected == [("2606:2800:21f::1", 80), (PUBLIC, 80)]


async def test_a_name_with_very_many_dead_addresses_is_given_up(world: Any) -> None:
    world.names["site.example"] = [[f"93.184.215.{number}" for number in range(1, 200)]]
    world.network.dead |= set(world.names.answers["site.example"][0])
    with pytest.raises(ServiceUnavailable, match="cannot be reached"):
        await world.reader(robots=False).read(PAGE)
    assert len(world.network.connected) == 4


@pytest.mark.parametrize("answers", [[], ["no address"], [""]])
async def test_a_resolver_that_answers_nonsense_is_told(world: Any, answers: list[str]) -> None:
    world.names["site.example"] = [answers]
    with pytest.raises(ServiceUnavailable, match="no address"):
        await world.reader(robots=False).read(PAGE)


HANGS = """
import asyncio, socket, time
from portico_web.pages.config import WebPagesSettings
from portico_web.pages.reader import WebPagesPageReader
socket.getaddrinfo = lambda *_, **__: time.sleep(600)

async def main():
    reader = WebPagesPageReader(WebPagesSettings(seconds=0.2))
    for number in range(10):
        try:
            await reader.read(f"http://{number}.example/")
        except Exception as error:
            print(type(error).__name__)
    await reader.aclose()

asyncio.run(main())
"""


def test_names_that_are_never_answered_hold_up_neither_reads_nor_the_end_of_python() -> None:
    done = subprocess.run([sys.executable, "-c", HANGS], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["ServiceTimeout"] * 10, done.stderr


async def test_the_host_header_has_the_name(world: Any) -> None:
    world.serve("/page", "A page.")
    await world.reader(robots=False).read(PAGE)
    await world.reader(robots=False).read("http://site.example:8080/page")
    assert [request.headers["host"] for request in world.site.requests] == ["site.example", "site.example:8080"]


async def test_the_certificate_is_that_of_the_name_though_an_address_is_connected_to(secure_world: Any) -> None:
    secure_world.serve("/page", "A page.")
    trusting = ssl.create_default_context(cafile=CERTIFICATE)
    page = await secure_world.reader(context=trusting).read("https://site.example/page")
    assert page.text == "A page."
    assert secure_world.network.connected == [(PUBLIC, 443)] * 2
    assert set(secure_world.network.server_names) == {"site.example"}


async def test_a_certificate_of_another_name_is_refused(secure_world: Any) -> None:
    trusting = ssl.create_default_context(cafile=CERTIFICATE)
    with pytest.raises(ServiceUnavailable, match="certificate"):
        await secure_world.reader(context=trusting, robots=False).read("https://other.example/page")


async def test_a_certificate_that_nobody_vouches_for_is_refused(secure_world: Any) -> None:
    secure_world.serve("/page", "A page.")
    with pytest.raises(ServiceUnavailable, match="certificate"):
        await secure_world.reader(robots=False).read("https://site.example/page")
    assert secure_world.site.requests == []


@pytest.mark.parametrize("allow", [["127.0.0.1"], ["127.0.0.0/8"], ["10.0.0.0/8", "127.0.0.1/32"]])
async def test_an_allowed_network_is_read_at_any_port_under_any_name(site: Any, world: Any, allow: list[str]) -> None:
    world.serve("/page", "A page.")
    world.names["wiki.internal"] = [["127.0.0.1"]]
    reader = world.reader(allow=tuple(allow))
    assert (await reader.read(site.url("/page"))).text == "A page."
    assert (await reader.read(f"http://wiki.internal:{site.port}/page")).text == "A page."
    with pytest.raises(AccessRefused):
        await reader.read("http://192.168.0.1/")
    with pytest.raises(AccessRefused):
        await reader.read("http://site.example:22/")


@pytest.mark.parametrize("allow", ["wiki.internal", "*.internal", "WIKI.internal."])
async def test_an_allowed_name_is_read_whatever_address_it_has(world: Any, allow: str) -> None:
    world.serve("/page", "A page.")
    world.names["wiki.internal"] = [["10.0.0.1"]]
    world.names["sub.wiki.example"] = [["10.0.0.1"]]
    reader = world.reader(allow=(allow,))
    assert (await reader.read("http://wiki.internal:3000/page")).text == "A page."
    with pytest.raises(AccessRefused):
        await reader.read("http://sub.wiki.example/page")


async def test_the_environment_s_proxies_are_not_used(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    world.serve("/page", "A page.")
    assert (await world.reader().read(PAGE)).text == "A page."


async def test_the_system_s_own_resolver_is_asked_and_checked(world: Any) -> None:
    from portico_web.pages.reader import WebPagesPageReader

    reader = WebPagesPageReader(network=world.network)
    with pytest.raises(AccessRefused, match="not public"):
        await reader.read("http://localhost/")
    await reader.aclose()
    assert world.network.connected == []
