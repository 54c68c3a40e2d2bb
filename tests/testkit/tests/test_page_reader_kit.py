"""The PageReader kit passes a correct reader and catches broken ones."""

from __future__ import annotations

import asyncio
import contextlib
import time

import pytest

from portico.errors import AccessRefused, ResponseInvalid, ServiceUnavailable
from portico.ports.page_reader import Page
from portico_testkit.fakes.page_reader import ShelfReader
from portico_testkit.kit_failures import KnownFaults, keeps_its_lock
from portico_testkit.kit_of_a_kit import KitOfAKit
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


@FAULTS.caught_by("addresses_that_are_not_public_are_refused", "DID NOT RAISE")
class ReadsAnything(Broken):
    async def read(self, link):
        return await super().read(link) if link in self.pages or link in UNREADABLE else Page("Something.", link)


@FAULTS.caught_by("what_cannot_be_read_is_a_service_error")
class RaisesItsOwnError(Broken):
    def _found(self, link):
        return super()._found(link) if link in self.pages else Page(self.pages[link], link)


@FAULTS.caught_by("what_cannot_be_read_is_a_service_error", "does not name")
class SaysNothing(Broken):
    async def read(self, link):
        try:
            return await super().read(link)
        except ResponseInvalid:
            raise ResponseInvalid("It is empty.") from None


@FAULTS.caught_by("what_cannot_be_read_is_a_service_error", "DID NOT RAISE")
class ReadsEmptyPages(Broken):
    async def read(self, link):
        return Page("", link) if link == UNREADABLE[1] else await super().read(link)


@FAULTS.caught_by("concurrent_reads_do_not_mix", "another page's text")
class MixesReads(Broken):
    async def read(self, link):
        self.link = link
        await asyncio.sleep(0.001)
        return await super().read(self.link)


@FAULTS.caught_by("a_user_and_password_are_refused_and_not_shown", "DID NOT RAISE")
class DropsThePassword(Broken):
    async def read(self, link):
        return await super().read(link.replace(link[8 : link.find("@") + 1], "") if "@" in link else link)


@FAULTS.caught_by("a_user_and_password_are_refused_and_not_shown")
class ShowsThePassword(Broken):
    async def read(self, link):
        if "@" in link and "\\" not in link:
            raise ResponseInvalid(f"{link} has a user in it.")
        return await super().read(link)


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


@FAULTS.caught_by("it_reads_what_is_there", "no media type")
class ShoutsItsMediaType(Broken):
    async def read(self, link):
        page = await super().read(link)
        return Page(page.text, page.link, page.title, "TEXT/HTML; charset=utf-8")


@FAULTS.caught_by("it_leaves_no_task_behind", "closed already")
class ClosesOnce(Broken):
    closed = False

    async def aclose(self):
        if self.closed:
            raise RuntimeError("closed already")
        self.closed = True


@FAULTS.caught_by("it_leaves_no_task_behind", "tasks go on")
class LeavesATask(Broken):
    async def read(self, link):
        self.task = asyncio.create_task(later())
        return await super().read(link)


async def later():
    await asyncio.sleep(30)


@FAULTS.caught_by("it_reads_what_is_there", "title")
class EmptyTitle(Broken):
    async def read(self, link):
        page = await super().read(link)
        return Page(page.text, page.link, page.title or "")


@FAULTS.caught_by("other_links_are_refused", "was not refused after 0.3 seconds")
class HangsOnOtherLinks(Broken):
    async def read(self, link):
        if not link.startswith("http"):
            await asyncio.Event().wait()
        return await super().read(link)


@FAULTS.caught_by("it_has_a_name", "name is empty")
class Nameless(Broken):
    def __init__(self, pages, **options):
        super().__init__(pages, name=" ", **options)


@FAULTS.caught_by("reading_twice_gives_the_same", "reads otherwise the second time")
class CountsItsReads(Broken):
    reads = 0

    async def read(self, link):
        page = await super().read(link)
        self.reads += 1
        return Page(f"{page.text} {self.reads}", page.link, page.title, page.media_type)


