"""`portico functions`, `plugins`, `doctor` and `config`."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest


def test_functions_are_listed_by_plugin(in_process: Any, configured: Path) -> None:
    out = in_process("functions").out
    assert "shelf\n  Search(query, [count], [skip])\n" in out
    names = [function["name"] for function in in_process("functions", "--json").json["functions"]]
    assert names == ["shelf-Search", "shelf-GetTextSearchResults", "shelf-GetSearchResults", "answers-FromSources"]


def test_the_manual_is_the_indented_one(in_process: Any, configured: Path) -> None:
    assert in_process("functions", "--manual").out.startswith(
        "shelf.Search:\n"
        "  description: Passages that the test wrote down. Search shelf and return the text of the passages found.\n"
        "  inputs:\n"
        "  - query: What to search for.\n"
        "  - count: How many results at most. (default: 2)\n"
    )


@pytest.mark.parametrize("arguments", [("--manual",), ("--manual", "text"), ("--manual=text",)])
def test_the_manual_is_text_unless_another_form_is_asked_for(
    in_process: Any, configured: Path, arguments: tuple[str, ...]
) -> None:
    written = in_process("functions", *arguments).out
    assert written == in_process("functions", "--manual").out
    assert in_process("functions", *arguments, "--json").json == {"manual": written.rstrip("\n")}


@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_the_other_manuals_are_json_for_people_and_programs_alike(
    in_process: Any, configured: Path, as_json: tuple[str, ...]
) -> None:
    listed = in_process("functions", "--json").json["functions"]
    schemas = in_process("functions", "--manual", "schema", *as_json).json["functions"]
    assert [list(each) for each in schemas] == [["name", "description", "parameters", "responses"]] * 4
    for told, function in zip(schemas, listed, strict=True):
        assert (told["name"], told["parameters"]) == (function["name"], function["parameters"])
        response = told["responses"]["200"]
        assert response["content"]["application/json"]["schema"] == function["returns"]
    tools = in_process("functions", "--manual", "tools", *as_json).json["tools"]
    assert tools == [{key: each[key] for key in ("name", "description", "parameters")} for each in listed]


def test_a_form_that_there_is_not_is_a_mistake_of_usage(in_process: Any, configured: Path) -> None:
    done = in_process("functions", "--manual", "xml")
    assert done.code == 2
    assert "text" in done.err


def test_without_functions_it_says_how_to_get_some(in_process: Any) -> None:
    done = in_process("functions")
    assert done.code == 0
    assert "portico config init" in done.out


def test_doctor_is_content_with_what_works(in_process: Any, configured: Path) -> None:
    done = in_process("doctor", "--json")
    assert done.code == 0, done.out
    assert done.json["healthy"]
    subjects = [check["subject"] for check in done.json["checks"]]
    assert {"Python", "portico-shelf", "configuration", "cache folder", "text search shelf", "planner scripted"} <= set(
        subjects
    )


def test_doctor_goes_on_when_the_configuration_is_broken(in_process: Any, configured: Path) -> None:
    configured.write_text("[search.shelf\n")
    done = in_process("doctor")
    assert done.code == 1
    assert "fail  configuration" in done.out
    assert "ok    portico-shelf" in done.out


def test_doctor_finds_a_secret_that_is_not_set(in_process: Any, configured: Path) -> None:
    configured.write_text('[search.shelf]\nuse = "shelf"\nkey = { env = "SHELF_KEY_NOT_SET" }\n')
    done = in_process("doctor")
    assert done.code == 1
    assert "SHELF_KEY_NOT_SET" in done.out


@pytest.mark.skipif(sys.platform == "win32", reason="a folder that is a file needs XDG_CACHE_HOME")
@pytest.mark.parametrize("kind", ["cache", "state"])
def test_doctor_finds_a_folder_that_cannot_be_written(portico: Any, folder: Path, kind: str) -> None:
    (folder / "file").write_text("")
    done = portico("doctor", env={f"XDG_{kind.upper()}_HOME": str(folder / "file")})
    assert done.code == 1
    assert f"{kind} folder" in done.out
    assert "cannot be written" in done.out
    assert f"{folder / 'file'} is no folder" in " ".join(done.out.split())
    assert "chmod" not in done.out


def test_config_show_has_origins_and_no_secrets(in_process: Any, configured: Path) -> None:
    configured.write_text('[search.shelf]\nuse = "shelf"\nkey = "sk-very-secret"\n')
    done = in_process("config", "show")
    assert "search.shelf.use" in done.out
    assert "portico.toml" in done.out
    assert "sk-very-secret" not in done.out
    as_json = in_process("config", "show", "--json")
    assert as_json.json["settings"]["search.shelf.use"] == {"value": "shelf", "origin": "portico.toml"}
    assert "sk-very-secret" not in as_json.out


def test_config_schema_is_a_json_schema(in_process: Any) -> None:
    schema = in_process("config", "schema").json
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert "search" in schema["properties"]


def test_config_init_writes_a_file_that_works(in_process: Any, folder: Path) -> None:
    (folder / "docs").mkdir()
    done = in_process("config", "init")
    assert done.code == 0, done.err
    written = tomllib.loads((folder / "portico.toml").read_text("utf-8"))
    assert written["search"]["docs"] == {"use": "documents", "path": "docs"}
    assert in_process("doctor").code == 0


def test_what_the_written_file_comments_out_is_right_too(in_process: Any, folder: Path) -> None:
    in_process("config", "init")
    file = folder / "portico.toml"
    text = file.read_text("utf-8")
    lines = [line.removeprefix("# ") if " = " in line or line.startswith("# [") else line for line in text.splitlines()]
    model = ("[chat.openai]", "gpt-4o-mini", "OPENAI")
    file.write_text("\n".join(line for line in lines if not any(map(line.__contains__, model))), "utf-8")
    done = in_process("config", "show", "--json")
    assert done.code == 0, done.err
    assert {"search.docs.maximum_bytes", "vectors.use", "planner.max_steps"} <= {
        key for key, setting in done.json["settings"].items() if setting["origin"] == "portico.toml"
    }


def test_config_init_overwrites_only_when_told_to(in_process: Any, configured: Path) -> None:
    before = configured.read_text()
    done = in_process("config", "init")
    assert done.code == 2
    assert "--force" in done.err
    assert configured.read_text() == before
    assert in_process("config", "init", "--force").code == 0
    assert configured.read_text() != before
    assert list(configured.parent.iterdir()) == [configured]


def test_config_init_writes_where_config_says(in_process: Any, folder: Path) -> None:
    assert in_process("config", "init", "--config", "other.toml").code == 0
    assert (folder / "other.toml").is_file()
