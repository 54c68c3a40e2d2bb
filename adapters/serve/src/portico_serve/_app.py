"""The application of the server: the routes of the page and of the API, and the guard around them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from portico_serve._api import document, routes as api
from portico_serve._desk import Desk
from portico_serve._guard.addresses import Addresses
from portico_serve._guard.limits import Limits
from portico_serve._guard.refusals import Refused, failure
from portico_serve._guard.security import Guard
from portico_serve._guard.sessions import Sessions
from portico_serve._openai import completions
from portico_serve._pages import routes as pages

STATIC = Path(__file__).parent / "static"


def make_app(
    desk: Desk,
    addresses: Addresses,
    sessions: Sessions,
    *,
    limits: Limits | None = None,
    report: Callable[[Exception], None] = lambda error: None,
    static: Path = STATIC,
) -> Guard:
    """Return the guarded application; ``report`` gets errors that should not happen."""
    routes: list[BaseRoute] = [
        *api.routes(desk),
        *document.routes(desk),
        *completions.routes(desk),
        *pages.routes(desk),
        Mount("/static", StaticFiles(directory=static, check_dir=False)),
    ]
    handlers = {HTTPException: _refuse, Exception: _fail}
    return Guard(Starlette(routes=routes, exception_handlers=handlers), addresses, sessions, limits, report)


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - it is registered for these
    words = {404: "There is nothing at this path.", 405: "This method is not for this path."}
    message = words.get(error.status_code, f"{error.detail}.")
    kind = {404: "NotFound", 405: "WrongMethod"}.get(error.status_code, "Refused")
    return Refused(error.status_code, kind, message, error.headers).response(request.scope["path"])


async def _fail(request: Request, error: Exception) -> Response:
    return failure().response(request.scope["path"])