@FAULTS.caught_by("addresses_that_are_not_public_are_refused", "cannot be reached")
class TriesAddressesThatAreNotPublic(Broken):
    """Says that nobody is there, as one does who has tried."""

    async def read(self, link):
        try:
            return await super().read(link)
        except AccessRefused:
            raise ServiceUnavailable(f"{link} cannot be reached.") from None


@FAULTS.caught_by("other_links_are_refused", "without a word|DID NOT RAISE")
class RefusesWithoutAWord(Broken):
    async def read(self, link):
        try:
            return await super().read(link)
        except AccessRefused:
            raise AccessRefused("") from None


@FAULTS.caught_by(
    "a_page_whose_link_is_in_capitals_is_read_or_refused", "raised ValueError.*, which is no ServiceError"
)
class KnowsSchemesInSmallLettersOnly(Broken):
    async def read(self, link):
        if link.startswith("HTTP"):
            raise ValueError("not enough values to unpack")
        return await super().read(link)


@FAULTS.caught_by(
    "a_page_whose_link_is_in_capitals_is_read_or_refused", "SHELF.EXAMPLE.* gave 'Something else.', without"
)
class ReadsAnotherPageForCapitals(Broken):
    async def read(self, link):
        return Page("Something else.", link) if "EXAMPLE" in link else await super().read(link)


@FAULTS.caught_by("a_page_whose_link_is_in_capitals_is_read_or_refused", "is refused without a word")
class SaysNothingOfCapitals(Broken):
    async def read(self, link):
        if link.startswith("HTTP"):
            raise AccessRefused("")
        return await super().read(link)


class ReadsCapitals(Broken):
    """Correct: it takes scheme and host as they are meant."""

    async def read(self, link):
        scheme, _, rest = link.partition("://")
        host, slash, path = rest.partition("/")
        return await super().read(f"{scheme.lower()}://{host.lower()}{slash}{path}" if rest and path != "" else link)


@FAULTS.caught_by("a_cancelled_read_leaves_it_usable", "as if nobody had cancelled it")
class TakesNoNoticeOfCancellation(Broken):
    async def read(self, link):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.01)
        return await super().read(link)


@FAULTS.caught_by("a_cancelled_read_leaves_it_usable", "a cancelled call raised ServiceUnavailable")
class TakesCancellationForAFailure(Broken):
    async def read(self, link):
        try:
            return await super().read(link)
        except asyncio.CancelledError:
            raise ServiceUnavailable(f"{link} cannot be reached.") from None


@FAULTS.caught_by("a_cancelled_read_leaves_it_usable", "after a cancelled call it never answers")
class KeepsItsLockWhenCancelled(Broken):
    read = keeps_its_lock(Broken.read)


@FAULTS.caught_by("a_cancelled_read_leaves_it_usable", "tasks go on")
class ReadsOnWhenCancelled(Broken):
    async def read(self, link):
        reading = asyncio.create_task(later())
        page = await super().read(link)
        reading.cancel()
        return page


@FAULTS.caught_by("it_leaves_no_task_behind", "tasks go on .*sleep")
class LeavesATaskOfTheLibrarys(Broken):
    async def read(self, link):
        self.waiting = asyncio.create_task(asyncio.sleep(30))
        return await super().read(link)


@FAULTS.caught_by("a_cancelled_read_leaves_it_usable", "tasks go on .*sleep")
class LeavesATaskOfTheLibrarysWhenCancelled(Broken):
    async def read(self, link):
        waiting = asyncio.create_task(asyncio.sleep(30))
        page = await super().read(link)
        waiting.cancel()
        return page


@FAULTS.caught_by("a_read_leaves_the_event_loop_free", "the event loop waits by time.sleep in")
class BlocksTheLoop(Broken):
    async def read(self, link):
        time.sleep(0.05)
        return await super().read(link)


class TestThePageReaderKit(KitOfAKit):
    faults = FAULTS
    correct = (Broken, ReadsCapitals)
