"""The evaluation of Handlebars tells what passes, what fails and what is JavaScript."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.eval.__main__ import main

CASES: list[dict[str, Any]] = [
    {"it": "path", "template": "{{a.b}}", "data": {"a": {"b": "<"}}, "expected": "&lt;"},
    {"it": "code", "template": "{{a}}", "data": {"a": {"!code": True, "javascript": "() => 1"}}, "expected": "1"},
    {"it": "error", "template": "{{#a}}", "data": {}, "exception": True},
    {"it": "option", "template": "{{a}}", "data": {"a": "<"}, "compileOptions": {"noEscape": True}, "expected": "<"},
    {"it": "data", "template": "{{@a}}", "runtimeOptions": {"data": {"a": 1}}, "expected": "1"},
    {"it": "partial", "template": "{{> p}}", "partials": {"p": "x"}, "data": {}, "expected": "x"},
    {
        "it": "holes",
        "template": "{{#each a}}{{@index}}{{.}} {{/each}}",
        "data": {"a": {"!sparsearray": True, "!length": 4, "1": "x", "3": "y"}},
        "expected": "1x 3y ",
    },
    {"it": "order", "template": "{{#each a}}{{@key}}{{/each}}", "data": {"a": {"b": 1, "2": 1}}, "expected": "2b"},
    {"it": "tokens", "template": "{{a}}", "expected": [
        {"name": "OPEN", "text": "{{"}, {"name": "ID", "text": "a"}, {"name": "CLOSE", "text": "}}"},
    ]},
    {"description": "parser", "it": "tree", "template": "{{#a}}b{{^}}c{{/a}}", "expected":
        "BLOCK:\n  PATH:a []\n  PROGRAM:\n    CONTENT[ 'b' ]\n  {{^}}\n    CONTENT[ 'c' ]\n"},
]  # fmt: skip


def written(folder: Path, name: str, cases: Any) -> str:
    path = folder / name
    path.write_text(json.dumps(cases))
    return str(path)


def test_cases_pass_and_those_in_javascript_are_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["handlebars", written(tmp_path, "cases.json", CASES), "--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert json.loads(out) == {"passed": len(CASES) - 2, "failed": 0, "skipped": 2, "failures": []}


def test_what_fails_is_listed_with_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = [
        {"it": "text", "number": "03", "template": "{{a}}", "data": {"a": 1}, "expected": "2"},
        {"it": "no error", "template": "{{a}}", "data": {}, "exception": "a is missing"},
        {"it": "error", "template": "{{a", "data": {}, "expected": ""},
    ]
    files = [written(tmp_path, "wrong.json", wrong), written(tmp_path, "right.json", CASES[:1])]
    assert main(["handlebars", *files]) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (result["passed"], result["failed"], result["skipped"]) == (1, 3, 0)
    first, second, third = result["failures"]
    assert first == {"file": "wrong.json", "number": "03", "it": "text", "reason": "expected '2', got '1'"}
    assert "an error was expected" in second["reason"]
    assert third["reason"].startswith("it fails: ")


def test_a_file_that_is_no_collection_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["handlebars", written(tmp_path, "other.json", {"a": 1})]) == 1
    assert "has no list of cases" in capsys.readouterr().err


ODD: list[Any] = [
    None,
    "text",
    {"it": "no template", "expected": "x"},
    {"it": "a tree", "template": {"type": "Program", "body": []}, "expected": "x"},
    {"it": "nothing is said", "template": "x"},
    {"it": "no error", "template": "x", "exception": False},
    {"it": "code in data", "template": "{{a}}", "data": [{"a": {"!code": True, "php": "1"}}], "expected": "1"},
    {"it": "code", "template": "{{> p}}", "partials": {"p": {"!code": True, "javascript": "x"}}, "expected": "1"},
    {"it": "decorator", "template": "{{* d}}", "decorators": {"d": {"!code": True, "javascript": "x"}}, "expected": ""},
]
FITTING: list[dict[str, Any]] = [
    {"template": "{{a}}", "data": {"a": 1}, "expected": "1", "exception": False, "helpers": [], "decorators": []},
    {"template": "{{a}}", "data": {"a": 1}, "expected": "1", "partials": [], "compileOptions": []},
    {"template": "{{length}}", "data": "bye", "expected": "3", "helpers": {"length": {"!code": True, "php": "x"}}},
    {"template": "{{a}}", "data": {"a": 1}, "expected": "1", "helpers": {"b": "x"}, "message": "It works"},
    {"template": "{{> p}}", "expected": "x", "runtimeOptions": {"partials": {"p": "x"}, "data": None}, "note": 1},
    {"template": "{{> p}}", "partials": {"p": None}, "exception": "/could not be found/i"},
    {"template": "{{#each @a}}{{this}}{{/each}}", "runtimeOptions": {"data": {"a": ["x"]}}, "expected": "x"},
    {"template": "{{a", "exception": ""},
    {"template": "{{a}}", "expected": "", "compileOptions": {"strict": None}},
    {"template": "{{helpers}}{{message}}", "data": {"helpers": 1, "message": 2}, "expected": "12"},
]  # fmt: skip


def test_odd_cases_are_skipped_and_fields_may_be_missing_empty_or_of_php(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["handlebars", written(tmp_path, "odd.json", ODD + FITTING), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result == {"passed": len(FITTING), "failed": 0, "skipped": len(ODD), "failures": []}


def test_what_a_case_raises_is_its_failure_and_no_other_s(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sparse = {"!sparsearray": True, "!length": "many"}
    broken = {"number": "01", "it": "length", "template": "{{a}}", "data": {"a": sparse}, "expected": ""}
    assert main(["handlebars", written(tmp_path, "broken.json", [broken, *CASES[:1]]), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["passed"], result["failed"]) == (1, 1)
    assert result["failures"][0]["reason"].startswith("it raises TypeError")


def test_the_files_of_parser_and_tokenizer_are_known_by_their_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trees = [
        {"description": "Parse", "template": "{{a}}", "data": {}, "expected": "{{ PATH:a [] }}\n"},
        {"description": "Parse", "template": "{{a}", "exception": True},
    ]
    tokens = [
        {"template": "a", "expected": [{"name": "CONTENT", "text": "a"}]},
        {"template": "", "expected": []},
        {"template": "{{a}", "expected": [{"name": "OPEN", "text": "{{"}, {"name": "ID", "text": "a"}]},
    ]
    files = [written(tmp_path, "parser.json", trees), written(tmp_path, "tokenizer.json", tokens)]
    assert main(["handlebars", *files, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["passed"] == 5
