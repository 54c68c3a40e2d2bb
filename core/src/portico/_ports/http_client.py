"""The HttpClient port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from portico._plugins.http import HttpRequest, HttpResponse


class HttpClient(Protocol):
    """Sends requests to the services that an application is configured for.

    Behaviour: it returns every answer, whatever its status, and does not follow redirects. It tries again a few times
    where an answer asks for a short wait (429, 503) and where a connection fails. Time and bytes are limited. Calls may
    run concurrently and share connections. Addresses that are not public are allowed, since the application chose them.
    Names of headers are in lower case, bodies decompressed; nothing of an answer (cookies) goes with the next request.
    Errors and logs contain no secrets. One client serves several event loops.
    Errors: ``ServiceUnavailable``, ``ServiceTimeout``, ``LimitExceeded`` for a body that is too large,
    ``ResponseInvalid`` for a damaged one, ``ConfigurationError`` for a wrong address or header.
    """

    name: str

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request and return the whole answer."""
        ...
