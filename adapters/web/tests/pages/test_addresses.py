"""No address that is not public passes, in whatever form it comes."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import pytest
from hypothesis import given, strategies as st

from portico.errors import AccessRefused
from portico_web.pages.addresses import Allowed, LinkRules, is_public, is_public_name, parse_address, show

RULES = LinkRules(Allowed.parse([]), (80, 443))

# From the IANA registries, written down a second time: "Globally Reachable" is false, or the block is not unicast.
NOT_PUBLIC = [
    "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24",
    "192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4",
    "::/128 ::1/128 ::/96 64:ff9b:1::/48 100::/64 2001::/32 2001:2::/48 2001:10::/28 2001:db8::/32 3fff::/20",
    "5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8 4000::/2 8000::/1",
]
NETWORKS = [ip_network(network) for line in NOT_PUBLIC for network in line.split()]


def within(network: IPv4Network | IPv6Network) -> st.SearchStrategy[IPv4Address | IPv6Address]:
    first, last = int(network.network_address), int(network.broadcast_address)
    kind = type(network.network_address)
    return st.one_of(st.sampled_from([first, last]), st.integers(first, last)).map(kind)


not_public = st.sampled_from(NETWORKS).flatmap(within)
not_public_v4 = st.sampled_from([network for network in NETWORKS if network.version == 4]).flatmap(within)


@given(not_public)
def test_what_the_registries_reserve_is_not_public(address: IPv4Address | IPv6Address) -> None:
    assert not is_public(address), f"{address} passes as public"


@given(not_public_v4)
def test_an_ipv4_address_stays_what_it_is_inside_of_an_ipv6_one(address: IPv4Address) -> None:
    number = int(address)
    for form in (
        IPv6Address(f"::ffff:{address}"),
        IPv6Address(int(IPv6Address("64:ff9b::")) | number),
        IPv6Address(int(IPv6Address("2002::")) | number << 80 | 1),
        IPv6Address(number),
    ):
        assert not is_public(form), f"{form} passes as public"


@given(st.ip_addresses())
def test_what_python_holds_for_private_is_not_public(address: IPv4Address | IPv6Address) -> None:
    if address.is_private or address.is_multicast or address.is_reserved or address.is_loopback:
        embeds = isinstance(address, IPv6Address) and (address.ipv4_mapped or address in IPv6Network("64:ff9b::/96"))
        assert embeds or not is_public(address), f"{address} passes as public"


@pytest.mark.parametrize(
    "address",
    ["1.1.1.1", "93.184.215.14", "172.15.0.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:1.1.1.1",
     "64:ff9b::101:101", "169.253.0.1", "192.0.1.1", "223.255.255.255"],
)  # fmt: skip
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(ip_address(address))


def spellings(address: IPv4Address) -> list[str]:
    """Return how the C library's inet_aton lets an address be written."""
    number = int(address)
    parts = [number >> shift & 255 for shift in (24, 16, 8, 0)]
    return [
        str(number),
        hex(number),
        f"0{number:o}",
        ".".join(hex(part) for part in parts),
        ".".join(f"0{part:o}" for part in parts),
        f"{parts[0]}.{number & 0xFFFFFF}",
        f"{parts[0]}.{parts[1]}.{number & 0xFFFF}",
        f"0X{number:X}",
        f"{address}.",
    ]


@given(not_public_v4)
def test_no_spelling_of_an_address_passes(address: IPv4Address) -> None:
    for host in [str(address), *spellings(address)]:
        with pytest.raises(AccessRefused):
            RULES.check(f"http://{host}/")


@given(st.ip_addresses(v=4))
def test_unusual_spellings_are_no_addresses(address: IPv4Address) -> None:
    assert parse_address(str(address)) == address
    for host in spellings(address)[:4]:
        with pytest.raises(ValueError):
            parse_address(host)


