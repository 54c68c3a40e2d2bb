from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from portico.errors import UnsupportedOption
from portico.plugins import HttpRequest
from portico.ports import HttpClient
from portico.search import Equal, TextSearchOptions
from portico_mediawiki.config import MediaWikiSettings
from portico_mediawiki.search import MediaWikiTextSearch
from portico_testkit.fakes.http_client import RecordedHttpClient
from portico_testkit.fakes.services import FixedServices

RECORDED = Path(__file__).parent / "recorded"
ADDRESS = "https://wiki.example/w/api.php"


def wiki(answers: Any, **settings: Any) -> tuple[MediaWikiTextSearch, RecordedHttpClient]:
    """Return a search of a wiki that answers so, and what it was asked."""
    client = RecordedHttpClient(answers if callable(answers) else lambda request: RECORDED / f"{answers}.json")
    search = MediaWikiTextSearch(MediaWikiSettings(base_url=ADDRESS, **settings), FixedServices({HttpClient: client}))
    return search, client


async def results(answers: Any, **options: Any) -> list[Any]:
    search, _ = wiki(answers)
    return await (await search.get_text_search_results("lighthouse", TextSearchOptions(**options))).list()


@pytest.mark.asyncio
async def test_pages_come_in_the_order_of_the_search() -> None:
    found = await results("lighthouse", top=3)
    assert [result.name for result in found] == ["Skerryvane Lighthouse", "Maud Ellering", "Lens of Varnhem"]
    assert found[0].link == "https://wiki.example/wiki/Skerryvane_Lighthouse"


@pytest.mark.asyncio
async def test_the_text_is_the_introduction_and_the_place_found_where_that_is_beyond_it() -> None:
    lighthouse, engineer, lens = await results("lighthouse", top=3)
    assert lighthouse.value == (
        "Skerryvane Lighthouse is a granite tower on the outermost rock of the Vane Skerries. "
        "It was lit for the first time in 1871."
    )
    assert engineer.value == "… is best known for Skerryvane Lighthouse, and for the breakwater of Tarn Haven …"
    assert lens.value == (
        "A lens of Varnhem is a lens as it was ground in the glassworks of Varnhem.\n"
        "It bends the light of a lamp into a beam.\n\n"
        "… rings of prisms. It was made for lighthouses & harbours of the Cold Sound …"
    )


@pytest.mark.asyncio
async def test_records_have_the_parts_and_the_time_of_the_last_edit() -> None:
    search, _ = wiki("lighthouse")
    record = (await (await search.get_search_results("lighthouse", TextSearchOptions(top=3))).list())[2]
    assert record.edited == datetime(2025, 6, 17, 8, 8, 8, tzinfo=UTC)
    assert record.snippet == "rings of prisms. It was made for lighthouses & harbours of the Cold Sound"
    assert record.introduction.startswith("A lens of Varnhem is")


@pytest.mark.asyncio
async def test_the_total_is_the_wikis_and_a_better_spelling_is_told() -> None:
    search, _ = wiki("nothing")
    found = await search.search("lighthose", TextSearchOptions(include_total_count=True))
    assert (await found.list(), found.total_count) == ([], 0)
    assert found.metadata["suggestion"] == "lighthouse"


@pytest.mark.asyncio
async def test_a_wiki_without_introductions_gives_the_places_found_and_says_so() -> None:
    search, _ = wiki("without_extracts")
    found = await search.search("installer")
    assert await found.list() == ["… Run the installer as root, with --prefix <folder> if you like …"]
    assert "extracts" in found.metadata["warnings"]["query"]["warnings"]


@pytest.mark.asyncio
async def test_an_old_wiki_says_nothing_where_there_is_nothing() -> None:
    assert await results("nothing_of_an_old_wiki") == []


@pytest.mark.asyncio
async def test_introductions_that_are_still_to_come_are_not_the_end() -> None:
    first = json.loads((RECORDED / "extracts_to_be_continued.json").read_text())

    def answer(request: HttpRequest) -> Any:
        return first if request.params["gsroffset"] == 0 else {"batchcomplete": True}

    search, client = wiki(answer)
    found = await (await search.search("ferry", TextSearchOptions(top=20))).list()
    assert found == [
        "Tarn Haven is a town.\n\n… The ferry leaves from its east quay …",
        "… The Brill Ferry connects Tarn Haven with Brill …",
    ]
    assert [request.params["gsroffset"] for request in client.requests] == [0, 2]


@pytest.mark.asyncio
async def test_a_page_that_slips_onto_the_next_part_is_given_once() -> None:
    """A wiki leaves out a page that was deleted, and then the parts overlap."""

    def answer(request: HttpRequest) -> Any:
        start, size = int(request.params["gsroffset"]), int(request.params["gsrlimit"])
        numbers = [number for number in range(start, min(start + size, 24)) if number != 4]
        pages = [
            {"title": f"Page {n}", "canonicalurl": f"https://wiki.example/{n}", "index": n + 1, "extract": f"Text {n}."}
            for n in numbers
        ]
        more = {"continue": {"gsroffset": start + size}} if start + size < 24 else {}
        return {"batchcomplete": True, **more, "query": {"pages": pages}}

    found = await results(answer, top=40)
    assert [result.value for result in found] == [f"Text {n}." for n in range(24) if n != 4]


@pytest.mark.asyncio
async def test_who_asks_is_said_in_the_user_agent() -> None:
    search, client = wiki("lighthouse", contact="ann@example.org")
    await search.search("lighthouse")
    assert "(ann@example.org)" in str(client.requests[0].headers["User-Agent"])
    search, client = wiki("lighthouse")
    await search.search("lighthouse")
    assert client.requests[0].headers == {}, "without a contact the HTTP client says who it is"


@pytest.mark.asyncio
@pytest.mark.parametrize("maxlag", [None, 5])
async def test_a_bound_for_the_lag_is_sent_when_it_is_set(maxlag: int | None) -> None:
    search, client = wiki("lighthouse", maxlag=maxlag)
    await search.search("lighthouse")
    assert client.requests[0].params["maxlag"] == maxlag


@pytest.mark.asyncio
async def test_a_namespace_that_is_no_number_is_refused_before_it_is_sent() -> None:
    """The wiki would leave it out and only warn."""
    search, client = wiki("lighthouse")
    with pytest.raises(UnsupportedOption, match="'Talk' for 'namespace'"):
        await search.search("lighthouse", TextSearchOptions(filter=Equal("namespace", "Talk")))
    assert client.requests == []


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("base_url", "en.wikipedia.org/w/api.php"),
        ("base_url", "file:///etc/passwd"),
        ("base_url", "https://wiki.example/w/api.php?action=query"),
        ("contact", "ann@example.org\nX-Other: 1"),
        ("contact", "(ann)"),
        ("maxlag", -1),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(setting: str, value: Any) -> None:
    with pytest.raises(ValueError, match=setting):
        MediaWikiSettings(**{setting: value})
