"""The selection evaluation reads odd files, says what is wrong with them, and fusing loses nothing to the halves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.eval.__main__ import main
from tests.eval.selection_format import read_functions, read_queries

COLLECTION = Path(__file__).parent / "collection"


def written(path: Path, *values: Any) -> str:
    path.write_text("\n".join(json.dumps(value) for value in values), "utf-8")
    return str(path)


def test_fused_is_as_good_as_the_better_half(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["selection", str(COLLECTION / "tools.jsonl"), str(COLLECTION / "tool-queries.jsonl"), "--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    figures = json.loads(out)
    assert list(figures) == ["tools", "queries", "lexical", "vector", "fused"]
    assert list(figures["fused"]) == ["recall@1", "recall@5", "recall@10"]
    better = max(figures["lexical"]["recall@5"], figures["vector"]["recall@5"])
    assert figures["fused"]["recall@5"] >= better - 0.01, figures
    assert figures["fused"]["recall@5"] > 0.72, figures


def test_words_find_as_much_as_a_plain_bm25_over_stems(capsys: pytest.CaptureFixture[str]) -> None:
    files = str(COLLECTION / "tools.jsonl"), str(COLLECTION / "tool-queries.jsonl")
    assert main(["selection", *files, "--peer", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    for depth, recall in figures["stemmed"].items():
        assert figures["lexical"][depth] >= recall - 0.01, figures


def test_figures_are_printed_for_people_and_the_last_line_is_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tools = written(
        tmp_path / "tools",
        {"api_name": "getRain", "api_description": "Tell whether it rains.", "parameters": {"city": {}}},
        {"api_name": "writePoem", "api_description": "Write a poem.", "parameters": {}},
    )
    queries = written(
        tmp_path / "queries",
        {"query": "A poem about rain", "calling": [{"api": "writePoem"}, {"api": "writePoem"}]},
        {"query": "Does it rain in this city?", "calling": [{"api": "getRain"}, {"api": "unknown"}]},
    )
    assert main(["selection", tools, queries]) == 0
    captured = capsys.readouterr()
    *lines, last = captured.out.splitlines()
    assert json.loads(last)["queries"] == 2
    assert json.loads(last)["fused"]["recall@5"] == 1.0, "of two functions both are among five"
    assert lines[0] == "2 queries, 2 functions"
    assert lines[3].startswith("fused     recall@1 1.0000")
    assert "1 times it asks for a function that there is not" in captured.err


def test_one_function_alone_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tools = written(tmp_path / "tools", {"api_name": "getRain"})
    queries = written(tmp_path / "queries", {"query": "rain", "calling": "getRain"})
    assert main(["selection", tools, queries, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["fused"]["recall@1"] == 1.0


@pytest.mark.parametrize(
    "parameters",
    [
        {"city": {"type": "str", "description": "Where."}, "day": None},
        {"city": "Where.", "day": 3},
        {"type": "object", "properties": {"city": {"description": "Where."}, "day": True}},
        [{"name": "city", "description": "Where."}, "day", {"name": 5}, None],
    ],
)
def test_parameters_are_read_however_they_are_written(tmp_path: Path, parameters: Any) -> None:
    path = Path(written(tmp_path / "tools", {"api_name": "f", "parameters": parameters}))
    [spec], odd = read_functions(path)
    assert spec.parameters["properties"] == {"city": {"description": "Where."}, "day": {}}
    assert odd == []


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.write_text(
        "\ufeff"
        + json.dumps([{"api_name": "f"}, {"api_name": "f"}, {"type": "function", "function": {"name": "g"}}, {}]),
        "utf-8",
    )
    functions, odd = read_functions(tools)
    assert [spec.name for spec in functions] == ["f", "g"]
    assert odd == [
        f"{tools}: 1 left out, without an 'api_name'.",
        f"{tools}: 1 left out, of a name that was there before.",
    ]
    queries = tmp_path / "queries"
    written(
        queries,
        {"query": "one", "calling": [{"api": "f"}, "g"]},
        {"query": " ", "calling": [{"api": "f"}]},
        {"calling": [{"api": "f"}]},
        {"query": "no calls", "calling": None},
        {"query": "unknown", "calling": [{"api": "h"}, {"api": 3}]},
    )
    found, odd = read_queries(queries, ["f", "g"])
    assert [(query.text, query.functions) for query in found] == [("one", ("f", "g"))]
    assert odd == [
        f"{queries}: 2 left out, without a 'query'.",
        f"{queries}: 1 left out, without an 'api' in 'calling'.",
        f"{queries}: 1 times it asks for a function that there is not; those are not counted.",
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has no functions: each needs an 'api_name'"),
        ('{"api_name": "f"}\n\n{"api_name": ', "line 3 is no JSON"),
        ('{"api_name": "f"}\n[1]', "line 2: expected an object, got [1]"),
        ('[{"api_name": "f"},\n]', "line 2 is no JSON"),
        ('["f"]', 'item 1: expected an object, got "f"'),
        ("[" * 100_000, "is no JSON: it is nested too deep"),
        (b"\xff\xfe{", "is not UTF-8 text"),
    ],
)
def test_a_file_that_cannot_be_used_is_said_in_one_sentence(
    tmp_path: Path, text: str | bytes, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tools"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert main(["selection", str(path), str(path)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"selection: {path}")
    assert sentence in said
    assert said.count("\n") == 1


def test_queries_for_other_functions_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tools = written(tmp_path / "tools", {"api_name": "f"})
    assert main(["selection", tools, tools]) == 1
    assert main(["selection", tools, written(tmp_path / "q", {"query": "a", "calling": [{"api": "g"}]})]) == 1
    assert capsys.readouterr().err.count("no query that can be measured") == 2
