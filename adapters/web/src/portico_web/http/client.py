"""The HttpClient port on httpx."""

from __future__ import annotations

import asyncio
import json
import random
import re
import ssl
from collections.abc import AsyncGenerator, Iterator, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

import httpx

from portico.errors import ConfigurationError, PorticoError, ServiceTimeout, ServiceUnavailable
from portico.plugins import HttpRequest, HttpResponse, Secret, Services
from portico_web._unpacking import ACCEPTED, unpack
from portico_web.http.config import HttpxSettings

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""What the name of a header is made of (RFC 9110, section 5.6.2)."""

_HOST = re.compile(rb"[0-9A-Za-z._:-]+")


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


def build_url(request: HttpRequest) -> DiscreetURL:
    """Return the whole URL of a request; ``ConfigurationError`` for a text that is not an address."""
    given, _, _ = request.url.partition("#")
    try:
        bare = httpx.URL(given)
        shown = _add_params(_hide_user(str(bare)), request.params)
        whole = DiscreetURL(_add_params(given, request.params, reveal=True), shown)
    except (httpx.InvalidURL, ValueError) as error:
        # The cause may quote a password of the address or a parameter.
        raise ConfigurationError(
            f"{_hide_user(given)[:200]!r} is not an address: {_reason(error)}. Check the base_url."
        ) from None
    if bare.scheme not in ("http", "https") or not _HOST.fullmatch(bare.raw_host):
        raise ConfigurationError(f"{_hide_user(given)[:200]!r} is not an http or https address. Check the base_url.")
    if bare.port is not None and not 0 < bare.port < 65_536:
        raise ConfigurationError(f"{_hide_user(given)[:200]!r} has a port out of range. Check the base_url.")
    return whole


def show_origin(url: httpx.URL) -> str:
    """Return the scheme, host and port of a URL, for messages."""
    return f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}"


def encode_headers(headers: Mapping[str, object]) -> Iterator[tuple[bytes, bytes]]:
    """Yield names and values; ``ConfigurationError`` for what no header can hold, without showing it."""
    for name, value in headers.items():
        written = _to_text(value)
        if written is None:
            continue
        written = written.strip()
        if not _TOKEN.fullmatch(name):
            raise ConfigurationError(f"{name!r} is not a name for a header.")
        if any(letter < " " or letter == "\x7f" for letter in written.replace("\t", " ")):
            origin = f" ({value.origin})" if isinstance(value, Secret) else ""
            raise ConfigurationError(f"The header {name!r}{origin} has control characters.")
        yield name.encode("ascii"), written.encode("utf-8", "replace")


def encode_body(request: HttpRequest) -> bytes | None:
    """Return the JSON body of a request, or None; secrets in it are revealed."""
    if request.json is None:
        return None
    text = json.dumps(request.json, separators=(",", ":"), allow_nan=False, default=_reveal)
    return text.encode("ascii")


def _reveal(value: Any) -> str:
    if isinstance(value, Secret):
        return value.reveal()
    raise TypeError(f"{type(value).__name__} is not JSON")


def _add_params(url: str, params: Mapping[str, object], *, reveal: bool = False) -> str:
    """Return a URL with the parameters behind those that it has."""
    pairs = []
    for name, value in params.items():
        written = _to_text(value)
        if written is not None:
            hidden = isinstance(value, Secret) and not reveal
            pairs.append(f"{_quote(name)}={value if hidden else _quote(written)}")
    if not pairs:
        return url
    joint = "" if url.endswith(("?", "&")) else "&" if "?" in url else "?"
    return f"{url}{joint}{'&'.join(pairs)}"


def _to_text(value: object) -> str | None:
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


def _hide_user(url: str) -> str:
    """Return a URL without the user name and the password that it may hold."""
    return re.sub(r"^([^/?#]*//)[^/?#]*@", r"\1********@", url)


def _reason(error: Exception) -> str:
    return str(error).rstrip(".") if isinstance(error, httpx.InvalidURL) else type(error).__name__


LOGGERS = ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.http2", "httpcore.proxy", "httpcore.socks")
"""They write the reason of an answer, and at the level DEBUG its headers; a service may repeat a key in both."""

_BUSY = frozenset({429, 503})
_FIRST_WAIT = 0.5
_FINAL = (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.ProxyError)
"""Failures that sending a request again does not change."""


class HttpxHttpClient:
    """Send requests with httpx.

    >>> client = HttpxHttpClient(HttpxSettings(contact="ports@example.org"))
    >>> async def ask():
    ...     try:
    ...         return await client.send(HttpRequest("ftp://files.example/find", {"q": "ports"}))
    ...     finally:
    ...         await client.aclose()
    >>> asyncio.run(ask())
    Traceback (most recent call last):
        ...
    portico.errors.ConfigurationError: 'ftp://files.example/find' is not an http or https address. Check the base_url.

    Each event loop has its own connections, made when first needed. ``client`` is one to use instead; it stays
    its owner's to close. What one answer sets (cookies) is not sent with the next request.
    Errors as the port has them; ``ServiceUnavailable`` also once it has been closed.
    """

    name = "httpx"

    def __init__(
        self,
        settings: HttpxSettings | None = None,
        services: Services | None = None,
        *,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self._settings = settings or HttpxSettings()
        self._given = client
        self._clients: dict[asyncio.AbstractEventLoop, tuple[httpx.AsyncClient, AsyncGenerator[httpx.AsyncClient]]] = {}
        self._trusted: ssl.SSLContext | None = None
        self._closed = False
        user, password = self._settings.proxy_user, self._settings.proxy_password
        self._proxy_login = Secret(f"{user}:{password.reveal()}") if password else None
        contact = f" ({self._settings.contact})" if self._settings.contact else ""
        self._usual = {"user-agent": f"portico-web/{version('portico-web')}{contact}", "accept": "*/*"}
        self._timeout = httpx.Timeout(
            connect=self._settings.connect_timeout,
            read=self._settings.read_timeout,
            write=self._settings.read_timeout,
            pool=None,
        )

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request, again where that may help, and return the last answer."""
        self._check_open()
        client = self._given or await self._client_here()
        with Secret.hiding([*request.secrets, self._proxy_login], LOGGERS):
            made = self._build_request(client, request)
            seconds = self._settings.total_timeout
            try:
                async with asyncio.timeout(seconds) as limit:
                    return await self._send_with_retries(client, made, limit)
            except TimeoutError as error:
                raise ServiceTimeout(
                    f"{show_origin(made.url)} gave no whole answer within {seconds:g} seconds. Try again later."
                ) from error

    async def aclose(self) -> None:
        """Close the connections of the running event loop; others close with their loop. A second call does nothing."""
        self._closed = True
        if (held := self._clients.get(asyncio.get_running_loop())) is not None:
            await held[1].aclose()

    async def _client_here(self) -> httpx.AsyncClient:
        """Return the client of the running loop: connections belong to the loop that opened them."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            # No other task of the loop runs before the end of this block.
            holder = self._hold_client(loop)
            self._clients[loop] = (await anext(holder), holder)
        return self._clients[loop][0]

    async def _hold_client(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[httpx.AsyncClient]:
        """Yield a client until its loop ends, which closes its asynchronous generators: no socket is left open."""
        client = self._open_client()
        try:
            yield client
        finally:
            self._clients.pop(loop, None)
            await client.aclose()

    async def _send_with_retries(
        self, client: httpx.AsyncClient, made: httpx.Request, limit: asyncio.Timeout
    ) -> HttpResponse:
        """Send until an answer does not ask to wait, or no retry is left."""
        attempt = 0
        while True:
            wait = min(random.uniform(0.5, 1.0) * _FIRST_WAIT * 2**attempt, self._settings.max_wait)
            try:
                response = await self._send_once(client, made)
            except httpx.HTTPError as error:
                final = isinstance(error, _FINAL) or _certificate(error) is not None
                if final or not self._may_retry(attempt, wait, limit):
                    raise translate_error(error, made, self._settings) from error
            else:
                asked = HttpResponse.retry_after(response.headers)
                wait = wait if asked is None else asked
                if response.status not in _BUSY or not self._may_retry(attempt, wait, limit):
                    return response
            await asyncio.sleep(wait)
            attempt += 1

    def _may_retry(self, attempt: int, wait: float, limit: asyncio.Timeout) -> bool:
        """Tell whether to send again: a retry is left, the wait is short, and it ends in time."""
        if attempt >= self._settings.retries or wait > self._settings.max_wait:
            return False
        end = limit.when()
        return end is None or asyncio.get_running_loop().time() + wait < end

    async def _send_once(self, client: httpx.AsyncClient, made: httpx.Request) -> HttpResponse:
        self._check_open()
        response = await client.send(made, stream=True, follow_redirects=False)
        try:
            encoding = response.headers.get("content-encoding", "")
            # httpx unpacks all that it has read at once: 64 KB of gzip may become 66 MB.
            subject = f"The answer of {show_origin(made.url)}"
            body = await unpack(response.aiter_raw(), encoding, self._settings.max_bytes, subject)
        except httpx.TimeoutException as error:
            # An answer has begun; it would be as slow again.
            raise translate_error(error, made, self._settings) from error
        finally:
            await response.aclose()
        return HttpResponse(response.status_code, body, dict(response.headers))

    def _build_request(self, client: httpx.AsyncClient, request: HttpRequest) -> httpx.Request:
        """Return the request as httpx sends it; what the service of the request wants goes before what is usual."""
        url, content = build_url(request), encode_body(request)
        headers = client.headers.copy()
        headers.update(self._usual)
        if content is not None:
            headers["content-type"] = "application/json"
        headers.update(list(encode_headers(request.headers)))
        # What is decompressed here is asked for, whatever a connector says.
        headers["accept-encoding"] = ACCEPTED
        # The client's own `build_request` would add cookies.
        made = httpx.Request(
            request.method, url, headers=headers, content=content, extensions={"timeout": self._timeout.as_dict()}
        )
        made.url = url
        return made

    def _check_open(self) -> None:
        if self._closed:
            raise ServiceUnavailable("The HTTP client is closed. Open the application again.")

    def _open_client(self) -> httpx.AsyncClient:
        settings = self._settings
        try:
            if self._trusted is None:
                # Reading the certificates takes longer than all else here, so event loops share them.
                self._trusted = (
                    httpx.create_ssl_context(trust_env=settings.trust_env)
                    if settings.ca_file is None
                    else ssl.create_default_context(cafile=settings.ca_file)
                )
            proxy = None
            if settings.proxy is not None:
                user, password = settings.proxy_user, settings.proxy_password
                proxy = httpx.Proxy(settings.proxy, auth=(user, password.reveal()) if user and password else None)
            return httpx.AsyncClient(
                verify=self._trusted,
                proxy=proxy,
                trust_env=settings.trust_env,
                limits=httpx.Limits(max_connections=settings.max_connections),
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            )
        except (OSError, ImportError, ValueError, httpx.InvalidURL) as error:
            raise ConfigurationError(
                "No connection can be made with ca_file and proxy of [http.httpx], or with what the environment "
                f"sets in their place: {error}"
            ) from error


def translate_error(error: httpx.HTTPError, request: httpx.Request, settings: HttpxSettings) -> PorticoError:
    """Return a failure as an error of ours; of the request, its cause keeps only the address."""
    place = show_origin(request.url)
    # An exception of httpx carries the request with its headers.
    error.request = httpx.Request(request.method, place)
    reason = f": {error}".rstrip(".: ")
    certificate = _certificate(error)
    if certificate is not None:
        return ServiceUnavailable(
            f"{place} has a certificate that is not trusted: {certificate.verify_message}. "
            "Set ca_file of [http.httpx] if it is your own."
        )
    match error:
        case httpx.ConnectTimeout():
            seconds = settings.connect_timeout
            return ServiceTimeout(f"{place} was not reached in {seconds:g} seconds. Check its address and the network.")
        case httpx.TimeoutException():
            return ServiceTimeout(f"{place} was silent for {settings.read_timeout:g} seconds. Try again later.")
        case httpx.UnsupportedProtocol() | httpx.LocalProtocolError():
            return ConfigurationError(f"The request to {place} cannot be sent{reason}.")
        case httpx.ProxyError():
            return ServiceUnavailable(f"The proxy refused to reach {place}{reason}. Check the proxy and its password.")
    return ServiceUnavailable(f"{place} cannot be reached{reason}. Check its address and the network.")


def _certificate(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error
        error = error.__cause__ or error.__context__
    return None
