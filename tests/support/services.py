"""Services on the web as the pages of the documentation use them: recorded answers, from a server on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from portico_testkit.recorded_server import RecordedServer

__all__ = ["recorded_services"]

CONNECTORS = Path(__file__).parents[2] / "connectors"
# By page: the folder of its address, and for each path below it the recorded answer.
SEARCHES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "search-with-bing.md": ("/v7.0", {"/search": "what_is_the_semantic_kernel.json", "/news/search": "news.json"}),
    "search-with-brave.md": (
        "/res/v1",
        {"/web/search": "brave_what_is_the_semantic_kernel.json", "/news/search": "brave_news.json"},
    ),
    "search-with-google.md": ("/customsearch/v1", {"": "what_is_the_semantic_kernel.json"}),
    "search-with-mediawiki.md": ("/w/api.php", {"": "lighthouse.json"}),
    "search-with-searxng.md": ("", {"/search": "general.json"}),
    "search-with-tavily.md": ("", {"/search": "tavily_what_is_the_semantic_kernel.json"}),
}
KEYS = ("BRAVE_API_KEY", "TAVILY_API_KEY", "GOOGLE_API_KEY", "SEARCH_KEY")


@contextmanager
def recorded_services(page: str) -> Iterator[dict[str, str]]:
    """Give the variables that a reader of a page has set, with the address of a recorded service among them."""
    if page not in SEARCHES:
        yield {}
        return
    folder, answers = SEARCHES[page]
    recorded = CONNECTORS / page.removeprefix("search-with-").removesuffix(".md") / "tests" / "recorded"
    files = {f"{folder}{path}": (recorded / file).read_bytes() for path, file in answers.items()}
    with RecordedServer(files) as server:
        address = f"{server.url}{folder}"
        yield {**dict.fromkeys(KEYS, "a-key"), "PORTICO_SEARCH__WEB__BASE_URL": address, "SEARCH_URL": address}
