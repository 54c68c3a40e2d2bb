"""Answers of the v7 interface as they were recorded, and what is sent for them."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico import And, Equal, Kernel, Range, TextSearchOptions, search_plugin
from portico.errors import PorticoError, UnsupportedOption
from portico.plugins import HttpResponse, Secret
from portico.ports import HttpClient
from portico_bing._wire import BingArticle
from portico_bing.config import BingSettings
from portico_bing.search import BingTextSearch
from portico_testkit.fakes.http_client import RecordedHttpClient
from portico_testkit.fakes.services import FixedServices
from portico_testkit.strategies import json_values, near

RECORDED = Path(__file__).parent / "recorded"
QUESTION = "What is the Semantic Kernel?"


def bing(answers: Any, **settings: Any) -> tuple[BingTextSearch, RecordedHttpClient]:
    """Return a search through a service that answers so, and what it was asked."""
    client = RecordedHttpClient(answers if callable(answers) else lambda request: RECORDED / f"{answers}.json")
    made = BingSettings(**{"api_key": Secret("k-123"), **settings})
    return BingTextSearch(made, FixedServices({HttpClient: client})), client


async def test_a_recorded_answer_has_its_results_count_and_metadata() -> None:
    search, client = bing("what_is_the_semantic_kernel")
    options = TextSearchOptions(top=10, include_total_count=True)
    results = await search.get_search_results(QUESTION, options)
    assert results.total_count == 2_950_000
    assert results.metadata["queryContext"] == {"originalQuery": QUESTION}
    assert results.metadata["relatedSearches"][:2] == [
        "semantic kernel examples",
        "getting started with semantic kernel",
    ]
    found = await results.list()
    assert len(found) == 10
    assert len(client.requests) == 1
    assert found[0].name == "Introduction to Semantic Kernel | Microsoft Learn"
    assert found[0].url == "https://learn.microsoft.com/en-us/semantic-kernel/overview/"
    assert found[0].snippet.startswith("Semantic Kernel is a lightweight, open-source development kit")
    assert found[0].date_published == datetime(2024, 6, 24, tzinfo=UTC)
    assert found[0].date_last_crawled == datetime(2024, 8, 22, 2, 9, tzinfo=UTC)
    assert (found[0].language, found[0].site_name) == ("en", "Microsoft Learn")
    assert found[1].date_published is None


async def test_nothing_found_is_no_results_and_tells_what_the_service_made_of_the_query() -> None:
    search, _ = bing("nothing")
    results = await search.search("xqzzv brxw", TextSearchOptions(include_total_count=True))
    assert (await results.list(), results.total_count) == ([], 0)
    assert results.metadata["queryContext"]["alteredQuery"] == "brew"


async def test_a_short_page_is_followed_by_another_while_the_service_counts_more() -> None:
    def answer(request: Any) -> dict[str, Any]:
        start = request.params["offset"]
        numbers = range(start, min(start + 48, 60))
        pages = [{"name": f"{number}", "url": f"https://a.example/{number}", "snippet": "x"} for number in numbers]
        return {"_type": "SearchResponse", "webPages": {"totalEstimatedMatches": 1_000, "value": pages}}

    search, client = bing(answer)
    found = await (await search.get_search_results("q", TextSearchOptions(top=100))).list()
    assert [page.name for page in found] == [str(number) for number in range(60)]
    assert [request.params["offset"] for request in client.requests] == [0, 48, 60]


async def test_the_key_goes_where_the_service_wants_it() -> None:
    search, client = bing(
        "nothing", api_key_header="Authorization", api_key_scheme="Bearer", base_url="https://a.example/x/"
    )
    await search.search("q")
    (request,) = client.requests
    key = request.headers["Authorization"]
    assert isinstance(key, Secret)
    assert key.reveal() == "Bearer k-123"
    assert request.url == "https://a.example/x/search"
    assert "k-123" not in repr(request) + repr(search.settings)


async def test_a_filter_beats_a_setting_and_a_country_beats_the_market() -> None:
    search, client = bing("nothing", market="en-GB", language="en", safe_search="Strict")
    await search.search("q")
    await search.search("q", TextSearchOptions(filter=Equal("mkt", "de-DE")))
    await search.search("q", TextSearchOptions(filter=And((Equal("cc", "FR"), Equal("setLang", "fr")))))
    plain, market, country = ({name: value for name, value in each.params.items() if value} for each in client.requests)
    assert plain == {"q": "q", "count": 5, "mkt": "en-GB", "setLang": "en", "safeSearch": "Strict"}
    assert market == plain | {"mkt": "de-DE"}
    assert country == {"q": "q", "count": 5, "cc": "FR", "safeSearch": "Strict"}
    assert client.requests[2].headers["Accept-Language"] == "fr"


async def test_every_parameter_is_a_setting_of_the_source_and_news_get_those_that_they_know() -> None:
    settings = {
        "country": "DE",
        "language": "de",
        "freshness": "2026-01-01..2026-01-31",
        "response_filter": "Webpages,News",
        "answer_count": 2,
        "promote": "News",
        "text_decorations": True,
        "text_format": "HTML",
        "safe_search": "Off",
    }
    search, client = bing(lambda request: {"_type": "SearchResponse", "value": []}, **settings)
    await search.search("q")
    await search.search("q", TextSearchOptions(filter=And((Equal("mkt", "en-GB"), Equal("answerCount", 5)))))
    await search.search("q", TextSearchOptions(filter=Range("date", at_least="2026-02-01", at_most="2026-02-02")))
    await search.get_news("q")
    plain, other, days, news = (dict(each.params) for each in client.requests)
    assert plain == {
        "q": "q",
        "count": 5,
        "offset": 0,
        "cc": "DE",
        "freshness": "2026-01-01..2026-01-31",
        "responseFilter": "Webpages,News",
        "answerCount": 2,
        "promote": "News",
        "textDecorations": True,
        "textFormat": "HTML",
        "safeSearch": "Off",
    }
    assert client.requests[0].headers["Accept-Language"] == "de"
    assert {"mkt": "en-GB", "setLang": "de", "answerCount": "5"}.items() <= other.items()
    assert "cc" not in other
    assert days["freshness"] == "2026-02-01..2026-02-02"
    assert news.keys() == {"q", "count", "offset", "cc", "textDecorations", "textFormat", "safeSearch"}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"freshness": "last week"}, "freshness takes 'Day', 'Week' or 'Month'"),
        ({"answer_count": 0}, "answer_count takes a number from 1 on"),
        ({"country": "DE", "market": "de-DE"}, "market or country is set, and not both"),
    ],
)
def test_a_setting_that_the_service_would_ignore_is_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        bing("nothing", **settings)


async def test_a_filter_of_the_source_is_checked_with_its_values_and_applies_to_news_too() -> None:
    search, client = bing(lambda request: {"_type": "News", "value": []})
    with pytest.raises(UnsupportedOption, match="does not know 'last week' for 'freshness'"):
        bing("nothing")[0].use_filter(Equal("freshness", "last week"))
    assert client.requests == []
    search.use_filter(Equal("site", "a.example"))
    await search.get_news("q")
    assert client.requests[-1].params["q"] == "q site:a.example"


@pytest.mark.parametrize(
    ("filter", "words"),
    [
        (And((Equal("cc", "DE"), Equal("mkt", "de-DE"))), "'cc' or 'mkt'"),
        (And((Equal("freshness", "Day"), Range("date", at_least="2026-01-01"))), "freshness"),
        (Equal("freshness", "last week"), "freshness"),
        (Equal("safeSearch", "maybe"), "safeSearch"),
        (Equal("mkt", "Germany"), "mkt"),
        (Range("date", at_least="2026-01-32"), "2026-01-32"),
    ],
)
async def test_what_the_service_would_ignore_is_refused_and_not_sent(filter: Any, words: str) -> None:
    search, client = bing("nothing")
    with pytest.raises(UnsupportedOption, match=words):
        await search.search("q", TextSearchOptions(filter=filter))
    assert client.requests == []


async def test_an_open_range_of_dates_ends_today() -> None:
    search, client = bing("nothing")
    await search.search("q", TextSearchOptions(filter=Range("date", above="2026-01-31")))
    first, last = str(client.requests[0].params["freshness"]).split("..")
    assert first == "2026-02-01"
    assert abs(date.fromisoformat(last) - datetime.now(UTC).date()) <= timedelta(days=1)


@pytest.mark.fuzz
@given(st.text(alphabet=st.sampled_from('ab "|()-+&!NOTANDRsite:.'), max_size=20))
def test_no_query_lifts_a_filter(query: str) -> None:
    search, client = bing("nothing")
    asyncio.run(search.search(f"a {query}", TextSearchOptions(filter=Equal("site", "a.example"))))
    sent = str(client.requests[0].params["q"])
    words, _, operator = sent.rpartition(" ")
    assert operator == "site:a.example", f"{sent!r} does not end with the filter"
    assert "|" not in words
    assert "OR" not in words.replace('"', " ").split()
    assert words.count('"') % 2 == 0, f"a quote in {sent!r} takes the filter in"
    assert words.split()[-1:] not in (["NOT"], ["AND"], ["-"]), f"{sent!r} excludes what the filter keeps"


# News


async def test_the_news_are_a_function_with_dates_when_they_are_asked_for() -> None:
    search, client = bing("news")
    kernel = Kernel(plugins=[search_plugin(search, "Web", functions=("Search", "GetNews"), count=5)])
    spec = kernel.function("GetNews").spec
    assert spec.description == "Find articles in the news, with who published them and when."
    assert set(spec.parameters["properties"]) == {"query", "count", "skip", "site"}
    found = await kernel.invoke_json("GetNews", {"query": "lighthouse", "site": "news.example"})
    assert client.requests[0].url.endswith("/news/search")
    assert client.requests[0].params["q"] == "lighthouse site:news.example"
    assert found[0] == {
        "name": "The lighthouse of Norrland is lit again",
        "url": "https://news.example/norrland",
        "description": "After forty years of dark, the lamp turns & shines.",
        "provider": "Norrland Daily",
        "category": "World",
        "date_published": "2025-03-04T15:55:00+00:00",
    }
    assert found[1]["date_published"] is None


async def test_news_have_a_count_and_filters_of_their_own() -> None:
    search, client = bing("news")
    options = TextSearchOptions(
        include_total_count=True, filter=And((Equal("sortBy", "Date"), Equal("freshness", "Week")))
    )
    results = await search.get_news("lighthouse", options)
    assert results.total_count == 2
    assert isinstance((await results.list())[0], BingArticle)
    assert (client.requests[0].params["sortBy"], client.requests[0].params["freshness"]) == ("Date", "Week")
    for filter in (Range("date", at_least="2026-01-01"), Equal("promote", "Images")):
        with pytest.raises(UnsupportedOption, match="'bing'"):
            await search.get_news("lighthouse", TextSearchOptions(filter=filter))


@pytest.mark.fuzz
@given(near({"value": [{"name": "a", "url": "https://a.example", "provider": [{"name": "b"}]}]}) | json_values())
def test_whatever_is_said_of_the_news_gives_articles_or_an_error(said: Any) -> None:
    import json

    search, _ = bing(lambda request: HttpResponse(200, json.dumps(said).encode()))

    async def ask() -> list[BingArticle]:
        return await (await search.get_news("q")).list()

    try:
        found = asyncio.run(ask())
    except PorticoError:
        return
    assert all(isinstance(article.name, str) for article in found)


# Settings


@pytest.mark.parametrize(
    "wrong",
    [
        {"api_key": Secret("")},
        {"api_key": Secret("a\nb")},
        {"base_url": "api.bing.example"},
        {"base_url": "https://user:pass@bing.example"},
        {"base_url": "https://bing.example/search?q="},
        {"api_key_header": "X Key"},
        {"api_key_scheme": "Bearer:"},
        {"market": "Germany"},
        {"language": "german"},
        {"safe_search": "maybe"},
    ],
)
def test_settings_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        BingSettings(**{"api_key": Secret("k"), **wrong})
