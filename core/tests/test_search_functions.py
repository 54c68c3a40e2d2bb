"""What an application may change of the functions that a search becomes, and what a model cannot."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from typing import Any, ClassVar

import pytest
from hypothesis import given, strategies as st

from portico._kernel import Kernel
from portico._search.filters import And, AnyOf, Equal, Filter, FilterSupport, Range
from portico._search.functions import SearchParameter, search_plugin
from portico._search.results import (
    SearchCapabilities,
    SearchConnector,
    SearchResults,
    TextSearchOptions,
    TextSearchResult,
    search_method,
)
from portico._types.compiled import Compiled
from portico.errors import ArgumentsInvalid, PorticoError, UnsupportedOption


@dataclass(frozen=True, slots=True)
class Page:
    """A page that was found."""

    title: str
    published: date | None = None


@dataclass(frozen=True, slots=True)
class Story:
    title: str
    told: datetime


NEWS = SearchCapabilities(FilterSupport.fields_of("freshness", offered=("freshness",)))


class Web(SearchConnector[Page]):
    """Remembers what it was asked."""

    name = "web"
    capabilities = SearchCapabilities(
        FilterSupport.fields_of(
            "site", date=("Range",), language=("Equal", "AnyOf"), year=("Equal",), offered=("site",)
        )
    )

    def __init__(self) -> None:
        self.asked: list[tuple[str, TextSearchOptions]] = []

    async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[Page]:
        self.asked.append((query, options))
        return SearchResults([Page(f"{query} {number}", date(2026, 1, number)) for number in (1, 2, 3)])

    def to_text(self, record: Page) -> str:
        return record.title

    def to_result(self, record: Page) -> TextSearchResult:
        return TextSearchResult(record.title, link=f"https://a.example/{record.title}")

    @search_method(capabilities=NEWS)
    async def get_news(self, query: str, options: TextSearchOptions) -> SearchResults[Story]:
        """Find what was in the {papers}."""
        self.asked.append((query, options))
        return SearchResults([Story(f"{query}!", datetime(2026, 2, 3, 4, 5))])

    @property
    def filters(self) -> list[Filter | None]:
        return [options.filter for _, options in self.asked]


@pytest.fixture
def web() -> Web:
    return Web()


def kernel_with(web: Web, **options: Any) -> Kernel:
    return Kernel(plugins=[search_plugin(web, "Web", **options)])


def properties(kernel: Kernel, function: str) -> dict[str, Any]:
    return dict(kernel.function(function).spec.parameters["properties"])


# Which functions there are


async def test_a_further_method_of_the_connector_is_a_function_when_it_is_asked_for(web: Web) -> None:
    kernel = kernel_with(web, functions=("Search", "GetNews"))
    assert list(kernel.functions) == ["Web-Search", "Web-GetNews"]
    assert kernel.function("GetNews").description == "Find what was in the {papers}."
    assert await kernel.invoke_json("GetNews", {"query": "anvil"}) == [
        {"title": "anvil!", "told": "2026-02-03T04:05:00"}
    ]
    assert "GetNews" not in search_plugin(web, "Web")._by_name, "it was not asked for"


def test_by_itself_a_search_is_three_functions_that_say_what_they_do(web: Web) -> None:
    kernel = kernel_with(web)
    assert {name: (function.description, function.tags) for name, function in kernel.functions.items()} == {
        "Web-Search": ("Search Web and return the text of the passages found.", {"results"}),
        "Web-GetTextSearchResults": ("Search Web and return passages with text, name and link.", {"results", "search"}),
        "Web-GetSearchResults": ("Search Web and return its own records.", {"results"}),
    }
    assert kernel.plugins["Web"].description == "Search Web."
    assert properties(kernel, "Search") == {
        "query": {"type": "string", "description": "What to search for."},
        "count": {"type": "integer", "description": "How many results at most.", "default": 2},
        "skip": {"type": "integer", "description": "How many of the best results to leave out.", "default": 0},
        "site": {
            "anyOf": [{"type": "string"}, {"type": "null"}],
            "description": "Only passages whose site is exactly this.",
            "default": None,
        },
    }
    items = {name: kernel.function(name).spec.returns["items"] for name in ("Search", "GetTextSearchResults")}
    assert items["Search"] == {"type": "string"}
    assert set(items["GetTextSearchResults"]["properties"]) == {"value", "name", "link"}


def test_a_source_that_another_one_asks_has_no_function_for_planners(web: Web) -> None:
    kernel = kernel_with(web, asked_by_planners=False)
    assert [function.tags for function in kernel.functions.values()] == [{"results"}] * 3


def test_the_query_of_a_source_that_is_not_local_reaches_out(web: Web) -> None:
    def outside(search: Web) -> bool:
        labels = search_plugin(search, "web")["Search"].labels
        return labels is not None and labels.reaches_out

    here = Web()
    here.capabilities = SearchCapabilities(local=True)  # type: ignore[misc]
    assert outside(web)
    assert not outside(here)


async def test_a_function_may_have_a_name_and_words_of_the_applications_own(web: Web) -> None:
    kernel = kernel_with(
        web,
        description="The web.",
        functions={"find": "GetTextSearchResults"},
        descriptions={"find": "Look it up {here}."},
        parameters={"query": "A few words.", "count": None, "skip": None},
        count=3,
    )
    find = kernel.function("Web-find")
    assert properties(kernel_with(web, parameters={"count": "How many."}, most=5), "Search")["count"] == {
        "type": "integer",
        "description": "How many.",
        "default": 2,
    }
    assert (find.description, kernel.plugins["Web"].description) == ("Look it up {here}.", "The web.")
    assert find.tags == {"results", "search"}, "planners know it by what it does, not by its name"
    assert find.spec.parameters["properties"] == {"query": {"type": "string", "description": "A few words."}}
    assert len(await kernel.invoke_json("Web-find", {"query": "q"})) == 3
    with pytest.raises(ArgumentsInvalid, match="Web-find: count: unknown; the parameters are query"):
        await kernel.invoke_json("Web-find", {"query": "q", "count": 1})


async def test_paging_has_the_applications_defaults_and_bound(web: Web) -> None:
    kernel = kernel_with(web, count=4, skip=1, most=5)
    assert properties(kernel, "Search")["count"]["description"] == "How many results, 1 to 5."
    await kernel.invoke_json("Search", {"query": "q"})
    await kernel.invoke_json("Search", {"query": "q", "count": 5, "skip": 0})
    assert [(options.top, options.skip) for _, options in web.asked] == [(4, 1), (5, 0)]
    with pytest.raises(ArgumentsInvalid, match="count: must be 1 to 5, not 6"):
        await kernel.invoke_json("Search", {"query": "q", "count": 6})


async def test_query_count_and_skip_have_names_and_results_a_description_of_the_applications_own(web: Web) -> None:
    kernel = kernel_with(
        web,
        names={"query": "topic", "count": "how_many", "skip": "offset"},
        parameters={"query": "A topic.", "site": "A site."},
        returns="Titles, best first.",
        most=5,
    )
    words = {name: each["description"] for name, each in properties(kernel, "Search").items()}
    told = "How many results, 1 to 5."
    assert words | {"offset": ""} == {"topic": "A topic.", "how_many": told, "offset": "", "site": "A site."}
    spec = kernel.function("Search").spec
    assert spec.returns == {"type": "array", "items": {"type": "string"}, "description": "Titles, best first."}
    roles = {role: spec.search_parameter(role) for role in ("query", "count", "skip")}
    assert roles == {"query": "topic", "count": "how_many", "skip": "offset"}
    await kernel.invoke_json("Search", {"topic": "q", "how_many": 1, "offset": 2, "site": "a.example"})
    assert web.asked == [("q", TextSearchOptions(1, 2, filter=Equal("site", "a.example")))]
    with pytest.raises(ArgumentsInvalid, match="how_many: must be 1 to 5, not 6"):
        await kernel.invoke_json("Search", {"topic": "q", "how_many": 6})
    with pytest.raises(ArgumentsInvalid, match="topic: missing"):
        await kernel.invoke_json("Search", {"query": "q"})


def test_a_connector_says_what_its_functions_say_and_the_application_says_more(web: Web) -> None:
    class Told(Web):
        descriptions: ClassVar = {"Search": "Find pages.", "GetNews": "Find news."}

    functions = ("Search", "GetTextSearchResults", "GetNews")
    plugin = search_plugin(Told(), "Web", functions=functions, description="Our web.")
    assert [function.description for function in plugin] == [
        "Our web. Find pages.",
        "Our web. Search Web and return passages with text, name and link.",
        "Our web. Find news.",
    ]


THERE_ALREADY = "is there already"


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        ({"count": 0}, "the default of count: must be 1 to 1000, not 0"),
        ({"count": 6, "most": 5}, "the default of count: must be 1 to 5, not 6"),
        ({"skip": -1}, "the default of skip: must be 0 to 1000, not -1"),
        ({"functions": "Find"}, "there is no search function 'Find'. There are: Search, GetTextSearchResults, Get"),
        ({"descriptions": {"x": "?"}}, "'x' is described and is no function of 'Web'. There are: Search, GetText"),
        ({"names": {"site": "x"}}, "'site' cannot be renamed: only query, count, skip"),
        ({"names": {"query": "site"}}, "two parameters are named 'site'"),
        ({"names": {"query": "skip"}}, "two parameters are named 'skip'"),
        ({"parameters": {"query": None}}, f"the parameter 'query' {THERE_ALREADY}"),
        ({"parameters": {"query": SearchParameter("What.")}}, f"the parameter 'query' {THERE_ALREADY}"),
        ({"parameters": {"count": SearchParameter("Many.", field="site")}}, f"the parameter 'count' {THERE_ALREADY}"),
        (
            {"parameters": {"date": SearchParameter("When.", type=list[str], bound="at_least")}},
            "the parameter 'date' takes several values",
        ),
    ],
)
def test_what_makes_no_sense_is_told_when_the_plugin_is_made(web: Web, mistake: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(told)):
        search_plugin(web, "Web", **mistake)


# Records


async def test_records_come_in_the_form_of_their_type(web: Web) -> None:
    kernel = kernel_with(web)
    returns = kernel.function("GetSearchResults").spec.returns
    assert returns["items"]["properties"]["title"] == {"type": "string"}
    assert {"type": "string", "format": "date"} in returns["items"]["properties"]["published"]["anyOf"]
    records = await kernel.invoke_json("GetSearchResults", {"query": "q", "count": 1})
    assert records == [{"title": "q 1", "published": "2026-01-01"}]
    json.dumps(records)


async def test_a_codec_of_the_kernel_writes_records_of_its_kind() -> None:
    class Odd:
        pass

    class OddCodec:
        name = "odd"

        def compile(self, hint: object, inner: Callable[[object], Compiled]) -> Compiled | None:
            return Compiled({"const": "odd"}, lambda value: Odd(), lambda value: "odd") if hint is Odd else None

    class Odds(SearchConnector[Odd]):
        name = "odds"

        async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[Odd]:
            return SearchResults([Odd()])

        def to_text(self, record: Odd) -> str:
            return "odd"

        def to_result(self, record: Odd) -> TextSearchResult:
            return TextSearchResult("odd")

    typed = Kernel(plugins=[search_plugin(Odds(), "Odds", codecs=[OddCodec()])])
    assert typed.function("GetSearchResults").spec.returns["items"] == {"const": "odd"}
    assert await typed.invoke_json("GetSearchResults", {"query": "q"}) == ["odd"]
    odds = Odds()
    odds.record_type = Any
    untold = Kernel(plugins=[search_plugin(odds, "Odds", codecs=[OddCodec()])])
    assert await untold.invoke_json("GetSearchResults", {"query": "q"}) == ["odd"]
    untyped = search_plugin(Odds(), "Odds")
    assert untyped["GetSearchResults"].spec.returns == {"type": "array"}, "a type without a schema is no reason to stop"


async def test_a_search_that_does_not_tell_the_type_of_its_records_is_three_functions_too(web: Web) -> None:
    class Bare:
        name = "bare"
        capabilities = web.capabilities
        index = None
        search = web.search
        get_text_search_results = web.get_text_search_results
        get_search_results = web.get_search_results

    kernel = Kernel(plugins=[search_plugin(Bare(), "Web")])
    assert kernel.function("GetSearchResults").spec.returns == {"type": "array"}
    assert (await kernel.invoke_json("GetSearchResults", {"query": "q"}))[0]["published"] == "2026-01-01"


# Parameters that become filters


class Tongue(Enum):
    ENGLISH = "en"
    GERMAN = "de"


@pytest.mark.parametrize(
    ("parameter", "given", "filter"),
    [
        (SearchParameter("Which site.", field="site"), "a.example", Equal("site", "a.example")),
        (SearchParameter("In which.", field="language", values=("en", "de")), "de", Equal("language", "de")),
        (SearchParameter("In which.", field="language", type=Tongue), "de", Equal("language", "de")),
        (
            SearchParameter("In which.", field="language", type=list[str]),
            ["de", "en", "de"],
            AnyOf("language", ("de", "en")),
        ),
        (
            SearchParameter("In which.", field="language", type=list[str], values=("en", "de")),
            ["de"],
            AnyOf("language", ("de",)),
        ),
        (
            SearchParameter("Since when.", field="date", type=date, bound="at_least"),
            "2026-01-02",
            Range("date", "2026-01-02"),
        ),
        (
            SearchParameter("Until when.", field="date", type=date, bound="at_most"),
            "2026-01-02",
            Range("date", at_most="2026-01-02"),
        ),
        (SearchParameter("Of which year.", field="year", type=int), 2026, Equal("year", 2026)),
        (SearchParameter("Of which year.", field="year", type=int), "2026", Equal("year", 2026)),
        (SearchParameter("In which.", field="language", default="en"), None, Equal("language", "en")),
        (SearchParameter("In which.", field="language", default="en"), "de", Equal("language", "de")),
        (SearchParameter("Which site.", field="site"), None, None),
        (SearchParameter("Which site.", field="site"), " ", None),
        (SearchParameter("In which.", field="language", values=("en", "de")), "", None),
        (
            SearchParameter("In which.", field="language", values=("en", "de"), default="de"),
            "",
            Equal("language", "de"),
        ),
        (SearchParameter("Of which year.", field="year", type=int), "", None),
        (SearchParameter("In which.", field="language", type=list[str]), "", None),
        (SearchParameter("In which.", field="language", type=list[str]), ["", " "], None),
        (SearchParameter("In which.", field="language", type=list[str]), [], None),
    ],
)
async def test_what_a_model_gives_becomes_a_filter_on_the_field(
    web: Web, parameter: SearchParameter, given: Any, filter: Filter | None
) -> None:
    kernel = kernel_with(web, parameters={"chosen": parameter})
    arguments = {"query": "q"} if given is None else {"query": "q", "chosen": given}
    await kernel.invoke_json("Search", arguments, lenient=True)
    assert web.filters == [filter]


async def test_values_that_are_not_among_those_declared_are_told_to_the_model(web: Web) -> None:
    parameter = SearchParameter("In which.", values=("en", "de"))
    kernel = kernel_with(web, parameters={"language": parameter})
    schema = properties(kernel, "Search")["language"]
    assert {"enum": ["en", "de"]} in schema["anyOf"]
    with pytest.raises(ArgumentsInvalid, match="language"):
        await kernel.invoke_json("Search", {"query": "q", "language": "fr"})
    assert web.asked == []


async def test_a_required_parameter_must_be_given_and_must_say_something(web: Web) -> None:
    kernel = kernel_with(web, parameters={"site": SearchParameter("Which site.", required=True)})
    assert kernel.function("Search").spec.parameters["required"] == ["query", "site"]
    for arguments, fault in (({}, "site: missing"), ({"site": ""}, "site: must not be empty")):
        with pytest.raises(ArgumentsInvalid, match=fault):
            await kernel.invoke_json("Search", {"query": "q", **arguments})
    assert web.asked == []


async def test_python_values_are_taken_as_they_are(web: Web) -> None:
    since = SearchParameter("Since when.", field="date", type=date, bound="at_least")
    kernel = kernel_with(web, parameters={"since": since, "language": SearchParameter("In which.", type=list[str])})
    await kernel.invoke("Search", query="q", since=date(2026, 1, 2), language="de")
    await kernel.invoke("Search", query="q", since="2026-01-02", language=("de",))
    expected = And((Range("date", at_least="2026-01-02"), AnyOf("language", ("de",))))
    assert web.filters == [expected, expected]
    with pytest.raises(TypeError, match=r"^Web-Search has no parameter sight, sound$"):
        await kernel.invoke("Search", query="q", sound="loud", sight="a.example")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"colour": "Which."}, r"'web' cannot filter by 'colour'.*site \(Equal\)"),
        ({"sight": SearchParameter("Which.", field="sites")}, "cannot filter by 'sites'"),
        ({"site": SearchParameter("Which.", type=list[str])}, "cannot apply AnyOf to 'site'"),
        ({"date": "When."}, "cannot apply Equal to 'date'"),
        ({"site": SearchParameter("Which.", bound="at_most")}, "cannot apply Range to 'site'"),
    ],
)
def test_a_parameter_that_the_source_cannot_filter_by_is_refused_when_the_plugin_is_made(
    web: Web, parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(UnsupportedOption, match=message):
        search_plugin(web, "Web", parameters=parameters)


async def test_a_method_with_fields_of_its_own_offers_and_takes_those(web: Web) -> None:
    kernel = kernel_with(web, functions=("Search", "GetNews"))
    assert set(properties(kernel, "Search")) == {"query", "count", "skip", "site"}
    assert set(properties(kernel, "GetNews")) == {"query", "count", "skip", "freshness"}
    await kernel.invoke_json("GetNews", {"query": "q", "freshness": "Day"})
    assert web.filters == [Equal("freshness", "Day")]
    for function, field, source in (("GetNews", "site", "'web' (GetNews)"), ("Search", "freshness", "'web'")):
        told = f"Text search {source} cannot filter by '{field}'"
        with pytest.raises(UnsupportedOption, match="^" + re.escape(told)):
            search_plugin(web, "Web", functions=(function,), parameters={field: "Which."})
    with pytest.raises(UnsupportedOption, match="cannot filter by 'site'"):
        await web.get_news("q", TextSearchOptions(filter=Equal("site", "a")))


# The fixed filter


async def test_a_model_narrows_the_fixed_filter_and_cannot_replace_it(web: Web) -> None:
    fixed = Equal("site", "a.example")
    kernel = kernel_with(web, filter=fixed)
    await kernel.invoke_json("Search", {"query": "q"})
    await kernel.invoke_json("Search", {"query": "q", "site": "b.example"})
    assert web.filters == [fixed, And((fixed, Equal("site", "b.example")))]


class Empty(Web):
    """Finds nothing."""

    async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[Page]:
        self.asked.append((query, options))
        return SearchResults([])


@pytest.mark.parametrize("fixed", [None, Equal("site", "a.example"), AnyOf("language", ()), AnyOf("language", ("de",))])
async def test_nothing_found_without_a_contradiction_is_no_results(fixed: Filter | None) -> None:
    kernel = kernel_with(Empty(), filter=fixed)
    assert await kernel.invoke_json("Search", {"query": "q", "site": "a.example"}) == []


async def test_a_source_whose_fields_hold_several_values_may_find_what_looks_like_a_contradiction(web: Web) -> None:
    kernel = kernel_with(web, filter=Equal("site", "a.example"))
    assert len(await kernel.invoke_json("Search", {"query": "q", "site": "b.example"})) == 2


async def test_how_long_a_query_may_be_is_told_to_a_model_unless_the_application_has_words_of_its_own(web: Web) -> None:
    web.capabilities = SearchCapabilities(query_characters=400, query_words=50)
    told = properties(kernel_with(web), "Search")["query"]["description"]
    assert told == "What to search for: at most 400 characters and 50 words."
    own = properties(kernel_with(web, parameters={"query": "Words."}), "Search")["query"]["description"]
    assert own == "Words."


def test_a_parameter_beside_a_fixed_filter_needs_a_source_that_combines(web: Web) -> None:
    web.capabilities = SearchCapabilities(FilterSupport({"site": frozenset({"Equal"})}, frozenset(), ("site",)))
    search_plugin(web, "Web")
    search_plugin(web, "Web", filter=Equal("site", "a"), parameters={})
    with pytest.raises(UnsupportedOption, match="cannot combine filters with And"):
        search_plugin(web, "Web", filter=Equal("site", "a"))


# As a model calls it


@pytest.mark.parametrize("query", ["", " \n\t", "\u2003"])
async def test_a_blank_query_gives_nothing_and_asks_nobody(query: str) -> None:
    class Eager(Web):
        async def search(self, query: str, options: TextSearchOptions | None = None) -> SearchResults[str]:
            raise AssertionError("it was asked")

    assert await kernel_with(Eager()).invoke_json("Search", {"query": query}) == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
PARAMETERS = {
    "site": SearchParameter("Which."),
    "tongues": SearchParameter("In which.", field="language", type=list[str]),
    "since": SearchParameter("When.", field="date", type=date, bound="at_least"),
    "year": SearchParameter("Which.", type=int),
}
arguments = st.dictionaries(st.sampled_from(["query", "count", "skip", *PARAMETERS, "other"]), json_values)


@pytest.mark.fuzz
@given(arguments, st.booleans())
def test_whatever_a_model_writes_gives_results_under_the_fixed_filter_or_an_error(
    written: dict[str, Any], lenient: bool
) -> None:
    web, fixed = Web(), Equal("site", "a.example")
    kernel = kernel_with(web, filter=fixed, parameters=PARAMETERS)
    try:
        found = asyncio.run(kernel.invoke_json("GetSearchResults", {"query": "q", **written}, lenient=lenient))
    except PorticoError as error:
        assert isinstance(error, ArgumentsInvalid)
        return
    assert isinstance(found, list)
    for filter in web.filters:
        assert filter == fixed or (isinstance(filter, And) and filter.parts[0] == fixed), f"{filter} lacks {fixed}"
