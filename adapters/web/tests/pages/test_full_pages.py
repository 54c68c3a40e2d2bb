"""Whole pages in place of snippets: what is read, what stays a snippet, and what stops."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.support.virtual_time import on_virtual_time

from portico.errors import LimitExceeded, ServiceTimeout, ServiceUnavailable
from portico.ports import Page
from portico.search import Equal, SearchCapabilities, SearchResults, TextSearchOptions, TextSearchResult
from portico_testkit.fakes.page_reader import ShelfReader
from portico_testkit.fakes.text_search import ListEntry, ListSearch
from portico_testkit.text_search import TextSearchKit
from portico_web.pages.reader import FullPage, FullPages


def link(number: int) -> str:
    return f"https://site.example/{number}"


def web(count: int) -> ListSearch:
    return ListSearch([ListEntry(f"door {number} …", f"Door {number}", link(number)) for number in range(count)])


def shelf(count: int, **options: Any) -> ShelfReader:
    return ShelfReader({link(number): f"The whole of page {number}." for number in range(count)}, **options)


class TestFullPages(TextSearchKit):
    filters = (Equal("colour", "red"),)

    @pytest.fixture
    def text_search(self) -> FullPages:
        entries = [
            ListEntry(f"a door {number}", f"Door {number}", link(number), {"colour": "red" if number % 2 else "blue"})
            for number in range(7)
        ]
        entries.append(ListEntry("a roof", "Roof", "file:///roof.md#L1"))
        return FullPages(ListSearch(entries), shelf(5), max_pages=6)

    @pytest.fixture
    def failing_search(self) -> FullPages:
        return FullPages(Streamed([], ServiceUnavailable("The web cannot be reached.")), shelf(1))


class Streamed:
    """A search whose results come one by one, and which knows whether it was let go of."""

    name = "streamed"
    capabilities = SearchCapabilities(total_count=True)
    index = None

    def __init__(self, results: list[TextSearchResult], error: Exception | None = None) -> None:
        self.results = results
        self.error = error
        self.given = 0
        self.closed = False

    async def get_text_search_results(
        self, query: str, options: TextSearchOptions | None = None
    ) -> SearchResults[TextSearchResult]:
        return SearchResults(self, total_count=40, metadata={"corrected": "doors"})

    def __aiter__(self) -> AsyncIterator[TextSearchResult]:
        return self

    async def __anext__(self) -> TextSearchResult:
        await asyncio.sleep(0)
        if self.given < len(self.results):
            self.given += 1
            return self.results[self.given - 1]
        if self.error is not None:
            raise self.error
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.closed = True

    async def search(self, query: str, options: TextSearchOptions | None = None) -> SearchResults[str]:
        raise AssertionError("one request is enough for all three methods")

    get_search_results = search


def streamed(count: int, error: Exception | None = None) -> Streamed:
    return Streamed([TextSearchResult(f"snippet {number}", None, link(number)) for number in range(count)], error)


async def test_a_page_takes_the_place_of_its_snippet_and_keeps_name_and_order() -> None:
    reader = ShelfReader(
        {link(0): Page("All of the first.", "https://site.example/moved", "First"), link(1): "All of the second."},
        seconds={link(0): 0.02},
    )
    results = await FullPages(web(2), reader).get_text_search_results("door")
    assert await results.list() == [
        TextSearchResult("All of the first.", "Door 0", "https://site.example/moved"),
        TextSearchResult("All of the second.", "Door 1", link(1)),
    ]


async def test_a_result_without_a_name_has_the_title_of_its_page() -> None:
    pages = FullPages(streamed(1), ShelfReader({link(0): Page("Text.", link(0), "Title")}))
    (result,) = await (await pages.get_text_search_results("door")).list()
    assert result.name == "Title"


@pytest.mark.parametrize(
    "fault",
    [
        ServiceUnavailable("There is no such page."),
        ServiceTimeout("It took too long."),
        LimitExceeded("It has more than 10 bytes (max_bytes)."),
    ],
)
async def test_a_page_that_cannot_be_read_leaves_the_snippet_and_says_why(fault: Exception) -> None:
    reader = ShelfReader({link(0): fault, link(1): "The whole of page 1."})
    results = await FullPages(web(2), reader).get_search_results("door")
    first, second = await results.list()
    assert (first.text, first.page, first.reason) == ("door 0 …", None, str(fault))
    assert (second.text, second.reason) == ("The whole of page 1.", None)
    assert results.metadata["snippets"] == [{"link": link(0), "reason": str(fault)}]


async def test_an_empty_page_leaves_the_snippet() -> None:
    (record,) = await (await FullPages(web(1), ShelfReader({link(0): " \n"})).get_search_results("door")).list()
    assert record.text == "door 0 …"
    assert record.reason == "Its page has no text."


@pytest.mark.parametrize("other", [None, "file:///docs/a.md#L3", "ftp://site.example/", "mailto:a@b.example"])
async def test_links_that_are_not_of_the_web_are_not_read(other: str | None) -> None:
    reader = shelf(1)
    search = ListSearch([ListEntry("a door", "Door", other)])
    (record,) = await (await FullPages(search, reader).get_search_results("door")).list()
    assert record == FullPage(record.result, "a door", reason="It has no http or https link.")
    assert reader.asked == []


async def test_beyond_max_pages_the_snippets_stay() -> None:
    reader = shelf(9)
    results = await FullPages(web(9), reader, max_pages=3).get_search_results("door", TextSearchOptions(top=9))
    records = await results.list()
    assert [record.page is not None for record in records] == [True] * 3 + [False] * 6
    assert sorted(reader.asked) == [link(0), link(1), link(2)]
    assert {record.reason for record in records[3:]} == {"3 pages of one search are read (max_pages)."}


async def test_of_two_results_on_one_page_the_second_keeps_its_snippet() -> None:
    entries = [ListEntry("door one", None, f"{link(0)}#one"), ListEntry("door two", None, f"{link(0)}#two")]
    reader = ShelfReader({f"{link(0)}#one": "The page."})
    first, second = await (await FullPages(ListSearch(entries), reader).get_search_results("door")).list()
    assert (first.text, second.text) == ("The page.", "door two")
    assert second.reason == "Its page is the one of an earlier result."
    assert reader.asked == [f"{link(0)}#one"]


async def test_a_long_page_is_cut_between_words_and_says_so() -> None:
    reader = ShelfReader({link(0): "word " * 1_000})
    (record,) = await (await FullPages(web(1), reader, max_characters=97).get_search_results("door")).list()
    assert record.text == ("word " * 19).rstrip()
    assert record.cut == "the first 94 of 5,000 characters (max_characters)"
    assert record.page is not None
    assert len(record.page.text) == 5_000


async def test_what_the_reader_cut_is_told() -> None:
    reader = ShelfReader({link(0): Page("Text.", link(0), cut="the first 2 of 9 pages")})
    (record,) = await (await FullPages(web(1), reader).get_search_results("door")).list()
    assert record.cut == "the first 2 of 9 pages"


def read(text: str, bound: int) -> FullPage:
    async def record() -> FullPage:
        pages = FullPages(web(1), ShelfReader({link(0): Page(text, link(0))}), max_characters=bound)
        return (await (await pages.get_search_results("door")).list())[0]

    return asyncio.run(record())


@given(st.text(max_size=60), st.integers(1, 50))
def test_a_cut_text_is_a_beginning_within_the_bound(text: str, bound: int) -> None:
    found = read(text, bound)
    if not text.strip():
        assert found.reason is not None
    else:
        assert text.startswith(found.text)
        assert len(found.text) <= bound
        assert found.text, "a page with text became empty"
        assert found.text == text or len(text) > bound


@on_virtual_time
async def test_slow_pages_leave_their_snippets_when_the_time_is_up() -> None:
    reader = shelf(4, seconds={link(1): 60.0, link(3): 60.0})
    pages = FullPages(web(4), reader, seconds=0.2)
    began = asyncio.get_running_loop().time()
    results = await pages.get_search_results("door", TextSearchOptions(top=4))
    records = await results.list()
    assert asyncio.get_running_loop().time() - began == pytest.approx(0.2), "it is the time of all pages together"
    assert [record.page is not None for record in records] == [True, False, True, False]
    assert records[1].reason == "Its page was not there when 0.2 seconds were up (seconds)."
    assert sorted(reader.cancelled) == [link(1), link(3)], "a late read goes on"


@pytest.mark.parametrize(("seconds", "in_time"), [(0.5, 0), (1.5, 1), (3.5, 3), (5.5, 5)])
@on_virtual_time
async def test_what_is_waited_for_one_page_is_gone_for_the_next(seconds: float, in_time: int) -> None:
    reader = shelf(5, seconds={link(number): 1.0 for number in range(5)})
    pages = FullPages(web(5), reader, seconds=seconds, concurrency=1)
    records = await (await pages.get_search_results("door", TextSearchOptions(top=5))).list()
    assert [record.page is not None for record in records] == [True] * in_time + [False] * (5 - in_time)


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_pages_are_read_ahead_and_never_more_at_once_than_allowed(concurrency: int) -> None:
    reader = shelf(9, seconds=0.005)
    pages = FullPages(web(9), reader, max_pages=9, concurrency=concurrency)
    assert len(await (await pages.search("door", TextSearchOptions(top=9))).list()) == 9
    assert reader.most_at_once == concurrency


async def test_a_long_search_is_not_read_far_ahead() -> None:
    search = streamed(500)
    results = await FullPages(search, shelf(500), concurrency=3, max_pages=500).search("door")
    stream = aiter(results)
    await anext(stream)
    await asyncio.sleep(0.05)
    assert search.given < 12, f"{search.given} results were taken for one that was wanted"
    await results.aclose()


async def test_closing_the_results_stops_the_readers_and_lets_go_of_the_search() -> None:
    search, reader = streamed(9), shelf(9, seconds={link(number): 60.0 for number in range(1, 9)})
    results = await FullPages(search, reader, max_pages=9).search("door")
    assert await anext(aiter(results)) == "The whole of page 0."
    await asyncio.sleep(0.01)
    async with asyncio.timeout(10):
        await results.aclose()
        await results.aclose()
    assert search.closed
    assert reader.cancelled, "no read was stopped"
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_results_that_are_closed_unread_let_go_of_the_search() -> None:
    for method in ("search", "get_text_search_results", "get_search_results"):
        search, reader = streamed(2), shelf(2)
        results = await getattr(FullPages(search, reader), method)("door")
        await results.aclose()
        assert search.closed, f"{method} holds on to the search"
        assert reader.asked == []


async def test_results_that_are_dropped_half_read_stop_their_readers() -> None:
    reader = shelf(5, seconds={link(number): 60.0 for number in range(1, 5)})
    results = await FullPages(streamed(5), reader).search("door")
    async for _ in results:
        await asyncio.sleep(0.01)
        break
    del results
    gc.collect()
    for _ in range(10):
        await asyncio.sleep(0.01)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_caller_that_is_cancelled_stops_everything() -> None:
    reader = shelf(5, seconds=60.0)
    results = await FullPages(streamed(5), reader, seconds=60).search("door")
    waiting = asyncio.create_task(results.list())
    await asyncio.sleep(0.02)
    waiting.cancel()
    async with asyncio.timeout(10):
        await asyncio.wait({waiting})
    assert waiting.cancelled()
    assert len(reader.cancelled) == 5
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_the_search_raises_comes_after_the_results_before_it() -> None:
    search = streamed(2, ServiceUnavailable("The second page of results is not there."))
    results = await FullPages(search, shelf(2, seconds=0.01)).search("door")
    read = []
    with pytest.raises(ServiceUnavailable, match="second page"):
        async for text in results:
            read.append(text)  # noqa: PERF401 - what was read before the error
    assert read == ["The whole of page 0.", "The whole of page 1."]
    assert search.closed
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_count_and_metadata_of_the_search_are_passed_on() -> None:
    results = await FullPages(streamed(1), shelf(0)).get_text_search_results(
        "door", TextSearchOptions(include_total_count=True)
    )
    assert results.total_count == 40
    assert results.metadata["corrected"] == "doors"
    await results.list()
    assert [told["link"] for told in results.metadata["snippets"]] == [link(0)]


def test_it_shows_itself_as_the_search_that_it_wraps() -> None:
    search = web(1)
    pages = FullPages(search, shelf(1))
    assert (pages.name, pages.capabilities, pages.index) == (search.name, search.capabilities, search.index)


@pytest.mark.parametrize("bound", ["max_pages", "max_characters", "concurrency"])
async def test_a_bound_of_nothing_is_a_mistake(bound: str) -> None:
    with pytest.raises(ValueError, match=bound):
        FullPages(web(1), shelf(1), **{bound: 0})
    assert len(await (await FullPages(web(1), shelf(1), **{bound: 1}).search("door")).list()) == 1


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_no_time_is_a_mistake(seconds: float) -> None:
    with pytest.raises(ValueError, match="seconds"):
        FullPages(web(1), shelf(1), seconds=seconds)
