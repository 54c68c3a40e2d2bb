"""The whole way with real folders, the embedded default and nothing configured."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def docs(folder: Path) -> Path:
    made = folder / "docs"
    (made / "guide").mkdir(parents=True)
    (made / "guide" / "anvils.md").write_text(
        "# Anvils\n\n## Returning one\n\nAn anvil can be returned within thirty days of its delivery.\n"
    )
    (made / "skates.md").write_text("# Rocket skates\n\nRocket skates need a helmet and a long straight road.\n")
    (made / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")
    return made


def test_a_folder_is_asked_without_any_configuration(portico: Any, docs: Path) -> None:
    done = portico("ask", "How long can I return an anvil?", "--docs", "docs")
    assert done.code == 0, done.err
    assert "An anvil can be returned within thirty days" in done.out
    assert "docs/guide/anvils.md:5  Anvils › Returning one" in done.out
    assert done.out.splitlines()[-1].startswith("Answered by extractive from 2 passages in 2 documents.")
    assert "Warning" not in done.err


def test_json_cites_the_place_in_the_file(portico: Any, docs: Path) -> None:
    done = portico("ask", "How long can I return an anvil?", "--docs", "docs", "--json", env={"LANG": "C"})
    assert done.code == 0, done.err
    assert done.json["service"] == "extractive"
    citation = done.json["citations"][0]
    assert citation["link"] == (docs.resolve() / "guide" / "anvils.md").as_uri() + "#L5"
    assert "thirty days" in citation["quote"]
    assert done.json["plan"]["steps"][0]["function"] == "docs-GetTextSearchResults"


def test_index_counts_what_changed(portico: Any, docs: Path) -> None:
    first = portico("index", "docs", "--json").json
    assert (first["added"], first["documents"]) == (2, 2)
    assert sum(first["skipped"].values()) >= 1
    (docs / "skates.md").unlink()
    (docs / "new.txt").write_text("Something new about umbrellas.")
    second = portico("index", "docs", "--json").json
    assert (second["added"], second["removed"], second["unchanged"]) == (1, 1, 1)
    told = portico("index", "docs")
    assert told.code == 0
    assert told.out.startswith("docs: 2 documents indexed.\n")
    assert "unchanged" in told.out


def test_several_folders_and_a_single_file_are_sources_of_their_own(portico: Any, docs: Path, folder: Path) -> None:
    other = folder / "more notes!"
    other.mkdir()
    (other / "umbrella.txt").write_text("An umbrella keeps the rain off.")
    done = portico("ask", "umbrella", "--docs", "docs", "--docs", "more notes!", "--docs", "docs/skates.md", "--json")
    assert done.code == 0, done.err
    assert list(done.json["indexes"]) == ["docs", "more_notes", "skates_md"]
    assert done.json["citations"][0]["link"].endswith("umbrella.txt#L1")


def test_a_folder_that_is_configured_keeps_its_name_and_settings(portico: Any, docs: Path, folder: Path) -> None:
    (folder / "portico.toml").write_text('[search.handbook]\nuse = "documents"\npath = "docs"\ninclude = ["*.txt"]\n')
    (docs / "umbrella.txt").write_text("An umbrella keeps the rain off.")
    done = portico("search", "umbrella", "--docs", "docs", "--json")
    assert [result["name"] for result in done.json["results"]] == ["umbrella.txt"]
    assert portico("index", "docs", "--name", "handbook", "--json").json["documents"] == 1
    assert portico("index", "docs", "--name", "fresh", "--json").json["documents"] == 3


def test_without_a_path_each_configured_source_is_updated(in_process: Any, docs: Path, folder: Path) -> None:
    file = folder / "portico.toml"
    file.write_text('[search.handbook]\nuse = "documents"\npath = "docs"\n[search.wiki]\nuse = "mediawiki"\n')
    assert in_process("index", "--json").json["indexes"].keys() == {"handbook"}
    assert in_process("index").out.startswith("handbook: 2 documents indexed.\n")
    assert in_process("index", "--name", "handbook").out.startswith("handbook: 2 documents indexed.\n")
    with file.open("a") as stream:
        stream.write('[search.gone]\nuse = "documents"\npath = "gone"\n')
    some = in_process("index")
    assert (some.code, some.out.splitlines()[0]) == (1, "handbook: 2 documents indexed.")
    assert some.err.startswith("Error: gone: There is nothing to index at ")
    assert in_process("index", "--json").json["failures"].keys() == {"gone"}
    assert "no source of 'wiki' keeps an index" in in_process("index", "--name", "wiki").err
    file.write_text("")
    nothing = in_process("index")
    assert (nothing.code, nothing.out) == (2, "")
    assert "portico index FOLDER" in nothing.err


def test_a_name_that_is_taken_is_not_taken_over(portico: Any, docs: Path, folder: Path) -> None:
    (folder / "portico.toml").write_text('[search.docs]\nuse = "shelf"\n')
    done = portico("ask", "anvil", "--docs", "docs", "--json")
    assert done.code == 0, done.err
    assert list(done.json["indexes"]) == ["docs", "docs_2"]


def test_filters_of_documents_reach_the_source(portico: Any, docs: Path) -> None:
    done = portico("search", "anvil skates", "--docs", "docs", "--filter", "path=skates.md", "--json")
    assert {result["name"].partition(" ")[0] for result in done.json["results"]} == {"skates.md"}
    assert portico("search", "x", "--docs", "docs", "--filter", "author=x").code == 2


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_an_interrupted_index_goes_on_where_it_stopped(portico: Any, folder: Path, started: Any) -> None:
    docs = folder / "many"
    docs.mkdir()
    for number in range(600):
        (docs / f"{number}.md").write_text(f"# Note {number}\n\n" + f"Word{number} is about thing {number}. " * 60)
    cache = Path(os.environ["XDG_CACHE_HOME"])
    before = set(cache.rglob("*"))
    process = started("index", "many", until=lambda: any(path not in before for path in cache.rglob("catalogue*")))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    if process.returncode != 0:
        assert process.returncode == 130
        assert err.strip() == "Interrupted. The index is good; the next run continues where this one stopped."
    report = portico("index", "many", "--json").json
    assert report["documents"] == 600
    assert report["added"] + report["unchanged"] == 600


def test_a_source_that_has_no_folder_is_not_to_index_one(in_process: Any, docs: Path) -> None:
    (docs.parent / "portico.toml").write_text('[search.bare]\nuse = "bare"\n')
    done = in_process("index", "docs", "--name", "bare")
    assert (done.code, done.out) == (2, "")
    assert "search.bare.path" in done.err


def test_a_folder_that_is_gone_is_told_of_under_the_source_that_names_it(in_process: Any, docs: Path) -> None:
    (docs.parent / "portico.toml").write_text('[search.handbook]\nuse = "documents"\npath = "gone"\n')
    done = in_process("search", "anvil")
    assert done.code == 2
    assert done.err.startswith("Error: portico.toml: search.handbook: There is nothing to index at ")
