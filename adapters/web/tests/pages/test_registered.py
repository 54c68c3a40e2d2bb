"""Both parts work from configuration alone, against a server on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from portico.errors import ConfigurationError
from portico.ports import PageReader, TextSearch
from portico_testkit.fakes.services import FixedServices
from portico_testkit.fakes.text_search import ListEntry, ListSearch
from portico_web import _plugin
from portico_web.pages.config import FullPagesSettings, WebPagesSettings
from portico_web.pages.reader import WebPagesPageReader, full_pages


def test_both_are_registered() -> None:
    (reader,) = _plugin.portico_page_readers()
    (search,) = _plugin.portico_text_searches()
    assert (reader.name, search.name) == ("web-pages", "full-pages")


@pytest.mark.parametrize(
    "settings",
    [
        {"contact": "two words"},
        {"contact": "a\r\nX-Injected: 1"},
        {"contact": "(remark)"},
        {"ports": ()},
        {"ports": (70_000,)},
        {"allow": ("10.0.0.1/8",)},
        {"seconds": 0},
        {"seconds": float("inf")},
        {"seconds": float("nan")},
        {"seconds": 1e12},
        {"max_characters": 0},
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        WebPagesSettings(**settings)


async def test_results_of_a_source_become_pages(site: Any, answer: Any) -> None:
    site.routes["/door"] = answer("<article><p>The red door is behind the stairs.</p></article>", "text/html")
    entries = [
        ListEntry("the red …", "Door", site.url("/door")),
        ListEntry("the red roof", "Roof", site.url("/roof")),
        ListEntry("the red cloud", "Metadata", "http://169.254.169.254/"),
    ]
    reader = WebPagesPageReader(WebPagesSettings(allow=("127.0.0.1",)))
    services = FixedServices({(TextSearch, "web"): ListSearch(entries), PageReader: reader})
    results = await full_pages(FullPagesSettings(source="web"), services).get_text_search_results("red")
    found = await results.list()
    assert [result.value for result in found] == ["The red door is behind the stairs.", "the red roof", "the red cloud"]
    assert [result.name for result in found] == ["Door", "Roof", "Metadata"]
    missing, refused = results.metadata["snippets"]
    assert "404" in missing["reason"]
    assert "not public" in refused["reason"]
    await reader.aclose()


async def test_a_source_that_stands_on_itself_is_a_circle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = pytest.importorskip("portico_host")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "portico.toml").write_text('[search.pages]\nuse = "full-pages"\nsource = "pages"\n')
    with pytest.raises(ConfigurationError, match="circle"):
        async with host.open() as kernel:
            kernel.services.get(TextSearch, "pages")
