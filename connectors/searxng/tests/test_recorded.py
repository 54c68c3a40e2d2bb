from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from portico._search.results import search_methods
from portico.errors import ServiceUnavailable
from portico.plugins import HttpRequest
from portico.ports import HttpClient
from portico.search import Equal, TextSearchOptions
from portico_searxng.config import SearxngSettings
from portico_searxng.search import SearxngTextSearch, WebResult
from portico_testkit.fakes.http_client import RecordedHttpClient
from portico_testkit.fakes.services import FixedServices

RECORDED = Path(__file__).parent / "recorded"
ADDRESS = "http://searx.example"


def searxng(answers: Any, **settings: Any) -> tuple[SearxngTextSearch, RecordedHttpClient]:
    """Return a search through a SearXNG that answers so, and what it was asked."""
    client = RecordedHttpClient(answers if callable(answers) else lambda request: RECORDED / f"{answers}.json")
    made = SearxngSettings(**{"base_url": ADDRESS, **settings})
    return SearxngTextSearch(made, FixedServices({HttpClient: client})), client


def page(*numbers: int, **beside: Any) -> dict[str, Any]:
    results = [{"url": f"https://web.example/{n}", "title": f"Page {n}", "content": f"Text {n}."} for n in numbers]
    return {"results": results, **beside}


@pytest.mark.asyncio
async def test_results_have_what_the_engines_quote_or_else_the_title() -> None:
    search, _ = searxng("general")
    found = await (await search.get_text_search_results("lighthouse", TextSearchOptions(top=4))).list()
    assert [(result.value, result.link) for result in found] == [
        (
            "Skerryvane Lighthouse is 46 metres tall; <title> & List<int> are no markup here.",
            "https://lights.example/skerryvane",
        ),
        ("Vane Skerries - The pilot book", "https://pilot.example/vane?ed=2&x=ü"),
        ("After 37 years the lens of Varnhem is back.", "https://news.example/2026/lens"),
        ("Something that has no page.", None),
    ]


@pytest.mark.asyncio
async def test_records_have_engines_score_category_and_date() -> None:
    search, _ = searxng("general")
    first, second, third, last = await (await search.get_search_results("q", TextSearchOptions(top=4))).list()
    assert (first.engines, first.score, first.category) == (("brave", "duckduckgo"), 4.0, "general")
    assert (second.published, last.category) == (None, "files")
    assert third.published == datetime(2026, 9, 30, 7, 15, tzinfo=timezone(timedelta(hours=2)))


@pytest.mark.asyncio
async def test_what_is_beside_the_results_is_metadata() -> None:
    search, _ = searxng("general")
    found = await search.search("lighthouse", TextSearchOptions(include_total_count=True))
    assert found.total_count is None, "SearXNG's number_of_results is 0 or one engine's guess"
    assert found.metadata["suggestions"] == ["lighthouse keeper"]
    assert found.metadata["corrections"] == ["lighthouses"]
    assert found.metadata["answers"][0]["answer"] == "42"
    assert found.metadata["infoboxes"][0]["infobox"] == "Lighthouse"
    assert found.metadata["unresponsive_engines"][0] == ["startpage", "CAPTCHA"]


@pytest.mark.asyncio
async def test_news_are_a_search_of_their_own() -> None:
    search, client = searxng("news", categories=("general", "it"))
    assert [(method.name, method.record_type) for method in search_methods(search)] == [("GetNews", WebResult)]
    first, second = await (await search.get_news("lens", TextSearchOptions())).list()
    assert client.requests[0].params["categories"] == "news"
    assert (first.published, second.published) == (datetime(2026, 9, 30, 7, 15, tzinfo=UTC), None)


@pytest.mark.asyncio
async def test_the_settings_go_with_each_request_and_a_filter_goes_before_them() -> None:
    search, client = searxng(
        "general", language="de", categories=("it", "science"), engines=("mojeek",), safe_search=2, time_range="year"
    )
    await search.search("q")
    await search.search("q", TextSearchOptions(filter=Equal("language", "fr")))
    first, second = (request.params for request in client.requests)
    assert {name: value for name, value in first.items() if value is not None} == {
        "q": "q",
        "format": "json",
        "pageno": 1,
        "language": "de",
        "categories": "it,science",
        "engines": "mojeek",
        "safesearch": 2,
        "time_range": "year",
    }
    assert (second["language"], second["categories"]) == ("fr", "it,science")


@pytest.mark.asyncio
async def test_what_is_found_on_two_pages_is_given_once() -> None:
    pages = {1: page(0, 1, 2), 2: page(2, 3, 0, 4), 3: page(4, 5), 4: page()}
    search, client = searxng(lambda request: pages[request.params["pageno"]])
    found = await (await search.search("q", TextSearchOptions(top=10))).list()
    assert found == [f"Text {number}." for number in range(6)]
    assert [request.params["pageno"] for request in client.requests] == [1, 2, 3, 4]
    skipped = await (await search.search("q", TextSearchOptions(top=2, skip=3))).list()
    assert skipped == ["Text 3.", "Text 4."]


@pytest.mark.asyncio
async def test_a_server_that_gives_its_first_page_again_and_again_is_asked_twice() -> None:
    search, client = searxng(lambda request: page(0, 1))
    assert len(await (await search.search("q", TextSearchOptions(top=50))).list()) == 2
    assert len(client.requests) == 2


@pytest.mark.asyncio
async def test_engines_that_fall_silent_on_a_later_page_are_the_end_and_no_failure() -> None:
    silent = {"unresponsive_engines": [["brave", "Suspended: too many requests"]]}

    def answer(request: HttpRequest) -> Any:
        return page(0, 1) if request.params["pageno"] == 1 else page(**silent)

    search, _ = searxng(answer)
    assert await (await search.search("q", TextSearchOptions(top=9))).list() == ["Text 0.", "Text 1."]


@pytest.mark.asyncio
async def test_nothing_found_is_a_failure_where_engines_gave_no_answer() -> None:
    search, _ = searxng(lambda request: page(unresponsive_engines=[["brave", "timeout"]]))
    with pytest.raises(ServiceUnavailable, match=r"found nothing.*brave \(timeout\)"):
        await search.search("q")
    search, _ = searxng(lambda request: page(unresponsive_engines=[]))
    assert await (await search.search("q")).list() == []


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("base_url", "asked"),
    [
        ("http://127.0.0.1:8888", "http://127.0.0.1:8888/search"),
        ("https://host.example/searxng/", "https://host.example/searxng/search"),
        ("https://host.example/search", "https://host.example/search"),
    ],
)
async def test_the_address_may_be_written_in_three_ways(base_url: str, asked: str) -> None:
    search, client = searxng("general", base_url=base_url)
    await search.search("q")
    assert client.requests[0].url == asked


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("base_url", "127.0.0.1:8888"),
        ("base_url", "http://127.0.0.1:8888/search?format=json"),
        ("safe_search", 3),
        ("categories", ("it,science",)),
        ("engines", (" ",)),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(setting: str, value: Any) -> None:
    with pytest.raises(ValueError, match=setting):
        SearxngSettings(**{"base_url": ADDRESS, setting: value})
