"""What Tavily once answered becomes the right results, scores, dates and metadata."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from portico.plugins import Secret
from portico.ports import HttpClient
from portico_tavily.config import TavilySettings
from portico_tavily.search import TavilyTextSearch
from portico_testkit.fakes.http_client import RecordedHttpClient
from portico_testkit.fakes.services import FixedServices

RECORDED = Path(__file__).parent / "recorded"
WEB = RECORDED / "tavily_what_is_the_semantic_kernel.json"
NEWS = RECORDED / "tavily_news.json"


@pytest.fixture
def client() -> RecordedHttpClient:
    return RecordedHttpClient(lambda request: NEWS if request.json["topic"] == "news" else WEB)


@pytest.fixture
def tavily(client: RecordedHttpClient) -> TavilyTextSearch:
    return TavilyTextSearch(TavilySettings(Secret("k")), FixedServices({HttpClient: client}))


async def test_every_result_is_there_as_it_was_written(tavily: TavilyTextSearch) -> None:
    results = await tavily.get_text_search_results("What is the Semantic Kernel?")
    found = await results.list()
    said = json.loads(WEB.read_bytes())["results"]
    assert [result.link for result in found] == [item["url"] for item in said]
    assert [result.value for result in found] == [item["content"].strip() for item in said]
    assert found[0].name == "Semantic Kernel overview for .NET - .NET | Microsoft Learn"
    assert results.total_count is None, "Tavily does not count"


async def test_records_have_scores_and_whole_texts(tavily: TavilyTextSearch) -> None:
    records = await (await tavily.get_search_results("What is the Semantic Kernel?")).list()
    assert [record.score for record in records] == sorted((record.score for record in records), reverse=True)
    assert records[0].score == 0.94989765
    assert records[0].raw_content.startswith("Semantic Kernel overview for .NET - .NET | Microsoft Learn\nSkip to main")
    assert records[0].published_date is None


async def test_metadata_is_what_tavily_says_beside_the_results(tavily: TavilyTextSearch) -> None:
    results = await tavily.search("What is the Semantic Kernel?")
    assert results.metadata["answer"].startswith("Semantic Kernel is an open-source SDK")
    assert len(results.metadata["images"]) == 5
    assert results.metadata["response_time"] == 4.64
    assert "results" not in results.metadata


async def test_news_have_dates(tavily: TavilyTextSearch, client: RecordedHttpClient) -> None:
    first, second = await (await tavily.get_news("portico release")).list()
    assert first.published_date == datetime(2026, 11, 21, 18, 4, tzinfo=UTC)
    assert first.content.splitlines()[1] == "A List<str> is a list.", "Tavily's texts have no markup to take off"
    assert tavily.to_result(second).value == "Porticos in autumn", "a text that is empty cites nothing"
