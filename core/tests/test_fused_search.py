"""Several searches answer as one, and what fails of them is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, strategies as st
from tests.support.virtual_time import on_virtual_time

from portico._kernel import Kernel
from portico._ports.search_index import IndexProgress, IndexReport
from portico._search.filters import And, Equal, FilterSupport, Or, Range
from portico._search.functions import search_plugin
from portico._search.fused import FusedResult, FusedSearch
from portico._search.results import (
    SearchCapabilities,
    SearchConnector,
    SearchResults,
    TextSearchOptions,
    TextSearchResult,
)
from portico.errors import RateLimited, ServiceTimeout, ServiceUnavailable, UnsupportedOption
from portico_testkit.fakes.text_search import ListEntry, ListSearch
from portico_testkit.text_search import TextSearchKit

HOUSE = [
    ListEntry("a red door", "Doors", "http://a.example/1", {"colour": "red", "page": 1}),
    ListEntry("a blue door and a roof", "Doors", "http://a.example/2", {"colour": "blue", "page": 2}),
    ListEntry("a green door", None, None, {"colour": "green", "page": 3}),
    ListEntry("a roof", "Roofs", "http://a.example/3", {"colour": "red", "page": 4}),
]
GARDEN = [
    ListEntry("a garden door", "Garden", "http://b.example/1", {"colour": "green", "page": 1}),
    ListEntry("a red door", "Doors", "http://a.example/1", {"colour": "red", "page": 1}),
    ListEntry("a garden roof on a door", "Garden", "http://b.example/2", {"colour": "red", "page": 2}),
]


class Source(ListSearch):
    """A list whose capabilities, failures and pace are the test's."""

    def __init__(self, name="source", entries=HOUSE, *, support=None, error=None, seconds=0.0, most=None):
        super().__init__(entries, name=name)
        if support is not None:
            self.capabilities = SearchCapabilities(support, most=most)
        self.error, self.seconds = error, seconds
        self.asked: list[TextSearchOptions] = []
        self.given_up = 0
        self.index = None

    async def fetch(self, query, options):
        self.asked.append(options)
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        if self.error is not None:
            raise self.error
        return await super().fetch(query, options)


async def found(search, query="door", **options) -> list[FusedResult]:
    return await (await search.get_search_results(query, TextSearchOptions(**options))).list()


class TestFusedSearch(TextSearchKit):
    filters = (Equal("colour", "red"), Range("page", at_least=2), Or((Equal("page", 1), Equal("colour", "green"))))

    @pytest.fixture
    def text_search(self) -> FusedSearch:
        return FusedSearch([ListSearch(HOUSE, name="house"), ListSearch(GARDEN, name="garden")])

    def fields_of(self, record):
        return next(entry.fields for entry in HOUSE + GARDEN if entry.text == record.value)


class TestOfOneThatSupportsLess(TextSearchKit):
    filters = (Equal("colour", "red"),)

    @pytest.fixture
    def text_search(self) -> FusedSearch:
        support = FilterSupport(
            {"colour": frozenset({"Equal"}), "page": frozenset({"Range"})}, offered=("page", "colour")
        )
        less = FilterSupport({"colour": frozenset({"Equal", "AnyOf"})}, frozenset({"And", "Or"}), offered=("colour",))
        return FusedSearch(
            {"one": Source(support=support), "two": Source(entries=GARDEN, support=less), "three": Source(entries=[])},
            name="all",
        )


def test_what_it_supports_is_what_every_source_supports() -> None:
    one = FilterSupport({"a": frozenset({"Equal", "Range"}), "b": frozenset({"Equal"})}, offered=("b", "a"))
    two = FilterSupport(
        {"a": frozenset({"Range"}), "b": frozenset({"AnyOf"}), "c": frozenset({"Equal"})}, offered=("c",)
    )
    everything = FilterSupport.everything()
    fused = FusedSearch({"1": Source(support=one, most=10), "2": Source(support=two, most=5)}).capabilities
    assert fused.filter == FilterSupport({"a": frozenset({"Range"})}, frozenset({"And"}), offered=("a",))
    assert (fused.total_count, fused.most) == (False, 15)
    same = FusedSearch({"1": Source(support=one, most=10), "2": Source(support=everything)}).capabilities
    assert same.filter == one
    assert same.most is None
    assert FusedSearch([Source()]).capabilities.filter.fields is None


