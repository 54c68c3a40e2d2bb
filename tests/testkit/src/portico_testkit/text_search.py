"""What every TextSearch must do."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest

from portico.errors import UnsupportedFilter
from portico.filter import And, AnyOf, Equal, Filter, FilterSupport, Not, Or, Range, matches
from portico.ports.text_search import TextSearch
from portico.search import SearchResults, TextSearchOptions, TextSearchResult

__all__ = ["TextSearchKit"]

_ALL = 50
_AWKWARD = (
    '"',
    "'; DROP TABLE passages; --",
    'NEAR("a" "b", 5) AND NOT text:c* OR ^d',
    "* - + ( ) : { } [ ] ^ ~ ? \\ / & | !",
    "\x00 \ufeff \u202e",
    "lone \ud800 surrogate",
    "中文 без עברית \U0001f9e6",
    "{{$input}} %s <script>",
    "site:example.org filetype:pdf -word",
    "word " * 2_000,
)


class TextSearchKit:
    """Subclass it, say what the source is asked, and give a fixture named ``text_search``::

        class TestAcmeSearch(TextSearchKit):
            query = "pasta"
            filters = (Equal("language", "it"),)

            @pytest.fixture
            def text_search(self) -> AcmeSearch:
                return AcmeSearch(AcmeSettings(), None)

            def fields_of(self, record):
                return {"language": record.language}

    ``query`` must find at least three passages, and ``other_query`` others in another order. Each of ``filters``
    must keep some of the passages of ``query`` and not all. ``fields_of`` returns what a record holds of the fields
    that are filtered by, None where a record does not tell. ``awkward`` are queries that must do no harm; make it
    empty for a service whose answers are recorded. ``unknown_field`` is the name of no field.
    """

    query: ClassVar[str] = "door"
    other_query: ClassVar[str] = "roof"
    filters: ClassVar[tuple[Filter, ...]] = ()
    awkward: ClassVar[tuple[str, ...]] = _AWKWARD
    unknown_field: ClassVar[str] = "no_such_field"

    def fields_of(self, record: Any) -> Mapping[str, object] | None:
        """Return a record's values of the fields that are filtered by."""
        return None

    @pytest.mark.asyncio
    async def test_what_it_declares_is_well_formed(self, text_search: TextSearch) -> None:
        """The command line lists sources by these."""
        assert isinstance(text_search.name, str), f"name is {text_search.name!r}, not a str"
        assert text_search.name.strip(), "name is empty"
        support = text_search.capabilities.filter
        assert isinstance(support, FilterSupport), f"capabilities.filter is {support!r}"
        assert support.combine <= {"And", "Or", "Not"}, f"there is no such combination: {support.combine}"
        if support.fields is not None:
            known = {"Equal", "AnyOf", "Range"}
            for field, kinds in support.fields.items():
                assert kinds <= known, f"the field {field!r} declares clauses that do not exist: {kinds - known}"
            offered = set(support.offered) - set(support.fields)
            assert not offered, f"fields are offered to models and not supported: {offered}"
            # A parameter of a search function is an equality, joined by And to the application's own filter.
            other = [field for field in support.offered if "Equal" not in support.fields[field]]
            assert not other, f"fields are offered to models and do not take Equal: {other}"
        assert not support.offered or "And" in support.combine, "fields are offered to models and And is not supported"
        assert text_search.index is None or callable(text_search.index.update), "index has no update"

    @pytest.mark.asyncio
    async def test_the_query_finds_something(self, text_search: TextSearch) -> None:
        """All other tests stand on it."""
        found = await _all(text_search, self.query)
        assert len(found) >= 3, f"{self.query!r} finds {len(found)} passages; the kit needs three"
        other = await _all(text_search, self.other_query)
        assert other, f"{self.other_query!r} finds nothing"
        assert other != found, f"{self.query!r} and {self.other_query!r} find the same passages in the same order"

    @pytest.mark.asyncio
    async def test_there_are_never_more_than_top(self, text_search: TextSearch) -> None:
        """A prompt has room for that many."""
        for top in (1, 2, 3):
            for method in (text_search.search, text_search.get_text_search_results, text_search.get_search_results):
                found = await (await method(self.query, TextSearchOptions(top=top))).list()
                assert len(found) == top, f"{method.__name__} gave {len(found)} results for top={top}"

    @pytest.mark.asyncio
    async def test_five_are_the_default(self, text_search: TextSearch) -> None:
        """No options are the default options."""
        plain = await (await text_search.search(self.query)).list()
        spelt_out = await (await text_search.search(self.query, TextSearchOptions(top=5))).list()
        assert plain == spelt_out, "search without options differs from search with TextSearchOptions()"

    @pytest.mark.asyncio
    async def test_skip_leaves_out_the_first(self, text_search: TextSearch) -> None:
        """Pages neither overlap nor leave gaps, and the best come first on whatever page."""
        every = await _all(text_search, self.query)
        for skip, top in itertools.product((0, 1, 2, len(every) - 1), (1, 2)):
            page = await _found(text_search, self.query, TextSearchOptions(top=top, skip=skip))
            expected = every[skip : skip + top]
            assert page == expected, f"skip={skip}, top={top} gave {page}, not {expected}"
        beyond = await _found(text_search, self.query, TextSearchOptions(top=2, skip=10_000))
        assert beyond == [], f"beyond the last result there is {beyond}"

    @pytest.mark.asyncio
    async def test_the_three_methods_find_the_same(self, text_search: TextSearch) -> None:
        """They differ in form only."""
        options = TextSearchOptions(top=4)
        texts = await (await text_search.search(self.query, options)).list()
        results = await _found(text_search, self.query, options)
        records = await (await text_search.get_search_results(self.query, options)).list()
        assert texts == [result.value for result in results], "search and get_text_search_results differ"
        assert len(records) == len(results), "get_search_results finds another number"
        kinds = {type(record) for record in records}
        assert len(kinds) == 1, f"records are of several types: {kinds}"

    @pytest.mark.asyncio
    async def test_results_have_text_and_links_that_open(self, text_search: TextSearch) -> None:
        """A citation needs both; a name or link that is not known is None, never empty."""
        for result in await _all(text_search, self.query):
            assert isinstance(result, TextSearchResult), f"{result!r} is no TextSearchResult"
            assert isinstance(result.value, str), f"the value is {result.value!r}"
            assert result.value.strip(), f"{result.name} has an empty value"
            assert result.name is None or result.name.strip(), "a name is empty: it should be None"
            assert result.link is None or urlsplit(result.link).scheme, f"{result.link!r} is no address"
            assert result.link is None or not set(result.link) & set(' \n\t<>"'), f"{result.link!r} is not encoded"

    @pytest.mark.asyncio
    async def test_a_blank_query_finds_nothing(self, text_search: TextSearch) -> None:
        """There is nothing to be near to."""
        for query in ("", "  \t\n"):
            found = await _found(text_search, query, None)
            assert found == [], f"{query!r} finds {len(found)} passages"

    @pytest.mark.asyncio
    async def test_options_of_one_call_do_not_reach_the_next(self, text_search: TextSearch) -> None:
        """A shared options object is how they would."""
        before = await _found(text_search, self.query, None)
        for options in (
            TextSearchOptions(top=1, skip=1),
            *(TextSearchOptions(top=1, filter=filter) for filter in self.filters),
        ):
            await _found(text_search, self.query, options)
            assert await _found(text_search, self.query, None) == before, f"{options} changed the next call"

    @pytest.mark.asyncio
    async def test_concurrent_calls_do_not_mix(self, text_search: TextSearch) -> None:
        """One search serves a whole application."""
        asked = [
            (query, TextSearchOptions(top=top, skip=skip))
            for query in (self.query, self.other_query)
            for top in (1, 3)
            for skip in (0, 1)
        ]
        alone = [await _found(text_search, *call) for call in asked]
        together = await asyncio.gather(*(_found(text_search, *call) for call in asked))
        for call, expected, found in zip(asked, alone, together, strict=True):
            assert found == expected, f"{call} finds something else beside other calls"

    @pytest.mark.asyncio
    async def test_streams_read_alternately_do_not_mix(self, text_search: TextSearch) -> None:
        """Each result set has its own place, and may be left half read."""
        expected = await _found(text_search, self.query, TextSearchOptions(top=3))
        one = aiter(await text_search.get_text_search_results(self.query, TextSearchOptions(top=3)))
        two = aiter(await text_search.get_text_search_results(self.query, TextSearchOptions(top=3)))
        read = [(await anext(one, None), await anext(two, None)) for _ in range(2)]
        assert len(expected) == 3, f"top=3 gave {len(expected)} results"
        assert read == [(result, result) for result in expected[:2]], "two streams of one query disturb each other"

    @pytest.mark.asyncio
    async def test_the_total_is_counted_as_declared(self, text_search: TextSearch) -> None:
        """It may cost a service another request: only who asks for it gets it."""
        plain = await text_search.search(self.query, TextSearchOptions(top=2))
        assert plain.total_count is None, f"total_count is {plain.total_count} without being asked for"
        counted = await text_search.search(self.query, TextSearchOptions(top=2, include_total_count=True))
        if not text_search.capabilities.total_count:
            assert counted.total_count is None, "total_count is given and capabilities do not declare it"
            return
        assert isinstance(counted.total_count, int), f"total_count is {counted.total_count!r} and was declared"
        every = len(await _all(text_search, self.query))
        assert counted.total_count >= every, f"total_count is {counted.total_count}, and there are {every}"

    @pytest.mark.asyncio
    async def test_filters_keep_what_they_say(self, text_search: TextSearch) -> None:
        """A filtered search finds the passages that the filter keeps, all of them, and no others."""
        every = await (await text_search.get_search_results(self.query, TextSearchOptions(top=_ALL))).list()
        for filter in self.filters:
            options = TextSearchOptions(top=_ALL, filter=filter)
            kept = await (await text_search.get_search_results(self.query, options)).list()
            assert kept, f"{filter} keeps nothing of {self.query!r}"
            assert len(kept) < len(every), f"{filter} leaves nothing out of {self.query!r}"
            fields = [self.fields_of(record) for record in kept]
            wrong = [of_record for of_record in fields if of_record is not None and not matches(filter, of_record)]
            assert not wrong, f"{filter} kept {wrong}"
            known = [of_record for record in every if (of_record := self.fields_of(record)) is not None]
            if len(known) == len(every) < _ALL:
                expected = sum(matches(filter, of_record) for of_record in known)
                assert len(kept) == expected, f"{filter} kept {len(kept)} passages; {expected} pass it"

    @pytest.mark.asyncio
    async def test_filters_combine_as_declared(self, text_search: TextSearch) -> None:
        """Not is the complement, And and Or of one filter are that filter."""
        combine = text_search.capabilities.filter.combine
        every = len(await _all(text_search, self.query))
        for filter in self.filters:
            kept = await _all(text_search, self.query, filter)
            if "And" in combine:
                assert await _all(text_search, self.query, And((filter, filter))) == kept, f"And of twice {filter}"
            if "Or" in combine:
                assert await _all(text_search, self.query, Or((filter, filter))) == kept, f"Or of twice {filter}"
            if "Not" in combine:
                rest = await _all(text_search, self.query, Not(filter))
                if every < _ALL:
                    assert len(rest) == every - len(kept), f"Not({filter}) keeps {len(rest)} of {every - len(kept)}"

    @pytest.mark.asyncio
    async def test_other_filters_are_refused(self, text_search: TextSearch) -> None:
        """Nothing is dropped in silence: a filter that cannot be applied is an error that says what can."""
        for filter in _refused(text_search.capabilities.filter, self.unknown_field):
            with pytest.raises(UnsupportedFilter) as caught:
                await _found(text_search, self.query, TextSearchOptions(filter=filter))
            fields = text_search.capabilities.filter.fields or {}
            unnamed = [field for field in fields if field not in str(caught.value)]
            assert not unnamed, f"the message for {filter} does not name {unnamed}: {caught.value}"

    @pytest.mark.asyncio
    async def test_queries_are_data(self, text_search: TextSearch) -> None:
        """No query is read as a query language's syntax, and none brings the source down."""
        before = await _found(text_search, self.query, None)
        for query in self.awkward:
            found = await _found(text_search, query, None)
            assert len(found) <= 5, f"{query[:40]!r} finds {len(found)} passages"
        assert await _found(text_search, self.query, None) == before, "an awkward query changed the source"

    @pytest.mark.asyncio
    async def test_an_update_without_changes_changes_nothing(self, text_search: TextSearch) -> None:
        """Only what changed is done again."""
        if text_search.index is None:
            return
        await text_search.index.update()
        before = await _all(text_search, self.query)
        report = await text_search.index.update()
        done = (report.added, report.changed, report.renamed, report.removed, report.embedded)
        assert done == (0, 0, 0, 0, 0), f"an update after an update reports {report}"
        assert report.passages >= 3, f"the index holds {report.passages} passages"
        assert await _all(text_search, self.query) == before, "an update without changes changed the results"


