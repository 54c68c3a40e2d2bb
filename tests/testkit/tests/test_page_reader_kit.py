"""The PageReader kit passes a correct reader and catches broken ones."""

from __future__ import annotations

from typing import Any

import pytest

from portico.errors import ResponseInvalid
from portico.ports import Page
from portico_testkit.fakes.page_reader import ShelfReader
from portico_testkit.kit_failures import Fault, KnownFaults
from portico_testkit.page_reader import KnownPage, PageReaderKit

DOOR, ROOF, MOVED = "https://shelf.example/door", "https://shelf.example/roof", "https://shelf.example/moved"
KNOWN = [
    KnownPage(DOOR, "A red door.", title="Door"),
    KnownPage(ROOF, "The roof is flat."),
    KnownPage(MOVED, "A red door.", found_at=DOOR),
]
UNREADABLE = ["https://shelf.example/missing", "https://shelf.example/empty"]


def shelf(kind: type[ShelfReader] = ShelfReader) -> ShelfReader:
    empty = ResponseInvalid(f"The page {UNREADABLE[1]} has no text.")
    return kind(
        {
            DOOR: Page("A red door.", DOOR, "Door", "text/html"),
            ROOF: "The roof is flat.",
            MOVED: DOOR,
            UNREADABLE[1]: empty,
        },
        seconds=0.001,
    )


class TestShelfReader(PageReaderKit):
    @pytest.fixture
    def page_reader(self) -> ShelfReader:
        return shelf()

    @pytest.fixture
    def known_pages(self) -> list[KnownPage]:
        return KNOWN

    @pytest.fixture
    def unreadable(self) -> list[str]:
        return UNREADABLE


FAULTS = KnownFaults(
    PageReaderKit,
    lambda kind: {"page_reader": lambda: shelf(kind), "known_pages": lambda: KNOWN, "unreadable": lambda: UNREADABLE},
)


class Broken(ShelfReader):
    """Does right what a variant does not do wrong."""


@FAULTS.caught_by("it_reads_what_is_there", "was found at")
class GivesTheLinkAskedFor(Broken):
    async def read(self, link):
        page = await super().read(link)
        return Page(page.text, link, page.title, page.media_type)


@FAULTS.caught_by("a_cancelled_read_leaves_it_usable", "still busy")
class DeadAfterCancellation(Broken):
    busy = False

    async def read(self, link):
        if self.busy:
            raise RuntimeError("still busy")
        self.busy = True
        try:
            page = await super().read(link)
        except Exception:
            self.busy = False
            raise
        self.busy = False
        return page


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: Fault, given: Any) -> None:
    await FAULTS.check(fault, given)
