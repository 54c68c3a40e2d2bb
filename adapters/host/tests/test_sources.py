"""The sources of a configuration are functions, and their records are written by the installed codecs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import portico_host

PLUGIN = """
from portico.plugins import Registration

def portico_type_codecs():
    return [Registration(name="coins", factory="portico_mint.coins:Coins", summary="Coins.")]

def portico_text_searches():
    return [Registration(name="mint", factory="portico_mint.coins:Mint", summary="Search the mint.")]
"""

COINS = """
from portico import SearchConnector, SearchResults, TextSearchResult
from portico.plugins import Compiled

class Coin:
    pass

class Coins:
    name = "coins"
    def __init__(self, settings, services): ...
    def compile(self, hint, inner):
        return Compiled({"const": "coin"}, lambda value: Coin(), lambda coin: "coin") if hint is Coin else None

class Mint(SearchConnector[Coin]):
    name = "mint"
    def __init__(self, settings, services): ...
    async def fetch(self, query, options):
        return SearchResults([Coin()])
    def to_text(self, record):
        return "a coin"
    def to_result(self, record):
        return TextSearchResult("a coin")
"""


async def test_records_of_a_source_are_of_the_form_that_a_codec_gives_them(site: Any, work: Path) -> None:
    site.install("portico-mint", PLUGIN, {"coins": COINS})
    (work / "portico.toml").write_text('[search.coins]\nuse = "mint"\n')
    async with portico_host.open() as kernel:
        records = kernel.function("coins-GetSearchResults")
        assert records.spec.returns["items"] == {"const": "coin"}
        assert await kernel.invoke_json(records, {"query": "gold"}) == ["coin"]


WRAPS = """
from portico.plugins import Registration

def portico_text_searches():
    return [
        Registration(name="inside", factory="portico_wraps.search:Inside", summary="Something to search."),
        Registration(
            name="outside",
            factory="portico_wraps.search:Outside",
            settings="portico_wraps.search:Settings",
            summary="Search something else.",
        ),
    ]
"""

SEARCHES = """
from dataclasses import dataclass, field

from portico import SearchConnector, SearchResults, TextSearchResult

@dataclass(frozen=True)
class Settings:
    sources: tuple[str, ...] = field(metadata={"doc": "The sources to ask.", "service": "TextSearch"})

class Inside(SearchConnector[str]):
    name = "inside"
    def __init__(self, settings, services): ...
    async def fetch(self, query, options):
        return SearchResults([query])
    def to_text(self, record):
        return record
    def to_result(self, record):
        return TextSearchResult(record)

class Outside(Inside):
    name = "outside"
"""


async def test_a_source_that_another_stands_on_is_asked_through_that_one_only(site: Any, work: Path) -> None:
    site.install("portico-wraps", WRAPS, {"search": SEARCHES})
    (work / "portico.toml").write_text(
        '[search.a]\nuse = "inside"\n[search.b]\nuse = "inside"\n'
        '[search.both]\nuse = "outside"\nsources = ["a", "b"]\n[search.c]\nuse = "inside"\n'
    )
    application = portico_host.load()
    assert application.sources == ("a", "b", "both", "c")
    assert application.asked_sources == ("both", "c")
    async with application.kernel() as kernel:
        asked = [spec.name for spec in kernel.specs.values() if spec.is_search]
        assert asked == ["both-GetTextSearchResults", "c-GetTextSearchResults"]
        assert await kernel.invoke("a-Search", query="still a function") == ["still a function"]
    async with application.kernel(["a", "both"]) as kernel:
        asked = [spec.name for spec in kernel.specs.values() if spec.is_search]
        assert asked == ["a-GetTextSearchResults", "both-GetTextSearchResults"], "who names a source means it"


async def test_a_source_that_cannot_be_prepared_stands_on_nothing(site: Any, work: Path) -> None:
    site.install("portico-wraps", WRAPS, {"search": SEARCHES})
    (work / "portico.toml").write_text('[search.a]\nuse = "inside"\n[search.both]\nuse = "outside"\nsources = 3\n')
    assert portico_host.load().asked_sources == ("a", "both")
