"""The PageReader kit passes a correct reader and catches broken ones."""

from __future__ import annotations

import asyncio

import pytest

from portico.errors import ResponseInvalid
from portico.ports.page_reader import Page
from portico_testkit.fakes.page_reader import ShelfReader
from portico_testkit.kit_failures import kit_failures
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


class Broken(ShelfReader):
    """Does right what a variant does not do wrong."""


class GivesTheLinkAskedFor(Broken):
    async def read(self, link):
        page = await super().read(link)
        return Page(page.text, link, page.title, page.media_type)


class ReadsAnything(Broken):
    async def read(self, link):
        return await super().read(link) if link in self.pages or link in UNREADABLE else Page("Something.", link)


class RaisesItsOwnError(Broken):
    def _found(self, link):
        return super()._found(link) if link in self.pages else Page(self.pages[link], link)


class SaysNothing(Broken):
    async def read(self, link):
        try:
            return await super().read(link)
        except ResponseInvalid:
            raise ResponseInvalid("It is empty.") from None


class ReadsEmptyPages(Broken):
    async def read(self, link):
        return Page("", link) if link == UNREADABLE[1] else await super().read(link)


class MixesReads(Broken):
    async def read(self, link):
        self.link = link
        await asyncio.sleep(0.001)
        return await super().read(self.link)


class DropsThePassword(Broken):
    async def read(self, link):
        return await super().read(link.replace(link[8 : link.find("@") + 1], "") if "@" in link else link)


class ShowsThePassword(Broken):
    async def read(self, link):
        if "@" in link and "\\" not in link:
            raise ResponseInvalid(f"{link} has a user in it.")
        return await super().read(link)


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


class ShoutsItsMediaType(Broken):
    async def read(self, link):
        page = await super().read(link)
        return Page(page.text, page.link, page.title, "TEXT/HTML; charset=utf-8")


class ClosesOnce(Broken):
    closed = False

    async def aclose(self):
        if self.closed:
            raise RuntimeError("closed already")
        self.closed = True


class LeavesATask(Broken):
    async def read(self, link):
        self.task = asyncio.create_task(later())
        return await super().read(link)


async def later():
    await asyncio.sleep(0.5)


class EmptyTitle(Broken):
    async def read(self, link):
        page = await super().read(link)
        return Page(page.text, page.link, page.title or "")


class HangsOnOtherLinks(Broken):
    async def read(self, link):
        if not link.startswith("http"):
            raise TimeoutError
        return await super().read(link)


async def failures(kind: type[ShelfReader], *tests: str) -> dict[str, str]:
    fixtures = {"page_reader": lambda: shelf(kind), "known_pages": lambda: KNOWN, "unreadable": lambda: UNREADABLE}
    return await kit_failures(PageReaderKit, fixtures, tests or None)


@pytest.mark.parametrize("variant", Broken.__subclasses__(), ids=lambda variant: variant.__name__)
async def test_the_kit_catches(variant: type[ShelfReader]) -> None:
    assert await failures(variant), f"no test of the kit fails for {variant.__name__}"


async def test_the_kit_finds_nothing_wrong_with_what_the_broken_ones_share() -> None:
    assert await failures(Broken) == {}


@pytest.mark.parametrize(
    ("variant", "test"),
    [
        (GivesTheLinkAskedFor, "test_it_reads_what_is_there"),
        (ReadsAnything, "test_addresses_that_are_not_public_are_refused"),
        (SaysNothing, "test_what_cannot_be_read_is_a_service_error"),
        (ReadsEmptyPages, "test_what_cannot_be_read_is_a_service_error"),
        (MixesReads, "test_concurrent_reads_do_not_mix"),
        (ShowsThePassword, "test_a_user_and_password_are_refused_and_not_shown"),
        (DropsThePassword, "test_a_user_and_password_are_refused_and_not_shown"),
        (DeadAfterCancellation, "test_a_cancelled_read_leaves_it_usable"),
        (HangsOnOtherLinks, "test_other_links_are_refused"),
        (LeavesATask, "test_it_leaves_no_task_behind"),
        (ClosesOnce, "test_it_leaves_no_task_behind"),
    ],
)
async def test_a_fault_is_caught_by_the_test_that_names_it(variant: type[ShelfReader], test: str) -> None:
    assert await failures(variant, test)
