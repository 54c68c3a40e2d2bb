"""The sources of a configuration are functions, and their records are written by the installed codecs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import portico_host

PLUGIN = """
from portico.registration import Registration

def portico_type_codecs():
    return [Registration(name="coins", factory="portico_mint.coins:Coins", summary="Coins.")]

def portico_text_searches():
    return [Registration(name="mint", factory="portico_mint.coins:Mint", summary="Search the mint.")]
"""

COINS = """
from portico import SearchConnector, SearchResults, TextSearchResult
from portico.types import Compiled

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
        assert records.manual.returns["items"] == {"const": "coin"}
        assert await kernel.invoke_json(records, {"query": "gold"}) == ["coin"]
