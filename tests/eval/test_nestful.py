"""The NESTFUL evaluation reads all ways of writing the format, and says of each task what is wrong with it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.eval import nestful
from tests.eval.__main__ import main
from tests.eval.nestful import measure
from tests.eval.nestful_format import plan_of, read_functions, read_tasks, schema_of
from tests.support.virtual_time import on_virtual_time

from portico.plans import From, ListOf, ObjectOf, TextOf, Value

COLLECTION = Path(__file__).parent / "collection"
DATA, SPEC = COLLECTION / "calls.json", COLLECTION / "calls-spec.json"


def test_every_task_that_is_not_clean_or_cannot_run_is_listed_with_its_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["nestful", str(DATA), str(SPEC), "--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    result = json.loads(out)
    assert {key: result[key] for key in ("tasks", "loaded", "clean", "ran")} == {
        "tasks": 9, "loaded": 8, "clean": 4, "ran": 4,
    }  # fmt: skip
    reasons = {one["task"]: one["reason"] for one in result["reasons"]}
    assert set(reasons) == {2, 3, 4, 5, 7}
    assert "there is no function 'paint_room'" in reasons[2]
    assert "$.height" in reasons[3]
    assert "'var7'" in reasons[3]
    assert "expected integer" in reasons[4]
    assert "the id 'var1' is taken" in reasons[5]
    assert reasons[7] == "it does not load: its output is no list of calls"


def test_references_are_read_wherever_they_stand_and_prices_are_not() -> None:
    plan = plan_of(read_tasks(DATA)[0])
    assert plan.steps[2].arguments["text"] == TextOf(
        (
            "The hall is ",
            From("var1", ("width",)),
            " wide; paint costs ",
            From("var2", ("price",)),
            ", not $5 or $100-$200.",
        )
    )
    assert plan.steps[1].arguments["colours"] == Value(["red"])
    assert plan.result == ObjectOf(
        {
            "width": From("var1", ("width",)),
            "note": From("var3"),
            "all": ListOf((From("var2"), ObjectOf({"corner": From("var1", ("corners", 0, "angle"))}))),
        }
    )


def test_without_var_result_the_last_call_is_the_result() -> None:
    plan = plan_of(read_tasks(DATA)[1])
    assert [step.id for step in plan.steps] == ["var_1", "var_2"]
    assert plan.result == From("var_2")


@pytest.mark.parametrize(
    ("written", "schema"),
    [
        ({"type": "string", "required": True, "description": "x"}, {"type": "string", "description": "x"}),
        ({"type": "int or float"}, {"anyOf": [{"type": "integer"}, {"type": "number"}]}),
        ({"type": "List[str]"}, {"type": "array", "items": {"type": "string"}}),
        ({"type": "Optional[Dict[str, int]]"}, {"anyOf": [{"type": "object"}, {"type": "null"}]}),
        ({"type": ["string", "null"]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"type": "String"}, {"type": "string"}),
        ({"type": "file"}, {}),
        ({"type": "any"}, {}),
        ({"type": "integer", "enum": ["1", "2"]}, {"enum": ["1", "2"]}),
        ({"type": "array", "format": "date"}, {"type": "array", "format": "date"}),
        ({"items": {"type": "number"}}, {"type": "array", "items": {"type": "number"}}),
        (
            {"type": "object", "properties": {"a": {"type": "bool", "required": True}, "b": "float"}},
            {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "number"}}, "required": ["a"]},
        ),
        ({}, {}),
        (None, {}),
    ],
)
def test_types_are_read_in_all_the_ways_in_which_they_are_written(written: Any, schema: dict[str, Any]) -> None:
    assert schema_of(written) == schema


def test_a_parameter_may_be_called_type_and_the_first_of_two_functions_counts() -> None:
    functions = read_functions(SPEC)
    assert functions["price_of_paint"].parameters["required"] == ["type", "colours"]
    assert set(functions["send_note"].parameters["properties"]) == {"to", "text", "copies"}
    assert functions["send_note"].parameters["required"] == ["to", "text"]


def test_json_lines_are_read_too_and_other_files_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = tmp_path / "tasks.jsonl"
    lines.write_text("\n".join(json.dumps(task) for task in json.loads(DATA.read_text())))
    assert read_tasks(lines) == read_tasks(DATA)
    (tmp_path / "words").write_text("hello")
    assert main(["nestful", str(tmp_path / "words"), str(SPEC)]) == 1
    assert "neither JSON nor JSON lines" in capsys.readouterr().err
    assert main(["nestful", str(tmp_path / "none"), str(SPEC)]) == 1


@on_virtual_time
async def test_independent_steps_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nestful, "time", SimpleNamespace(perf_counter=asyncio.get_running_loop().time))
    overlap = (await measure(DATA, SPEC, overlap=0.2))["overlap"]
    # Steps: 3 in two rows, 2, 2 and 2 in a row each. One after the other would take 1.8 s.
    assert overlap["critical"] == pytest.approx(8 * 0.2)
    assert overlap["seconds"] == pytest.approx(overlap["critical"])
    assert overlap["worst"] == pytest.approx(1), "independent steps of one task wait for each other"


def test_the_parameters_of_a_function_may_be_called_its_arguments() -> None:
    given = {"name": "mix", "arguments": {"colour": {"type": "string", "required": True}}, "output_arguments": {}}
    assert read_functions([given])["mix"].parameters["required"] == ["colour"]
