"""SearchConnector gives the whole port from three methods; `search_plugin` makes functions of any port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
from hypothesis import given, strategies as st

from portico._functions.functions import FunctionPlugin
from portico._kernel import Kernel
from portico._search.filters import And, Equal, FilterSupport, Range
from portico._search.functions import search_plugin
from portico._search.results import (
    SearchCapabilities,
    SearchConnector,
    SearchResults,
    TextSearchOptions,
    TextSearchResult,
)
from portico.errors import ArgumentsInvalid, UnsupportedOption


@dataclass
class Book:
    title: str
    year: int


class Library(SearchConnector[Book]):
    """Remembers what it was asked, and returns more than it was asked for."""

    name = "library"
    capabilities = SearchCapabilities(
        FilterSupport({"site": frozenset({"Equal"}), "year": frozenset({"Equal", "Range"})}, offered=("site",)),
        total_count=True,
    )

    def __init__(self) -> None:
        self.asked: list[tuple[str, TextSearchOptions]] = []
        self.fetched = 0

    async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[Book]:
        self.asked.append((query, options))

        async def books() -> AsyncIterator[Book]:
            for number in range(options.skip, 100):
                self.fetched += 1
                yield Book(f"{query} {number}", 2000 + number)

        return SearchResults(books(), total_count=100, metadata={"corrected": query})

    def to_text(self, record: Book) -> str:
        return record.title

    def to_result(self, record: Book) -> TextSearchResult:
        return TextSearchResult(record.title, name=str(record.year))


@pytest.fixture
def library() -> Library:
    return Library()


@pytest.mark.parametrize("query", ["", " ", "\n\t", "\u2003"])
async def test_a_blank_query_gives_nothing_and_asks_nobody(library: Library, query: str) -> None:
    for method in (library.search, library.get_text_search_results, library.get_search_results):
        results = await method(query)
        assert await results.list() == []
        assert results.total_count is None
    assert (await library.search(query, TextSearchOptions(include_total_count=True))).total_count == 0
    assert library.asked == []


@given(st.integers(1, 120), st.integers(0, 120))
def test_never_more_than_top_and_no_more_is_fetched(top: int, skip: int) -> None:
    async def search() -> tuple[list[str], int]:
        library = Library()
        found = await (await library.search("q", TextSearchOptions(top=top, skip=skip))).list()
        return found, library.fetched

    found, fetched = asyncio.run(search())
    assert found == [f"q {number}" for number in range(100)][skip : skip + top]
    assert fetched == len(found)


async def test_the_three_methods_tell_of_the_same_records(library: Library) -> None:
    options = TextSearchOptions(top=2)
    records = await (await library.get_search_results("q", options)).list()
    assert await (await library.search("q", options)).list() == [library.to_text(record) for record in records]
    results = await (await library.get_text_search_results("q", options)).list()
    assert results == [library.to_result(record) for record in records]


async def test_metadata_and_total_count_come_through(library: Library) -> None:
    assert (await library.search("q")).total_count is None, "it was not asked for"
    counted = await library.get_text_search_results("q", TextSearchOptions(include_total_count=True))
    assert counted.total_count == 100
    assert counted.metadata == {"corrected": "q"}


async def test_results_keep_their_class_and_what_it_holds_through_mappers_and_limits() -> None:
    class Priced(SearchResults[Book]):
        price = 0.0

    class Shop(Library):
        async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[Book]:
            found = Priced([Book("a", 1), Book("b", 2)], metadata={"corrected": query})
            found.price = 0.5
            return found

    for method in (Shop().search, Shop().get_text_search_results, Shop().get_search_results):
        results: SearchResults[Any] = await method("door", TextSearchOptions(top=1))
        assert isinstance(results, Priced)
        assert (results.price, results.metadata, len(await results.list())) == (0.5, {"corrected": "door"}, 1)


async def test_a_source_that_does_not_count_leaves_the_count_out(library: Library) -> None:
    library.capabilities = SearchCapabilities()
    for query in ("q", " "):
        assert (await library.search(query, TextSearchOptions(include_total_count=True))).total_count is None


async def test_a_filter_that_the_source_cannot_apply_is_refused_before_it_is_asked(library: Library) -> None:
    for query in ("q", ""):
        with pytest.raises(UnsupportedOption, match="'library'"):
            await library.search(query, TextSearchOptions(filter=Range("site", above="a")))
    assert library.asked == []


async def test_a_mapper_can_be_replaced_on_one_instance(library: Library) -> None:
    assert library.use_mappers(to_text=lambda record: record.title.upper()) is library
    library.use_mappers(to_result=lambda record: TextSearchResult("replaced"))
    assert await (await library.search("q", TextSearchOptions(top=1))).list() == ["Q 0"]
    results = await library.get_text_search_results("q", TextSearchOptions(top=1))
    assert await results.list() == [TextSearchResult("replaced")]
    assert await (await Library().search("q", TextSearchOptions(top=1))).list() == ["q 0"]


async def test_a_filter_of_one_instance_holds_for_every_call_and_calls_narrow_it(library: Library) -> None:
    assert library.use_filter(Equal("site", "a.example")) is library
    library.use_filter(Range("year", above=2020))
    both = And((Equal("site", "a.example"), Range("year", above=2020)))
    await library.search("door")
    await library.get_search_results("door", TextSearchOptions(filter=Equal("year", 2021)))
    assert [options.filter for _, options in library.asked] == [both, And((both, Equal("year", 2021)))]
    with pytest.raises(UnsupportedOption, match="cannot filter by 'author'"):
        Library().use_filter(Equal("author", "Ann"))
    assert Library().fixed_filter is None


async def test_options_of_one_call_never_reach_the_next(library: Library) -> None:
    await library.search("q", TextSearchOptions(top=1, skip=3, filter=Equal("site", "a")))
    await library.search("q")
    assert library.asked[1] == ("q", TextSearchOptions())
    with pytest.raises(AttributeError):
        library.asked[0][1].top = 9  # type: ignore[misc]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"top": 0}, "top is 0; it must be at least 1"),
        ({"top": -1}, "top is -1; it must be at least 1"),
        ({"skip": -1}, "skip is -1; it must be at least 0"),
    ],
)
def test_options_that_make_no_sense_are_a_mistake(options: dict[str, int], told: str) -> None:
    with pytest.raises(ValueError, match=f"^{told}$"):
        TextSearchOptions(**options)


@pytest.mark.parametrize(
    ("characters", "words", "told"),
    [
        (None, None, ""),
        (400, None, "at most 400 characters"),
        (None, 50, "at most 50 words"),
        (400, 50, "at most 400 characters and 50 words"),
        (0, 0, "at most 0 characters and 0 words"),
    ],
)
def test_the_bounds_of_a_query_are_told_in_words(characters: int | None, words: int | None, told: str) -> None:
    assert SearchCapabilities(query_characters=characters, query_words=words).query_bounds() == told


def test_the_type_of_the_records_is_the_one_that_the_connector_names() -> None:
    Other = TypeVar("Other")

    class Generally(SearchConnector[Other]):
        """Records of a type that the next one names."""

    class Books(Generally[Book]):
        """Names it."""

    class Mixed(Iterable[str], SearchConnector[Book]):
        """Has another base with a parameter."""

    class MixedLast(SearchConnector[Book], Iterable[str]):
        """Has one after it."""

    class Bare(SearchConnector):  # type: ignore[type-arg]
        """Names none."""

    found = [kind.record_type for kind in (Generally, Books, Mixed, MixedLast, Bare)]
    assert found == [Any, Book, Book, Book, Any]


async def test_results_are_read_once_as_far_as_needed() -> None:
    results = SearchResults(iter(range(5)))
    async for number in results:
        if number == 1:
            break
    assert await results.list() == [2, 3, 4]
    assert await results.list() == []


def kernel_with(plugin: FunctionPlugin) -> Kernel:
    return Kernel(plugins=[plugin])


async def test_a_search_is_three_functions(library: Library) -> None:
    kernel = kernel_with(search_plugin(library, "Books"))
    assert await kernel.invoke_json("Books-Search", {"query": "q"}) == ["q 0", "q 1"]
    assert await kernel.invoke_json("Books-GetTextSearchResults", {"query": "q", "count": 1, "skip": 4}) == [
        {"value": "q 4", "name": "2004", "link": None}
    ]
    assert await kernel.invoke_json("Books-GetSearchResults", {"query": "q", "count": 1}) == [
        {"title": "q 0", "year": 2000}
    ]
    tagged = [name for name, spec in kernel.specs.items() if spec.is_search]
    assert tagged == ["Books-GetTextSearchResults"]


async def test_offered_fields_are_parameters_that_become_equality_filters(library: Library) -> None:
    kernel = kernel_with(search_plugin(library, "Books"))
    await kernel.invoke_json("Search", {"query": "q", "site": "a"})
    await kernel.invoke_json("Search", {"query": "q", "site": None})
    await kernel.invoke_json("Search", {"query": "q"})
    assert [options.filter for _, options in library.asked] == [Equal("site", "a"), None, None]
    assert library.asked[2][1] == TextSearchOptions(top=2)
    with pytest.raises(ArgumentsInvalid, match="year: unknown"):
        await kernel.invoke_json("Search", {"query": "q", "year": "2001"})


async def test_records_without_json_form_are_an_error_of_the_function_only(library: Library) -> None:
    class Opaque(Library):
        record_type = object

        async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[Any]:
            return SearchResults([object()])

    kernel = kernel_with(search_plugin(Opaque(), "Books"))
    with pytest.raises(Exception, match="JSON"):
        await kernel.invoke_json("GetSearchResults", {"query": "q"})


@pytest.mark.parametrize("arguments", [{"count": 0}, {"count": 1_000_000_000}, {"skip": -1}, {"skip": 1001}])
async def test_a_model_cannot_ask_for_more_than_a_thousand_results(arguments: dict[str, int]) -> None:
    kernel = Kernel(plugins=[search_plugin(Library(), "Numbers")])
    [name] = arguments
    with pytest.raises(ArgumentsInvalid, match=f"Numbers-Search: {name}: must be"):
        await kernel.invoke_json("Numbers-Search", {"query": "x", **arguments})


async def test_what_is_not_read_to_its_end_is_closed_at_the_source() -> None:
    closed: list[str] = []

    async def pages() -> AsyncIterator[Book]:
        try:
            while True:
                yield Book("a", 1)
        finally:
            closed.append("source")

    class Endless(Library):
        async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[Book]:
            return SearchResults(pages())

    results = await Endless().search("x", TextSearchOptions(top=5))
    await anext(aiter(results))
    await results.aclose()
    assert closed == ["source"]
    assert len(await (await Endless().search("x", TextSearchOptions(top=5))).list()) == 5
    assert closed == ["source", "source"], "the source stays open after the last result that was asked for"


@pytest.mark.parametrize("read", [0, 1])
async def test_closing_results_lets_go_of_what_they_are_made_from(read: int) -> None:
    closed = []

    class Paused:
        def __init__(self) -> None:
            self.left = iter("abc")

        def __aiter__(self) -> Paused:
            return self

        async def __anext__(self) -> str:
            return next(self.left)

        async def aclose(self) -> None:
            closed.append("source")

    class Holding(Library):
        async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[Any]:
            return SearchResults(Paused())

    mapped = SearchResults[str](Paused()).map(str.upper).map(str.lower)
    for results in (mapped, await Holding().get_search_results("q")):
        closed.clear()
        for _ in range(read):
            await anext(aiter(results))
        await results.aclose()
        assert closed, f"the source is still held after {read} results were read"


async def _yielding(self: Library, query: str, options: TextSearchOptions) -> AsyncIterator[Book]:
    yield Book(query, 2000)


async def _returning(self: Library, query: str, options: TextSearchOptions) -> Any:
    return [Book(query, 2000)]


async def _of_dicts(self: Library, query: str, options: TextSearchOptions) -> SearchResults[Any]:
    return SearchResults([{"title": query}])


async def _mapping(self: Library, record: Book) -> TextSearchResult:
    return TextSearchResult(record.title)


@pytest.mark.parametrize(
    ("method", "written", "said"),
    [
        ("fetch", _returning, "Wrong.fetch returned a list: return SearchResults"),
        ("fetch", lambda self, query, options: SearchResults([]), "Wrong.fetch gave a SearchResults .*async def"),
        ("fetch", _yielding, "Wrong.fetch gave an async_generator .* without `yield`"),
        ("fetch", lambda self, query: None, r"Wrong.fetch must take \(self, query, options\)"),
        ("fetch", _of_dicts, "Wrong.fetch gave a dict as a record: give Book"),
        ("to_result", lambda self, record: {"value": record.title}, "Wrong.to_result returned a dict: return TextS"),
        ("to_result", lambda self, record: None, "Wrong.to_result returned None: return TextSearchResult"),
        ("to_result", _mapping, "Wrong.to_result returned a coroutine: write it with `def`"),
        ("to_text", lambda self, record: record, "Wrong.to_text returned a Book: return str"),
    ],
)
async def test_a_mistake_of_its_author_names_the_method_and_what_it_must_return(
    method: str, written: Any, said: str
) -> None:
    written.__name__ = method
    wrong: Library = type("Wrong", (Library,), {method: written})()
    with pytest.raises(TypeError, match=said):
        await (await wrong.search("q")).list()
        await (await wrong.get_text_search_results("q")).list()