async def test_an_unsupported_filter_names_the_source_and_what_all_support() -> None:
    narrow = FilterSupport.fields_of("colour")
    fused = FusedSearch({"docs": Source(), "web": Source(support=narrow)}, name="all")
    with pytest.raises(UnsupportedOption) as raised:
        await found(fused, filter=And((Equal("colour", "red"), Equal("color", "red"))))
    assert str(raised.value) == ("Text search 'all' cannot filter by 'color'. It supports colour (Equal).")
    assert all(not search.asked for search in fused.searches.values()), "a source was asked nevertheless"


@given(
    st.lists(st.lists(st.sampled_from("abcdefghij"), unique=True, max_size=8), min_size=1, max_size=4),
    st.integers(0, 12),
    st.integers(1, 12),
)
def test_pages_are_cut_from_one_ranking(rankings: list[list[str]], skip: int, top: int) -> None:
    class Fixed(SearchConnector[str]):
        def __init__(self, name, words):
            self.name, self.words = name, words

        async def fetch(self, query, options):
            return SearchResults(self.words[options.skip :][: options.top])

        def to_text(self, record):
            return record

        def to_result(self, record):
            return TextSearchResult(record)

    fused = FusedSearch([Fixed(str(number), words) for number, words in enumerate(rankings)])
    every = asyncio.run(found(fused, top=100))
    assert asyncio.run(found(fused, skip=skip, top=top)) == every[skip : skip + top]
    assert {one.value for one in every} == {word for words in rankings for word in words}
    for one in every:
        assert one.sources == tuple(str(number) for number, words in enumerate(rankings) if one.value in words)
    scores = [sum(1 / (61 + words.index(one.value)) for words in rankings if one.value in words) for one in every]
    assert scores == sorted(scores, reverse=True)


async def test_a_source_is_asked_no_deeper_than_needed_and_alone_for_just_what_is_wanted() -> None:
    one, two = Source("one"), Source("two")
    await found(FusedSearch([one, two], depth=10), top=3, skip=9)
    assert one.asked == two.asked == [TextSearchOptions(top=20)]
    await found(FusedSearch([one], depth=10), top=2, skip=1)
    assert one.asked[1:] == [TextSearchOptions(top=3)]
    await found(FusedSearch([one, two], depth=1), top=3, skip=9)
    assert two.asked[1:] == [TextSearchOptions(top=12)], "the least depth asks for no more than is wanted"


async def test_a_source_that_fails_is_told_of_and_the_others_answer() -> None:
    broken = {"down": Source(error=ServiceUnavailable("No one is there.")), "bug": Source(error=KeyError("x"))}
    fused = FusedSearch({**broken, "docs": Source()})
    results = await fused.get_text_search_results("door")
    assert results.metadata["failures"] == {"down": "No one is there.", "bug": "KeyError: 'x'"}
    assert len(await results.list()) == 3
    healthy = await FusedSearch([Source()]).get_text_search_results("door")
    assert healthy.metadata == {}


async def test_where_all_fail_the_first_ones_error_is_raised() -> None:
    error = RateLimited("Slowly.", retry_after=7)
    with pytest.raises(RateLimited) as raised:
        await found(FusedSearch({"a": Source(error=error, seconds=0.01), "b": Source(error=KeyError("x"))}))
    assert raised.value is error
    assert error.__notes__ == ["The source 'b' failed too: KeyError: 'x'"]


async def test_a_stream_that_breaks_is_a_source_that_fails_and_every_stream_is_closed() -> None:
    closed: list[str] = []

    async def stream(name: str, broken: bool) -> AsyncIterator[TextSearchResult]:
        try:
            yield TextSearchResult(name)
            if broken:
                raise ServiceUnavailable("It broke off.")
        finally:
            closed.append(name)

    class Streaming(Source):
        async def get_text_search_results(self, query, options=None):
            return SearchResults(stream(self.name, self.name == "broken"), metadata={"said": self.name})

    fused = FusedSearch([Streaming("broken"), Streaming("whole")])
    results = await fused.get_search_results("door")
    assert results.metadata == {"failures": {"broken": "It broke off."}, "sources": {"whole": {"said": "whole"}}}
    assert [one.value for one in await results.list()] == ["whole"]
    assert sorted(closed) == ["broken", "whole"]


