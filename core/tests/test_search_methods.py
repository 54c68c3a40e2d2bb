"""A further search method of a connector is one decorated method, and is as careful as the first three."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest

from portico._search.filters import Equal, FilterSupport
from portico._search.results import (
    SearchCapabilities,
    SearchConnector,
    SearchMethod,
    SearchResults,
    TextSearchOptions,
    TextSearchResult,
    search_method,
    search_methods,
)
from portico.errors import UnsupportedOption


@dataclass(frozen=True)
class Story:
    headline: str


NEWS = SearchCapabilities(FilterSupport.fields_of("day"), total_count=False)


class Papers(SearchConnector[str]):
    name = "papers"
    capabilities = SearchCapabilities(FilterSupport.fields_of("site"), total_count=True)

    def __init__(self) -> None:
        self.asked: list[tuple[str, TextSearchOptions]] = []

    async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[str]:
        return SearchResults([query])

    def to_text(self, record: str) -> str:
        return record

    def to_result(self, record: str) -> TextSearchResult:
        return TextSearchResult(record)

    @search_method
    async def get_daily_news(self, query: str, options: TextSearchOptions) -> SearchResults[Story]:
        """Find what was in the papers,
        of all days.

        The rest is for authors.
        """
        self.asked.append((query, options))
        return SearchResults([Story(str(number)) for number in range(9)], total_count=9, metadata={"of": query})

    @search_method(capabilities=NEWS)
    async def get_pictures(self, query: str, options: TextSearchOptions) -> SearchResults[Annotated[str, "an address"]]:
        """Find pictures."""
        self.asked.append((query, options))
        return SearchResults(["a", "b"], total_count=2)

    async def get_nothing(self, query: str) -> None:
        """Is no search method."""


@pytest.fixture
def papers() -> Papers:
    return Papers()


def test_methods_are_found_with_name_words_and_type(papers: Papers) -> None:
    expected = (
        SearchMethod("GetDailyNews", "get_daily_news", "Find what was in the papers, of all days.", Story),
        SearchMethod("GetPictures", "get_pictures", "Find pictures.", Annotated[str, "an address"], NEWS),
    )
    assert search_methods(papers) == expected
    assert search_methods(Papers) == expected
    assert search_methods(object()) == ()


def test_a_subclass_has_them_too_and_may_replace_one() -> None:
    class Better(Papers):
        @search_method
        async def get_daily_news(self, query: str, options: TextSearchOptions) -> SearchResults[int]:
            """Find better news."""
            return SearchResults([1])

    assert [(method.name, method.record_type) for method in search_methods(Better)] == [
        ("GetDailyNews", int),
        ("GetPictures", Annotated[str, "an address"]),
    ]


async def test_the_options_hold_for_it(papers: Papers) -> None:
    assert len(await (await papers.get_daily_news("q", None)).list()) == 5, "no options are the default options"
    assert papers.asked == [("q", TextSearchOptions())]
    results = await papers.get_daily_news("q", TextSearchOptions(top=2, include_total_count=True))
    assert await results.list() == [Story("0"), Story("1")], "the method may give more than it was asked for"
    assert results.total_count == 9
    assert results.metadata == {"of": "q"}


async def test_a_count_that_was_not_asked_for_or_not_declared_is_left_out(papers: Papers) -> None:
    assert (await papers.get_daily_news("q", None)).total_count is None
    assert (await papers.get_pictures("q", TextSearchOptions(include_total_count=True))).total_count is None


async def test_a_blank_query_asks_nobody(papers: Papers) -> None:
    for method in (papers.get_daily_news, papers.get_pictures):
        results = await method(" \n", TextSearchOptions(include_total_count=True))
        assert await results.list() == []
    assert papers.asked == []


async def test_filters_are_the_connectors_or_the_methods_own(papers: Papers) -> None:
    of_site, of_day = (TextSearchOptions(filter=Equal(field, "x")) for field in ("site", "day"))
    await papers.get_daily_news("q", of_site)
    await papers.get_pictures("q", of_day)
    for method, options, known in ((papers.get_daily_news, of_day, "site"), (papers.get_pictures, of_site, "day")):
        with pytest.raises(UnsupportedOption, match=f"'papers'.*{known}"):
            await method("q", options)
    assert len(papers.asked) == 2
