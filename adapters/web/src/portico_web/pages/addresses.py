"""Which addresses are public: the judgement, without a network."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Self, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

# The IANA registries of special-purpose addresses (RFC 6890), and what cloud providers put elsewhere.
_SPECIAL_V4: tuple[tuple[IPv4Network, str], ...] = tuple(
    (IPv4Network(network), kind)
    for network, kind in (
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared by a carrier (CGNAT)"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local, where clouds keep their metadata"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved for protocols"),
        ("192.0.2.0/24", "for documentation"),
        ("192.88.99.0/24", "a 6to4 relay"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "for benchmarks"),
        ("198.51.100.0/24", "for documentation"),
        ("203.0.113.0/24", "for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
        ("168.63.129.16/32", "a cloud's own service"),
    )
)
_GLOBAL_V6 = IPv6Network("2000::/3")
_SPECIAL_V6: tuple[tuple[IPv6Network, str], ...] = tuple(
    (IPv6Network(network), kind)
    for network, kind in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("ff00::/8", "multicast"),
        ("2001::/23", "reserved for protocols (Teredo among them)"),
        ("2001:db8::/32", "for documentation"),
        ("3fff::/20", "for documentation"),
    )
)
# IPv6 addresses that stand for an IPv4 one, and the bits below it.
_EMBEDDED: tuple[tuple[IPv6Network, int], ...] = (
    (IPv6Network("::ffff:0:0/96"), 0),  # IPv4-mapped, RFC 4291
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64, RFC 6052
    (IPv6Network("2002::/16"), 80),  # 6to4, RFC 3056
)
_NAMES = {
    "localhost": "this machine",
    "local": "of a local network",
    "internal": "of a private network, where clouds keep their metadata",
    "home.arpa": "of a home network",
}
# The last label of a host that browsers and the C library read as an IPv4 address (WHATWG URL, "ends in a number").
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*", re.IGNORECASE)


def why_not_public(address: Address) -> str | None:
    """Return what keeps an address from being public, or None for a public one.

    >>> from ipaddress import ip_address
    >>> why_not_public(ip_address("::ffff:10.0.0.1")), why_not_public(ip_address("1.1.1.1"))
    ('private', None)
    """
    if isinstance(address, IPv4Address):
        return next((kind for network, kind in _SPECIAL_V4 if address in network), None)
    for network, below in _EMBEDDED:
        if address in network:
            return why_not_public(IPv4Address((int(address) >> below) & 0xFFFFFFFF))
    special = next((kind for network, kind in _SPECIAL_V6 if address in network), None)
    return special or (None if address in _GLOBAL_V6 else "reserved")


def literal(host: str) -> Address | None:
    """Return the address that a host spells out, or None for a name.

    Raises ``ValueError`` for an address in another spelling than the usual one (``0x7f.1``, ``2130706433``,
    ``0177.0.0.1``), which programs read differently, and for one with a zone (``fe80::1%eth0``).
    """
    if ":" in host:
        if "%" in host:
            raise ValueError("an address with a zone is of one machine only")
        return IPv6Address(host)
    if _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]):
        return IPv4Address(host)
    return None


def why_not_public_name(host: str) -> str | None:
    """Return what keeps a name from being public before anything is looked up, or None.

    >>> why_not_public_name("metadata.google.internal")
    'of a private network, where clouds keep their metadata'
    """
    name = host.rstrip(".").lower()
    for suffix, kind in _NAMES.items():
        if name == suffix or name.endswith(f".{suffix}"):
            return kind
    return None if "." in name else "of a local network, since it has no dot"


@dataclass(frozen=True, slots=True)
class Allowed:
    """What may be read although it is not public.

    >>> allowed = Allowed.of(["*.intranet.example", "10.1.0.0/16"])
    >>> allowed.name("wiki.intranet.example"), allowed.address(IPv4Address("10.1.2.3"))
    (True, True)
    """

    names: frozenset[str]
    suffixes: tuple[str, ...]
    networks: tuple[IPv4Network | IPv6Network, ...]

    @classmethod
    def of(cls, entries: tuple[str, ...] | list[str]) -> Self:
        """Read the setting; ``ValueError`` for an entry that is neither a host nor a network."""
        names, suffixes, networks = set(), [], []
        for entry in entries:
            text = entry.strip().lower().rstrip(".")
            if text.startswith("*.") and _is_name(text[2:]):
                suffixes.append(text[1:])
                continue
            try:
                bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
                networks.append(ip_network(bare))
            except ValueError as error:
                if "/" in text or not _is_name(text) or _NUMBER.fullmatch(text.rpartition(".")[2]):
                    raise ValueError(
                        f"{entry!r} is no host, no *.domain and no network such as 10.1.0.0/16; a port is not given"
                    ) from error
                names.add(text)
        return cls(frozenset(names), tuple(suffixes), tuple(networks))

    def name(self, host: str) -> bool:
        """Tell whether a name is allowed, whatever address it has."""
        name = host.rstrip(".").lower()
        return name in self.names or name.endswith(self.suffixes)

    def address(self, address: Address) -> bool:
        """Tell whether an address is in an allowed network, be it mapped into IPv6 or not."""
        mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        return any(candidate in network for candidate in (address, mapped) if candidate for network in self.networks)


def _is_name(text: str) -> bool:
    return re.fullmatch(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*", text) is not None
