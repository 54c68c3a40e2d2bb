"""The PageReader port."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Page:
    """The main text of a page; ``link`` is its address after redirects.

    ``media_type`` is that of the page ("text/html", "application/pdf"), in lower case, without parameters. ``cut`` is
    None for a whole text, or names the limit that left out the rest ("the first 100 of 230 pages").
    """

    text: str
    link: str
    title: str | None = None
    media_type: str = "text/plain"
    cut: str | None = None


class PageReader(Protocol):
    """Fetches a page and returns its main text.

    Behaviour: bytes and time are limited, whatever the server does; the text is never blank. A link is refused if it is
    not http or https, has a user or password, or leads to an address that is not public, directly or by a redirect,
    unless the reader is set to allow it. Nothing of one read (cookies) reaches the next. Calls may run concurrently; a
    cancelled one stops what it started.
    Errors: ``AccessRefused`` for a refused link; ``LimitExceeded`` with the limit; another ``ServiceError`` for a page
    that is missing, empty or of another kind. The message names the link.
    """

    name: str

    async def read(self, link: str) -> Page:
        """Return the page at ``link``, an http or https URL."""
        ...
