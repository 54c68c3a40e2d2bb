"""What `[search.NAME]` says of the functions of a source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import portico_host
from portico import And, AnyOf, Equal, Not, Range, TextSearchOptions
from portico.errors import ArgumentsInvalid, ConfigurationError
from portico.ports import TextSearch

PLUGIN = """
from portico.plugins import Registration

def portico_text_searches():
    def of(name, **more):
        return Registration(name=name, factory="portico_pages.search:Pages", summary="Search pages.", **more)
    return [of("pages"), of("counting", settings="portico_pages.search:Settings")]
"""

SEARCH = """
from dataclasses import dataclass, field

from portico import SearchCapabilities, SearchConnector, SearchResults, TextSearchResult
from portico.search import FilterSupport, search_method

@dataclass(frozen=True)
class Settings:
    count: str = field(default="none", metadata={"doc": "What to count."})

class Pages(SearchConnector[str]):
    name = "pages"
    descriptions = {"Search": "Find a page."}
    capabilities = SearchCapabilities(
        FilterSupport.fields_of(
            "site", language=("Equal", "AnyOf", "Not"), year=("Range",), date=("Range",), offered=("site",)
        )
    )
    def __init__(self, settings, services):
        self.settings, self.asked = settings, []
    async def fetch(self, query, options):
        self.asked.append(options)
        return SearchResults([query] * options.top)
    @search_method
    async def get_news(self, query, options):
        return await self.fetch(query, options)
    def to_text(self, record):
        return record
    def to_result(self, record):
        return TextSearchResult(record)
