"""The HttpClient port on httpx."""

from __future__ import annotations

import asyncio
import itertools
import random
import ssl
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import version

import httpx

from portico.errors import ServiceTimeout, ServiceUnavailable
from portico.http import HttpRequest, HttpResponse, retry_after
from portico.registration import Services
from portico_web.http._body import ACCEPTED, read_body
from portico_web.http._errors import error_of, may_pass, unusable
from portico_web.http._logs import discreet
from portico_web.http._loops import LoopClients
from portico_web.http._wire import body_of, header_pairs, place_of, proxy_of, trusted_by, url_of
from portico_web.http.config import HttpxSettings

__all__ = ["HttpxHttpClient"]

_PATIENCE = frozenset({429, 503})
_FIRST_WAIT = 0.5


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
    portico.errors.ConfigurationError: 'ftp://files.example/find' is no http or https address. Check the base_url.

    Each event loop has connections of its own, made when first needed. ``client`` is one to use instead; it stays
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
        self._clients = LoopClients(self._opened)
        self._trusted: ssl.SSLContext | None = None
        self._closed = False
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
        client = await self._clients.here() if self._given is None else self._given
        made = self._made(client, request)
        seconds = self._settings.total_timeout
        try:
            with discreet(request):
                async with asyncio.timeout(seconds) as limit:
                    return await self._answered(client, made, limit)
        except TimeoutError as error:
            raise ServiceTimeout(
                f"{place_of(made.url)} gave no whole answer within {seconds:g} seconds. Try again later."
            ) from error

    async def aclose(self) -> None:
        """Close the connections, those of other event loops that run included; a second call does nothing."""
        self._closed = True
        await self._clients.aclose()

    async def _answered(self, client: httpx.AsyncClient, made: httpx.Request, limit: asyncio.Timeout) -> HttpResponse:
        """Send until there is an answer that asks for no patience, or none is left."""
        for attempt in itertools.count():
            wait = min(random.uniform(0.5, 1.0) * _FIRST_WAIT * 2**attempt, self._settings.max_wait)
            try:
                response = await self._once(client, made)
            except httpx.HTTPError as error:
                if not may_pass(error) or not self._again(attempt, wait, limit):
                    raise error_of(error, made, self._settings) from error
            else:
                asked = retry_after(response.headers)
                wait = wait if asked is None else asked
                if response.status not in _PATIENCE or not self._again(attempt, wait, limit):
                    return response
            await asyncio.sleep(wait)
        raise AssertionError("an endless loop has ended")

    def _again(self, attempt: int, wait: float, limit: asyncio.Timeout) -> bool:
        """Tell whether to send again: often enough not yet, after a short wait, before the time for all is over."""
        if attempt >= self._settings.retries or wait > self._settings.max_wait:
            return False
        end = limit.when()
        return end is None or asyncio.get_running_loop().time() + wait < end

    async def _once(self, client: httpx.AsyncClient, made: httpx.Request) -> HttpResponse:
        self._check_open()
        response = await client.send(made, stream=True, follow_redirects=False)
        try:
            encoding = response.headers.get("content-encoding", "")
            body = await read_body(response.aiter_raw(), encoding, self._settings.max_bytes, place_of(made.url))
        except httpx.TimeoutException as error:
            # An answer has begun: what comes so slowly would come so again.
            raise error_of(error, made, self._settings) from error
        finally:
            await response.aclose()
        return HttpResponse(response.status_code, body, dict(response.headers))

    def _made(self, client: httpx.AsyncClient, request: HttpRequest) -> httpx.Request:
        """Return the request as httpx sends it; what the service of the request wants goes before what is usual."""
        url, content = url_of(request), body_of(request)
        headers = client.headers.copy()
        headers.update(self._usual)
        if content is not None:
            headers["content-type"] = "application/json"
        headers.update(list(header_pairs(request.headers)))
        # What is decompressed here is asked for, whatever a connector says.
        headers["accept-encoding"] = ACCEPTED
        # Made here, since `build_request` of the client would add the cookies that it has come by.
        made = httpx.Request(
            request.method, url, headers=headers, content=content, extensions={"timeout": self._timeout.as_dict()}
        )
        made.url = url
        return made

    def _check_open(self) -> None:
        if self._closed:
            raise ServiceUnavailable("The HTTP client has been closed with its application. Open the application anew.")

    def _opened(self) -> httpx.AsyncClient:
        settings = self._settings
        try:
            if self._trusted is None:
                # Reading the certificates takes longer than all else here, so that event loops share them.
                self._trusted = trusted_by(settings)
            return httpx.AsyncClient(
                verify=self._trusted,
                proxy=settings.proxy and proxy_of(settings),
                trust_env=settings.trust_env,
                limits=httpx.Limits(max_connections=settings.max_connections),
                # No cookie is ever kept.
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            )
        except (OSError, ImportError, ValueError, httpx.InvalidURL) as error:
            raise unusable(settings, error) from error
