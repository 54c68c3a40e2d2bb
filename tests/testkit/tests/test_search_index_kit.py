"""The SearchIndex kit passes a correct index and catches broken ones."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any

import pytest

from portico.errors import ConfigurationError, ServiceUnavailable
from portico.ports.search_index import IndexProgress, IndexReport
from portico_testkit.fakes.text_search import ListEntry, ListSearch
from portico_testkit.kit_failures import KnownFaults
from portico_testkit.kit_of_a_kit import KitOfAKit
from portico_testkit.search_index import SearchIndexKit


class Shelf:
    """Documents in a dictionary, with the index that all searches over them share."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.indexed: dict[str, str] = {}
        self.lock = asyncio.Lock()

    def write(self, name: str, text: str) -> None:
        self.texts[name] = text

    def remove(self, name: str) -> None:
        del self.texts[name]


class ShelfIndex:
    """Does right what a variant does not do wrong."""

    def __init__(self, shelf: Shelf | None) -> None:
        self.shelf = shelf

    async def update(self, *, progress: Callable[[IndexProgress], None] | None = None) -> IndexReport:
        if self.shelf is None:
            raise ConfigurationError("There is no shelf to index.")
        async with self.shelf.lock:
            return await self.work(self.shelf, progress or (lambda how_far: None))

    async def work(self, shelf: Shelf, progress: Callable[[IndexProgress], None]) -> IndexReport:
        counts = {"added": 0, "changed": 0, "unchanged": 0}
        progress(IndexProgress(0, None))
        for number, (name, text) in enumerate(list(shelf.texts.items())):
            await asyncio.sleep(0)
            before = shelf.indexed.get(name)
            counts["added" if before is None else "unchanged" if before == text else "changed"] += 1
            if before != text:
                await self.store(shelf, name, text)
            progress(IndexProgress(number + 1, len(shelf.texts), name))
        gone = shelf.indexed.keys() - shelf.texts.keys()
        for name in gone:
            del shelf.indexed[name]
        done = counts["added"] + counts["changed"]
        return IndexReport(**counts, removed=len(gone), passages=len(shelf.indexed), embedded=done)

    async def store(self, shelf: Shelf, name: str, text: str) -> None:
        shelf.indexed[name] = text


class ShelfSearch(ListSearch):
    def __init__(self, shelf: Shelf | None, index: type[ShelfIndex] = ShelfIndex) -> None:
        super().__init__([])
        self.shelf = shelf
        self.index = index(shelf)

    async def fetch(self, query: str, options: Any) -> Any:
        self.entries = [ListEntry(text) for text in self.shelf.indexed.values()]
        return await super().fetch(query, options)


FAULTS = KnownFaults(
    SearchIndexKit,
    lambda index: {
        "documents": Shelf,
        "make_search": lambda documents: lambda: ShelfSearch(documents, index),
        "missing": lambda: ShelfSearch(None, index),
    },
)


class TestShelfIndex(SearchIndexKit):
    @pytest.fixture
    def documents(self) -> Shelf:
        return Shelf()

    @pytest.fixture
    def make_search(self, documents: Shelf) -> Callable[[], ShelfSearch]:
        return lambda: ShelfSearch(documents)

    @pytest.fixture
    def missing(self) -> ShelfSearch:
        return ShelfSearch(None)


@FAULTS.caught_by("what_is_new_changed_and_gone_is_told_and_found", "what was before")
class KeepsWhatIsGone(ShelfIndex):
    async def work(self, shelf, progress):
        before = dict(shelf.indexed)
        report = await super().work(shelf, progress)
        shelf.indexed |= {name: text for name, text in before.items() if name not in shelf.indexed}
        return report


@FAULTS.caught_by("what_is_new_changed_and_gone_is_told_and_found", "what was before")
class LeavesChangedOnes(ShelfIndex):
    async def store(self, shelf, name, text):
        shelf.indexed.setdefault(name, text)


@FAULTS.caught_by(
    "what_is_new_changed_and_gone_is_told_and_found", "added, changed, removed, unchanged and renamed are"
)
class CountsChangedOnesAsNew(ShelfIndex):
    async def work(self, shelf, progress):
        report = await super().work(shelf, progress)
        return IndexReport(report.added + report.changed, passages=report.passages, unchanged=report.unchanged)


@FAULTS.caught_by("only_what_changed_is_embedded_again", "added, changed, removed")
class MakesAllAnew(ShelfIndex):
    async def work(self, shelf, progress):
        shelf.indexed.clear()
        return await super().work(shelf, progress)


