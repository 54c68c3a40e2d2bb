"""The HttpClient port."""

from __future__ import annotations

from typing import Protocol

from portico.http import HttpRequest, HttpResponse

__all__ = ["HttpClient"]


class HttpClient(Protocol):
    """Sends requests to the services that an application is configured for.

    Behaviour: every answer comes back, whatever its status; redirects are not followed. An answer that asks to be
    patient for a short while (429, 503) and a connection that fails are tried again, a few times: what connectors
    send are questions. Bounded in time and bytes. Calls may run concurrently and share connections. Addresses that
    are not public may be reached, for the application chose them.
    Names of headers come in lower case, bodies decompressed; nothing of one answer goes with the next request.
    Secrets are in no error and no log. One client serves several event loops.
    Errors: ``ServiceUnavailable``, ``ServiceTimeout``, ``LimitExceeded`` for a body that is too large,
    ``ResponseInvalid`` for one that is damaged, ``ConfigurationError`` for an address that is none and what no header
    can hold.
    """

    name: str

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request and return the whole answer."""
        ...
