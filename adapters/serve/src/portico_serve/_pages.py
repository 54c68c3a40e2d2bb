"""A placeholder until the pages are merged."""

from __future__ import annotations

from starlette.routing import Route

from portico_serve._desk import Desk


def routes(desk: Desk) -> list[Route]:
    """Return no routes yet."""
    return []
