"""The TextSearch kit passes a correct search and catches broken ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from portico.errors import PorticoError
from portico.filter import And, AnyOf, Equal, FilterSupport, Range
from portico.ports.search_index import IndexReport
from portico.search import SearchCapabilities, SearchResults, TextSearchOptions, TextSearchResult
from portico_testkit.fakes.text_search import ListEntry, ListSearch
from portico_testkit.kit_failures import kit_failures
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


Kit.__test__ = False


class TestListSearch(Kit):
    __test__ = True

    @pytest.fixture
    def text_search(self) -> ListSearch:
        return ListSearch(ENTRIES)


class TestSearchThatFiltersByOneFieldOnly(TextSearchKit):
    query = "door"
    other_query = "roof"
    filters = (Equal("colour", "red"),)

    @pytest.fixture
    def text_search(self) -> ListSearch:
        search = ListSearch([*ENTRIES, ListEntry("red door", fields={"colour": "red"})])
        search.capabilities = SearchCapabilities(
            FilterSupport({"colour": frozenset({"Equal"})}, frozenset()), total_count=True
        )
        return search


class OneTooMany(ListSearch):
    async def get_search_results(self, query, options=None):
        options = options or TextSearchOptions()
        return await super().get_search_results(query, replace(options, top=options.top + 1))


class ForgetsSkip(ListSearch):
    async def fetch(self, query, options):
        return await super().fetch(query, replace(options, skip=0))


class SkipsPages(ListSearch):
    async def fetch(self, query, options):
        return await super().fetch(query, replace(options, skip=options.skip * options.top))


class WorstFirstOnEachPage(ListSearch):
    async def fetch(self, query, options):
        found = await (await super().fetch(query, options)).list()
        return SearchResults(found[::-1])


class DropsTheFilter(ListSearch):
    async def fetch(self, query, options):
        return await super().fetch(query, replace(options, filter=None))


class FiltersThePage(ListSearch):
    """Filters what it has found instead of finding what passes: results go missing."""

    async def fetch(self, query, options):
        unfiltered = await (await super().fetch(query, replace(options, filter=None, top=3))).list()
        kept = {id(entry) for entry in self.entries if entry in unfiltered}
        found = await (await super().fetch(query, options)).list()
        return SearchResults([entry for entry in found if options.filter is None or id(entry) in kept])


class ForgetsUnsupportedFilters(ListSearch):
    capabilities = SearchCapabilities(FilterSupport({"colour": frozenset({"Equal"})}), total_count=True)

    async def get_search_results(self, query, options=None):
        options = options or TextSearchOptions()
        return await self.fetch(query, replace(options, filter=None)) if query.strip() else SearchResults([])


class KeepsOptions(ListSearch):
    kept = TextSearchOptions()

    async def fetch(self, query, options):
        if options == TextSearchOptions():
            options = self.kept
        self.kept = options
        return await super().fetch(query, options)


class SharesItsStream(ListSearch):
    shared: Any = None

    async def get_search_results(self, query, options=None):
        if options and options.top == 3 and not options.skip:
            self.shared = self.shared or await super().get_search_results(query, options)
            return self.shared
        return await super().get_search_results(query, options)


class MixesConcurrentCalls(ListSearch):
    async def fetch(self, query, options):
        import asyncio

        self.asked = query
        await asyncio.sleep(0)
        return await super().fetch(self.asked, options)


class FindsAllForBlank(ListSearch):
    async def get_search_results(self, query, options=None):
        return await super().get_search_results(query if query.strip() else "a door", options)


class CountsUnasked(ListSearch):
    async def get_search_results(self, query, options=None):
        return await super().get_search_results(
            query, replace(options or TextSearchOptions(), include_total_count=True)
        )


class CountsThePage(ListSearch):
    async def fetch(self, query, options):
        found = await (await super().fetch(query, options)).list()
        return SearchResults(found, total_count=len(found))


class CountsWithoutDeclaringIt(ListSearch):
    capabilities = SearchCapabilities(FilterSupport.everything(), total_count=False)

    async def get_search_results(self, query, options=None):
        found = await (await super().get_search_results(query, options)).list()
        return SearchResults(found, total_count=99 if options and options.include_total_count else None)


class NeverCounts(ListSearch):
    async def fetch(self, query, options):
        return SearchResults(await (await super().fetch(query, options)).list())


class EmptyNames(ListSearch):
    def to_result(self, record):
        return TextSearchResult(record.text, record.name or "", record.link)


class LinksWithSpaces(ListSearch):
    def to_result(self, record):
        return TextSearchResult(record.text, record.name, f"https://example.org/{record.name}")


class PathsAsLinks(ListSearch):
    def to_result(self, record):
        return TextSearchResult(record.text, record.name, "/docs/a.md")


class ReadsQuerySyntax(ListSearch):
    async def fetch(self, query, options):
        if query.count('"') % 2:
            raise PorticoError("unbalanced quotes")
        return await super().fetch(query, options)


class TextsDiffer(ListSearch):
    def to_text(self, record):
        return record.text[:10]


class OffersWhatItDoesNotSupport(ListSearch):
    capabilities = SearchCapabilities(
        FilterSupport({"colour": frozenset({"Equal"})}, offered=("color",)), total_count=True
    )


class ReportsChangesEveryTime(ListSearch):
    class Index:
        async def update(self, *, progress: Any = None) -> IndexReport:
            return IndexReport(changed=1, unchanged=4, passages=5)

    index = Index()


@pytest.mark.parametrize(
    "broken",
    [
        OneTooMany,
        ForgetsSkip,
        SkipsPages,
        WorstFirstOnEachPage,
        DropsTheFilter,
        FiltersThePage,
        ForgetsUnsupportedFilters,
        KeepsOptions,
        SharesItsStream,
        MixesConcurrentCalls,
        FindsAllForBlank,
        CountsUnasked,
        CountsThePage,
        CountsWithoutDeclaringIt,
        NeverCounts,
        EmptyNames,
        LinksWithSpaces,
        PathsAsLinks,
        ReadsQuerySyntax,
        TextsDiffer,
        OffersWhatItDoesNotSupport,
        ReportsChangesEveryTime,
    ],
    ids=lambda kind: kind.__name__,
)
async def test_the_kit_catches(broken: type[ListSearch]) -> None:
    failures = await kit_failures(Kit, {"text_search": lambda: broken(ENTRIES)})
    assert failures, f"no test of the kit fails for {broken.__name__}: {broken.__doc__}"
