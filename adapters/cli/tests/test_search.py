"""`portico search`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

PASSAGES = """[search.shelf]
use = "shelf"
passages = ["alpha retry one", "beta retry two", "gamma retry three", "delta retry four"]
"""


@pytest.fixture
def shelf(folder: Path) -> Path:
    file = folder / "portico.toml"
    file.write_text(PASSAGES)
    return file


def test_results_have_number_place_title_and_words(in_process: Any, shelf: Path) -> None:
    done = in_process("search", "retry", "--top", "2")
    assert done.code == 0
    assert done.out.splitlines() == [
        "1  /shelf/book.md:7  Chapter",
        "   alpha retry one",
        "",
        "2  /shelf/book.md:7  Chapter",
        "   beta retry two",
    ]


def test_skip_leaves_out_the_best_and_keeps_the_numbers(in_process: Any, shelf: Path) -> None:
    results = in_process("search", "retry", "--top", "2", "--skip", "1", "--json").json["results"]
    assert [(result["number"], result["text"]) for result in results] == [
        (2, "beta retry two"),
        (3, "gamma retry three"),
    ]


def test_several_sources_become_one_ranking_before_anything_is_skipped(in_process: Any, shelf: Path) -> None:
    shelf.write_text(PASSAGES + '[search.other]\nuse = "shelf"\npassages = ["beta retry two"]\n')
    results = in_process("search", "retry", "--top", "2", "--json").json["results"]
    assert [result["text"] for result in results] == ["beta retry two", "alpha retry one"]
    results = in_process("search", "retry", "--top", "1", "--skip", "1", "--json").json["results"]
    assert [result["text"] for result in results] == ["alpha retry one"]


def test_filters_are_equalities_and_repeated_ones_any_of_them(in_process: Any, shelf: Path) -> None:
    def texts(*filters: str) -> list[str]:
        words = [word for clause in filters for word in ("--filter", clause)]
        return [result["text"][0] for result in in_process("search", "retry", "--json", *words).json["results"]]

    assert texts("book=a") == ["a"]
    assert texts("book=a", "book=d") == ["a", "d"]
    assert texts("book=z") == []


def test_the_filter_of_the_configuration_holds_and_one_of_the_command_only_narrows_it(
    in_process: Any, shelf: Path
) -> None:
    shelf.write_text(PASSAGES + 'filter = { book = ["a", "d"] }\n')

    def texts(*words: str) -> list[str]:
        return [result["text"][0] for result in in_process("search", "retry", "--json", *words).json["results"]]

    assert (texts(), texts("--filter", "book=d"), texts("--filter", "book=b")) == (["a", "d"], ["d"], [])


def test_a_filter_that_the_source_does_not_take_names_those_it_takes(in_process: Any, shelf: Path) -> None:
    done = in_process("search", "retry", "--filter", "boko=a")
    assert done.code == 2
    assert "boko" in done.err
    assert "book (AnyOf, Equal)" in done.err


@pytest.mark.parametrize("clause", ["book", "=a", " =a"])
def test_a_filter_needs_a_field_and_a_value(in_process: Any, shelf: Path, clause: str) -> None:
    done = in_process("search", "retry", "--filter", clause)
    assert done.code == 2
    assert "FIELD=VALUE" in done.err


@pytest.mark.parametrize("options", [("--top", "0"), ("--top", "x"), ("--skip", "-1"), ("--top", "100000000")])
def test_numbers_out_of_range_are_usage_errors(in_process: Any, shelf: Path, options: tuple[str, str]) -> None:
    done = in_process("search", "retry", *options)
    assert done.code == 2
    assert options[0] in done.err


def test_a_blank_query_is_refused(in_process: Any, shelf: Path) -> None:
    assert in_process("search", " ").code == 2


def test_nothing_found_says_so(in_process: Any, shelf: Path) -> None:
    assert in_process("search", "retry", "--filter", "book=z").out == "Nothing was found.\n"


def test_a_source_that_is_installed_and_needs_no_settings_is_used_when_named(in_process: Any, site: Path) -> None:
    assert in_process("search", "retry", "--source", "shelf", "--json").json["results"][0]["number"] == 1


FAILING = PASSAGES + '[search.torn]\nuse = "shelf"\nfailure = "the book is torn"\n'


def test_a_source_that_fails_is_told_of_and_the_others_are_shown(in_process: Any, shelf: Path) -> None:
    shelf.write_text(FAILING)
    done = in_process("search", "retry", "--top", "1")
    assert done.code == 0
    assert "alpha retry one" in done.out
    assert "! The source 'torn' failed: RuntimeError: the book is torn" in done.out
    as_json = in_process("search", "retry", "--json").json
    assert len(as_json["results"]) == 4
    assert as_json["warnings"] == ["The source 'torn' failed: RuntimeError: the book is torn"]


def test_when_every_source_fails_the_message_says_whose_failure_it_is(in_process: Any, shelf: Path) -> None:
    shelf.write_text(FAILING)
    done = in_process("search", "retry", "--source", "torn")
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines()[-1] == "Error: The source 'torn' failed: RuntimeError: the book is torn"


def test_when_every_source_fails_each_is_told_of(in_process: Any, shelf: Path) -> None:
    shelf.write_text(FAILING + '[search.burnt]\nuse = "shelf"\nfailure = "the book is burnt"\n')
    done = in_process("search", "retry", "--source", "torn", "--source", "burnt")
    assert done.err.splitlines()[-2:] == [
        "Error: The source 'torn' failed: RuntimeError: the book is torn",
        "The source 'burnt' failed too: RuntimeError: the book is burnt",
    ]


def test_a_page_that_two_sources_find_is_listed_once(in_process: Any, shelf: Path) -> None:
    one, two = "https://a.example/door", "http://a.example/door/"
    shelf.write_text(
        f'[search.one]\nuse = "shelf"\nlink = "{one}"\npassages = ["A door"]\n'
        f'[search.two]\nuse = "shelf"\nlink = "{two}"\npassages = ["A door is a lid"]\n'
    )
    results = in_process("search", "door", "--json").json["results"]
    assert [(result["number"], result["text"], result["link"]) for result in results] == [(1, "A door is a lid", two)]


def test_what_a_source_says_of_the_query_is_in_the_metadata(in_process: Any, shelf: Path) -> None:
    shelf.write_text(PASSAGES + 'suggestion = "retry \\u001b[31mpolicy"\n')
    assert in_process("search", "retri", "--json").json["metadata"] == {"shelf": {"suggestion": "retry \x1b[31mpolicy"}}
    shelf.write_text(PASSAGES)
    assert in_process("search", "retry", "--json").json["metadata"] == {}


def test_a_source_that_is_not_there_is_named_with_those_that_are(in_process: Any, shelf: Path) -> None:
    shelf.write_text(PASSAGES.replace("search.shelf", "search.library"))
    for command in ("search", "ask"):
        done = in_process(command, "retry", "--source", "libary")
        assert done.code == 2
        assert "'libary' is not installed." in done.err
        assert "Configured: library." in done.err


def test_a_mistake_in_the_settings_of_what_sources_stand_on_is_no_failure_of_a_source(
    in_process: Any, shelf: Path
) -> None:
    shelf.write_text(PASSAGES + "[http.httpx]\nretires = 2\n")
    done = in_process("search", "retry")
    assert (done.code, done.out) == (2, "")
    assert "http.httpx.retires" in done.err
