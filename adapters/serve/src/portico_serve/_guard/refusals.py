"""How the server says no: as JSON under /api, in OpenAI's form under /v1, as a page elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import HTMLResponse, Response

from portico_serve._json import JsonResponse
from portico_serve._pages.showing import error_page

FOR_PROGRAMS = ("/api", "/v1")
"""The paths at which programs ask; elsewhere are pages."""
ORIGIN = "portico_serve.origin"
"""In the scope of a request, the origin at which it came."""
DO_NOT_RETRY = {"x-should-retry": "false"}
"""Clients of OpenAI's API try again by themselves, and a run that failed is not to be run three times."""
_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
_SERVERS_FAULT = 500


class Refused(Exception):
    """A request is not answered; ``message`` says why, and what to do."""

    def __init__(self, status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message
        self.headers = dict(headers or {})

    def response(self, path: str) -> Response:
        """Return the answer, in the form that those who ask at this path can read."""
        if is_below(path, "/v1"):
            body = openai_error(self.status, self.message, self.kind)
            return JsonResponse(body, self.status, self.headers)
        if is_below(path, "/api"):
            return JsonResponse({"error": {"message": self.message, "kind": self.kind}}, self.status, self.headers)
        return HTMLResponse(error_page(self.status, self.message), self.status, self.headers)


def failure() -> Refused:
    """Return what is answered where something went wrong that should not."""
    words = "Something went wrong that should not. The terminal of `portico serve` says what."
    return Refused(500, "Failed", words, DO_NOT_RETRY)


def openai_error(status: int, message: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    """Return an error as clients of OpenAI's API read it."""
    kind = _TYPES.get(status, "server_error" if status >= _SERVERS_FAULT else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def is_below(path: str, folder: str) -> bool:
    """Tell whether a path is a folder or in it."""
    return path == folder or path.startswith(f"{folder}/")
