"""Decide which links and addresses may be read. Nothing here uses a network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import TYPE_CHECKING, Self, TypeAlias

from portico.errors import AccessRefused

if TYPE_CHECKING:
    import httpx

Address: TypeAlias = IPv4Address | IPv6Address

# The IANA registries of special-purpose addresses (RFC 6890), and what cloud providers put elsewhere.
_SPECIAL_V4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
_GLOBAL_V6 = IPv6Network("2000::/3")
# 2002::/16 is 6to4: its relays are deprecated (RFC 7526), and it may stand for a private IPv4 address.
_SPECIAL_V6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
# IPv6 addresses whose last 32 bits are an IPv4 address: mapped (RFC 4291) and NAT64 (RFC 6052).
_EMBEDDED = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))
_PRIVATE_NAMES = ("localhost", "local", "internal", "home.arpa")
# The last label of a host that browsers and the C library read as an IPv4 address (WHATWG URL, "ends in a number").
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_USER = re.compile(r"^([^/?#]*//)[^/?#]*@")
_PORTS = {"http": 80, "https": 443}
_LONGEST = 8_000
_SHOWN = 200


def is_public(address: Address) -> bool:
    """Tell whether an address belongs to the public internet.

    >>> from ipaddress import ip_address
    >>> is_public(ip_address("::ffff:10.0.0.1")), is_public(ip_address("1.1.1.1"))
    (False, True)
    """
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_V4)
    if any(address in network for network in _EMBEDDED):
        return is_public(IPv4Address(int(address) & 0xFFFFFFFF))
    return address in _GLOBAL_V6 and not any(address in network for network in _SPECIAL_V6)


def is_public_name(host: str) -> bool:
    """Tell whether a name may be public. Names without a dot and names of local networks are not.

    >>> is_public_name("metadata.google.internal")
    False
    """
    name = host.rstrip(".").lower()
    return "." in name and not any(name == suffix or name.endswith(f".{suffix}") for suffix in _PRIVATE_NAMES)


def parse_address(host: str) -> Address | None:
    """Return the address that a host spells out, or None for a name.

    Raises ``ValueError`` for an address in another spelling than the usual one (``0x7f.1``, ``2130706433``,
    ``0177.0.0.1``), which programs read differently, and for one with a zone (``fe80::1%eth0``).
    """
    if ":" in host:
        if "%" in host:
            raise ValueError("an address with a zone belongs to one machine")
        return IPv6Address(host)
    if _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]):
        return IPv4Address(host)
    return None


@dataclass(frozen=True, slots=True)
class Allowed:
    """Hosts and networks that may be read although they are not public.

    >>> allowed = Allowed.parse(["*.intranet.example", "10.1.0.0/16"])
    >>> allowed.has_name("wiki.intranet.example"), allowed.has_address(IPv4Address("10.1.2.3"))
    (True, True)
    """

    names: frozenset[str]
    """Names, and ``*.domain`` for all names below a domain."""
    networks: tuple[IPv4Network | IPv6Network, ...]

    @classmethod
    def parse(cls, entries: Sequence[str]) -> Self:
        """Read the setting ``allow``; ``ValueError`` for an entry that is neither a host nor a network."""
        names, networks = set(), []
        for entry in entries:
            text = entry.strip().lower().rstrip(".")
            try:
                networks.append(ip_network(text[1:-1] if text.startswith("[") and text.endswith("]") else text))
            except ValueError as error:
                is_domain = text.startswith("*.") and _is_name(text[2:])
                if not is_domain and (not _is_name(text) or _NUMBER.fullmatch(text.rpartition(".")[2])):
                    raise ValueError(
                        f"{entry!r} is no host, no *.domain and no network such as 10.1.0.0/16; ports are not given"
                    ) from error
                names.add(text)
        return cls(frozenset(names), tuple(networks))

    def has_name(self, host: str) -> bool:
        """Tell whether a name is allowed, whatever address it has."""
        name = host.rstrip(".").lower()
        return any(fnmatchcase(name, pattern) for pattern in self.names)

    def has_address(self, address: Address) -> bool:
        """Tell whether an address is in an allowed network, mapped into IPv6 or not."""
        mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        return any(candidate in network for candidate in (address, mapped) if candidate for network in self.networks)


def _is_name(text: str) -> bool:
    return re.fullmatch(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*", text) is not None


@dataclass(frozen=True, slots=True)
class LinkRules:
    """The rules for every link, including the targets of redirects.

    >>> rules = LinkRules(Allowed.parse([]), (80, 443))
    >>> str(rules.check("https://example.org/a b#c"))
    'https://example.org/a%20b#c'
    >>> rules.check("file:///etc/passwd")
    Traceback (most recent call last):
    portico.errors.AccessRefused: The link 'file:///etc/passwd' is not read: it is no http or https URL.
    """

    allowed: Allowed
    ports: tuple[int, ...]
    looks_up: bool = True
    """Whether `check_addresses` follows. With a proxy it does not, since the proxy looks up names."""

    def check(self, link: str) -> httpx.URL:
        """Return the parsed link; ``AccessRefused`` says why it is not read."""
        try:
            url = self._parse(link)
            self._check_host(url)
        except ValueError as error:
            raise AccessRefused(f"The link {show(link)} is not read: {error}.") from error
        return url

    def check_addresses(self, host: str, port: int, addresses: Sequence[Address]) -> None:
        """Raise ``AccessRefused`` unless every address of a name may be read.

        One private address among public ones refuses the name: an attacker publishes both to reach the private one.
        """
        try:
            for address in addresses:
                self._check_address(host, port, address)
        except ValueError as error:
            raise AccessRefused(f"Nothing is read from {host}: {error}.") from error

    def _parse(self, link: str) -> httpx.URL:
        import httpx  # not needed where only the settings are read

        if len(link) > _LONGEST:
            raise ValueError(f"it has more than {_LONGEST:,} characters")
        link = link.strip()
        if "\\" in link.partition("?")[0]:
            # Browsers read it as "/", other programs as part of a host or a user.
            raise ValueError("it contains a backslash")
        try:
            url = httpx.URL(link)
        except (httpx.InvalidURL, ValueError, TypeError) as error:
            raise ValueError("it is no URL") from error
        if url.scheme not in _PORTS:
            raise ValueError("it is no http or https URL")
        if not url.host:
            raise ValueError("it has no host")
        if url.userinfo:
            raise ValueError("it contains a user or a password")
        return url

    def _check_host(self, url: httpx.URL) -> None:
        host = url.raw_host.decode("ascii").strip("[]")
        port = _PORTS[url.scheme] if url.port is None else url.port
        try:
            address = parse_address(host)
        except ValueError as error:
            raise ValueError(f"the host {host!r} is no usual address or name ({error})") from error
        if address is not None:
            self._check_address(host, port, address)
        elif not _NAME.fullmatch(host):  # escapes among them: browsers undo those in hosts, other programs do not
            raise ValueError(f"the host {host!r} has characters that no name has")
        elif not self.allowed.has_name(host) and not (self.looks_up and self.allowed.networks):
            self._check_name(host, port)

    def _check_address(self, host: str, port: int, address: Address) -> None:
        if self.allowed.has_address(address) or self.allowed.has_name(host):
            return
        if not is_public(address):
            raise ValueError(f"the address {address} is not public; `allow` of [pages.web-pages] can name it")
        if parse_address(host) is None:
            self._check_name(host, port)
        self._check_port(port)

    def _check_name(self, host: str, port: int) -> None:
        if not is_public_name(host):
            raise ValueError(f"the host {host!r} is not public; `allow` of [pages.web-pages] can name it")
        self._check_port(port)

    def _check_port(self, port: int) -> None:
        if port not in self.ports:
            raise ValueError(f"the port {port} is not in `ports` of [pages.web-pages]")


def show(link: str) -> str:
    """Return a link for a message: short, printable, without a user or a password."""
    text = _USER.sub(r"\1…@", link[:_LONGEST])
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
