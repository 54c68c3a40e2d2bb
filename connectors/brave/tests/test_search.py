"""What is Brave's own: limits of queries, settings and filters as parameters, and what is refused before it is sent."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from portico import Kernel
from portico.errors import UnsupportedOption
from portico.plugins import HttpRequest, Secret
from portico.ports import HttpClient
from portico.search import And, AnyOf, Equal, Filter, Range, TextSearchOptions, search_plugin
from portico_brave.config import BraveSettings
from portico_brave.search import BraveTextSearch
from portico_testkit.fakes.http_client import RecordedHttpClient
from portico_testkit.fakes.services import FixedServices

NOTHING = {"type": "search", "query": {"original": "x", "more_results_available": False}}


def brave_with(**settings: Any) -> tuple[BraveTextSearch, RecordedHttpClient]:
    client = RecordedHttpClient(lambda request: NOTHING)
    return BraveTextSearch(BraveSettings(Secret("k"), **settings), FixedServices({HttpClient: client})), client


async def asked(filter: Filter | None = None, query: str = "door", **settings: Any) -> HttpRequest:
    search, client = brave_with(**settings)
    assert await (await search.search(query, TextSearchOptions(filter=filter))).list() == []
    [request] = client.requests
    return request


async def test_settings_are_parameters_and_a_filter_beats_them() -> None:
    settings = {"country": "DE", "language": "de", "safe_search": "strict", "extra_snippets": True, "freshness": "py"}
    params = (await asked(**settings)).params
    assert {name: params[name] for name in ("country", "search_lang", "safesearch", "extra_snippets")} == {
        "country": "DE",
        "search_lang": "de",
        "safesearch": "strict",
        "extra_snippets": True,
    }
    params = (await asked(And((Equal("country", "FR"), Equal("language", "fr"))), **settings)).params
    assert (params["country"], params["search_lang"], params["safesearch"]) == ("FR", "fr", "strict")
    assert params["freshness"] == "py"
    days = (await asked(Range("date", at_least="2026-01-01", at_most="2026-01-31"), **settings)).params
    assert days["freshness"] == "2026-01-01to2026-01-31"


async def test_an_open_range_ends_today() -> None:
    params = (await asked(Range("date", at_least="2026-01-31"))).params
    assert params["freshness"] == f"2026-01-31to{datetime.now(UTC).date()}"


@pytest.mark.parametrize(
    ("filter", "words"),
    [
        (Equal("country", "Germany"), "country"),
        (Equal("language", "German"), "language"),
        (Equal("safe_search", "on"), "'off', 'moderate' or 'strict'"),
        (Equal("freshness", "yesterday"), "freshness"),
        (And((Equal("freshness", "pw"), Range("date", at_least="2026-01-01"))), "not by both"),
        (Range("date", at_least="last week"), "2026-01-31"),
        (AnyOf("site", ("a.example", "b.example")), "site"),
        (Equal("date", "2026-01-01"), "Range"),
    ],
)
async def test_what_brave_would_not_understand_is_refused_before_it_is_sent(filter: Filter, words: str) -> None:
    search, client = brave_with()
    for method in (search.search, search.get_news):
        with pytest.raises(UnsupportedOption) as caught:
            await method("door", TextSearchOptions(filter=filter))
        assert words in str(caught.value)
    assert client.requests == []


async def test_the_operator_of_a_filter_counts_as_part_of_the_query() -> None:
    query = "x" * 390
    await asked(query=query)
    with pytest.raises(UnsupportedOption, match="operators"):
        await asked(Equal("site", "example.org"), query)


async def test_a_model_can_search_the_web_and_its_news_and_choose_the_site() -> None:
    search, client = brave_with()
    kernel = Kernel(plugins=[search_plugin(search, "Web", functions=["Search", "GetNews"])])
    await kernel.invoke_json("Web-Search", {"query": "door", "site": "example.org"})
    await kernel.invoke_json("Web-GetNews", {"query": "door"})
    assert [request.url.rpartition("v1/")[2] for request in client.requests] == ["web/search", "news/search"]
    assert client.requests[0].params["q"] == "door site:example.org"


@pytest.mark.parametrize(
    "wrong",
    [
        {"api_key": Secret(" ")},
        {"base_url": "api.search.brave.com"},
        {"country": "Germany"},
        {"language": "German"},
        {"safe_search": "on"},
    ],
)
def test_settings_that_brave_would_refuse_are_mistakes(wrong: dict[str, Any]) -> None:
    [name] = wrong
    with pytest.raises(ValueError, match=name):
        BraveSettings(**{"api_key": Secret("k"), **wrong})


async def test_a_slash_at_the_end_of_the_address_does_no_harm() -> None:
    assert (await asked(base_url="http://127.0.0.1/v1/")).url == "http://127.0.0.1/v1/web/search"
