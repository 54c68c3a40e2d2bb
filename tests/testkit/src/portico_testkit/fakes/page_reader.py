"""A page reader with its pages on a shelf."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping

from portico.errors import AccessRefused, ServiceUnavailable
from portico.ports import Page

__all__ = ["ShelfReader"]


_BARE_ADDRESS = re.compile(r"https?://(\[|[0-9][0-9a-fx.]*(?=[:/]|$))")


class ShelfReader:
    """Read pages from a mapping of links to pages, texts or errors; a link of its own leads to another.

    >>> import asyncio
    >>> reader = ShelfReader({"https://a.example/": "A door.", "https://b.example/": "https://a.example/"})
    >>> asyncio.run(reader.read("https://b.example/"))
    Page(text='A door.', link='https://a.example/', title=None, media_type='text/plain', cut=None)

    A text that starts with ``http`` and is on the shelf itself is a redirect. ``seconds`` is how long a page takes,
    for all or by link. ``asked`` keeps the links that were asked for, ``cancelled`` those whose reading was stopped,
    ``most_at_once`` how many were read at one time, for tests.
    """

    def __init__(
        self,
        pages: Mapping[str, Page | str | Exception],
        *,
        name: str = "shelf",
        seconds: float | Mapping[str, float] = 0.0,
    ) -> None:
        self.name = name
        self.pages = dict(pages)
        self.asked: list[str] = []
        self.cancelled: list[str] = []
        self.most_at_once = 0
        self._seconds = seconds
        self._reading = 0

    async def read(self, link: str) -> Page:
        """Return the page; ``ServiceUnavailable`` when it is not on the shelf."""
        self.asked.append(link)
        self._reading += 1
        self.most_at_once = max(self.most_at_once, self._reading)
        try:
            seconds = self._seconds.get(link, 0.0) if isinstance(self._seconds, Mapping) else self._seconds
            await asyncio.sleep(seconds)
            return self._found(link)
        except asyncio.CancelledError:
            self.cancelled.append(link)
            raise
        finally:
            self._reading -= 1

    def _found(self, link: str) -> Page:
        if not link.startswith(("http://", "https://")) or "@" in link:
            raise AccessRefused("The link is no http or https URL, or has a user in it.")
        if link not in self.pages and _BARE_ADDRESS.match(link):
            raise AccessRefused(f"{link[:200]!r} leads to an address without a name, and is on no shelf.")
        page = self.pages.get(link)
        if isinstance(page, str) and page in self.pages:
            link, page = page, self.pages[page]
        if page is None:
            raise ServiceUnavailable(f"There is no page {link[:200]!r} on the shelf.")
        if isinstance(page, Exception):
            raise page
        return page if isinstance(page, Page) else Page(page, link)
