"""The SearchIndex kit passes a correct index and catches broken ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from portico.ports import IndexProgress, IndexReport
from portico_testkit.fakes.text_search import ListEntry, ListSearch
from portico_testkit.kit_failures import Fault, KnownFaults
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

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf

    async def update(self, *, progress: Callable[[IndexProgress], None] | None = None) -> IndexReport:
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
    def __init__(self, shelf: Shelf, index: type[ShelfIndex] = ShelfIndex) -> None:
        super().__init__([])
        self.shelf = shelf
        self.index = index(shelf)

    async def fetch(self, query: str, options: Any) -> Any:
        self.entries = [ListEntry(text) for text in self.shelf.indexed.values()]
        return await super().fetch(query, options)


FAULTS = KnownFaults(
    SearchIndexKit,
    lambda index: {"documents": Shelf, "make_search": lambda documents: lambda: ShelfSearch(documents, index)},
)


class TestShelfIndex(SearchIndexKit):
    @pytest.fixture
    def documents(self) -> Shelf:
        return Shelf()

    @pytest.fixture
    def make_search(self, documents: Shelf) -> Callable[[], ShelfSearch]:
        return lambda: ShelfSearch(documents)


@FAULTS.caught_by("what_is_new_changed_and_gone_is_told_and_found", "what was before")
class KeepsWhatIsGone(ShelfIndex):
    async def work(self, shelf, progress):
        before = dict(shelf.indexed)
        report = await super().work(shelf, progress)
        shelf.indexed |= {name: text for name, text in before.items() if name not in shelf.indexed}
        return report


@FAULTS.caught_by("a_cancelled_update_leaves_each_document_old_or_new", "lost a document")
class RemovesBeforeItWrites(ShelfIndex):
    async def store(self, shelf, name, text):
        shelf.indexed.pop(name, None)
        await asyncio.sleep(0)
        shelf.indexed[name] = text


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: Fault, given: Any) -> None:
    await FAULTS.check(fault, given)
