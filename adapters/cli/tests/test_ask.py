"""`portico ask`, with a planner that says what it is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from portico import Kernel, Paused, Run
from portico.plans import Plan


def test_an_answer_comes_with_its_place_its_service_and_what_was_searched(in_process: Any, configured: Path) -> None:
    done = in_process("ask", "Where is retry set?")
    assert done.code == 0
    lines = done.out.splitlines()
    assert "> Retry is set in settings.py. [1]" in lines
    assert "[1] /shelf/book.md:7  Chapter" in lines
    assert lines[-1] == ("Answered by oracle. 1 problem while reading: `portico index PATH` shows why.")


def test_json_is_one_object_with_keys_in_a_stable_order(portico: Any, configured: Path) -> None:
    configured.write_text(configured.read_text() + '[planner.scripted]\nsearch = "shelf-GetTextSearchResults"\n')
    done = portico("ask", "Where is retry set?", "--json")
    assert done.code == 0, done.err
    assert list(done.json) == [
        "outcome", "answer", "value", "citations", "warnings", "reason", "missing", "step", "uncertain", "plan",
        "steps", "usage", "run", "planner", "service", "selection", "indexes",
    ]  # fmt: skip
    assert done.json["citations"] == [
        {
            "number": 1,
            "name": "book.md › Chapter",
            "link": "file:///shelf/book.md#L7",
            "quote": "Retry is set in settings.py.",
        }
    ]
    assert done.json["usage"] == {"input_tokens": 11, "output_tokens": 7}
    assert done.json["service"] == "oracle"
    assert done.json["plan"]["version"] == 1
    assert [(step["id"], step["function"]) for step in done.json["steps"]] == [("s1", "shelf-GetTextSearchResults")]
    assert done.json["steps"][0]["result"][0]["value"] == "Retry is set in settings.py."
    assert done.json["indexes"]["shelf"]["documents"] == 3
    assert "a library chatters" in done.err


def test_json_has_no_plan_where_nothing_was_run(in_process: Any, configured: Path) -> None:
    assert in_process("ask", "q", "--json").json["plan"] is None


def test_a_goal_on_standard_input_is_read_to_its_end(portico: Any, configured: Path) -> None:
    configured.write_text(configured.read_text() + '[planner.scripted]\ntext = "You asked: {goal}"\n')
    done = portico("ask", "-", stdin="Wo ist\nder Käse?\n".encode())
    assert done.code == 0, done.err
    assert "You asked: Wo ist\nder Käse?" in done.out


@pytest.mark.parametrize(("goal", "stdin"), [("", b""), ("  \t ", b""), ("-", b" \n")])
def test_a_blank_goal_is_refused(portico: Any, configured: Path, goal: str, stdin: bytes) -> None:
    done = portico("ask", goal, stdin=stdin)
    assert (done.code, done.out) == (2, "")
    assert "The goal is blank" in done.err


def test_a_goal_that_is_no_text_is_made_one(portico: Any, configured: Path) -> None:
    configured.write_text(configured.read_text() + '[planner.scripted]\ntext = "You asked: {goal}"\n')
    done = portico("ask", b"caf\xe9", "--json")
    assert done.code == 0, done.err
    assert done.json["answer"] == "You asked: caf\ufffd"


@pytest.mark.parametrize("locale", ["C", "POSIX", "en_US.ISO-8859-1"])
def test_output_is_utf8_whatever_the_locale(portico: Any, configured: Path, locale: str) -> None:
    configured.write_text(configured.read_text() + '[planner.scripted]\ntext = "Über ‚alles‘ 日本"\n', "utf-8")
    env = {"LANG": locale, "LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert "Über ‚alles‘ 日本" in portico("ask", "q", env=env).out
    assert portico("ask", "q", "--json", env=env).json["answer"] == "Über ‚alles‘ 日本"


def test_what_cannot_be_done_says_why_and_what_is_missing(in_process: Any, configured: Path) -> None:
    configured.write_text(configured.read_text() + '[planner.scripted]\nend = "infeasible"\n')
    done = in_process("ask", "q")
    assert done.code == 3
    assert "nobody can do this" in done.out
    assert "a crystal ball" in done.out
    as_json = in_process("ask", "q", "--json")
    assert (as_json.code, as_json.json["outcome"], as_json.json["answer"]) == (3, "infeasible", None)
    assert (as_json.json["reason"], as_json.json["missing"]) == ("nobody can do this", ["a crystal ball"])


def test_what_is_held_has_an_exit_code_of_its_own(
    in_process: Any, configured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hold(self: Kernel, goal: str, **options: Any) -> Run:
        return Run(goal, "r1", "scripted", Paused("somebody must look at it", "s1"), Plan(goal, ()), ())

    # Filters that hold come from an application's code, which the command line does not run yet.
    monkeypatch.setattr(Kernel, "run_goal", hold)
    done = in_process("ask", "q")
    assert done.code == 4
    assert "Held before step s1: somebody must look at it" in done.out
    as_json = in_process("ask", "q", "--json")
    assert (as_json.code, as_json.json["outcome"]) == (4, "held")


def test_with_nothing_to_search_it_says_what_to_do(in_process: Any) -> None:
    done = in_process("ask", "q")
    assert (done.code, done.out) == (2, "")
    assert "--docs" in done.err
    assert "portico config init" in done.err


def test_a_mistake_in_a_default_service_is_told_before_anything_else(in_process: Any, folder: Path) -> None:
    (folder / "portico.toml").write_text('[chat.extractive]\nmaximum_quotes = "three"\n')
    for command in ("ask", "search"):
        done = in_process(command, "q")
        assert done.code == 2
        assert "portico.toml: chat.extractive.maximum_quotes: expected an integer" in done.err


def test_a_planner_that_needs_no_source_is_asked_without_one(in_process: Any, configured: Path) -> None:
    configured.write_text('[planner]\nuse = "scripted"\n')
    done = in_process("ask", "q", "--json")
    assert (done.code, done.json["planner"]) == (0, "scripted")


def test_a_folder_that_is_not_there_is_a_usage_error(in_process: Any) -> None:
    done = in_process("ask", "q", "--docs", "nowhere")
    assert done.code == 2
    assert "nowhere" in done.err


def test_warnings_are_shown(in_process: Any, configured: Path) -> None:
    configured.write_text(configured.read_text() + '[planner.scripted]\nwarning = "One source slept."\n')
    assert "! One source slept." in in_process("ask", "q").out


def test_the_planner_and_the_chat_service_can_be_chosen(in_process: Any, configured: Path) -> None:
    configured.write_text('[search.shelf]\nuse = "shelf"\n')
    assert in_process("ask", "q", "--planner", "scripted", "--json").json["planner"] == "scripted"
    done = in_process("ask", "q", "--chat", "orcale")
    assert done.code == 2
    assert "orcale" in done.err


def test_a_source_is_chosen_by_name(in_process: Any, configured: Path) -> None:
    configured.write_text(configured.read_text() + '[search.other]\nuse = "shelf"\n')
    assert list(in_process("ask", "q", "--json").json["indexes"]) == ["shelf", "other"]
    assert list(in_process("ask", "q", "--json", "--source", "other").json["indexes"]) == ["other"]
    done = in_process("ask", "q", "--source", "othr")
    assert done.code == 2
    assert "othr" in done.err