async def _found(search: TextSearch, query: str, options: TextSearchOptions | None) -> list[TextSearchResult]:
    results: SearchResults[TextSearchResult] = await search.get_text_search_results(query, options)
    return await results.list()


async def _all(search: TextSearch, query: str, filter: Filter | None = None) -> list[TextSearchResult]:
    return await _found(search, query, TextSearchOptions(top=_ALL, filter=filter))


def _refused(support: FilterSupport, unknown: str) -> list[Filter]:
    """Return one filter for each thing that is not supported."""
    if support.fields is None:
        any_clause: Filter = Equal(unknown, "x")
        refused: list[Filter] = []
    else:
        refused = [Equal(unknown, "x"), AnyOf(unknown, ("x",)), Range(unknown, at_least=1)]
        examples: dict[str, type[Equal | AnyOf | Range]] = {"Equal": Equal, "AnyOf": AnyOf, "Range": Range}
        for field, kinds in support.fields.items():
            refused += [_clause(examples[kind], field) for kind in sorted(examples.keys() - kinds)]
        allowed = next(((field, kind) for field, kinds in support.fields.items() for kind in sorted(kinds)), None)
        if allowed is None:
            return refused
        any_clause = _clause(examples[allowed[1]], allowed[0])
    combinations: dict[str, Filter] = {"And": And((any_clause,)), "Or": Or((any_clause,)), "Not": Not(any_clause)}
    refused += [combinations[name] for name in sorted(combinations.keys() - support.combine)]
    # A clause that is refused hides no deeper in one that is allowed.
    if refused and "And" in support.combine:
        refused.append(And((any_clause, refused[0])))
    return refused


def _clause(kind: type[Equal | AnyOf | Range], field: str) -> Filter:
    if kind is AnyOf:
        return AnyOf(field, ("x",))
    return Range(field, at_least="x") if kind is Range else Equal(field, "x")