@pytest.mark.parametrize(
    "name",
    ["localhost", "LOCALHOST.", "a.localhost", "router", "printer.local", "metadata.google.internal",
     "METADATA.GOOGLE.INTERNAL.", "instance-data.ec2.internal", "nas.home.arpa"],
)  # fmt: skip
def test_names_that_are_never_public_need_no_look_up(name: str) -> None:
    assert not is_public_name(name)
    with pytest.raises(AccessRefused, match="not public"):
        RULES.check(f"http://{name}/")


@pytest.mark.parametrize(
    "link",
    [
        "http://１２７.０.０.１/",
        "http://①②⑦.0.0.1/",
        "http://127。0。0。1/",
        "http://127.0.0.1%2f@example.org/",
        "http://example.org%00.local/",
        "http://example.org#@127.0.0.1:22/",
        "http://example.org@127.0.0.1/",
        "http:\\\\127.0.0.1/",
        "http://example.org\\.local/",
        "http:///127.0.0.1/",
        "http:127.0.0.1",
        "http://[::1%25eth0]/",
        "http://[::127.0.0.1]/",
        "http://0/",
        "http://10%2e0%2e0%2e1/",
        "http://10.0.0.1%3C/",
        "http://10.0.0.1,example.org/",
        "http://0x/",
        "http://127.1/",
        "http://\n127.0.0.1/",
        "http://\t127.0.0.1/",
        "HTTP://LOCALHOST/",
        "http://site.example:0/",
        "http://site.example:25/",
    ],
)
def test_tricks_with_hosts_lead_nowhere(link: str) -> None:
    try:
        url = RULES.check(link)
    except AccessRefused:
        return
    assert url.host == "example.org", f"{link!r} leads to {url.host}"
    assert url.port is None


@given(st.text(max_size=60), st.sampled_from(["", "http://", "https://", "http://a.example/", "http://10.0.0.1"]))
def test_any_link_is_taken_or_refused(rest: str, start: str) -> None:
    try:
        url = RULES.check(start + rest)
    except AccessRefused as error:
        assert len(str(error)) < 1_000
        return
    assert url.scheme in {"http", "https"}
    assert not url.userinfo
    assert url.raw_path.startswith(b"/")
    assert (url.port or 80) in RULES.ports
    assert not set(b" \r\n\t") & set(url.raw_path)
    assert str(RULES.check(str(url))) == str(url), "a link that was taken is another the second time"


@given(st.text())
def test_any_link_can_be_show(link: str) -> None:
    told = show(link)
    assert len(told) < 2_500
    assert told.isprintable()


@pytest.mark.parametrize(
    "link", ["http://u:s3cret@h.example/", "http://s3cret@h/", "x://:s3cret@[h", "http://s3cret@[::1/"]
)
def test_a_password_is_not_show(link: str) -> None:
    assert "s3cret" not in show(link)


@pytest.mark.parametrize(
    "entry", ["10.0.0.1/8", "host:80", "http://host/", "", "*", "*.", "a b", "300.1.1.1", "[::1", "-a"]
)
def test_a_mistaken_entry_of_allow_is_told(entry: str) -> None:
    with pytest.raises(ValueError, match="is no host"):
        Allowed.parse([entry])


def test_an_allowed_entry_allows_what_it_says_and_no_more() -> None:
    allowed = Allowed.parse(["wiki", "*.corp.example", "10.1.0.0/16", "[fd00::1]"])
    assert [allowed.has_name(name) for name in ("WIKI.", "a.b.corp.example")] == [True, True]
    assert not any(allowed.has_name(name) for name in ("corp.example", "evilcorp.example", "x.wiki"))
    assert [allowed.has_address(ip_address(one)) for one in ("10.1.9.9", "::ffff:10.1.9.9", "fd00::1")] == [True] * 3
    assert not any(allowed.has_address(ip_address(one)) for one in ("10.2.0.0", "fd00::2", "::ffff:10.2.0.0"))
    assert not Allowed.parse([]).has_name("anything.example")
