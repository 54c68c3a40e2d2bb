"""FusedTextSearch does what every TextSearch must."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from portico.errors import ServiceUnavailable
from portico.ports import TextSearch
from portico.search import Equal
from portico_basics._plugin import portico_text_searches
from portico_basics.config import FusedSettings
from portico_basics.fused.search import FusedTextSearch
from portico_testkit.fakes.services import FixedServices
from portico_testkit.fakes.text_search import ListEntry, ListSearch
from portico_testkit.text_search import TextSearchKit

DOCS = [
    ListEntry("a red door", "Doors", "http://a.example/1", {"colour": "red"}),
    ListEntry("a blue door", "Doors", "http://a.example/2", {"colour": "blue"}),
    ListEntry("a roof", None, None, {"colour": "red"}),
]
WEB = [
    ListEntry("a garden door", "Garden", "http://b.example/1", {"colour": "green"}),
    ListEntry("a red door", "Doors", "http://a.example/1", {"colour": "red"}),
    ListEntry("a roof garden", "Garden", "http://b.example/2", {"colour": "green"}),
]
SERVICES = FixedServices({(TextSearch, "docs"): ListSearch(DOCS), (TextSearch, "web"): ListSearch(WEB)})


class AwaySearch(ListSearch):
    async def fetch(self, query, options):
        raise ServiceUnavailable(f"Text search {self.name!r} cannot be reached.")


class TestFusedTextSearch(TextSearchKit):
    filters = (Equal("colour", "red"),)

    @pytest.fixture
    def text_search(self) -> FusedTextSearch:
        return FusedTextSearch(FusedSettings(sources=("docs", "web")), SERVICES)

    @pytest.fixture
    def failing_search(self) -> FusedTextSearch:
        services = FixedServices({(TextSearch, "docs"): AwaySearch(DOCS), (TextSearch, "web"): AwaySearch(WEB)})
        return FusedTextSearch(FusedSettings(sources=("docs", "web")), services)

    def fields_of(self, record) -> Mapping[str, object]:
        return next(entry.fields for entry in DOCS + WEB if entry.text == record.value)


async def test_sources_go_by_the_names_of_the_configuration() -> None:
    search = FusedTextSearch(FusedSettings(sources=("web", "docs"), depth=5), SERVICES)
    found = await (await search.get_search_results("red door")).list()
    assert found[0].sources == ("web", "docs"), "both are `list` by themselves"


def test_settings_refuse_what_cannot_be() -> None:
    with pytest.raises(ValueError, match="sources"):
        FusedSettings(sources=())
    with pytest.raises(ValueError, match="'a' more than once"):
        FusedSettings(sources=("a", "b", "a"))
    for wrong in ({"depth": 0}, {"timeout": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            FusedSettings(sources=("a",), **wrong)


def test_it_is_registered() -> None:
    assert "fused" in [registration.name for registration in portico_text_searches()]
