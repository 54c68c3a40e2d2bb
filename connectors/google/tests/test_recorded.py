"""Answers of the Custom Search JSON API as they were recorded, and what is sent for them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from portico import And, AnyOf, Equal, Range, TextSearchOptions
from portico.errors import ServiceError, UnsupportedOption
from portico.plugins import HttpResponse, Secret
from portico.ports import HttpClient
from portico_google.config import GoogleSettings
from portico_google.search import GoogleTextSearch
from portico_testkit.fakes.http_client import RecordedHttpClient
from portico_testkit.fakes.services import FixedServices

RECORDED = Path(__file__).parent / "recorded"
QUESTION = "What is the Semantic Kernel?"


def google(answers: Any, **settings: Any) -> tuple[GoogleTextSearch, RecordedHttpClient]:
    """Return a search through a service that answers so, and what it was asked."""
    client = RecordedHttpClient(answers if callable(answers) else lambda request: RECORDED / f"{answers}.json")
    made = GoogleSettings(**{"api_key": Secret("k-123"), "search_engine_id": "0123:abc", **settings})
    return GoogleTextSearch(made, FixedServices({HttpClient: client})), client


async def test_a_recorded_answer_has_its_results_count_and_metadata() -> None:
    search, client = google("what_is_the_semantic_kernel")
    results = await search.get_search_results(QUESTION, TextSearchOptions(top=4, include_total_count=True))
    assert results.total_count == 16_200_000
    assert results.metadata["searchInformation"]["searchTime"] == 0.292308
    assert results.metadata["context"] == {"title": "Semantic Kernel Search"}
    assert results.metadata["spelling"] == {}
    found = await results.list()
    assert len(found) == 4
    assert len(client.requests) == 1
    assert found[0].title == "Introduction to Semantic Kernel | Microsoft Learn"
    assert found[0].link == "https://learn.microsoft.com/en-us/semantic-kernel/overview/"
    assert found[0].display_link == "learn.microsoft.com"
    assert found[0].snippet.endswith("integrate the latest AI ...")
    assert "\xa0" not in "".join(page.snippet for page in found)
    assert [page.published for page in found] == [
        None,
        None,
        None,
        datetime(2023, 12, 19, 13, 45, 33, 495_000, tzinfo=UTC),
    ]


async def test_nothing_found_is_no_results_and_tells_another_spelling() -> None:
    search, _ = google("nothing")
    results = await search.search("lighthose norland", TextSearchOptions(include_total_count=True))
    assert (await results.list(), results.total_count) == ([], 0)
    assert results.metadata["spelling"]["correctedQuery"] == "lighthouse norrland"


async def test_every_parameter_is_a_setting_of_the_source_that_a_filter_replaces() -> None:
    settings = {
        "country": "de",
        "language": "de",
        "language_restrict": "de|fr",
        "country_restrict": "countryDE",
        "date_restrict": "m6",
        "link_site": "a.example",
        "rights": "cc_publicdomain",
        "duplicate_filter": 0,
        "exact_terms": "red door",
        "exclude_terms": "blue",
        "or_terms": "oak ash",
        "file_type": "pdf",
    }
    search, client = google("nothing", **settings)
    await search.search("q")
    await search.search("q", TextSearchOptions(filter=And((Equal("dateRestrict", "d1"), Equal("language", "en")))))
    sent = {
        "gl": "de",
        "hl": "de",
        "lr": "lang_de|lang_fr",
        "cr": "countryDE",
        "dateRestrict": "m6",
        "linkSite": "a.example",
        "rights": "cc_publicdomain",
        "filter": 0,
        "exactTerms": "red door",
        "excludeTerms": "blue",
        "orTerms": "oak ash",
        "fileType": "pdf",
    }
    assert sent.items() <= client.requests[0].params.items()
    assert (sent | {"dateRestrict": "d1", "lr": "lang_en"}).items() <= client.requests[1].params.items()
    for wrong in ({"date_restrict": "last week"}, {"duplicate_filter": 2}, {"language_restrict": "German"}):
        with pytest.raises(ValueError, match=f"^{next(iter(wrong))} takes "):
            google("nothing", **wrong)


def numbered(request: Any) -> dict[str, Any]:
    """Return ten results of a million, as the service numbers them."""
    start = request.params["start"]
    numbers = range(start, start + request.params["num"])
    items = [{"title": f"{n}", "link": f"https://a.example/{n}", "snippet": "x"} for n in numbers]
    return {"queries": {"nextPage": [{}]}, "searchInformation": {"totalResults": "1000000"}, "items": items}


@pytest.mark.parametrize(
    ("top", "skip", "asked"),
    [
        (45, 0, [(1, 10), (11, 10), (21, 10), (31, 10), (41, 5)]),
        (5, 97, [(98, 3)]),
        (5, 100, []),
        (200, 75, [(76, 10), (86, 10), (96, 5)]),
    ],
)
async def test_results_come_ten_at_a_time_up_to_the_hundredth(
    top: int, skip: int, asked: list[tuple[int, int]]
) -> None:
    search, client = google(numbered)
    found = await (await search.get_search_results("q", TextSearchOptions(top=top, skip=skip))).list()
    assert [(request.params["start"], request.params["num"]) for request in client.requests] == asked
    assert [page.title for page in found] == [str(n + 1) for n in range(100)][skip : skip + top]


async def test_the_key_is_a_parameter_and_shows_nowhere() -> None:
    search, client = google("nothing")
    await search.search("q")
    (request,) = client.requests
    key = request.params["key"]
    assert isinstance(key, Secret)
    assert key.reveal() == "k-123"
    assert "k-123" not in repr(request) + repr(search.settings) + str(search.settings)


async def test_a_filter_beats_a_setting() -> None:
    search, client = google("nothing", country="de", language="de", safe_search="active")
    await search.search("q")
    await search.search("q", TextSearchOptions(filter=And((Equal("gl", "fr"), Equal("hl", "fr")))))
    plain, filtered = ({**request.params} for request in client.requests)
    assert (plain["gl"], plain["hl"], plain["safe"]) == ("de", "de", "active")
    assert (filtered["gl"], filtered["hl"], filtered["safe"]) == ("fr", "fr", "active")


@pytest.mark.parametrize(
    ("filter", "words"),
    [
        (Equal("language", "German"), "language"),
        (AnyOf("language", ("de", "x")), "language"),
        (Equal("dateRestrict", "last week"), "dateRestrict"),
        (Equal("gl", "Germany"), "gl"),
        (Equal("exactTerms", " "), "exactTerms"),
        (Equal("site", "two words"), "site"),
        (Range("date", at_least="2026-01-32"), "2026-01-32"),
    ],
)
async def test_what_the_service_would_ignore_is_refused_and_not_sent(filter: Any, words: str) -> None:
    search, client = google("nothing")
    with pytest.raises(UnsupportedOption, match=words):
        await search.search("q", TextSearchOptions(filter=filter))
    assert client.requests == []


async def test_an_error_whose_parts_are_of_another_form_goes_by_its_status() -> None:
    search, _ = google(lambda request: HttpResponse(400, b'{"error": {"errors": 7, "message": "No."}}'))
    with pytest.raises(ServiceError, match=r"\(400\).*No\."):
        await search.search("q")


@pytest.mark.parametrize(
    "wrong",
    [
        {"api_key": Secret("")},
        {"api_key": Secret("a\nb")},
        {"search_engine_id": ""},
        {"search_engine_id": "https://cse.google.com/cse?cx=0123"},
        {"search_engine_id": "01 23"},
        {"base_url": "customsearch.example"},
        {"base_url": "https://customsearch.example/v1?key=k"},
        {"base_url": "https://user:pass@customsearch.example"},
        {"country": "Germany"},
        {"language": "german!"},
        {"safe_search": "maybe"},
    ],
)
def test_settings_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        GoogleSettings(**{"api_key": Secret("k"), "search_engine_id": "0123:abc", **wrong})
