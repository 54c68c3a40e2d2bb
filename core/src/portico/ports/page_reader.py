"""The PageReader port."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

__all__ = ["Page", "PageReader"]


@dataclass(frozen=True, slots=True)
class Page:
    """The main text of a page; ``link`` is where it was found in the end, after redirects."""

    text: str
    link: str
    title: str | None = None
    media_type: str = "text/plain"


class PageReader(Protocol):
    """Fetches a page and returns its main text.

    Behaviour: bounded in bytes and time; non-public addresses are refused unless allowed. Calls may run
    concurrently.
    Errors: a subclass of ``ServiceError``; ``LimitExceeded`` with the bound.
    """

    name: str

    async def read(self, link: str) -> Page:
        """Return the page at ``link``, an http or https URL."""
        ...