@on_virtual_time
async def test_a_source_that_is_late_is_one_that_fails() -> None:
    fused = FusedSearch({"slow": Source(seconds=30), "docs": Source()}, timeout=0.05)
    results = await fused.get_search_results("door")
    assert results.metadata["failures"] == {"slow": "Text search 'slow' gave no answer within 0.05 seconds."}
    with pytest.raises(ServiceTimeout) as late:
        await found(FusedSearch({"slow": Source(seconds=30)}, timeout=0.05))
    assert isinstance(late.value.__cause__, TimeoutError)
    own = FusedSearch({"own": Source(error=TimeoutError("its own")), "docs": Source()})
    assert (await own.get_search_results("door")).metadata["failures"] == {"own": "TimeoutError: its own"}


async def test_sources_are_asked_side_by_side_and_given_up_together() -> None:
    sources = [Source(f"source {number}", seconds=30) for number in range(5)]
    before = asyncio.all_tasks()
    searching = asyncio.create_task(found(FusedSearch(sources)))
    async with asyncio.timeout(10):
        while not all(source.asked for source in sources):
            await asyncio.sleep(0.001)
    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await searching
    assert [source.given_up for source in sources] == [1] * 5
    assert asyncio.all_tasks() == before


class Indexed:
    def __init__(self, report):
        self.report = report

    async def update(self, *, progress=None):
        if progress is not None:
            progress(IndexProgress(1, 1))
        return self.report


async def test_its_index_is_that_of_all_sources() -> None:
    one, two, live = Source("one"), Source("two"), Source("live")
    one.index = Indexed(IndexReport(added=1, passages=5, skipped={"binary": 1}, problems=("odd",), revision="a"))
    two.index = Indexed(IndexReport(added=2, removed=1, passages=7, skipped={"binary": 2, "hidden": 1}, revision="b"))
    fused = FusedSearch([one, two, live])
    told: list[IndexProgress] = []
    report = await fused.index.update(progress=told.append)
    found = {"skipped": {"binary": 3, "hidden": 1}, "problems": ("odd",), "revision": "ab"}
    assert report == IndexReport(added=3, removed=1, passages=12, **found)
    assert len(told) == 2
    assert FusedSearch([live]).index is None
    counts = ("added", "changed", "renamed", "removed", "unchanged", "passages", "embedded")
    one.index = Indexed(IndexReport(**{count: 10**place for place, count in enumerate(counts)}))
    two.index = Indexed(IndexReport(**{count: 2 * 10**place for place, count in enumerate(counts)}))
    report = await FusedSearch([one, two]).index.update()
    assert report == IndexReport(**{count: 3 * 10**place for place, count in enumerate(counts)})


async def test_as_a_function_it_logs_which_source_failed(caplog: pytest.LogCaptureFixture) -> None:
    down = Source("down", error=ServiceUnavailable("No one is there."))
    kernel = Kernel(plugins=[search_plugin(FusedSearch([down, Source("house")]), "all")])
    assert await kernel.invoke("all-Search", query="door", count=1)
    assert [record.getMessage() for record in caplog.records] == [
        "The source 'down' failed in all-Search: No one is there."
    ]


async def test_fused_searches_fuse() -> None:
    inner = FusedSearch([Source("house"), Source("garden", GARDEN)], name="inner")
    outer = FusedSearch([inner, Source("more", [ListEntry("another door")])])
    assert {source for one in await found(outer, top=20) for source in one.sources} == {"inner", "more"}


def test_mistakes_are_told_when_it_is_made() -> None:
    with pytest.raises(ValueError, match=r"^there are no searches to fuse$"):
        FusedSearch([])
    with pytest.raises(ValueError, match="two searches have the same name"):
        FusedSearch([Source("docs"), Source("docs")])
    with pytest.raises(ValueError, match="depth is 0"):
        FusedSearch([Source()], depth=0)
