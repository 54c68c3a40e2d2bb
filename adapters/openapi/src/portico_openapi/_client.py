"""The HTTP client of one plugin: opened when first needed, bounded in every answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import httpx

from portico.errors import LimitExceeded, ResponseInvalid, ServiceError, ServiceTimeout, ServiceUnavailable
from portico.plugins import HttpResponse, Secret
from portico_openapi._errors import Unusable, shorten
from portico_openapi._servers import format_origin, origin_of, resolve_url

_MOST_REDIRECTS = 5
_MOST_OF_AN_ERROR = 65_536
_LONGEST_REASON = 300
LOGGERS = ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.http2", "httpcore.proxy", "httpcore.socks")
_DOCUMENT_TYPES = "application/json, application/yaml;q=0.9, */*;q=0.5"


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request: its URL whole but for what is secret in its query."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    content: bytes | None = None
    secret_query: tuple[str, ...] = ()

    def redirect(self, status: int, target: str) -> Outgoing:
        """Return the request to the place that a redirect names. Raises `Unusable` where the body would be lost."""
        secrets = tuple(pair for pair in self.secret_query if pair not in target)
        if status == 303 and self.method != "HEAD":
            headers = tuple(pair for pair in self.headers if pair[0].casefold() != "content-type")
            return Outgoing("GET", target, headers, None, secrets)
        if status in (301, 302) and self.content is not None:
            raise Unusable(f"it redirects a {self.method}, on which many services lose the body")
        return replace(self, url=target, secret_query=secrets)


class _URLWithoutQuery(httpx.URL):
    """A URL that shows no query: httpx writes the URL of each request to its log."""

    def __str__(self) -> str:
        return super().__str__().partition("?")[0]

    def __repr__(self) -> str:
        return f"URL({str(self)!r})"


class Client:
    """Sends requests one by one; a client that is given stays its owner's to close."""

    def __init__(self, given: httpx.AsyncClient | None) -> None:
        self._given = given
        self._opened: tuple[asyncio.AbstractEventLoop, httpx.AsyncClient] | None = None
        self._closed = False

    async def send(
        self, outgoing: Outgoing, *, seconds: float, maximum_bytes: int, may_follow: Callable[[str], bool]
    ) -> tuple[HttpResponse, str]:
        """Send a request and follow its redirects; return the whole answer with the URL that it came from.

        Raises ``TimeoutError`` and the errors of httpx, ``LimitExceeded`` for a larger answer, `Unusable` for a
        redirect that is not followed. Of the answer to a failed request only the beginning is read.
        """
        for _ in range(_MOST_REDIRECTS + 1):
            answer = await self._exchange(outgoing, seconds, maximum_bytes)
            location = answer.headers.get("location")
            if answer.status not in (301, 302, 303, 307, 308) or location is None:
                return answer, outgoing.url
            target = resolve_url(outgoing.url, location)
            if not may_follow(target):
                raise Unusable(f"it redirects to {format_origin(target)}, which is not followed")
            outgoing = outgoing.redirect(answer.status, target)
        raise Unusable(f"it redirects more than {_MOST_REDIRECTS} times")

    async def fetch(self, seconds: float, url: str, maximum_bytes: int) -> tuple[bytes, str]:
        """Fetch a document; return it with the URL that it came from after redirects. Raises `Unusable`."""

        def may_follow(target: str) -> bool:
            return origin_of(target) is not None and (url.startswith("http:") or target.startswith("https:"))

        outgoing = Outgoing("GET", url, (("Accept", _DOCUMENT_TYPES),))
        try:
            answer, came_from = await self.send(
                outgoing, seconds=seconds, maximum_bytes=maximum_bytes, may_follow=may_follow
            )
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL) as error:
            raise Unusable(str(no_answer("fetching it", url, error, seconds)).rstrip(".")) from error
        except LimitExceeded as error:
            raise Unusable(str(error)) from error
        if answer.status != 200:
            raise Unusable(str(answer.error(format_origin(came_from))).rstrip("."))
        return answer.body, came_from

    async def _exchange(self, outgoing: Outgoing, seconds: float, maximum_bytes: int) -> HttpResponse:
        client = self._client()
        async with asyncio.timeout(seconds):
            response = await client.send(_request(client, outgoing, seconds), stream=True, follow_redirects=False)
            try:
                failed = response.status_code >= 400
                body = await _content(response, _MOST_OF_AN_ERROR if failed else maximum_bytes, cut=failed)
            finally:
                await response.aclose()
        return HttpResponse(response.status_code, body, response.headers)

    def _client(self) -> httpx.AsyncClient:
        if self._closed:
            raise ServiceUnavailable("The function plugin has been closed.")
        if self._given is not None:
            return self._given
        loop = asyncio.get_running_loop()
        if self._opened is None or self._opened[0] is not loop:
            # Connections belong to the loop that opened them; those of one that has ended are gone.
            self._opened = (loop, httpx.AsyncClient(headers={"User-Agent": "portico-openapi"}))
        return self._opened[1]

    async def aclose(self) -> None:
        """Close the client that was opened here; a second call does nothing."""
        self._closed = True
        opened, self._opened = self._opened, None
        if opened is not None and opened[0] is asyncio.get_running_loop():
            await opened[1].aclose()


def _request(client: httpx.AsyncClient, outgoing: Outgoing, seconds: float) -> httpx.Request:
    """Make the request of httpx, with the client's own headers under those given and none of its cookies."""
    headers = client.headers.copy()
    for name, value in outgoing.headers:
        # Bytes, since text would be ASCII only.
        headers.update([(name.encode("ascii"), value.encode())])
    url = outgoing.url
    if outgoing.secret_query:
        url += f"{'&' if '?' in url else '?'}{'&'.join(outgoing.secret_query)}"
    timeout = httpx.Timeout(seconds).as_dict()
    request = httpx.Request(
        outgoing.method, url, headers=headers, content=outgoing.content, extensions={"timeout": timeout}
    )
    if outgoing.secret_query:
        request.url = _URLWithoutQuery(request.url)
    return request


async def _content(response: httpx.Response, maximum_bytes: int, *, cut: bool) -> bytes:
    content = bytearray()
    async for part in response.aiter_bytes():
        content += part
        if len(content) > maximum_bytes:
            if cut:
                break
            raise LimitExceeded(f"it has more than {maximum_bytes:,} bytes")
    return bytes(content[:maximum_bytes])


def no_answer(said: str, url: str, error: Exception, seconds: float, hidden: Iterable[Secret] = ()) -> ServiceError:
    """Return the error for a request that got no whole answer; the client may quote what the service said."""
    origin = format_origin(url)
    words = Secret.redact(" ".join(str(error).split()), hidden)
    reason = shorten(words, _LONGEST_REASON) or type(error).__name__
    if isinstance(error, TimeoutError | httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
        return ServiceTimeout(f"{said} failed: {origin} gave no whole answer within {seconds:g} seconds.")
    if isinstance(error, httpx.DecodingError):
        return ResponseInvalid(f"{said} failed: the answer of {origin} cannot be unpacked ({reason}).")
    if isinstance(error, httpx.LocalProtocolError | httpx.InvalidURL | httpx.UnsupportedProtocol):
        return ServiceError(f"{said} failed: the request cannot be sent ({reason}).")
    return ServiceUnavailable(f"{said} failed: {origin} cannot be reached ({reason}).")
