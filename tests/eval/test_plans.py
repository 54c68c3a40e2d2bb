"""The evaluation of XML plans says of each what was read, or where it was refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.eval.__main__ import main
from tests.eval.plans import catalogue

SAMPLE = Path(__file__).with_name("collection") / "plans.jsonl"
PLAN = '<plan><function.Text.repeat text="ab" times="3"></plan>'


def measured(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["plans", *arguments, "--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    return json.loads(out)


def test_the_sample_has_recovered_and_refused_plans(capsys: pytest.CaptureFixture[str]) -> None:
    result = measured(capsys, str(SAMPLE))
    assert (result["recovered"], result["refused"]) == (5, 2)
    outcomes = {each["id"]: each for each in result["results"]}
    assert outcomes["poem"]["plan"]["steps"][1]["arguments"]["input"] == {"from": "POEM"}
    assert outcomes["poem"]["findings"] == outcomes["poem"]["mends"] == []
    assert outcomes["infeasible"]["empty"] is True
    assert outcomes["two readings"]["outcome"] == "refused"
    assert (outcomes["two readings"]["line"], outcomes["two readings"]["column"]) == (2, 33)
    assert "nearest: WriterPlugin-ShortPoem" in outcomes["unknown function"]["findings"][0]["message"]
    assert outcomes["numbers"]["plan"]["steps"][0]["arguments"]["times"] == {"value": 3}
    assert main(["plans", str(SAMPLE)]) == 0
    assert capsys.readouterr().out.startswith("5 recovered, 2 refused\n")


@pytest.mark.parametrize(
    "functions",
    [
        {"Text.repeat": {"text": "string", "times": "integer"}},
        {"Text-repeat": {"text": {"type": "string"}, "times": {"type": "integer", "description": "how often"}}},
        {"Text.repeat": [{"name": "text"}, {"name": "times", "type": "int", "required": True}]},
        {"Text.repeat": {"parameters": {"type": "object", "properties": {"text": {}, "times": {"type": "integer"}}}}},
        [{"name": "Text.repeat", "parameters": [{"name": "text"}, {"name": "times", "schema": {"type": "integer"}}]}],
        [{"plugin": "Text", "name": "repeat", "parameters": {"text": "What.", "times": {"type": "integer"}}}],
        [
            {
                "PluginName": "Text",
                "Name": "repeat",
                "Parameters": [{"Name": "text"}, {"Name": "times", "type": "Integer"}],
            }
        ],
        {
            "functions": [
                {"full_name": "Text-repeat", "inputs": [{"name": "text"}, {"name": "times", "type": "integer"}]}
            ]
        },
        [
            {
                "type": "function",
                "function": {
                    "name": "Text-repeat",
                    "parameters": {"type": "object", "properties": {"text": {}, "times": {"type": "integer"}}},
                },
            }
        ],
    ],
)
def test_functions_may_be_in_any_of_their_forms(
    functions: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plans.jsonl"
    file.write_text(json.dumps({"xml": PLAN, "functions": functions}) + "\n\n")
    [result] = measured(capsys, str(file))["results"]
    assert result["findings"] == []
    assert result["plan"]["steps"][0]["arguments"] == {"text": {"value": "ab"}, "times": {"value": 3}}


@pytest.mark.parametrize("functions", [["Text.repeat"], {"Text.repeat": "Repeat a text."}, {"Text.repeat": None}])
def test_a_name_alone_is_a_function_that_takes_anything(functions: Any) -> None:
    (spec,) = catalogue(functions).values()
    assert (spec.name, spec.parameters) == ("Text-repeat", {"type": "object", "properties": {}})


def test_functions_of_names_have_the_parameters_that_are_named() -> None:
    (spec,) = catalogue({"Text.repeat": ["text", "times"]}).values()
    assert list(spec.parameters["properties"]) == ["text", "times"]
    assert spec.parameters["additionalProperties"] is False
    (view,) = catalogue(
        [{"name": "f", "parameters": [{"name": "a", "defaultValue": "x", "isRequired": False}]}]
    ).values()
    assert view.parameters["properties"] == {"a": {"type": "string", "default": "x"}}


def test_without_functions_nothing_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "plans.jsonl"
    file.write_text(json.dumps({"xml": PLAN}))
    assert measured(capsys, str(file))["results"][0]["findings"] == []
    file.write_text(json.dumps({"xml": PLAN, "functions": []}))
    assert "there is no function" in measured(capsys, str(file))["results"][0]["findings"][0]["message"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "line 1: no JSON"),
        ("[]", 'line 1: an object with the text "xml"'),
        ('{"xml": 1}', 'line 1: an object with the text "xml"'),
        ('{"xml": "<plan/>", "functions": 1}', "line 1: functions are a list"),
        ('{"xml": "<plan/>", "functions": [1]}', "line 1: 1 is no function"),
        ('{"xml": "<plan/>", "functions": [{}]}', "line 1: a function without a name"),
        ('{"xml": "<plan/>", "functions": {"f": 1}}', "line 1: 1 are no parameters"),
    ],
)
def test_what_is_no_line_of_the_file_is_an_error(
    line: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plans.jsonl"
    file.write_text(line)
    assert main(["plans", str(file)]) == 1
    assert says in capsys.readouterr().err
