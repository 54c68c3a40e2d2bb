"""The reader does what every PageReader must, and the search for full pages what every TextSearch must."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from portico.ports import PageReader, TextSearch
from portico.search import Equal
from portico_testkit.fakes.page_reader import ShelfReader
from portico_testkit.fakes.services import FixedServices
from portico_testkit.fakes.text_search import ListEntry, ListSearch
from portico_testkit.page_reader import KnownPage, PageReaderKit
from portico_testkit.text_search import TextSearchKit
from portico_web.pages.config import FullPagesSettings, WebPagesSettings
from portico_web.pages.reader import FullPages, WebPagesPageReader, full_pages

# No test here is about this limit: a host that is busy may take long to start the process that reads.
UNHURRIED = 120.0


class OnLoopback(PageReaderKit):
    @pytest.fixture
    def known_pages(self, site: Any, answer: Any, moved: Any, pdf: Any) -> list[KnownPage]:
        door = "<title>Door</title><article><p>The red door is behind the stairs, and locked.</p></article>"
        site.routes["/door"] = answer(door, "text/html")
        site.routes["/moved"] = moved("/door")
        site.routes["/roof"] = answer(pdf(["The roof is flat."]), "application/pdf")
        site.routes["/wall"] = answer("The wall is thick.")
        return [
            KnownPage(site.url("/door"), "The red door is behind the stairs, and locked.", title="Door"),
            KnownPage(site.url("/roof"), "The roof is flat."),
            KnownPage(site.url("/wall"), "The wall is thick."),
            KnownPage(site.url("/moved"), "The red door", found_at=site.url("/door")),
        ]

    @pytest.fixture
    def unreadable(self, site: Any, answer: Any) -> list[str]:
        site.routes["/empty"] = answer("", "text/html")
        site.routes["/picture"] = answer(b"\x89PNG", "image/png")
        site.routes["/broken"] = b"no HTTP"
        site.routes["/large"] = answer("x" * 50_000)
        return [site.url(path) for path in ("/missing", "/empty", "/picture", "/broken", "/large")]


class TestWebPagesPageReader(OnLoopback):
    @pytest.fixture
    async def page_reader(self) -> AsyncIterator[WebPagesPageReader]:
        settings = WebPagesSettings(allow=("127.0.0.1",), max_bytes=20_000, seconds=UNHURRIED)
        reader = WebPagesPageReader(settings)
        yield reader
        await reader.aclose()


class TestWithoutRobots(OnLoopback):
    @pytest.fixture
    async def page_reader(self) -> AsyncIterator[WebPagesPageReader]:
        settings = WebPagesSettings(allow=("127.0.0.0/8",), max_bytes=20_000, robots=False, seconds=UNHURRIED)
        reader = WebPagesPageReader(settings)
        yield reader
        await reader.aclose()


class TestFullPages(TextSearchKit):
    filters = (Equal("colour", "red"),)

    @pytest.fixture
    def text_search(self) -> FullPages:
        colours = ["red", "blue"] * 4
        entries = [
            ListEntry(f"a {colour} door {number}", None, f"https://a.example/{number}", {"colour": colour})
            for number, colour in enumerate(colours)
        ]
        entries += [ListEntry("a roof", "Roof")]
        reader = ShelfReader({f"https://a.example/{number}": f"The page of door {number}." for number in range(6)})
        services = FixedServices({(TextSearch, "web"): ListSearch(entries), PageReader: reader})
        return full_pages(FullPagesSettings(source="web"), services)
