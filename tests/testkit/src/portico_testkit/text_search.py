"""How text searches are asked and what they are tried with: awkward queries, and what one may refuse, or must."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sized
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest

from portico.errors import ConfigurationError, ServiceError, StoreError, UnsupportedOption
from portico.ports import TextSearch
from portico.search import (
    And,
    AnyOf,
    Equal,
    Filter,
    FilterSupport,
    Not,
    Or,
    Range,
    SearchCapabilities,
    TextSearchOptions,
    TextSearchResult,
)
from portico_testkit.event_loop import leaves_the_event_loop_free
from portico_testkit.tasks import give_up, no_tasks_but, still_answers

__all__ = [
    "ALL",
    "AWKWARD_QUERIES",
    "TextSearchKit",
    "all_by",
    "found_by",
    "is_too_long",
    "is_whole",
    "refused_filters",
]

ALL = 50
"""How many results the kit asks for to see all of them; a source may have more."""

AWKWARD_QUERIES = (
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


async def found_by(search: TextSearch, query: str, options: TextSearchOptions | None) -> list[TextSearchResult]:
    """Return the results of a search, read to their end."""
    return await (await search.get_text_search_results(query, options)).list()


async def all_by(search: TextSearch, query: str, filter: Filter | None = None) -> list[TextSearchResult]:
    """Return all results of a search, or as many as the kit asks for."""
    return await found_by(search, query, TextSearchOptions(top=ALL, filter=filter))


def is_whole(text_search: TextSearch, found: Sized) -> bool:
    """Return whether what `ALL` was asked for is all that there is, and no list that was cut."""
    return len(found) < min(ALL, text_search.capabilities.most or ALL)


def is_too_long(query: str, capabilities: SearchCapabilities) -> bool:
    """Return whether a source need not take a query of this length.

    >>> is_too_long("a long query", SearchCapabilities(query_words=2)), is_too_long("a query", SearchCapabilities())
    (True, False)
    """
    bounds = ((len(query), capabilities.query_characters), (len(query.split()), capabilities.query_words))
    return any(most is not None and length > most for length, most in bounds)


_CLAUSES: dict[str, type[Equal | AnyOf | Range]] = {"Equal": Equal, "AnyOf": AnyOf, "Range": Range}


def refused_filters(support: FilterSupport, unknown: str) -> list[Filter]:
    """Return one filter for each thing that is not supported; ``unknown`` is the name of no field.

    >>> refused_filters(FilterSupport({"colour": frozenset({"Equal", "AnyOf", "Range"})}), "no")[0]
    Equal(field='no', value='x')
    """
    if support.fields is None:
        any_clause: Filter = Equal(unknown, "x")
        refused: list[Filter] = []
    else:
        refused = [Equal(unknown, "x"), AnyOf(unknown, ("x",)), Range(unknown, at_least=1)]
        for field, kinds in support.fields.items():
            refused += [_clause(_CLAUSES[kind], field) for kind in sorted(_CLAUSES.keys() - kinds)]
            if "Not" not in kinds | support.combine:
                refused.append(Not(_clause(_CLAUSES[min(kinds)], field)))
        allowed = next(((field, min(kinds - {"Not"})) for field, kinds in support.fields.items()), None)
        if allowed is None:
            return refused
        any_clause = _clause(_CLAUSES[allowed[1]], allowed[0])
    combinations: dict[str, Filter] = {
        "And": And((any_clause,)),
        "Or": Or((any_clause,)),
        "Not": Not(And((any_clause,))),
    }
    refused += [combinations[name] for name in sorted(combinations.keys() - support.combine)]
    # A clause that is refused hides no deeper in one that is allowed.
    if refused and "And" in support.combine:
        refused.append(And((any_clause, refused[0])))
    return refused


def _clause(kind: type[Equal | AnyOf | Range], field: str) -> Filter:
    if kind is AnyOf:
        return AnyOf(field, ("x",))
    return Range(field, at_least="x") if kind is Range else Equal(field, "x")


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
    must keep some of the passages of ``query`` and not all; a source that takes filters is tried with one at least.
    ``fields_of`` returns what a record holds of the fields that are filtered by, None where a record does not tell.
    ``best`` says how the best passage is known. ``awkward`` are queries that must do no harm; make it empty for a
    service whose answers are recorded. ``unknown_field`` is the name of no field. A fixture ``failing_search`` gives
    a search whose source fails: its server is away, or its file is damaged.
    """

    query: ClassVar[str] = "door"
    other_query: ClassVar[str] = "roof"
    filters: ClassVar[tuple[Filter, ...]] = ()
    awkward: ClassVar[tuple[str, ...]] = AWKWARD_QUERIES
    unknown_field: ClassVar[str] = "no_such_field"

    def best(self) -> str | None:
        """Return words that stand in the best passage for ``query`` only; None where nobody can know."""
        return None

    @pytest.fixture
    def failing_search(self) -> TextSearch | None:
        """Nothing, for a source that cannot fail."""
        return None

    @pytest.mark.asyncio
    async def test_what_it_declares_is_well_formed(self, text_search: TextSearch) -> None:
        assert isinstance(text_search.name, str), f"name is {text_search.name!r}, not a str"
        assert text_search.name.strip(), "name is empty"
        support = text_search.capabilities.filter
        assert isinstance(support, FilterSupport), f"capabilities.filter is {support!r}"
        assert support.combine <= {"And", "Or", "Not"}, f"there is no such combination: {support.combine}"
        if support.fields is not None:
            known = {"Equal", "AnyOf", "Range", "Not"}
            for field, kinds in support.fields.items():
                assert kinds <= known, f"the field {field!r} declares clauses that do not exist: {kinds - known}"
            offered = set(support.offered) - set(support.fields)
            assert not offered, f"fields are offered to models and not supported: {offered}"
            # A parameter of a search function is an equality, joined by And to the application's own filter.
            other = [field for field in support.offered if "Equal" not in support.fields[field]]
            assert not other, f"fields are offered to models and do not take Equal: {other}"
        assert not support.offered or "And" in support.combine, "fields are offered to models and And is not supported"
        assert text_search.index is None or callable(text_search.index.update), "index has no update"
        for bound in ("most", "query_characters", "query_words"):
            value = getattr(text_search.capabilities, bound)
            assert value is None or (type(value) is int and value > 0), f"capabilities.{bound} is {value!r}"

    @pytest.mark.asyncio
    async def test_the_query_finds_something(self, text_search: TextSearch) -> None:
        found = await all_by(text_search, self.query)
        assert len(found) >= 3, f"{self.query!r} finds {len(found)} passages; the kit needs three"
        other = await all_by(text_search, self.other_query)
        assert other, f"{self.other_query!r} finds nothing"
        assert other != found, f"{self.query!r} and {self.other_query!r} find the same passages in the same order"

    @pytest.mark.asyncio
    async def test_the_best_come_first(self, text_search: TextSearch) -> None:
        best = self.best()
        if best is None:
            pytest.skip("the kit is not told by `best` which passage should come first")
        first, *others = [result.value for result in await all_by(text_search, self.query)]
        assert best in first, f"{best!r} is not in the first passage: {first!r}"
        assert not any(best in other for other in others), f"{best!r} is in several passages"

    @pytest.mark.asyncio
    async def test_there_are_never_more_than_top(self, text_search: TextSearch) -> None:
        for top in (1, 2, 3):
            for method in (text_search.search, text_search.get_text_search_results, text_search.get_search_results):
                found = await (await method(self.query, TextSearchOptions(top=top))).list()
                assert len(found) == top, f"{method.__name__} gave {len(found)} results for top={top}"

    @pytest.mark.asyncio
    async def test_skip_leaves_out_the_first(self, text_search: TextSearch) -> None:
        every = await all_by(text_search, self.query)
        last = len(every) - (1 if len(every) < ALL else 2)  # behind a list that is full there may be more
        for skip, top in itertools.product((0, 1, 2, last), (1, 2)):
            page = await found_by(text_search, self.query, TextSearchOptions(top=top, skip=skip))
            expected = every[skip : skip + top]
            name = type(text_search).__name__
            assert page == expected, (
                f"{name} must leave out options.skip results: skip={skip} gave {page}, not {expected}"
            )
        beyond = await found_by(text_search, self.query, TextSearchOptions(top=2, skip=10_000))
        assert beyond == [], f"beyond the last result there is {beyond}"

    @pytest.mark.asyncio
    async def test_the_three_methods_find_the_same(self, text_search: TextSearch) -> None:
        options = TextSearchOptions(top=4)
        texts = await (await text_search.search(self.query, options)).list()
        results = await found_by(text_search, self.query, options)
        records = await (await text_search.get_search_results(self.query, options)).list()
        assert texts == [result.value for result in results], "search and get_text_search_results differ"
        assert len(records) == len(results), "get_search_results finds another number"
        kinds = {type(record) for record in records}
        assert len(kinds) == 1, f"records are of several types: {kinds}"

    @pytest.mark.asyncio
    async def test_results_have_text_and_links_that_open(self, text_search: TextSearch) -> None:
        for result in await all_by(text_search, self.query):
            assert isinstance(result, TextSearchResult), f"{result!r} is no TextSearchResult"
            assert isinstance(result.value, str), f"the value is {result.value!r}"
            assert result.value.strip(), f"{result.name} has an empty value"
            assert result.name is None or result.name.strip(), "a name is empty: it should be None"
            assert result.link is None or urlsplit(result.link).scheme, f"{result.link!r} is no address"
            assert result.link is None or not set(result.link) & set(' \n\t<>"'), f"{result.link!r} is not encoded"

    @pytest.mark.asyncio
    async def test_a_blank_query_finds_nothing(self, text_search: TextSearch) -> None:
        for query in ("", "  \t\n"):
            found = await found_by(text_search, query, None)
            assert found == [], f"{query!r} finds {len(found)} passages"

    @pytest.mark.asyncio
    async def test_concurrent_calls_do_not_mix(self, text_search: TextSearch) -> None:
        asked = [
            (query, TextSearchOptions(top=top, skip=skip))
            for query in (self.query, self.other_query)
            for top in (1, 3)
            for skip in (0, 1)
        ]
        asked += [(self.query, TextSearchOptions(filter=filter)) for filter in (*self.filters, None)]
        alone = [await found_by(text_search, *call) for call in asked]
        together = await asyncio.gather(*(found_by(text_search, *call) for call in asked))
        for call, expected, found in zip(asked, alone, together, strict=True):
            assert found == expected, f"{call} finds something else beside other calls"

    @pytest.mark.asyncio
    async def test_the_total_is_counted_as_declared(self, text_search: TextSearch) -> None:
        plain = await text_search.search(self.query, TextSearchOptions(top=2))
        assert plain.total_count is None, f"total_count is {plain.total_count} without being asked for"
        counted = await text_search.search(self.query, TextSearchOptions(top=2, include_total_count=True))
        if not text_search.capabilities.total_count:
            assert counted.total_count is None, "total_count is given and capabilities do not declare it"
            return
        total = counted.total_count
        assert isinstance(total, int), f"total_count is {total!r} and was declared"
        every = len(await all_by(text_search, self.query))
        assert total >= every, f"total_count is {total}, and there are {every}"
        if total > every:
            return  # an estimate, or more than are shown
        beyond = TextSearchOptions(top=1, skip=1, include_total_count=True)
        counted = await text_search.search(self.query, beyond)
        assert counted.total_count == total, f"total_count is {counted.total_count} behind the first, {total} else"
        for filter in self.filters:
            options = TextSearchOptions(top=1, include_total_count=True, filter=filter)
            counted = await text_search.search(self.query, options)
            kept = len(await all_by(text_search, self.query, filter))
            assert counted.total_count == kept, f"total_count is {counted.total_count}, and {filter} keeps {kept}"

    @pytest.mark.asyncio
    async def test_queries_are_data(self, text_search: TextSearch) -> None:
        before = await found_by(text_search, self.query, None)
        for query in self.awkward:
            if is_too_long(query, text_search.capabilities):
                continue
            found = await found_by(text_search, query, None)
            assert len(found) <= 5, f"{query[:40]!r} finds {len(found)} passages"
        assert await found_by(text_search, self.query, None) == before, "an awkward query changed the source"

    @pytest.mark.asyncio
    async def test_the_bounds_that_it_declares_hold(self, text_search: TextSearch) -> None:
        declared = text_search.capabilities
        if declared.most is not None:
            most = declared.most
            found = await found_by(text_search, self.query, TextSearchOptions(top=most + 10))
            assert len(found) <= most, f"it gives {len(found)} results, {most} at most by what it says"
            for skip in (most - 1, most, most + 7):
                page = await found_by(text_search, self.query, TextSearchOptions(top=10, skip=skip))
                left = max(0, most - skip)
                assert len(page) <= left, f"behind {skip} it gives {len(page)} results, {most} in all by what it says"
                assert page == found[skip:], f"behind {skip} it gives {page}, and {found[skip:]} in one list"
        if not self.awkward:
            return
        if (characters := declared.query_characters) is not None:
            await found_by(text_search, "x" * characters, None)
        if (words := declared.query_words) is not None:
            await found_by(text_search, "a " * (words - 1) + "b", None)

    @pytest.mark.asyncio
    async def test_a_search_given_up_leaves_it_usable(self, text_search: TextSearch) -> None:
        three = TextSearchOptions(top=3)
        expected = await found_by(text_search, self.query, three)
        tasks = asyncio.all_tasks()
        for turns in (0, 1, 2, 3, 5, 8, 13):
            await give_up(lambda: found_by(text_search, self.query, None), turns=turns)
        for seconds in (0.001, 0.005, 0.02):
            await give_up(lambda: found_by(text_search, self.other_query, None), seconds=seconds)
        for read in range(3):
            results = await still_answers(text_search.get_text_search_results(self.query, three))
            stream = aiter(results)
            for _ in range(read):
                await anext(stream)
            await results.aclose()
            await results.aclose()
        await no_tasks_but(tasks)
        again = await still_answers(found_by(text_search, self.query, three))
        assert again == expected, "after searches were given up it finds others"

    @pytest.mark.asyncio
    async def test_a_search_leaves_the_event_loop_free(self, text_search: TextSearch) -> None:
        queries = (self.query, self.other_query, self.query)
        await leaves_the_event_loop_free(lambda number: all_by(text_search, queries[number]))

    @pytest.mark.asyncio
    async def test_a_source_that_fails_is_an_error_of_ours(self, failing_search: TextSearch | None) -> None:
        if failing_search is None:
            pytest.skip("there is no fixture `failing_search`: a source that cannot fail")
        for method in (
            failing_search.search,
            failing_search.get_text_search_results,
            failing_search.get_search_results,
        ):
            try:
                found = await (await method(self.query, None)).list()
            except (ServiceError, StoreError, ConfigurationError) as error:
                said = str(error)
            except Exception as error:
                raise AssertionError(f"{method.__name__} raised {type(error).__name__}: {error}") from error
            else:
                pytest.fail(f"{method.__name__} found {found} in a source that fails")
            assert len(said) > 10, f"{method.__name__} fails and says {said!r} only"

    def fields_of(self, record: Any) -> Mapping[str, object] | None:
        """Return a record's values of the fields that are filtered by."""
        return None

    @pytest.mark.asyncio
    async def test_filters_keep_what_they_say(self, text_search: TextSearch) -> None:
        every = await (await text_search.get_search_results(self.query, TextSearchOptions(top=ALL))).list()
        unfiltered = await all_by(text_search, self.query)
        fields = text_search.capabilities.filter.fields
        assert self.filters or fields == {}, "the source takes filters, and the kit has none to try: give it `filters`"
        for filter in self.filters:
            options = TextSearchOptions(top=ALL, filter=filter)
            kept = await (await text_search.get_search_results(self.query, options)).list()
            assert kept, f"{filter} keeps nothing of {self.query!r}"
            left_out = await all_by(text_search, self.query, filter) != unfiltered
            assert left_out, f"{filter} leaves nothing out of {self.query!r}"
            told = [self.fields_of(record) for record in kept]
            wrong = [
                of_record
                for of_record in told
                if of_record is not None and not FilterSupport.matches(filter, of_record)
            ]
            assert not wrong, f"{filter} kept {wrong}"
            known = [of_record for record in every if (of_record := self.fields_of(record)) is not None]
            if len(known) == len(every) and is_whole(text_search, every):
                expected = sum(FilterSupport.matches(filter, of_record) for of_record in known)
                assert len(kept) == expected, f"{filter} kept {len(kept)} passages; {expected} pass it"

    @pytest.mark.asyncio
    async def test_filters_combine_as_declared(self, text_search: TextSearch) -> None:
        combine = text_search.capabilities.filter.combine
        every = await all_by(text_search, self.query)
        for filter in self.filters:
            kept = await all_by(text_search, self.query, filter)
            if "And" in combine:
                assert await all_by(text_search, self.query, And((filter, filter))) == kept, f"And of twice {filter}"
            if "Or" in combine:
                assert await all_by(text_search, self.query, Or((filter, filter))) == kept, f"Or of twice {filter}"
            if "Not" in combine and is_whole(text_search, every):
                rest, expected = len(await all_by(text_search, self.query, Not(filter))), len(every) - len(kept)
                assert rest == expected, f"Not({filter}) keeps {rest} of {expected}"

    @pytest.mark.asyncio
    async def test_other_filters_are_refused(self, text_search: TextSearch) -> None:
        for filter in refused_filters(text_search.capabilities.filter, self.unknown_field):
            with pytest.raises(UnsupportedOption) as caught:
                await found_by(text_search, self.query, TextSearchOptions(filter=filter))
            fields = text_search.capabilities.filter.fields or {}
            unnamed = [field for field in fields if field not in str(caught.value)]
            assert not unnamed, f"the message for {filter} does not name {unnamed}: {caught.value}"
