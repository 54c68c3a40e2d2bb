"""What goes over the wire: requests with their secrets, bounded bodies, and logs without secrets."""

from __future__ import annotations

import json
import logging
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import httpx

from portico.errors import ConfigurationError
from portico.plugins import HttpRequest, Secret
from portico_web._unpacking import unpacked
from portico_web.http.config import HttpxSettings

_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""What the name of a header is made of (RFC 9110, section 5.6.2)."""

_HOST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:")


class DiscreetURL(httpx.URL):
    """A URL that hides what is secret in it: httpx writes the URL of each request to its log.

    >>> url = DiscreetURL("https://api.example/find?q=a&key=k", "https://api.example/find?q=a&key=********")
    >>> str(url), url.query
    ('https://api.example/find?q=a&key=********', b'q=a&key=k')
    """

    def __init__(self, url: str, shown: str) -> None:
        super().__init__(url)
        self._shown = shown

    def __str__(self) -> str:
        return self._shown

    def __repr__(self) -> str:
        return f"URL({self._shown!r})"


def url_of(request: HttpRequest) -> DiscreetURL:
    """Return the whole URL of a request; ``ConfigurationError`` for an address that is none."""
    given, _, _ = request.url.partition("#")
    try:
        bare = httpx.URL(given)
        whole = DiscreetURL(_with(given, request.params, reveal=True), _with(_shown(bare), request.params))
    except (httpx.InvalidURL, ValueError) as error:
        # The cause may quote a password of the address or a parameter.
        raise ConfigurationError(f"{_quoted(given)} is no address: {_reason(error)}. Check the base_url.") from None
    if bare.scheme not in ("http", "https") or not set(bare.raw_host.decode("ascii")) <= _HOST or not bare.host:
        raise ConfigurationError(f"{_quoted(given)} is no http or https address. Check the base_url.")
    if bare.port is not None and not 0 < bare.port < 65_536:
        raise ConfigurationError(f"{_quoted(given)} has a port that there is not. Check the base_url.")
    return whole


def place_of(url: httpx.URL) -> str:
    """Return the scheme, host and port of a URL, for messages."""
    return f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}"


def proxy_of(settings: HttpxSettings) -> httpx.Proxy:
    """Return the proxy of the settings; ``ValueError`` and ``httpx.InvalidURL`` for an address that is none."""
    user, password = settings.proxy_user, settings.proxy_password
    auth = None if user is None or password is None else (user, password.reveal())
    return httpx.Proxy(settings.proxy or "", auth=auth)


def trusted_by(settings: HttpxSettings) -> ssl.SSLContext:
    """Return the certificates to trust; ``OSError`` for a file that holds none."""
    if settings.ca_file is None:
        return httpx.create_ssl_context(trust_env=settings.trust_env)
    return ssl.create_default_context(cafile=settings.ca_file)


def header_pairs(headers: Mapping[str, object]) -> Iterator[tuple[bytes, bytes]]:
    """Yield names and values; ``ConfigurationError`` for what no header can hold, without showing it."""
    for name, value in headers.items():
        written = _written(value)
        if written is None:
            continue
        written = written.strip()
        if not name or not set(name) <= _TOKEN:
            raise ConfigurationError(f"{name!r} is no name for a header.")
        if any(letter < " " or letter == "\x7f" for letter in written.replace("\t", " ")):
            origin = f" ({value.origin})" if isinstance(value, Secret) else ""
            raise ConfigurationError(f"The header {name!r}{origin} has control characters, as of a second line.")
        yield name.encode("ascii"), written.encode("utf-8", "replace")


def body_of(request: HttpRequest) -> bytes | None:
    """Return the JSON body of a request, None where there is none; secrets in it are revealed."""
    if request.json is None:
        return None
    text = json.dumps(request.json, separators=(",", ":"), allow_nan=False, default=_revealed)
    return text.encode("ascii")


def _revealed(value: Any) -> str:
    if isinstance(value, Secret):
        return value.reveal()
    raise TypeError(f"{type(value).__name__} is not JSON")


def _with(url: str, params: Mapping[str, object], *, reveal: bool = False) -> str:
    """Return a URL with the parameters behind those that it has."""
    pairs = []
    for name, value in params.items():
        written = _written(value)
        if written is not None:
            hidden = isinstance(value, Secret) and not reveal
            pairs.append(f"{_quote(name)}={value if hidden else _quote(written)}")
    if not pairs:
        return url
    joint = "" if url.endswith(("?", "&")) else "&" if "?" in url else "?"
    return f"{url}{joint}{'&'.join(pairs)}"


def _written(value: object) -> str | None:
    """Write what a request has taken as a parameter or a header; None for what is left out."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case Secret():
            return value.reveal()
    return str(value)


def _quote(text: str) -> str:
    return quote(text, safe="", errors="replace")


def _shown(url: httpx.URL) -> str:
    """Return a URL without the password that it may hold."""
    return str(url.copy_with(userinfo=b"********") if url.userinfo else url)


def _quoted(url: str) -> str:
    scheme, mark, rest = url.partition("://")
    authority = rest.partition("/")[0]
    if "@" in authority:
        rest = "********" + rest[authority.rindex("@") :]
    return repr(f"{scheme}{mark}{rest}"[:200])


def _reason(error: Exception) -> str:
    return str(error).rstrip(".") if isinstance(error, httpx.InvalidURL) else type(error).__name__


# A few small gzip members are longer as sent than after unpacking.
_SLACK = 65_536


async def read_body(parts: AsyncIterator[bytes], encoding: str, most: int, service: str) -> bytes:
    """Return the whole unpacked body, at most ``most`` bytes; see `unpacked` for the errors.

    httpx unpacks all that it has read at once: 64 KB of gzip may become 66 MB.
    """
    whose = f"The answer of {service}"
    return await unpacked(parts, encoding, packed=most, most=most, whose=whose, setting="max_bytes", slack=_SLACK)


_LOGGERS = ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.http2", "httpcore.proxy", "httpcore.socks")


@contextmanager
def discreet(request: HttpRequest) -> Iterator[None]:
    """Hide what is secret in a request from the logs until the block ends.

    At the level DEBUG, httpcore writes the headers of answers, in which a service may repeat a key.
    """
    loggers = [logger for name in _LOGGERS if (logger := logging.getLogger(name)).isEnabledFor(logging.DEBUG)]
    secrets = [value for value in (*request.params.values(), *request.headers.values()) if isinstance(value, Secret)]
    if not loggers or not secrets:
        yield
        return
    hiding = _Hiding(secrets)
    for logger in loggers:
        logger.addFilter(hiding)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(hiding)


class _Hiding(logging.Filter):
    def __init__(self, secrets: Iterable[Secret]) -> None:
        super().__init__()
        self._secrets = tuple(secrets)

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        kept = Secret.redact(said, self._secrets)
        if kept != said:
            record.msg, record.args = kept, ()
        return True