@FAULTS.caught_by("only_what_changed_is_embedded_again", "of one document that changed, 5 passages")
class EmbedsAllWhenOneChanged(ShelfIndex):
    async def work(self, shelf, progress):
        report = await super().work(shelf, progress)
        embedded = report.passages if report.embedded else 0
        return IndexReport(
            report.added, report.changed, unchanged=report.unchanged, passages=report.passages, embedded=embedded
        )


@FAULTS.caught_by("progress_is_told_in_the_callers_event_loop", "never told")
class SaysNothing(ShelfIndex):
    async def update(self, *, progress=None):
        return await super().update()


@FAULTS.caught_by("progress_is_told_in_the_callers_event_loop", "in another thread")
class TellsFromAThread(ShelfIndex):
    async def work(self, shelf, progress):
        await asyncio.to_thread(progress, IndexProgress(0, None))
        return await super().work(shelf, progress)


@FAULTS.caught_by("progress_is_told_in_the_callers_event_loop", "progress goes back")
class CountsDown(ShelfIndex):
    async def work(self, shelf, progress):
        return await super().work(shelf, lambda each: progress(IndexProgress(6 - each.done, each.total)))


@FAULTS.caught_by("progress_is_told_in_the_callers_event_loop", "the last that is told is")
class StopsBeforeTheEnd(ShelfIndex):
    async def work(self, shelf, progress):
        return await super().work(shelf, lambda each: progress(each) if each.done < 6 else None)


@FAULTS.caught_by("a_cancelled_update_leaves_each_document_old_or_new", "lost a document")
class RemovesBeforeItWrites(ShelfIndex):
    async def store(self, shelf, name, text):
        shelf.indexed.pop(name, None)
        await asyncio.sleep(0)
        shelf.indexed[name] = text


@FAULTS.caught_by("a_cancelled_update_leaves_each_document_old_or_new", "as if nobody had cancelled it")
class TakesNoNoticeOfCancellation(ShelfIndex):
    async def work(self, shelf, progress):
        with contextlib.suppress(asyncio.CancelledError):
            return await super().work(shelf, progress)
        return IndexReport()


@FAULTS.caught_by("a_cancelled_update_leaves_each_document_old_or_new", "a cancelled call raised ServiceUnavailable")
class TakesCancellationForAFailure(ShelfIndex):
    async def work(self, shelf, progress):
        try:
            return await super().work(shelf, progress)
        except asyncio.CancelledError:
            raise ServiceUnavailable("The embeddings cannot be reached.") from None


@FAULTS.caught_by("a_cancelled_update_leaves_each_document_old_or_new", "after a cancelled call it never answers")
class KeepsItsLockWhenCancelled(ShelfIndex):
    async def update(self, *, progress=None):
        await self.shelf.lock.acquire()
        report = await self.work(self.shelf, progress or (lambda how_far: None))
        self.shelf.lock.release()
        return report


@FAULTS.caught_by("a_cancelled_update_leaves_each_document_old_or_new", "tasks go on")
class WorksOnWhenCancelled(ShelfIndex):
    async def work(self, shelf, progress):
        watching = asyncio.create_task(asyncio.sleep(5))
        report = await super().work(shelf, progress)
        watching.cancel()
        return report


@FAULTS.caught_by("a_second_update_waits_for_the_first", "three updates at once added")
class LocksNobodyOut(ShelfIndex):
    async def update(self, *, progress=None):
        report = await self.work(self.shelf, progress or (lambda how_far: None))
        return IndexReport(added=len(self.shelf.texts), passages=report.passages)


@FAULTS.caught_by("a_second_update_waits_for_the_first", "is at work")
class RefusesTheSecond(ShelfIndex):
    async def update(self, *, progress=None):
        if self.shelf.lock.locked():
            raise ServiceUnavailable("Another process is at work.")
        return await super().update(progress=progress)


@FAULTS.caught_by("what_is_not_there_cannot_be_indexed", "DID NOT RAISE")
class IndexesNothing(ShelfIndex):
    async def update(self, *, progress=None):
        return IndexReport()


@FAULTS.caught_by("what_is_not_there_cannot_be_indexed", "the message is ''")
class FailsWithoutAWord(ShelfIndex):
    async def update(self, *, progress=None):
        raise ConfigurationError("")


@FAULTS.caught_by("an_update_leaves_the_event_loop_free", "the event loop waits by time.sleep in")
class BlocksTheLoop(ShelfIndex):
    async def work(self, shelf, progress):
        time.sleep(0.05)
        return await super().work(shelf, progress)


class TestTheSearchIndexKit(KitOfAKit):
    faults = FAULTS
    correct = (ShelfIndex,)
