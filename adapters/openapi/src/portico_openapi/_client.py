"""The HTTP client of one plugin: opened when first needed, bounded in every answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import httpx

from portico.errors import LimitExceeded, ServiceUnavailable
from portico_openapi._responses import no_answer, words_of
from portico_openapi._servers import joined, origin_of, shown_origin
from portico_openapi._wrong import Wrong, shown

MOST_REDIRECTS = 5
_MOST_OF_AN_ERROR = 65_536
_DOCUMENT_TYPES = "application/json, application/yaml;q=0.9, */*;q=0.5"


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request: its URL whole but for what is secret in its query."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    content: bytes | None = None
    secret_query: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that is whole."""

    status: int
    headers: httpx.Headers
    content: bytes


class _QueryUnsaid(httpx.URL):
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

    async def exchange(self, outgoing: Outgoing, *, seconds: float, maximum_bytes: int) -> Answer:
        """Send a request and read the whole answer; no redirect is followed.

        Raises ``TimeoutError`` and the errors of httpx, ``LimitExceeded`` for a larger answer. Of one that tells of
        a failure only the beginning is read.
        """
        client = self._client()
        async with asyncio.timeout(seconds):
            response = await client.send(_request(client, outgoing, seconds), stream=True, follow_redirects=False)
            try:
                failed = response.status_code >= 400
                content = await _content(response, _MOST_OF_AN_ERROR if failed else maximum_bytes, cut=failed)
            finally:
                await response.aclose()
        return Answer(response.status_code, response.headers, content)

    async def fetch(self, url: str, *, seconds: float, maximum_bytes: int) -> tuple[bytes, str]:
        """Fetch a document; return it with the URL that it came from after redirects. Raises `Wrong`."""
        for _ in range(MOST_REDIRECTS + 1):
            try:
                outgoing = Outgoing("GET", url, (("Accept", _DOCUMENT_TYPES),))
                answer = await self.exchange(outgoing, seconds=seconds, maximum_bytes=maximum_bytes)
            except (TimeoutError, httpx.HTTPError, httpx.InvalidURL) as error:
                failure = no_answer("fetching it", shown_origin(url), error, seconds)
                raise Wrong(str(failure).rstrip(".")) from error
            except LimitExceeded as error:
                raise Wrong(str(error)) from error
            if not 300 <= answer.status < 400:
                break
            following = joined(url, answer.headers.get("location", ""))
            if origin_of(following) is None or (url.startswith("https:") and not following.startswith("https:")):
                raise Wrong(f"it redirects to {shown(following) or 'nowhere'}, which is not followed")
            url = following
        else:
            raise Wrong(f"it redirects more than {MOST_REDIRECTS} times")
        if answer.status != 200:
            said = words_of(answer.headers.get("content-type", ""), answer.content)
            raise Wrong(f"{shown_origin(url)} answered {answer.status}{f': {said}' if said else ''}")
        return answer.content, url

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
    request = httpx.Request(
        outgoing.method,
        url,
        headers=headers,
        content=outgoing.content,
        extensions={"timeout": httpx.Timeout(seconds).as_dict()},
    )
    if outgoing.secret_query:
        request.url = _QueryUnsaid(request.url)
    return request


async def _content(response: httpx.Response, maximum_bytes: int, *, cut: bool) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        parts.append(part)
        size += len(part)
        if size > maximum_bytes:
            if cut:
                break
            raise LimitExceeded(f"it has more than {maximum_bytes:,} bytes")
    return b"".join(parts)[:maximum_bytes]
