"""Services on the web as the pages of the documentation use them: recorded answers, from a server on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from portico_testkit.recorded_server import RecordedAnswer, RecordedServer

__all__ = ["recorded_services"]

CONNECTORS = Path(__file__).parents[2] / "connectors"
# By page: the connector with the path of its address, and for each path below it the recorded answer.

BING = ("bing/v7.0", {"/search": "what_is_the_semantic_kernel.json", "/news/search": "news.json"})
SEARCHES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "ground-prompts.md": BING,
    "let-a-model-search.md": BING,
    "search-with-bing.md": BING,
    "search-with-brave.md": (
        "brave/res/v1",
        {"/web/search": "brave_what_is_the_semantic_kernel.json", "/news/search": "brave_news.json"},
    ),
    "search-with-google.md": ("google/customsearch/v1", {"": "what_is_the_semantic_kernel.json"}),
    "search-with-mediawiki.md": ("mediawiki/w/api.php", {"": "lighthouse.json"}),
    "search-with-searxng.md": ("searxng", {"/search": "general.json"}),
    "search-with-tavily.md": ("tavily", {"/search": "tavily_what_is_the_semantic_kernel.json"}),
}
# One page reads what its results link to.
READING = "ground-prompts.md"
LINKED = "https://learn.microsoft.com/en-us/semantic-kernel"
PAGE = """<html><head><title>Semantic Kernel</title></head><body><article><h1>Introduction</h1>
<p>Semantic Kernel is a development kit for building agents. It connects models with functions of an application.</p>
<p>The kernel is the centre: it holds the services and the functions that run when an agent needs them, and each of
them can be replaced. It works with several programming languages and with the models of many makers.</p>
</article></body></html>"""
KEYS = ("BRAVE_API_KEY", "TAVILY_API_KEY", "GOOGLE_API_KEY", "SEARCH_KEY")


@contextmanager
def recorded_services(page: str) -> Iterator[dict[str, str]]:
    """Give the variables that a reader of a page has set, with the address of a recorded service among them."""
    if page not in SEARCHES:
        yield {}
        return
    place, answers = SEARCHES[page]
    recorded = CONNECTORS / place.partition("/")[0] / "tests" / "recorded"
    with RecordedServer({"/overview/": RecordedAnswer(PAGE.encode(), "text/html")}) as server:
        address = f"{server.url}/{place}"
        for path, file in answers.items():
            text = (recorded / file).read_text("utf-8")
            if page == READING:
                text = text.replace(LINKED, server.url)
            server.answers[f"/{place}{path}"] = text.encode()
        yield {**dict.fromkeys(KEYS, "a-key"), "PORTICO_SEARCH__WEB__BASE_URL": address, "SEARCH_URL": address}
