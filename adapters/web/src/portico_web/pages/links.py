"""Which links are read at all: what can be told from a link alone, before anything is looked up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from portico.errors import AccessRefused
from portico_web.pages.addresses import Address, Allowed, literal, why_not_public, why_not_public_name

_LONGEST = 8_000
_SHOWN = 200
_PORTS = {"http": 80, "https": 443}
# Escapes among them: browsers undo those in hosts, other programs do not.
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_USER = re.compile(r"^([^/?#]*//)[^/?#]*@")
_ADVICE = "`allow` of [pages.web-pages] can name it"


@dataclass(frozen=True, slots=True)
class LinkRules:
    """The rules that every link must keep, those of redirects too.

    >>> rules = LinkRules(Allowed.of([]), (80, 443))
    >>> str(rules.checked("https://example.org/a b#c"))
    'https://example.org/a%20b#c'
    >>> rules.checked("file:///etc/passwd")
    Traceback (most recent call last):
    portico.errors.AccessRefused: The link 'file:///etc/passwd' is not read: it is no http or https URL.
    """

    allowed: Allowed
    ports: tuple[int, ...]
    looks_up: bool = True
    """Whether `check_addresses` comes later; not where a proxy looks names up."""

    def checked(self, link: str) -> httpx.URL:
        """Return the link as it is asked for; ``AccessRefused`` says what is wrong with it."""
        try:
            url = self._parsed(link)
            self._check_host(url)
        except ValueError as error:
            raise AccessRefused(f"The link {shown(link)} is not read: {error}.") from error
        return url

    def _parsed(self, link: str) -> httpx.URL:
        if len(link) > _LONGEST:
            raise ValueError(f"it has {len(link):,} characters, and {_LONGEST:,} are the most")
        link = link.strip()
        if "\\" in link.partition("?")[0]:
            # Browsers read it as "/", other programs as part of a host or a user: they disagree where it leads.
            raise ValueError("it has a backslash in it")
        try:
            url = httpx.URL(link)
        except (httpx.InvalidURL, ValueError, TypeError) as error:
            # httpx quotes the part that is wrong, which may be where a password stands.
            raise ValueError("it is no URL" if "@" in link else f"it is no URL ({str(error)[:_SHOWN]})") from error
        if url.scheme not in _PORTS:
            raise ValueError("it is no http or https URL")
        if not url.host:
            raise ValueError("it has no host")
        if url.userinfo:
            raise ValueError("it has a user or password in it")
        return url

    def _check_host(self, url: httpx.URL) -> None:
        host = url.raw_host.decode("ascii").strip("[]")
        port = _PORTS[url.scheme] if url.port is None else url.port
        try:
            address = literal(host)
        except ValueError as error:
            raise ValueError(f"the host {host!r} is no usual address or name ({error})") from error
        if address is None and not _NAME.fullmatch(host):
            raise ValueError(f"the host {host!r} has characters in it that no name has")
        if address is not None:
            self._check(host, port, address)
        elif not self.allowed.name(host) and not (self.looks_up and self.allowed.networks):
            self._check_name(host, port)

    def check_addresses(self, host: str, port: int, addresses: Sequence[Address]) -> None:
        """Raise ``AccessRefused`` unless every address that a name has may be connected to.

        One that may not be condemns them all: who gives a name a private address beside a public one wants the
        private one to be reached.
        """
        try:
            for address in addresses:
                self._check(host, port, address)
        except ValueError as error:
            raise AccessRefused(f"Nothing is read from {host}: {error}.") from error

    def _check(self, host: str, port: int, address: Address) -> None:
        if self.allowed.address(address) or self.allowed.name(host):
            return
        kind = why_not_public(address)
        if kind is not None:
            of_name = f"{address}, an address of {host!r}," if str(address) != host else f"the address {address}"
            raise ValueError(f"{of_name} is not public ({kind}); {_ADVICE}")
        if str(address) != host and literal(host) is None:
            self._check_name(host, port)
        self._check_port(port)

    def _check_name(self, host: str, port: int) -> None:
        kind = why_not_public_name(host)
        if kind is not None:
            raise ValueError(f"the host {host!r} is not public ({kind}); {_ADVICE}")
        self._check_port(port)

    def _check_port(self, port: int) -> None:
        if port not in self.ports:
            listed = ", ".join(map(str, self.ports))
            raise ValueError(f"the port {port} is none of {listed}; `ports` of [pages.web-pages] can list it")


def shown(link: str) -> str:
    """Return a link for a message: short, printable, without a user or a password."""
    text = _USER.sub(r"\1…@", link[:_LONGEST])
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
