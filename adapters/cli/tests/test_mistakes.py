"""Whatever is wrong: one message, the right exit code, no traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

DOCS = "[search.docs]\nuse = 'shelf'\n"
MISTAKES = {
    "syntax": ("[search.docs\n", ["line 1"]),
    "no toml": ("search = = 1\n", ["line 1"]),
    "unknown table": ("[serach.docs]\nuse = 'shelf'\n", ["serach", "search"]),
    "unknown key": ("[search.docs]\nuse = 'shelf'\npasages = []\n", ["search.docs.pasages", "passages"]),
    "wrong type": ("[search.docs]\nuse = 'shelf'\nseconds = 'x'\n", ["search.docs.seconds", "a number"]),
    "table for text": ("[search.docs]\nuse = 'shelf'\nname = { a = 1 }\n", ["search.docs.name", "a string"]),
    "not a table": ("search = 1\n", ["search", "a table"]),
    "no use": ("[search.docs]\npath = '.'\n", ["search.docs.use"]),
    "unknown plugin": ("[search.docs]\nuse = 'shlef'\n", ["search.docs.use", "shlef", "shelf"]),
    "plugin not installed": ("[search.docs]\nuse = 'exa'\n", ["exa", "install the package that registers it"]),
    "missing secret": (DOCS + "key = { env = 'SHELF_UNSET' }\n", ["SHELF_UNSET", "search.docs.key"]),
    "secret's file missing": (DOCS + "key = { file = '/no/key' }\n", ["/no/key", "search.docs.key"]),
    "unknown planner": ("[planner]\nuse = 'retreival'\n[search.d]\nuse='shelf'\n", ["planner.use", "retrieval"]),
    "planner's own key": (DOCS + "[planner]\nuse = 'scripted'\n[planner.scripted]\nedn = 'x'\n", ["edn"]),
    "not utf-8": (b"# \xff\n", ["UTF-8"]),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_every_mistake_in_the_configuration_names_file_and_key(in_process: Any, folder: Path, case: str) -> None:
    text, expected = MISTAKES[case]
    (folder / "portico.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    done = in_process("ask", "q")
    assert done.code == 2, done
    assert done.out == ""
    assert done.err.startswith("Error: ")
    assert done.err.count("Error: ") == 1
    assert "Traceback" not in done.err
    for word in ("portico.toml", *expected):
        assert word in done.err
    as_json = in_process("ask", "q", "--json")
    assert (as_json.code, as_json.err) == (2, "")
    assert list(as_json.json) == ["error"]
    assert list(as_json.json["error"]) == ["type", "message"]
    assert expected[0] in as_json.json["error"]["message"]


def test_a_configuration_that_is_not_there_is_named(in_process: Any) -> None:
    done = in_process("ask", "q", "--config", "nowhere.toml")
    assert done.code == 2
    assert "nowhere.toml" in done.err


@pytest.mark.parametrize(
    "arguments",
    [("--config", "other.toml", "search", "retry"), ("search", "--config", "other.toml", "retry")],
    ids=["before the command", "after the command"],
)
def test_the_configuration_may_be_named_before_and_after(
    in_process: Any, folder: Path, arguments: tuple[str, ...]
) -> None:
    (folder / "other.toml").write_text('[search.mine]\nuse = "shelf"\nlink = "file:///mine#L1"\n')
    assert "/mine:1" in in_process(*arguments).out


def test_an_error_of_a_variable_names_it(in_process: Any, configured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORTICO_SEARCH__SHELF__SECONDS", "soon")
    done = in_process("ask", "q")
    assert done.code == 2
    assert "PORTICO_SEARCH__SHELF__SECONDS" in done.err


def test_what_nobody_expected_is_one_sentence_with_the_way_to_more(in_process: Any, configured: Path) -> None:
    configured.write_text(configured.read_text() + '[planner.scripted]\nend = "crash"\n')
    done = in_process("ask", "q")
    assert (done.code, done.out) == (1, "")
    assert "RuntimeError: the planner fell over" in done.err
    assert "--debug" in done.err
    assert "Traceback" not in done.err
    assert in_process("ask", "q", "--json").json["error"]["type"] == "RuntimeError"


@pytest.mark.parametrize("arguments", [("--debug", "ask", "q"), ("ask", "q", "--debug")])
def test_debug_shows_the_traceback(in_process: Any, configured: Path, arguments: tuple[str, ...]) -> None:
    configured.write_text(configured.read_text() + '[planner.scripted]\nend = "crash"\n')
    done = in_process(*arguments)
    assert done.code == 1
    assert "Traceback" in done.err
    assert "scripted.py" in done.err


def test_the_variable_for_debugging_shows_it_too(
    in_process: Any, configured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured.write_text(configured.read_text() + '[planner.scripted]\nend = "crash"\n')
    monkeypatch.setenv("PORTICO_DEBUG", "1")
    assert "Traceback" in in_process("ask", "q").err
    monkeypatch.setenv("PORTICO_DEBUG", "0")
    assert "Traceback" not in in_process("ask", "q").err


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("aks", "q"), "ask"),
        (("ask",), "GOAL"),
        (("ask", "q", "--sauce", "x"), "--sauce"),
        (("ask", "q", "r"), "r"),
        (("config", "shwo"), "show"),
        (("--nonsense",), "--nonsense"),
    ],
)
def test_usage_errors_help_on(in_process: Any, arguments: tuple[str, ...], word: str) -> None:
    done = in_process(*arguments)
    assert (done.code, done.out) == (2, "")
    assert word in done.err
    assert "--help" in done.err
    as_json = in_process(*arguments, "--json")
    assert (as_json.code, as_json.err) == (2, "")
    assert word in as_json.json["error"]["message"]


def test_help_needs_no_sound_configuration(in_process: Any, configured: Path) -> None:
    configured.write_text("[[[")
    assert in_process("--help").code == 0
    assert in_process("ask", "--help").code == 0
    assert in_process("--version").out.startswith("portico ")


@pytest.mark.parametrize("command", [("ask", "How?"), ("search", "how")])
def test_a_configured_folder_that_is_missing_is_told_with_file_and_key(
    portico: Any, folder: Path, command: tuple[str, ...]
) -> None:
    (folder / "portico.toml").write_text('[search.handbook]\nuse = "documents"\npath = "gone"\n')
    done = portico(*command)
    assert done.code == 2
    assert "portico.toml: search.handbook: There is nothing to index at" in done.err
    assert "Traceback" not in done.err
