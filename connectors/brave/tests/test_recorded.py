"""What Brave once answered becomes the right results, dates and metadata."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from portico.plugins import Secret
from portico.ports import HttpClient
from portico.search import TextSearchOptions
from portico_brave.config import BraveSettings
from portico_brave.search import BraveTextSearch
from portico_testkit.fakes.http_client import RecordedHttpClient
from portico_testkit.fakes.services import FixedServices

RECORDED = Path(__file__).parent / "recorded"
WEB = RECORDED / "brave_what_is_the_semantic_kernel.json"
NEWS = RECORDED / "brave_news.json"


@pytest.fixture
def client() -> RecordedHttpClient:
    host = "https://api.search.brave.com/res/v1"
    return RecordedHttpClient({f"{host}/web/search": WEB, f"{host}/news/search": NEWS})


@pytest.fixture
def brave(client: RecordedHttpClient) -> BraveTextSearch:
    return BraveTextSearch(BraveSettings(Secret("k")), FixedServices({HttpClient: client}))


async def test_every_result_of_the_web_is_there(brave: BraveTextSearch) -> None:
    results = await brave.get_text_search_results("What is Semantic Kernel", TextSearchOptions(top=10))
    found = await results.list()
    said = json.loads(WEB.read_bytes())["web"]["results"]
    assert [result.link for result in found] == [item["url"] for item in said]
    assert found[0].name == "Introduction to Semantic Kernel | Microsoft Learn"
    assert found[0].value.startswith("Semantic Kernel combines prompts with existing APIs to perform actions.")
    assert results.total_count is None, "Brave does not count"


async def test_records_have_dates_where_brave_knows_them(brave: BraveTextSearch) -> None:
    records = await (await brave.get_search_results("What is Semantic Kernel", TextSearchOptions(top=10))).list()
    assert records[0].page_age is None
    assert records[3].page_age == datetime(2025, 4, 5, 6, 44, 24, tzinfo=UTC)
    assert sum(record.page_age is not None for record in records) == 7
    assert {record.language for record in records} == {"en"}


async def test_metadata_is_what_brave_says_of_the_query(brave: BraveTextSearch) -> None:
    results = await brave.search("What is Semantic Kernel")
    assert results.metadata["original"] == "What is Semantic Kernel"
    assert results.metadata["more_results_available"] is True


async def test_a_further_page_that_repeats_the_first_ends_the_results(
    brave: BraveTextSearch, client: RecordedHttpClient
) -> None:
    """The recorded answer says that there is more, and is all that is recorded."""
    found = await (await brave.search("What is Semantic Kernel", TextSearchOptions(top=100))).list()
    assert len(found) == 10
    assert len(client.requests) == 2


async def test_news_have_their_own_address_and_the_same_records(
    brave: BraveTextSearch, client: RecordedHttpClient
) -> None:
    results = await brave.get_news("portico relesae", TextSearchOptions(top=5))
    first, second = await results.list()
    assert client.requests[0].url == "https://api.search.brave.com/res/v1/news/search"
    assert client.requests[0].params["result_filter"] is None, "it is a parameter of the web's only"
    assert first.title == "Portico 1.0 is out"
    assert first.description == "The framework's first release has plans that can be read & resumed."
    assert first.page_age == datetime(2026, 11, 21, 18, 4, tzinfo=UTC)
    assert first.breaking
    assert first.extra_snippets[0] == "A plan is checked before it runs."
    assert (second.description, second.page_age, second.breaking) == ("", None, False)
    assert second.url == "https://paper.example/houses/porticos%20in%20autumn"
    assert results.metadata["altered"] == "portico release"
