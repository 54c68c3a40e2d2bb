"""Which URL the calls go to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

from portico.errors import ConfigurationError, nearest
from portico_openapi._errors import Unusable, Within, describe, listing, mapping, show, text

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_PORTS = {"http": 80, "https": 443}
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\\"<>^`{|}]")


@dataclass(frozen=True, slots=True)
class Server:
    """The base of URLs, without a slash at its end, and its origin: only there go secrets."""

    url: str
    origin: tuple[str, str, int]


def origin_of(url: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port (RFC 6454) of an http(s) URL; None for any other.

    >>> origin_of("HTTPS://Api.Example/v1") == origin_of("https://api.example:443/")
    True
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname:
        return None
    return parts.scheme, parts.hostname, port or _PORTS[parts.scheme]


def resolve_url(base: str, reference: str) -> str:
    """Return the URL that a reference means (RFC 3986), without its fragment; an empty text for none.

    >>> resolve_url("https://a.example/b?c=1", "/d#e"), resolve_url("https://a.example", "http://[")
    ('https://a.example/d', '')
    """
    try:
        return urljoin(base, reference).partition("#")[0]
    except ValueError:
        return ""


def format_origin(url: str) -> str:
    """Return the origin of a URL as people write it."""
    origin = origin_of(url)
    if origin is None:
        return "an address that is not http"
    scheme, host, port = origin
    return f"{scheme}://{f'[{host}]' if ':' in host else host}{'' if port == _PORTS[scheme] else f':{port}'}"


class Servers:
    """The servers of a document, as the settings choose among them; ``chosen`` is a server, or why there is none.

    Raises ``ConfigurationError`` for a setting that cannot be meant. What is wrong in the document is no reason
    to lose it all: the calls say it.
    """

    def __init__(
        self, document: Mapping[str, Any], base: str, setting: str | int | None, variables: Mapping[str, str], name: str
    ) -> None:
        self._base = base
        self._place = f"functions.{name}.server"
        self._variables = variables
        self._declared: set[str] = set()
        self._for_all = isinstance(setting, str) and not setting.isdecimal()
        self.chosen = self._choose(document, setting)

    def _choose(self, document: Mapping[str, Any], setting: str | int | None) -> Server | str:
        try:
            if self._for_all:
                return _server(str(setting))
            servers = listing(document, "servers")
            number = int(setting or 0)
            if setting is not None and not 0 <= number < len(servers):
                raise Unusable(f"there is no server {number}: the document has {len(servers)}, counted from 0")
            return self._fill(servers[number] if servers else {"url": "/"})
        except Unusable as error:
            if setting is not None or self._variables:
                raise ConfigurationError(f"{self._place}: {error}.") from error
            return str(error)

    def of(self, *parts: Mapping[str, Any]) -> tuple[Server | str, bool]:
        """Return the server of an operation, and whether it is of the origin that secrets may go to.

        A URL in the settings is for every operation; otherwise the first of ``parts`` that has servers, the operation
        and its path, counts. Raises `Unusable`.
        """
        own = next((servers for part in parts if (servers := listing(part, "servers"))), None)
        if own is None or self._for_all:
            return self.chosen, True
        with Within("servers", 0):
            server = self._fill(own[0])
        return server, isinstance(self.chosen, Server) and server.origin == self.chosen.origin

    def require_known_variables(self) -> None:
        """Raise ``ConfigurationError`` for a variable of the settings that no server has had so far."""
        for variable in () if self._for_all else self._variables:
            if variable not in self._declared:
                known = sorted(self._declared)
                near = ", ".join(nearest(variable, known) or known) or "none"
                raise ConfigurationError(
                    f"{self._place}_variables: no server has a variable {variable!r}; nearest: {near}."
                )

    def _fill(self, server: Any) -> Server:
        """Return a server of the document with values for the variables of its URL."""
        if type(server) is not dict:
            raise Unusable(f"expected an object, not {describe(server)}")
        url = text(server, "url")
        if url is None:
            raise Unusable("it has no url")
        declared = mapping(server, "variables")
        self._declared |= declared.keys()

        def value(found: re.Match[str]) -> str:
            variable = found[1]
            one = mapping(declared, variable)
            given = self._variables.get(variable, one.get("default"))
            if not isinstance(given, str | int | float) or isinstance(given, bool):
                raise Unusable(f"the variable {show(variable)!r} of its URL has no value; set it in server_variables")
            options = [str(option) for option in listing(one, "enum")]
            if variable in self._variables and options and str(given) not in options:
                raise Unusable(f"the variable {show(variable)!r} is one of {', '.join(map(show, options))}")
            return str(given)

        return _server(_VARIABLE.sub(value, url), self._base)


def _server(url: str, base: str = "") -> Server:
    """Check a base URL: http or https, a host, neither secrets nor a query in it."""
    try:
        whole = urljoin(base, url) if base.startswith(("http://", "https://")) else url
        parts = urlsplit(whole)
        userinfo = parts.username is not None or parts.password is not None
    except ValueError as error:
        raise Unusable(f"{show(url)!r} is no URL: {error}") from None
    if not parts.scheme and not parts.netloc:
        raise Unusable(f"{show(url)!r} is relative to a document that has no URL")
    if parts.scheme not in _PORTS:
        raise Unusable(f"{show(url)!r} is not an http or https URL")
    origin = origin_of(whole)
    if origin is None:
        raise Unusable(f"{show(url)!r} names no host or no possible port")
    if userinfo:
        raise Unusable("a user name or password in its URL is not taken; set `credentials`")
    if parts.query or parts.fragment or _UNSAFE.search(whole):
        raise Unusable(f"{show(url)!r} has a query, a fragment or characters that a base URL cannot have")
    return Server(whole.rstrip("/"), origin)
