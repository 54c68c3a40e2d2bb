"""What the index of every TextSearch must do that has one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol

import pytest

from portico.ports import IndexReport, SearchIndex, TextSearch
from portico.search import TextSearchOptions
from portico_testkit.event_loop import leaves_the_event_loop_free
from portico_testkit.tasks import give_up, no_tasks_but, still_answers

__all__ = ["IndexedDocuments", "SearchIndexKit"]

_WORDS = ("anvil", "bramble", "cistern", "dovecote", "ember", "fathom", "gable", "hawthorn", "inkwell", "juniper")
_CHANGED = "has changed"


class IndexedDocuments(Protocol):
    """What is indexed, as the kit changes it: the files of a folder, the rows of a table."""

    def write(self, name: str, text: str) -> None:
        """Make a document, or replace its text."""
        ...

    def remove(self, name: str) -> None:
        """Take a document away."""
        ...


class SearchIndexKit:
    """Subclass it and give fixtures named ``documents`` and ``make_search``::

        class TestAcmeIndex(SearchIndexKit):
            @pytest.fixture
            def documents(self, tmp_path):
                return Folder(tmp_path)

            @pytest.fixture
            def make_search(self, tmp_path):
                return lambda: AcmeSearch(AcmeSettings(path=tmp_path), services)

    ``documents`` are an `IndexedDocuments`, none at first. ``make_search`` makes a search over them, each time a new
    one on the same index, as another process does.
    """

    @pytest.mark.asyncio
    async def test_what_is_new_changed_and_gone_is_told_and_found(
        self, documents: IndexedDocuments, make_search: Callable[[], TextSearch]
    ) -> None:
        search = make_search()
        _fill(documents, 4)
        _told(await _index(search).update(), added=4)
        assert await _found(search) == set(_WORDS[:4])
        documents.write("0.txt", "It speaks of a hawthorn now.")
        documents.remove("1.txt")
        documents.write("new.txt", "Here is an inkwell.")
        _told(await _index(make_search()).update(), added=1, changed=1, removed=1, unchanged=2)
        for each in (search, make_search()):
            assert await _found(each) == {"hawthorn", "cistern", "dovecote", "inkwell"}, (
                "a search finds what was before"
            )

    @pytest.mark.asyncio
    async def test_only_what_changed_is_embedded_again(
        self, documents: IndexedDocuments, make_search: Callable[[], TextSearch]
    ) -> None:
        _fill(documents, 5)
        first = await _index(make_search()).update()
        assert first.embedded in (0, first.passages), (
            f"of {first.passages} new passages, {first.embedded} were embedded"
        )
        again = await _index(make_search()).update()
        _told(again, unchanged=5)
        assert (again.embedded, again.passages) == (0, first.passages), f"without changes the report is {again}"
        documents.write("2.txt", "It speaks of a juniper now.")
        changed = await _index(make_search()).update()
        assert changed.embedded <= 1, f"of one document that changed, {changed.embedded} passages were embedded"

    @pytest.mark.asyncio
    async def test_a_cancelled_update_leaves_each_document_old_or_new(
        self, documents: IndexedDocuments, make_search: Callable[[], TextSearch]
    ) -> None:
        _fill(documents, 6)
        await _index(make_search()).update()
        tasks = asyncio.all_tasks()
        for turns in (0, 1, 2, 4, 8, 16, 32, 64):
            for number in range(3):
                documents.write(f"{number}.txt", f"It speaks of a {_WORDS[6 + number]}, for the {turns}th time.")
            search = make_search()
            await give_up(partial(_index(search).update), turns=turns)
            for number in range(3):
                either = {_WORDS[number], _WORDS[6 + number], _CHANGED}
                there = await still_answers(_found(search)) & either
                assert there, f"a cancelled update lost a document: none of {sorted(either)} is found"
        await no_tasks_but(tasks)
        report = await still_answers(_index(make_search()).update())
        assert report.documents == 6, f"after cancelled updates, {report.documents} of 6 documents are there"
        assert await _found(make_search()) == {*_WORDS[3:6], *_WORDS[6:9]}
        _told(await _index(make_search()).update(), unchanged=6)

    @pytest.mark.asyncio
    async def test_a_second_update_waits_for_the_first(
        self, documents: IndexedDocuments, make_search: Callable[[], TextSearch]
    ) -> None:
        _fill(documents, 6)
        searches = [make_search() for _ in range(3)]
        async with asyncio.timeout(60):
            reports = await asyncio.gather(*(_index(search).update() for search in searches))
        added = [report.added for report in reports]
        assert sorted(added) == [0, 0, 6], f"three updates at once added {added}, of 6 documents"
        for search in searches:
            assert await _found(search) == set(_WORDS[:6])

    @pytest.mark.asyncio
    async def test_an_update_leaves_the_event_loop_free(
        self, documents: IndexedDocuments, make_search: Callable[[], TextSearch]
    ) -> None:

        async def update(number: int) -> IndexReport:
            for document in range(40):
                documents.write(f"{document}.txt", f"Attempt {number}. " + f"Line {document} of many. " * 50)
            return await _index(make_search()).update()

        await leaves_the_event_loop_free(update)


def _index(search: TextSearch) -> SearchIndex:
    assert search.index is not None, "the search has no index"
    return search.index


def _fill(documents: IndexedDocuments, count: int) -> None:
    for number, word in enumerate(_WORDS[:count]):
        documents.write(f"{number}.txt", f"A text that speaks of one {word}.")


def _told(report: IndexReport, *, added: int = 0, changed: int = 0, removed: int = 0, unchanged: int = 0) -> None:
    told = (report.added, report.changed, report.removed, report.unchanged, report.renamed)
    assert told == (added, changed, removed, unchanged, 0), f"added, changed, removed, unchanged and renamed are {told}"
    assert not report.problems, f"there are problems: {report.problems}"
    assert report.passages >= report.documents, f"{report.documents} documents have {report.passages} passages"


async def _found(search: TextSearch) -> set[str]:
    """Return the words that are found by themselves; a source may say instead that a document has changed."""
    found = set()
    for word in (*_WORDS, _CHANGED):
        texts = await (await search.search(word, TextSearchOptions(top=20))).list()
        found |= {word for text in texts if word in text}
    return found
