"""The TextSearch kit passes a correct search and catches broken ones."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from portico.errors import ServiceUnavailable
from portico.search import (
    And,
    AnyOf,
    Equal,
    FilterSupport,
    Range,
    SearchCapabilities,
    SearchResults,
    TextSearchOptions,
    search_method,
)
from portico_testkit.fakes.text_search import ListEntry, ListSearch
from portico_testkit.kit_failures import Fault, KnownFaults
from portico_testkit.text_search import TextSearchKit

ENTRIES = [
    ListEntry("A red door in a red wall.", "Red door", "https://example.org/1", {"colour": "red", "year": 1990}),
    ListEntry("The blue door.", "Blue door", "https://example.org/2", {"colour": "blue", "year": 2001}),
    ListEntry("Behind the door a garden.", None, None, {"year": 2010}),
    ListEntry("A roof of slate, a door of oak.", "Oak", "https://example.org/4", {"colour": "brown", "year": 2020}),
    ListEntry("A roof.", "Roof", "https://example.org/5", {"colour": "red", "year": 2000}),
]


class Kit(TextSearchKit):
    query = "a door in the wall"
    other_query = "roof of slate"
    filters = (
        Equal("colour", "red"),
        AnyOf("colour", ("blue", "brown")),
        Range("year", at_least=2001),
        And((Equal("colour", "red"), Range("year", below=1995))),
    )

    def fields_of(self, record: Any) -> Any:
        return record.fields

    def best(self) -> str:
        return "A red door in a red wall."


Kit.__test__ = False


class WholeSearch(ListSearch):
    """Has all that a search may have: bounds, a further method, an index, and a source that can fail."""

    capabilities = SearchCapabilities(
        FilterSupport.everything(), total_count=True, most=40, query_characters=15_000, query_words=2_500
    )

    def __init__(self, entries, *, fails=False):
        super().__init__(entries)
        self.fails = fails

    async def fetch(self, query, options):
        await asyncio.sleep(0)
        if self.fails:
            raise ServiceUnavailable("Text search 'list' cannot be reached.")
        return await super().fetch(query, options)

    @search_method
    async def get_news(self, query: str, options: TextSearchOptions) -> SearchResults[ListEntry]:
        """Find what is new."""
        return await super().fetch(query, options)


class TestListSearch(Kit):
    __test__ = True

    @pytest.fixture
    def text_search(self) -> WholeSearch:
        return WholeSearch(ENTRIES)

    @pytest.fixture
    def failing_search(self) -> WholeSearch:
        return WholeSearch(ENTRIES, fails=True)


def fixtures(kind: type[ListSearch]) -> dict[str, Any]:
    return {"text_search": lambda: kind(ENTRIES), "failing_search": lambda: kind(ENTRIES, fails=True)}


FAULTS = KnownFaults(Kit, fixtures)


@FAULTS.caught_by("a_search_given_up_leaves_it_usable", "as if it had not been cancelled")
class TakesNoNoticeOfCancellation(WholeSearch):
    async def fetch(self, query, options):
        try:
            return await super().fetch(query, options)
        except asyncio.CancelledError:
            return SearchResults([])


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: Fault, given: Any) -> None:
    await FAULTS.check(fault, given)