"""


@pytest.fixture
def write(site: Any, work: Path) -> Any:
    site.install("portico-pages", PLUGIN, {"search": SEARCH})
    return (work / "portico.toml").write_text


async def test_a_source_has_its_words_filter_count_and_functions_from_the_file(write: Any) -> None:
    write(
        '[search.blogs]\nuse = "pages"\ndescription = "Posts of the team."\nfunctions = ["GetTextSearchResults"]\n'
        'count = 3\nfilter = { site = "blogs.example", language = ["en", "de"], year = { at_least = 2020 } }\n'
        "[search.blogs.parameters]\nquery = 'A few words.'\ncount = false\nskip = false\n"
        "since = { description = 'The first day.', field = 'date', type = 'date', bound = 'at_least' }\n"
    )
    async with portico_host.open() as kernel:
        assert [function.name for function in kernel.plugins["blogs"]] == ["GetTextSearchResults"], (
            "nothing unrestricted stands beside it"
        )
        function = kernel.function("blogs-GetTextSearchResults")
        assert function.description.startswith("Posts of the team. ")
        assert kernel.plugins["blogs"].description == "Posts of the team."
        words = {name: each["description"] for name, each in function.spec.parameters["properties"].items()}
        assert words == {"query": "A few words.", "since": "The first day."}
        assert len(await kernel.invoke_json(function, {"query": "q", "since": "2026-01-31"})) == 3
        fixed = And((Equal("site", "blogs.example"), AnyOf("language", ("en", "de")), Range("year", at_least=2020)))
        (asked,) = _search(kernel, "blogs").asked
        assert asked.filter == And((fixed, Range("date", at_least="2026-01-31")))


async def test_the_filter_of_the_file_holds_wherever_the_source_is_reached(write: Any) -> None:
    write(
        '[search.web]\nuse = "pages"\nfilter = { site = "a.example", language = { is_not = "en" } }\n'
        '[search.web.functions.news]\nuse = "GetNews"\nfilter = { language = ["de", "fr"] }\n'
        '[search.all]\nuse = "fused"\nsources = ["web"]\n'
    )
    fixed = And((Equal("site", "a.example"), Not(Equal("language", "en"))))
    async with portico_host.open() as kernel:
        web = kernel.service(TextSearch, "web")
        await (await web.search("q")).list()
        await (await web.search("q", TextSearchOptions(filter=Range("year", above=2020)))).list()
        await kernel.invoke_json("all-Search", {"query": "q"})
        await kernel.invoke_json("web-news", {"query": "q"})
        assert [options.filter for options in _search(kernel, "web").asked] == [
            fixed,
            And((fixed, Range("year", above=2020))),
            fixed,
            And((fixed, AnyOf("language", ("de", "fr")))),
        ]
    async with portico_host.load().services(["web"]) as services:
        await (await services.get(TextSearch, "web").search("q")).list()
        assert services.get(TextSearch, "web").asked[0].filter == fixed  # type: ignore[attr-defined]


async def test_several_shaped_functions_of_one_source_stand_in_place_of_the_unshaped_ones(write: Any) -> None:
    write(
        '[search.web]\nuse = "pages"\ndescription = "The web."\nfilter = { language = "en" }\ncount = 4\nmost = 5\n'
        '[search.web.functions.blogs]\nuse = "Search"\ndescription = "Find posts."\n'
        "filter = { site = 'blogs.example' }\ncount = 1\n[search.web.functions.pages]\n"
    )
    async with portico_host.open() as kernel:
        assert [function.name for function in kernel.plugins["web"]] == ["blogs", "pages"]
        assert kernel.function("web-blogs").description == "Find posts."
        assert [spec.name for spec in kernel.specs.values() if spec.is_search] == ["web-pages"]
        assert await kernel.invoke_json("web-blogs", {"query": "q"}) == ["q"]
        assert len(await kernel.invoke_json("web-pages", {"query": "q"})) == 4
        assert [options.filter for options in _search(kernel, "web").asked] == [
            And((Equal("language", "en"), Equal("site", "blogs.example"))),
            Equal("language", "en"),
        ]
        with pytest.raises(ArgumentsInvalid, match="count: must be 1 to 5"):
            await kernel.invoke_json("web-blogs", {"query": "q", "count": 6})


async def test_parameters_have_other_names_and_results_a_description_from_the_file(write: Any) -> None:
    write(
        '[search.web]\nuse = "pages"\nnames = { query = "topic", count = "how_many" }\nreturns = "Pages, best first."\n'
        '[search.web.functions.find]\nnames = { query = "words" }\n[search.web.functions.look]\n'
    )
    async with portico_host.open() as kernel:
        found = {each.name: list(each.spec.parameters["properties"]) for each in kernel.plugins["web"]}
        assert found == {"find": ["words", "count", "skip", "site"], "look": ["topic", "how_many", "skip", "site"]}
        assert kernel.function("web-look").spec.returns["description"] == "Pages, best first."
        assert await kernel.invoke_json("web-look", {"topic": "q", "how_many": 1}) == [
            {"value": "q", "name": None, "link": None}
        ]


async def test_without_a_description_functions_say_the_connectors_words_or_the_registrations_summary(
    write: Any,
) -> None:
    write('[search.web]\nuse = "pages"\nfunctions = ["Search", "GetTextSearchResults"]\n')
    async with portico_host.open() as kernel:
        assert [function.description for function in kernel.plugins["web"]] == [
            "Find a page.",
            "Search pages. Search web and return passages with text, name and link.",
        ]
        assert kernel.plugins["web"].description == "Search pages."


async def test_a_setting_of_the_package_wins_over_the_hosts_key_of_that_name(write: Any) -> None:
    write('[search.web]\nuse = "counting"\ncount = "words"\nfunctions = ["Search"]\n')
    async with portico_host.open() as kernel:
        assert _search(kernel, "web").settings.count == "words"
        assert list(kernel.functions) == ["web-Search"]
        assert len(await kernel.invoke_json("web-Search", {"query": "q"})) == 2


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("descripton = 'x'", "search.web.descripton: is not a setting here. Nearest: description"),
        ("count = 'x'\nmany = 3", "search.web.count: expected an integer"),
        ("[search.web.functions.a]\nuse = 3", "search.web.functions.a.use: expected a string, got 3"),
        ("[search.web.filter]\nyear = { from = 3 }", "search.web.filter.year.from: is not a setting here"),
        ("filter = { author = 'x' }", "search.web.filter: Text search 'web' cannot filter by 'author'"),
        ("filter = { year = { is_not = 3 } }", "search.web.filter: Text search 'web' cannot combine filters with Not"),
        ("filter = { year = {} }", "search.web.filter: a Range needs at_least, at_most, above or below"),
        (
            "[search.web.functions.a]\nfilter = { author = 'x' }",
            "search.web.functions.a: Text search 'web' cannot filter by 'author'",
        ),
        ("names = { topic = 'query' }", "search.web: 'topic' cannot be renamed: only query, count, skip"),
        ("functions = ['Find']", "search.web: there is no search function 'Find'"),
        ("count = 0", "search.web: the default of count: must be 1 to 1000, not 0"),
    ],
)
async def test_a_mistake_is_told_with_its_key(write: Any, lines: str, told: str) -> None:
    use = "counting" if "descripton" in lines else "pages"
    write(f'[search.web]\nuse = "{use}"\n{lines}\n')
    with pytest.raises(ConfigurationError) as caught:
        async with portico_host.open():
            pass
    assert told in str(caught.value)
    problem = next(each for each in portico_host.diagnose().problems if each.key[:2] == ("search", "web"))
    assert told.partition(" ")[0] == f"{problem.subject}:"
    assert problem.message in str(caught.value)


async def test_the_shape_holds_for_an_instance_in_place_of_the_source(write: Any) -> None:
    write('[search.web]\nuse = "pages"\n')
    async with portico_host.open() as kernel:
        own = _search(kernel, "web")
    write('[search.web]\nuse = "pages"\nfunctions = ["Search"]\nfilter = { site = "a.example" }\n')
    async with portico_host.open(services={(TextSearch, "web"): own, (TextSearch, "other"): own}) as kernel:
        assert [name for name in kernel.functions if name.startswith("web-")] == ["web-Search"]
        await kernel.invoke_json("web-Search", {"query": "q"})
        assert own.asked[-1].filter == Equal("site", "a.example")
        assert "other-GetSearchResults" in kernel.functions


def test_the_shape_is_shown_with_the_settings(write: Any) -> None:
    write('[search.web]\nuse = "pages"\ncount = 3\nfilter = { site = "a.example" }\n')
    shown = portico_host.load().redacted()
    assert shown["search.web.count"]["value"] == 3
    assert shown["search.web.filter"]["value"] == {"site": "a.example"}


def _search(kernel: Any, name: str) -> Any:
    return kernel.services.get(TextSearch, name)
