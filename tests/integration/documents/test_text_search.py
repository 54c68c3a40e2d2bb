"""The samples of the design of text search, each as a user writes it, before the blank line; then what must hold."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import date
from typing import Any

import pytest
from tests.support.replayed_model import ReplayedModel

from portico import (
    Citations,
    Equal,
    Function,
    Kernel,
    SearchConnector,
    SearchParameter,
    SearchResults,
    TextSearchOptions,
    TextSearchResult,
    ToolCall,
    ToolResult,
    function,
    search_plugin,
)
from portico.errors import ServiceError
from portico.ports import ChatService
from portico.search import search_method
from portico_bing.search import BingPage, BingTextSearch
from portico_google.search import GoogleTextSearch
from portico_openai.chat import OpenAIChat
from portico_templates.handlebars.language import HandlebarsTemplates
from portico_testkit.recorded_server import RecordedServer
from portico_web.pages.config import WebPagesSettings
from portico_web.pages.reader import FullPages, WebPagesPageReader

QUERY = "What is the Semantic Kernel?"
CITED = f"{QUERY} Include citations to the relevant information where it is referenced in the response."
SNIPPET = "Semantic Kernel is a lightweight, open-source development kit"


@pytest.fixture
def kernel(chat: OpenAIChat) -> Kernel:
    return Kernel({ChatService: chat}, template_languages=[HandlebarsTemplates()])


@pytest.fixture
async def reader() -> AsyncIterator[WebPagesPageReader]:
    made = WebPagesPageReader(WebPagesSettings(allow=("127.0.0.1",)))
    yield made
    await made.aclose()


def prompt(model: ReplayedModel) -> str:
    """Return what the model was asked."""
    (body,) = model.asked
    return str(body["messages"][-1]["content"])


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall("call-1", name, json.dumps(arguments))


def offered(model: ReplayedModel, number: int = 0) -> dict[str, Any]:
    """Return the only tool that the model was offered."""
    (tool,) = model.asked[number]["tools"]
    return dict(tool["function"])


async def test_snippets_ground_a_prompt(kernel: Kernel, web: BingTextSearch, model: ReplayedModel) -> None:
    model.sayings = ["A development kit."]
    kernel.add_plugin(search_plugin(web, "SearchPlugin"))
    print(await kernel.invoke_prompt("{{SearchPlugin.Search $query}}. {{$query}}", {"query": QUERY}))

    assert SNIPPET in prompt(model)
    assert prompt(model).endswith(f". {QUERY}")


async def test_names_values_and_links_ground_a_prompt(
    kernel: Kernel, web: BingTextSearch, model: ReplayedModel
) -> None:
    model.sayings = ["A development kit [1]."]
    kernel.add_plugin(search_plugin(web, "SearchPlugin"))
    template = """
{{#each (SearchPlugin-GetTextSearchResults query)}}
  Name: {{name}}
  Value: {{value}}
  Link: {{link}}
{{/each}}
{{query}} Include citations to the relevant information where it is referenced in the response.
"""
    print(await kernel.invoke_prompt(template, {"query": QUERY}, language="handlebars"))

    assert "Name: Introduction to Semantic Kernel | Microsoft Learn\n" in prompt(model)
    assert f"Value: {SNIPPET}" in prompt(model)
    assert "/overview/\n" in prompt(model)


async def test_the_service_s_own_records_ground_a_prompt_with_dates(
    kernel: Kernel, web: BingTextSearch, model: ReplayedModel
) -> None:
    model.sayings = ["A development kit, 2024-08-22."]
    kernel.add_plugin(search_plugin(web, "SearchPlugin", functions={"GetBingWebPages": "GetSearchResults"}))
    template = """
{{#each (SearchPlugin-GetBingWebPages query)}}
  Name: {{name}}
  Snippet: {{snippet}}
  Link: {{display_url}}
  Date Last Crawled: {{date_last_crawled}}
{{/each}}
{{query}} Include citations to and the date of the relevant information where it is referenced in the response.
"""
    print(await kernel.invoke_prompt(template, {"query": QUERY}, language="handlebars"))

    assert "Date Last Crawled: 2024-08-22T02:09:00" in prompt(model)
    assert "Link: https://learn.microsoft.com/en-us/semantic-kernel/overview\n" in prompt(model)


FULL = """
{{#each (SearchPlugin-GetFullWebPages query)}}
  Name: {{name}}
  Value: {{value}}
  Link: {{link}}
{{/each}}
{{query}} Include citations to the relevant information where it is referenced in the response.
"""


async def test_full_pages_ground_a_prompt_and_a_page_that_is_gone_leaves_its_snippet(
    kernel: Kernel, web: BingTextSearch, model: ReplayedModel, reader: WebPagesPageReader
) -> None:
    model.sayings = ["The kernel is the centre."]
    full = search_plugin(FullPages(web, reader), "SearchPlugin", functions={"GetFullWebPages": "GetTextSearchResults"})
    kernel.add_plugin(full)
    print(await kernel.invoke_prompt(FULL, {"query": QUERY}, language="handlebars"))

    assert "The kernel is the centre: it holds the services" in prompt(model)
    assert "Menu" not in prompt(model)
    assert "Value: Semantic Kernel leverages function calling" in prompt(model)


async def test_a_function_of_one_s_own_reads_full_pages(
    kernel: Kernel, web: BingTextSearch, model: ReplayedModel, reader: WebPagesPageReader
) -> None:
    @function(name="GetFullWebPages")
    async def full(query: str, count: int = 2, skip: int = 0) -> list[TextSearchResult]:
        """Perform a search for content related to the specified query.

        The search will return the name, full web page content and link for the related content.

        Args:
            query: What to search for
            count: Number of results
            skip: Number of results to skip
        """
        found = []
        async for page in await web.get_search_results(query, TextSearchOptions(top=count, skip=skip)):
            try:
                text = (await reader.read(page.url or "")).text
            except ServiceError:
                text = page.snippet
            found.append(TextSearchResult(text, page.name, page.url))
        return found

    model.sayings = ["The kernel is the centre."]
    kernel.add_function(Function.of(full, plugin="SearchPlugin"))
    await kernel.invoke_prompt(FULL, {"query": QUERY}, language="handlebars")
    assert "The kernel is the centre: it holds the services" in prompt(model)
    assert "Value: Semantic Kernel leverages function calling" in prompt(model)
    assert kernel.function("SearchPlugin-GetFullWebPages").spec.description.endswith("link for the related content.")


async def test_a_model_calls_the_search(kernel: Kernel, web: BingTextSearch, model: ReplayedModel) -> None:
    model.sayings = [call("SearchPlugin-Search", query="Semantic Kernel"), "A development kit."]
    kernel.add_plugin(search_plugin(web, "SearchPlugin", functions=["Search"]))
    print(await kernel.invoke_prompt(QUERY, tool_choice="auto"))

    assert offered(model)["name"] == "SearchPlugin-Search"
    assert SNIPPET in model.asked[1]["messages"][-1]["content"]


async def test_a_model_calls_the_search_and_cites(kernel: Kernel, web: BingTextSearch, model: ReplayedModel) -> None:
    answer = "A kit ([here](https://devblogs.microsoft.com/semantic-kernel/hello-world/), [there](https://x.example/))."
    model.sayings = [call("SearchPlugin-GetTextSearchResults", query="Semantic Kernel", count=4), answer]
    kernel.add_plugin(search_plugin(web, "SearchPlugin", functions=["GetTextSearchResults"]))
    turn = await kernel.complete(CITED, tool_choice="auto")

    [result] = turn.messages[1].content
    assert isinstance(result, ToolResult)
    found = [TextSearchResult(**each) for each in json.loads(result.content)]
    check = Citations.check(turn.value, Citations.number(found))
    assert [each.number for each in check.cited] == [4]
    assert check.unbacked == ("https://x.example/",)


async def test_a_search_is_restricted_to_a_site_and_the_model_is_told_what_it_is_for(
    kernel: Kernel, web: BingTextSearch, model: ReplayedModel, service: RecordedServer
) -> None:
    model.sayings = [call("SearchPlugin-GetTextSearchResults", query="Semantic Kernel"), "A kit."]
    site = Equal("site", "devblogs.microsoft.com")
    words = "Search Microsoft Dev Blogs site"
    kernel.add_plugin(search_plugin(web, "SearchPlugin", description=words, filter=site, parameters={}))
    print(await kernel.invoke_prompt(CITED, tool_choice="auto"))

    tools = [tool["function"] for tool in model.asked[0]["tools"]]
    assert all(tool["description"].startswith("Search Microsoft Dev Blogs site") for tool in tools)
    assert all(list(tool["parameters"]["properties"]) == ["query", "count", "skip"] for tool in tools)
    assert service.exchanges[-1].parameters["q"] == "Semantic Kernel site:devblogs.microsoft.com"


async def test_the_model_chooses_the_site(
    kernel: Kernel, web: BingTextSearch, model: ReplayedModel, service: RecordedServer
) -> None:
    model.sayings = [call("SearchPlugin-Search", query="Semantic Kernel", site="devblogs.microsoft.com"), "A kit."]
    site = {"site": "Only return results from this domain"}
    kernel.add_plugin(search_plugin(web, "SearchPlugin", functions=["Search"], parameters=site))
    print(await kernel.invoke_prompt(f"{QUERY} Only include results from devblogs.microsoft.com.", tool_choice="auto"))

    assert offered(model)["parameters"]["properties"]["site"]["description"] == "Only return results from this domain"
    assert service.exchanges[-1].parameters["q"] == "Semantic Kernel site:devblogs.microsoft.com"
    await kernel.invoke("SearchPlugin-Search", query="Semantic Kernel")
    assert service.exchanges[-1].parameters["q"] == "Semantic Kernel"


async def test_the_abstraction_has_texts_results_and_the_records_of_a_service_by_type(web: BingTextSearch) -> None:
    texts = await (await web.search(QUERY, TextSearchOptions(top=1))).list()
    results = await (await web.get_text_search_results(QUERY, TextSearchOptions(top=1))).list()
    pages = await (await web.get_search_results(QUERY, TextSearchOptions(top=1))).list()

    assert isinstance(pages[0], BingPage)
    assert texts == [pages[0].snippet]
    assert results == [TextSearchResult(pages[0].snippet, pages[0].name, pages[0].url)]


async def test_mappers_are_given_when_the_search_is_made(web: BingTextSearch) -> None:
    dated = web.use_mappers(to_text=lambda page: f"{page.date_last_crawled:%Y-%m-%d} {page.snippet}")

    assert (await (await dated.search(QUERY)).list())[0].startswith(f"2024-08-22 {SNIPPET}")


async def test_google_is_asked_in_the_same_way(kernel: Kernel, service: RecordedServer) -> None:
    google = GoogleTextSearch(api_key="recorded", search_engine_id="0123:abc", base_url=f"{service.url}/google")
    kernel.add_plugin(search_plugin(google, "SearchPlugin", filter=Equal("site", "learn.microsoft.com")))
    results = await kernel.invoke("SearchPlugin-GetTextSearchResults", query=QUERY)

    assert results[0].name == "Introduction to Semantic Kernel | Microsoft Learn"
    assert service.exchanges[-1].parameters["siteSearch"] == "learn.microsoft.com"
    await google.aclose()


class Shelf(SearchConnector[dict[str, str]]):
    """A search of one's own, with records of any kind and a method more than the abstraction has."""

    name = "shelf"

    async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[dict[str, str]]:
        return SearchResults([{"title": f"All about {query}"}])

    def to_text(self, record: dict[str, str]) -> str:
        return record["title"]

    def to_result(self, record: dict[str, str]) -> TextSearchResult:
        return TextSearchResult(record["title"])

    @search_method
    async def get_covers(self, query: str, options: TextSearchOptions) -> SearchResults[str]:
        """Find pictures of covers."""
        return SearchResults([f"{query}.png"])


async def test_an_implementation_may_have_further_methods_that_become_functions() -> None:
    plugin = search_plugin(Shelf(), "Books", functions=["Search", "GetCovers"])

    kernel = Kernel(plugins=[plugin])
    assert await kernel.invoke_json("Books-Search", {"query": "ports"}) == ["All about ports"]
    assert await kernel.invoke_json("Books-GetCovers", {"query": "ports"}) == ["ports.png"]
    assert kernel.function("Books-GetCovers").spec.description == "Find pictures of covers."


def test_every_word_and_every_filter_of_a_search_function_is_the_application_s(web: BingTextSearch) -> None:
    since = SearchParameter("The first day.", field="date", type=date, bound="at_least")
    words = {"query": "A few keywords.", "count": None, "skip": None, "since": since}
    plugin = search_plugin(
        web, "News", functions={"find": "Search"}, descriptions={"find": "Find what is new."}, parameters=words
    )

    spec = plugin["find"].spec
    assert (spec.name, spec.description) == ("News-find", "Find what is new.")
    assert {name: each["description"] for name, each in spec.parameters["properties"].items()} == {
        "query": "A few keywords.",
        "since": "The first day.",
    }
