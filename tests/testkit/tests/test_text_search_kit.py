"""The TextSearch kit passes a correct search and catches broken ones."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import Any

import pytest

from portico.errors import LimitExceeded, PorticoError, ServiceUnavailable, UnsupportedFilter
from portico.filter import And, AnyOf, Equal, FilterSupport, Not, Range
from portico.ports.search_index import IndexReport
from portico.search import SearchCapabilities, SearchResults, TextSearchOptions, TextSearchResult, search_method
from portico_testkit.fakes.text_search import ListEntry, ListSearch
from portico_testkit.kit_failures import KnownFaults, keeps_its_lock
from portico_testkit.kit_of_a_kit import KitOfAKit
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


def fixtures(kind: type[ListSearch]) -> dict[str, Any]:
    return {"text_search": lambda: kind(ENTRIES), "failing_search": lambda: kind(ENTRIES, fails=True)}


FAULTS = KnownFaults(Kit, fixtures)


@FAULTS.caught_by("what_it_declares_is_well_formed", "name is empty")
class Nameless(WholeSearch):
    def __init__(self, entries, **options):
        super().__init__(entries, **options)
        self.name = " "


@FAULTS.caught_by("what_it_declares_is_well_formed", "capabilities.most is 0")
class BoundedByNothing(WholeSearch):
    capabilities = replace(WholeSearch.capabilities, most=0)


@FAULTS.caught_by("what_it_declares_is_well_formed", "do not take Equal")
class OffersRanges(WholeSearch):
    capabilities = SearchCapabilities(FilterSupport({"year": frozenset({"Range"})}, offered=("year",)))


@FAULTS.caught_by("the_query_finds_something", "finds 1 passages; the kit needs three")
class FindsOneOnly(WholeSearch):
    async def fetch(self, query, options):
        return await super().fetch(query, replace(options, top=1))


@FAULTS.caught_by("the_query_finds_something", "find the same passages in the same order")
class FindsTheSameForAll(WholeSearch):
    async def fetch(self, query, options):
        return await super().fetch("door", options)


@FAULTS.caught_by("the_best_come_first", "is not in the first passage")
class WorstFirst(WholeSearch):
    """On all pages alike."""

    async def fetch(self, query, options):
        found = await (await super().fetch(query, replace(options, top=99, skip=0))).list()
        total = len(found) if options.include_total_count else None
        return SearchResults(found[::-1][options.skip : options.skip + options.top], total_count=total)


@FAULTS.caught_by("the_best_come_first", "is in several passages")
class FindsTheBestTwice(WholeSearch):
    async def fetch(self, query, options):
        found = await (await super().fetch(query, options)).list()
        return SearchResults(found[:1] + found)


@FAULTS.caught_by("five_are_the_default", "search without options differs")
class TenAreTheDefault(WholeSearch):
    async def get_search_results(self, query, options=None):
        return await super().get_search_results(query, options or TextSearchOptions(top=1))


@FAULTS.caught_by("skip_leaves_out_the_first", "beyond the last result there is")
class StartsAnewBeyondTheEnd(WholeSearch):
    async def fetch(self, query, options):
        found = await (await super().fetch(query, options)).list()
        return SearchResults(found or await (await super().fetch(query, replace(options, skip=0))).list())


@FAULTS.caught_by("skip_leaves_out_the_first", "skip=2, top=1 gave")
class OffByOneOnLaterPages(WholeSearch):
    async def fetch(self, query, options):
        return await super().fetch(query, replace(options, skip=options.skip + (options.skip > 1)))


@FAULTS.caught_by("the_three_methods_find_the_same", "records are of several types")
class RecordsOfTwoKinds(WholeSearch):
    async def get_search_results(self, query, options=None):
        found = await (await super().get_search_results(query, options)).list()
        return SearchResults([Other(**{f: getattr(r, f) for f in Other.__slots__}) if r.link else r for r in found])


@dataclass(frozen=True, slots=True)
class Other:
    text: str
    name: str | None
    link: str | None
    fields: Any


@FAULTS.caught_by("what_a_caller_does_to_results_changes_nothing", "came back to the next")
class KeepsItsRecords(WholeSearch):
    """Gives the dictionaries that it keeps."""

    def __init__(self, entries, **options):
        super().__init__(entries, **options)
        self.kept = {entry.text: {"text": entry.text} for entry in entries}

    async def get_search_results(self, query, options=None):
        return (await super().get_search_results(query, options)).map(lambda entry: self.kept[entry.text])


@FAULTS.caught_by("what_a_caller_does_to_results_changes_nothing", "no mapping")
class MetadataOfAnotherKind(WholeSearch):
    async def get_search_results(self, query, options=None):
        found = await super().get_search_results(query, options)
        found.metadata = "page 1"
        return found


@FAULTS.caught_by("results_have_text_and_links_that_open", "has an empty value")
class EmptyTexts(WholeSearch):
    def to_result(self, record):
        return TextSearchResult(" ", record.name, record.link)


@FAULTS.caught_by("concurrent_calls_do_not_mix", "beside other calls")
class MixesFiltersOfConcurrentCalls(WholeSearch):
    async def fetch(self, query, options):
        self.filter = options.filter
        await asyncio.sleep(0)
        return await super().fetch(query, replace(options, filter=self.filter))


@FAULTS.caught_by("the_total_is_counted_as_declared", "behind the first")
class CountsWhatIsLeft(WholeSearch):
    async def fetch(self, query, options):
        found = await super().fetch(query, options)
        if found.total_count is not None:
            found.total_count -= options.skip
        return found


@FAULTS.caught_by("the_total_is_counted_as_declared", "keeps 2")
class CountsWithoutTheFilter(WholeSearch):
    async def fetch(self, query, options):
        found = await super().fetch(query, options)
        found.total_count = (await super().fetch(query, replace(options, filter=None))).total_count
        return found


@FAULTS.caught_by("filters_keep_what_they_say", "keeps nothing")
class FiltersToNothing(WholeSearch):
    async def fetch(self, query, options):
        return await super().fetch(query, options) if options.filter is None else SearchResults([])


@FAULTS.caught_by("filters_combine_as_declared", "And of twice")
class ReadsAndAsNothing(WholeSearch):
    async def fetch(self, query, options):
        filter = options.filter
        if isinstance(filter, And) and len({*map(repr, filter.parts)}) == 1:
            return SearchResults([])
        return await super().fetch(query, options)


@FAULTS.caught_by("filters_combine_as_declared", r"Not\(.*keeps")
class ForgetsNot(WholeSearch):
    async def fetch(self, query, options):
        filter = options.filter
        return await super().fetch(query, replace(options, filter=filter.part if isinstance(filter, Not) else filter))


@FAULTS.caught_by("other_filters_are_refused", "does not name")
class RefusesWithoutSayingWhatItTakes(WholeSearch):
    capabilities = SearchCapabilities(FilterSupport({"colour": frozenset({"Equal"})}), total_count=True)

    async def get_search_results(self, query, options=None):
        try:
            return await super().get_search_results(query, options)
        except UnsupportedFilter:
            raise UnsupportedFilter("No such filter.") from None


@FAULTS.caught_by("queries_are_data", "finds 6 passages")
class GivesMoreForOddQueries(WholeSearch):
    async def get_search_results(self, query, options=None):
        found = await super().get_search_results(query, options)
        return SearchResults(self.entries[:1] * 6) if "\x00" in query else found


@FAULTS.caught_by("the_bounds_that_it_declares_hold", "2 at most by what it says")
class GivesMoreThanItDeclares(WholeSearch):
    capabilities = replace(WholeSearch.capabilities, most=2)


@FAULTS.caught_by("the_bounds_that_it_declares_hold", "too long")
class TakesLessThanItDeclares(WholeSearch):
    async def fetch(self, query, options):
        if len(query.split()) > 100:
            raise PorticoError("The query is too long.")
        return await super().fetch(query, options)


@FAULTS.caught_by("the_bounds_that_it_declares_hold", "414")
class LetsTheVendorRefuse(WholeSearch):
    async def fetch(self, query, options):
        if len(query) > 15_000:
            raise RuntimeError("414")
        return await super().fetch(query, options)


@FAULTS.caught_by("further_methods_keep_the_same_rules", "2 results for top=1")
class MoreNewsThanTop(WholeSearch):
    async def get_news(self, query, options=None):
        options = options or TextSearchOptions()
        return await super().get_news(query, replace(options, top=options.top + 1))

    get_news.__portico_search_method__ = (None,)
    get_news.__doc__ = "Find."


@FAULTS.caught_by("further_methods_keep_the_same_rules", "a model is told nothing of it")
class NewsOfNothing(WholeSearch):
    @search_method
    async def get_papers(self, query: str, options: TextSearchOptions) -> SearchResults[ListEntry]:
        return SearchResults([])


@FAULTS.caught_by("a_search_given_up_leaves_it_usable", "as if nobody had cancelled it")
class TakesNoNoticeOfCancellation(WholeSearch):
    async def fetch(self, query, options):
        try:
            return await super().fetch(query, options)
        except asyncio.CancelledError:
            return SearchResults([])


@FAULTS.caught_by("a_search_given_up_leaves_it_usable", "a cancelled call raised ServiceUnavailable")
class TakesCancellationForAFailure(WholeSearch):
    async def fetch(self, query, options):
        try:
            return await super().fetch(query, options)
        except asyncio.CancelledError:
            raise ServiceUnavailable("It went away.") from None


@FAULTS.caught_by("a_search_given_up_leaves_it_usable", "busy")
class BusyAfterCancellation(WholeSearch):
    busy = False

    async def fetch(self, query, options):
        if self.busy:
            raise RuntimeError("busy")
        self.busy = True
        found = await super().fetch(query, options)
        self.busy = False
        return found


@FAULTS.caught_by("a_search_given_up_leaves_it_usable", "after a cancelled call it never answers")
class KeepsItsLockWhenCancelled(WholeSearch):
    fetch = keeps_its_lock(WholeSearch.fetch)


@FAULTS.caught_by("a_search_given_up_leaves_it_usable", "tasks go on")
class ReadsAheadAndGoesOn(WholeSearch):
    async def get_text_search_results(self, query, options=None):
        results = await super().get_text_search_results(query, options)

        async def ahead():
            waiting = asyncio.create_task(asyncio.sleep(5))
            async for result in results:
                yield result
            waiting.cancel()

        return SearchResults(ahead())


@FAULTS.caught_by("a_search_leaves_the_event_loop_free", "the event loop waits by time.sleep in")
class BlocksTheLoop(WholeSearch):
    async def fetch(self, query, options):
        time.sleep(0.05)
        return await super().fetch(query, options)


@FAULTS.caught_by("a_source_that_fails_is_an_error_of_ours", "raised ConnectionError")
class LetsTheVendorsErrorOut(WholeSearch):
    async def fetch(self, query, options):
        if self.fails:
            raise ConnectionError("[Errno 111]")
        return await super().fetch(query, options)


@FAULTS.caught_by("a_source_that_fails_is_an_error_of_ours", "in a source that fails")
class FindsNothingWhereItFails(WholeSearch):
    async def fetch(self, query, options):
        return SearchResults([]) if self.fails else await super().fetch(query, options)


@FAULTS.caught_by("a_source_that_fails_is_an_error_of_ours", "and says ''")
class FailsWithoutAWord(WholeSearch):
    async def fetch(self, query, options):
        if self.fails:
            raise ServiceUnavailable("")
        return await super().fetch(query, options)


@FAULTS.caught_by("there_are_never_more_than_top", "2 results for top=1")
class OneTooMany(WholeSearch):
    async def get_search_results(self, query, options=None):
        options = options or TextSearchOptions()
        return await super().get_search_results(query, replace(options, top=options.top + 1))


@FAULTS.caught_by("skip_leaves_out_the_first", "skip=1, top=1 gave")
class ForgetsSkip(WholeSearch):
    async def fetch(self, query, options):
        return await super().fetch(query, replace(options, skip=0))


@FAULTS.caught_by("skip_leaves_out_the_first", "skip=1, top=2 gave")
class SkipsPages(WholeSearch):
    async def fetch(self, query, options):
        return await super().fetch(query, replace(options, skip=options.skip * options.top))


@FAULTS.caught_by("skip_leaves_out_the_first")
class WorstFirstOnEachPage(WholeSearch):
    async def fetch(self, query, options):
        found = await (await super().fetch(query, options)).list()
        return SearchResults(found[::-1])


@FAULTS.caught_by("filters_keep_what_they_say", "leaves nothing out")
class DropsTheFilter(WholeSearch):
    async def fetch(self, query, options):
        return await super().fetch(query, replace(options, filter=None))


@FAULTS.caught_by("filters_keep_what_they_say", "pass it|keeps nothing")
class FiltersThePage(WholeSearch):
    """Filters what it has found instead of finding what passes: results go missing."""

    async def fetch(self, query, options):
        unfiltered = await (await super().fetch(query, replace(options, filter=None, top=3))).list()
        kept = {id(entry) for entry in self.entries if entry in unfiltered}
        found = await (await super().fetch(query, options)).list()
        return SearchResults([entry for entry in found if options.filter is None or id(entry) in kept])


@FAULTS.caught_by("other_filters_are_refused", "DID NOT RAISE")
class ForgetsUnsupportedFilters(WholeSearch):
    capabilities = SearchCapabilities(FilterSupport({"colour": frozenset({"Equal"})}), total_count=True)

    async def get_search_results(self, query, options=None):
        options = options or TextSearchOptions()
        return await self.fetch(query, replace(options, filter=None)) if query.strip() else SearchResults([])


@FAULTS.caught_by("options_of_one_call_do_not_reach_the_next", "changed the next call")
class KeepsOptions(WholeSearch):
    kept = TextSearchOptions()

    async def fetch(self, query, options):
        if options == TextSearchOptions():
            options = self.kept
        self.kept = options
        return await super().fetch(query, options)


@FAULTS.caught_by("streams_read_alternately_do_not_mix", "disturb each other")
class SharesItsStream(WholeSearch):
    shared: Any = None

    async def get_search_results(self, query, options=None):
        if options and options.top == 3 and not options.skip:
            self.shared = self.shared or await super().get_search_results(query, options)
            return self.shared
        return await super().get_search_results(query, options)


@FAULTS.caught_by("concurrent_calls_do_not_mix", "beside other calls")
class MixesConcurrentCalls(WholeSearch):
    async def fetch(self, query, options):
        self.asked = query
        await asyncio.sleep(0)
        return await super().fetch(self.asked, options)


@FAULTS.caught_by("a_blank_query_finds_nothing", "finds 5 passages")
class FindsAllForBlank(WholeSearch):
    async def get_search_results(self, query, options=None):
        return await super().get_search_results(query if query.strip() else "a door", options)


@FAULTS.caught_by("the_total_is_counted_as_declared", "without being asked for")
class CountsUnasked(WholeSearch):
    async def get_search_results(self, query, options=None):
        return await super().get_search_results(
            query, replace(options or TextSearchOptions(), include_total_count=True)
        )


@FAULTS.caught_by("the_total_is_counted_as_declared")
class CountsThePage(WholeSearch):
    async def fetch(self, query, options):
        found = await (await super().fetch(query, options)).list()
        return SearchResults(found, total_count=len(found))


@FAULTS.caught_by("the_total_is_counted_as_declared", "do not declare it")
class CountsWithoutDeclaringIt(WholeSearch):
    capabilities = SearchCapabilities(FilterSupport.everything(), total_count=False)

    async def get_search_results(self, query, options=None):
        found = await (await super().get_search_results(query, options)).list()
        return SearchResults(found, total_count=99 if options and options.include_total_count else None)


@FAULTS.caught_by("the_total_is_counted_as_declared", "was declared")
class NeverCounts(WholeSearch):
    async def fetch(self, query, options):
        return SearchResults(await (await super().fetch(query, options)).list())


@FAULTS.caught_by("results_have_text_and_links_that_open", "a name is empty")
class EmptyNames(WholeSearch):
    def to_result(self, record):
        return TextSearchResult(record.text, record.name or "", record.link)


@FAULTS.caught_by("results_have_text_and_links_that_open", "is not encoded")
class LinksWithSpaces(WholeSearch):
    def to_result(self, record):
        return TextSearchResult(record.text, record.name, f"https://example.org/{record.name}")


@FAULTS.caught_by("results_have_text_and_links_that_open", "is no address")
class PathsAsLinks(WholeSearch):
    def to_result(self, record):
        return TextSearchResult(record.text, record.name, "/docs/a.md")


@FAULTS.caught_by("queries_are_data", "unbalanced quotes")
class ReadsQuerySyntax(WholeSearch):
    async def fetch(self, query, options):
        if query.count('"') % 2:
            raise PorticoError("unbalanced quotes")
        return await super().fetch(query, options)


@FAULTS.caught_by("the_three_methods_find_the_same", "search and get_text_search_results differ")
class TextsDiffer(WholeSearch):
    def to_text(self, record):
        return record.text[:10]


@FAULTS.caught_by("what_it_declares_is_well_formed", "offered to models and not supported")
class OffersWhatItDoesNotSupport(WholeSearch):
    capabilities = SearchCapabilities(
        FilterSupport({"colour": frozenset({"Equal"})}, offered=("color",)), total_count=True
    )


@FAULTS.caught_by("an_update_without_changes_changes_nothing", "an update after an update reports")
class ReportsChangesEveryTime(WholeSearch):
    class Index:
        async def update(self, *, progress: Any = None) -> IndexReport:
            return IndexReport(changed=1, unchanged=4, passages=5)

    index = Index()


class HasMoreThanTheKitReads(WholeSearch):
    """Finds more passages than the kit asks for, and most of those pass its filters."""

    capabilities = replace(WholeSearch.capabilities, most=None)

    def __init__(self, entries, **options):
        more = [ListEntry(f"Door {number}.", fields={"colour": "red", "year": 2010}) for number in range(100)]
        super().__init__([*entries, *more], **options)


class GivesThirtyAtMost(HasMoreThanTheKitReads):
    """Of what the filter keeps, as services do: not what it keeps of thirty."""

    capabilities = replace(HasMoreThanTheKitReads.capabilities, most=30)

    async def fetch(self, query, options):
        found = await super().fetch(query, options)
        total = None if found.total_count is None else min(30, found.total_count)
        return SearchResults((await found.list())[: max(0, 30 - options.skip)], total_count=total)


class RefusesLongQueries(WholeSearch):
    """As services do that say how long a query may be."""

    capabilities = replace(WholeSearch.capabilities, query_characters=300, query_words=50)
    refusal = "A query has at most 300 characters and 50 words."

    async def fetch(self, query, options):
        if len(query) > 300 or len(query.split()) > 50:
            raise LimitExceeded(self.refusal)
        return await super().fetch(query, options)


@FAULTS.caught_by("the_bounds_that_it_declares_hold", "behind 29 it gives 10 results, 30 in all by what it says")
class GivesThirtyOfEachPage(HasMoreThanTheKitReads):
    capabilities = replace(HasMoreThanTheKitReads.capabilities, most=30)

    async def fetch(self, query, options):
        return await super().fetch(query, replace(options, top=min(options.top, 30)))


@FAULTS.caught_by("the_bounds_that_it_declares_hold", r"behind 29 it gives \[\], and \[TextSearchResult.* in one list")
class GivesNoPageThatIsNotWhole(GivesThirtyAtMost):
    async def fetch(self, query, options):
        cut = options.skip < 30 < options.skip + options.top
        return SearchResults([]) if cut and options.skip else await super().fetch(query, options)


@FAULTS.caught_by("filters_keep_what_they_say", "leaves nothing out")
class DropsTheFilterOfMany(HasMoreThanTheKitReads):
    async def fetch(self, query, options):
        return await super().fetch(query, replace(options, filter=None))


@FAULTS.caught_by("queries_are_data", "refused without a word")
class RefusesLongQueriesWithoutAWord(RefusesLongQueries):
    refusal = ""


class TestTheTextSearchKit(KitOfAKit):
    faults = FAULTS
    correct = (WholeSearch, HasMoreThanTheKitReads, GivesThirtyAtMost, RefusesLongQueries)


async def test_a_source_that_takes_filters_is_not_passed_untried() -> None:
    class Untold(TextSearchKit):
        pass

    with pytest.raises(AssertionError, match="give it `filters`"):
        await Untold().test_filters_keep_what_they_say(WholeSearch(ENTRIES))
