"""A fused source as an application has it: configured, over real folders."""

from __future__ import annotations

from pathlib import Path

import pytest

import portico_host
from portico.errors import ConfigurationError, PluginNotInstalled
from portico.ports import TextSearch
from portico.search import TextSearchOptions

PAGES = {"docs": "# Ports\n\nA port is a protocol.\n", "wiki": "# Harbours\n\nA port is a harbour.\n"}


def configured(folder: Path, everything: str) -> Path:
    tables = [everything]
    for name, text in PAGES.items():
        (folder / name).mkdir()
        (folder / name / "page.md").write_text(text, "utf-8")
        tables.append(f'[search.{name}]\nuse = "documents"\npath = "{name}"\n')
    file = folder / "portico.toml"
    file.write_text("\n".join(tables), "utf-8")
    return file


async def test_one_update_and_one_search_reach_every_source(tmp_path: Path) -> None:
    file = configured(tmp_path, '[search.everything]\nuse = "fused"\nsources = ["docs", "wiki"]\n')
    async with portico_host.open(config=file) as kernel:
        everything = kernel.service(TextSearch, "everything")
        assert everything.index is not None
        report = await everything.index.update()
        assert (report.added, report.documents) == (2, 2)
        found = await (await everything.get_search_results("What is a port?", TextSearchOptions(top=2))).list()
    assert {record.sources for record in found} == {("docs",), ("wiki",)}
    assert {record.value for record in found} == {"A port is a protocol.", "A port is a harbour."}


@pytest.mark.parametrize(
    ("table", "error", "words"),
    [
        (
            '[search.a]\nuse = "fused"\nsources = ["a"]\n',
            ConfigurationError,
            "circle: text search 'a' → text search 'a'",
        ),
        (
            '[search.a]\nuse = "fused"\nsources = ["docs", "b"]\n[search.b]\nuse = "fused"\nsources = ["a"]\n',
            ConfigurationError,
            "circle: text search 'a' → text search 'b' → text search 'a'",
        ),
        (
            '[search.a]\nuse = "fused"\nsources = ["dcos"]\n',
            PluginNotInstalled,
            r"'dcos' is not installed.*Configured: a, docs, wiki\. Did you mean docs\?",
        ),
        (
            '[search.a]\nuse = "fused"\nsources = ["acme"]\n',
            PluginNotInstalled,
            r"'acme' is not installed.*install the package that registers it",
        ),
        ('[search.a]\nuse = "fused"\nsources = []\n', ConfigurationError, "sources"),
        ('[search.a]\nuse = "fused"\nsources = ["docs", "docs"]\n', ConfigurationError, "'docs' more than once"),
    ],
)
async def test_a_source_that_cannot_be_is_told(tmp_path: Path, table: str, error: type[Exception], words: str) -> None:
    file = configured(tmp_path, table)
    with pytest.raises(error, match=words):
        async with portico_host.open(config=file) as kernel:
            kernel.service(TextSearch, "a")
