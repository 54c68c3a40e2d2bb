"""How the server says no: as JSON under /api, in OpenAI's form under /v1, as a small page elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from starlette.responses import HTMLResponse, JSONResponse, Response

_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
_SERVERS_FAULT = 500

_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title></head>
<body><main><h1>{title}</h1><p>{message}</p></main></body>
</html>
"""


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
            return JSONResponse(body, self.status, self.headers)
        if is_below(path, "/api"):
            return JSONResponse({"error": {"message": self.message, "kind": self.kind}}, self.status, self.headers)
        page = _PAGE.format(title="Portico", message=escape(self.message))
        return HTMLResponse(page, self.status, self.headers)


def openai_error(status: int, message: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    """Return an error as clients of OpenAI's API read it."""
    kind = _TYPES.get(status, "server_error" if status >= _SERVERS_FAULT else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def is_below(path: str, folder: str) -> bool:
    """Tell whether a path is a folder or in it."""
    return path == folder or path.startswith(f"{folder}/")
