"""What is Tavily's own: limits of queries, settings and filters as members of the JSON, what is refused unsent."""

from __future__ import annotations

from typing import Any

import pytest

from portico import Kernel
from portico.errors import UnsupportedOption
from portico.plugins import HttpRequest, Secret
from portico.ports import HttpClient
from portico.search import And, AnyOf, Equal, Filter, Range, TextSearchOptions, search_plugin
from portico_tavily.config import TavilySettings
from portico_tavily.search import TavilyTextSearch
from portico_testkit.fakes.http_client import RecordedHttpClient
from portico_testkit.fakes.services import FixedServices

NOTHING = {"query": "x", "answer": None, "images": [], "results": [], "response_time": 0.1}


def tavily_with(**settings: Any) -> tuple[TavilyTextSearch, RecordedHttpClient]:
    client = RecordedHttpClient(lambda request: NOTHING)
    return TavilyTextSearch(TavilySettings(Secret("tvly-k"), **settings), FixedServices({HttpClient: client})), client


async def asked(filter: Filter | None = None, query: str = "door", top: int = 5, **settings: Any) -> HttpRequest:
    search, client = tavily_with(**settings)
    assert await (await search.search(query, TextSearchOptions(top=top, filter=filter))).list() == []
    [request] = client.requests
    return request


async def test_what_is_asked_without_settings_and_filters() -> None:
    request = await asked()
    assert (request.method, request.url) == ("POST", "https://api.tavily.com/search")
    assert request.json == {
        "query": "door",
        "max_results": 5,
        "topic": "general",
        "search_depth": "basic",
        "include_answer": False,
        "include_raw_content": False,
    }


async def test_settings_are_members_and_a_filter_beats_them() -> None:
    settings = {"country": "germany", "search_depth": "advanced", "include_answer": True, "include_raw_content": True}
    sent = (await asked(**settings)).json
    assert {name: sent[name] for name in settings} == settings
    assert (await asked(Equal("country", "france"), **settings)).json["country"] == "france"
    assert (await asked(time_range="year")).json["time_range"] == "year"
    days = (await asked(Range("date", at_least="2026-01-31"), time_range="year")).json
    assert (days["start_date"], "time_range" in days) == ("2026-01-31", False)


async def test_the_settings_country_is_for_the_general_topic_only() -> None:
    for sent in (await asked(Equal("topic", "news"), country="germany"), await asked(topic="news", country="germany")):
        assert sent.json["topic"] == "news"
        assert "country" not in sent.json


async def test_results_left_out_are_asked_for_too_since_there_are_no_pages() -> None:
    search, client = tavily_with()
    await search.search("door", TextSearchOptions(top=5, skip=5))
    assert client.requests[0].json["max_results"] == 20
    beyond = await (await search.search("door", TextSearchOptions(top=5, skip=20))).list()
    assert beyond == []
    assert len(client.requests) == 1, "there is nothing beyond the twentieth result to ask for"


@pytest.mark.parametrize(
    ("filter", "words"),
    [
        (Equal("topic", "sports"), "'general', 'news' or 'finance'"),
        (Equal("country", "DE"), "country"),
        (Equal("time_range", "yesterday"), "time_range"),
        (And((Equal("time_range", "week"), Range("date", at_least="2026-01-01"))), "not by both"),
        (Range("date", at_least="last week"), "2026-01-31"),
        (Equal("language", "de"), "topic"),
        (Equal("site", "two words"), "site"),
        (AnyOf("exclude_domains", ("a.example", "")), "exclude_domains"),
    ],
)
async def test_what_tavily_would_not_understand_is_refused_before_it_is_sent(filter: Filter, words: str) -> None:
    search, client = tavily_with()
    with pytest.raises(UnsupportedOption) as caught:
        await search.search("door", TextSearchOptions(filter=filter))
    assert words in str(caught.value)
    assert client.requests == []


async def test_news_take_no_other_topic() -> None:
    search, client = tavily_with(country="germany")
    for filter in (Equal("topic", "finance"), Equal("country", "france")):
        with pytest.raises(UnsupportedOption, match="site"):
            await search.get_news("door", TextSearchOptions(filter=filter))
    await search.get_news("door", TextSearchOptions(filter=AnyOf("site", ("a.example", "b.example"))))
    [request] = client.requests
    assert request.json["topic"] == "news"
    assert request.json["include_domains"] == ("a.example", "b.example")


async def test_a_model_can_search_and_choose_the_site() -> None:
    search, client = tavily_with()
    kernel = Kernel(plugins=[search_plugin(search, "Web", functions=["Search", "GetNews"])])
    await kernel.invoke_json("Web-Search", {"query": "door", "site": "example.org"})
    await kernel.invoke_json("Web-GetNews", {"query": "door"})
    assert [request.json["topic"] for request in client.requests] == ["general", "news"]
    assert client.requests[0].json["include_domains"] == ("example.org",)


@pytest.mark.parametrize(
    "wrong",
    [
        {"api_key": Secret("")},
        {"api_key": Secret("two words")},
        {"api_key": Secret("k\n")},
        {"base_url": "api.tavily.com"},
        {"country": "DE"},
        {"topic": "sports"},
        {"search_depth": "deep"},
    ],
)
def test_settings_that_tavily_would_refuse_are_mistakes(wrong: dict[str, Any]) -> None:
    [name] = wrong
    with pytest.raises(ValueError, match=name):
        TavilySettings(**{"api_key": Secret("tvly-k"), **wrong})
