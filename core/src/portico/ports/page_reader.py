"""The PageReader port."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

__all__ = ["Page", "PageReader"]


@dataclass(frozen=True, slots=True)
class Page:
    """The main text of a page; ``link`` is where it was found in the end, after redirects.

    ``media_type`` is what the page was read from ("text/html", "application/pdf"), lower case, without parameters.
    ``cut`` is None for a whole text; else it says which bound left the rest out ("the first 100 of 230 pages").
    """

    text: str
    link: str
    title: str | None = None
    media_type: str = "text/plain"
    cut: str | None = None


class PageReader(Protocol):
    """Fetches a page and returns its main text.

    Behaviour: bounded in bytes and time, whatever the server does; the text is never blank. A link that is not
    http or https, that carries a user or password, or that leads to an address that is not public, at once or by
    a redirect, is refused unless the reader was told to allow it. Nothing of one read (cookies, say) reaches the
    next. Calls may run concurrently; a cancelled one stops what it started.
    Errors: ``AccessRefused`` for what may not be read; ``LimitExceeded`` with the bound; any other subclass of
    ``ServiceError`` for a page that is not there, is empty or is of another kind. The message names the link.
    """

    name: str

    async def read(self, link: str) -> Page:
        """Return the page at ``link``, an http or https URL."""
        ...
