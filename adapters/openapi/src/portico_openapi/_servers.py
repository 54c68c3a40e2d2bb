"""Which URL the calls go to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

from portico.errors import ConfigurationError, nearest
from portico_openapi._wrong import Within, Wrong, described, listing, mapping, shown, text

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_PORTS = {"http": 80, "https": 443}
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\\"<>^`{|}]")


@dataclass(frozen=True, slots=True)
class Server:
    """The base of URLs, without a slash at its end, and its origin: only there go secrets."""

    url: str
    origin: tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class NoServer:
    """Why there is none to call."""

    reason: str


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


def joined(base: str, reference: str) -> str:
    """Return the URL that a reference means (RFC 3986), without its fragment; an empty text for none.

    >>> joined("https://a.example/b?c=1", "/d#e"), joined("https://a.example", "http://[")
    ('https://a.example/d', '')
    """
    try:
        return urljoin(base, reference).partition("#")[0]
    except ValueError:
        return ""


def shown_origin(url: str) -> str:
    """Return the origin of a URL as people write it."""
    origin = origin_of(url)
    if origin is None:
        return "an address that is not http"
    scheme, host, port = origin
    return f"{scheme}://{f'[{host}]' if ':' in host else host}{'' if port == _PORTS[scheme] else f':{port}'}"


def chosen_server(
    document: Mapping[str, Any], base: str, setting: str | int | None, variables: Mapping[str, str], name: str
) -> Server | NoServer:
    """Return the server for a whole document as the settings choose it; ``base`` is the document's URL.

    Raises ``ConfigurationError`` for a setting that cannot be meant. What is wrong in the document is no reason
    to lose it all: the calls say it.
    """
    if isinstance(setting, str) and not setting.isdecimal():
        try:
            return _server(setting)
        except Wrong as error:
            raise ConfigurationError(f"functions.{name}.server: {error}.") from error
    try:
        servers = listing(document, "servers")
    except Wrong as error:
        servers, problem = [], str(error)
    else:
        problem = "the document names none"
    _refuse_unknown(document, variables, name)
    number = int(setting) if setting is not None else 0
    if setting is not None and not 0 <= number < len(servers):
        known = f"the document has {len(servers)}, counted from 0" if servers else problem
        raise ConfigurationError(f"functions.{name}.server: there is no server {number}: {known}.")
    try:
        return _from_object(servers[number] if servers else {"url": "/"}, base, variables)
    except Wrong as error:
        if variables:
            raise ConfigurationError(f"functions.{name}.server_variables: {error}.") from error
        return NoServer(f"the document's server: {error}" if servers else problem)


def own_server(parts: Sequence[Mapping[str, Any]], base: str, variables: Mapping[str, str]) -> Server | None:
    """Return the server of an operation or, after it, of its path; None where they have none. Raises `Wrong`."""
    for part in parts:
        servers = listing(part, "servers")
        if servers:
            with Within("servers", 0):
                return _from_object(servers[0], base, variables)
    return None


def _refuse_unknown(document: Mapping[str, Any], variables: Mapping[str, str], name: str) -> None:
    """Refuse a variable that no server of the document, of a path or of an operation has."""
    if not variables:
        return
    known = sorted(set(_declared(document)))
    for variable in variables:
        if variable not in known:
            near = ", ".join(nearest(variable, known)) or ", ".join(known) or "none"
            raise ConfigurationError(
                f"functions.{name}.server_variables: no server of the document has a variable {variable!r}; "
                f"nearest: {near}."
            )


def _declared(part: Any, depth: int = 0) -> Iterator[str]:
    if type(part) is not dict:
        return
    for server in part["servers"] if type(part.get("servers")) is list else ():
        variables = server.get("variables") if type(server) is dict else None
        yield from variables if type(variables) is dict else ()
    if depth == 0:
        yield from _declared(part.get("paths"), 1)
    elif depth <= 2:  # the paths, then their operations
        for inner in part.values():
            yield from _declared(inner, depth + 1)


def _from_object(server: Any, base: str, variables: Mapping[str, str]) -> Server:
    if type(server) is not dict:
        raise Wrong(f"expected an object, not {described(server)}")
    url = text(server, "url")
    if url is None:
        raise Wrong("it has no url")
    declared = mapping(server, "variables")

    def value(found: re.Match[str]) -> str:
        variable = found[1]
        one = mapping(declared, variable)
        given = variables.get(variable, one.get("default"))
        if not isinstance(given, str | int | float) or isinstance(given, bool):
            raise Wrong(f"the variable {shown(variable)!r} of its URL has no value; set it in server_variables")
        options = [str(option) for option in listing(one, "enum")]
        if variable in variables and options and str(given) not in options:
            raise Wrong(f"the variable {shown(variable)!r} is one of {', '.join(map(shown, options))}")
        return str(given)

    return _server(_VARIABLE.sub(value, url), base)


def _server(url: str, base: str = "") -> Server:
    """Check a base URL: http or https, a host, neither secrets nor a query in it."""
    try:
        whole = urljoin(base, url) if base.startswith(("http://", "https://")) else url
        parts = urlsplit(whole)
        userinfo = parts.username is not None or parts.password is not None
    except ValueError as error:
        raise Wrong(f"{shown(url)!r} is no URL: {error}") from None
    if not parts.scheme and not parts.netloc:
        raise Wrong(f"{shown(url)!r} is relative to a document that has no URL; set `server` to a whole one")
    if parts.scheme not in _PORTS:
        raise Wrong(f"{shown(url)!r} is not an http or https URL")
    origin = origin_of(whole)
    if origin is None:
        raise Wrong(f"{shown(url)!r} names no host or no possible port")
    if userinfo:
        raise Wrong("a user name or password in its URL is not taken; set `credentials`")
    if parts.query or parts.fragment or _UNSAFE.search(whole):
        raise Wrong(f"{shown(url)!r} has a query, a fragment or characters that a base URL cannot have")
    return Server(whole.rstrip("/"), origin)
