"""The three renderings of a function's manual."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from hypothesis import given, strategies as st
from tests.support.strategies import type_cases

from portico._chat.messages import Tool
from portico._functions.functions import Function, FunctionSpec
from portico._schema.validate import PlainSchemaValidator


@dataclass
class Forecast:
    """The weather of a day."""

    degrees: float


UNSAID: Any = object()


def forecast(
    city: str, days: Annotated[int, "How many days\n  from today"] = 1, unit: str | None = None, other: str = UNSAID
) -> list[Forecast]:
    """Tell the weather
    of some days.

    Args:
        city: Where, by its English name.

    Returns:
        One for each day.
    """
    return []


def quiet() -> None: ...


MANUAL = Function.of(forecast, plugin="Weather").spec


def test_the_text_has_a_block_for_each_function_with_names_and_defaults() -> None:
    assert FunctionSpec.write_text([MANUAL, Function.of(quiet).spec]) == (
        "Weather.forecast:\n"
        "  description: Tell the weather of some days.\n"
        "  inputs:\n"
        "  - city: Where, by its English name.\n"
        "  - days: How many days from today (default: 1)\n"
        "  - unit: (default: null)\n"
        "  - other: (optional)\n"
        "\n"
        "quiet:\n"
        "  description:\n"
        "  inputs: none"
    )
    assert FunctionSpec.write_text([]) == ""


def test_no_word_of_a_function_can_begin_a_line_of_its_own() -> None:
    forged = FunctionSpec("a", "x\n  inputs:\r\u2028b", {"properties": {"p": {"description": "y\n- q: z"}}}, {})
    assert FunctionSpec.write_text([forged]) == "a:\n  description: x inputs: b\n  inputs:\n  - p: y - q: z (optional)"


def test_the_schema_manual_tells_what_goes_in_and_what_comes_out() -> None:
    made = MANUAL.to_openapi()
    assert list(made) == ["name", "description", "parameters", "responses"]
    assert (made["name"], made["description"]) == ("Weather-forecast", "Tell the weather of some days.")
    assert made["parameters"] == MANUAL.parameters
    response = made["responses"]["200"]
    assert response["description"] == "One for each day."
    assert response["content"]["application/json"]["schema"] == {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"degrees": {"type": "number"}},
            "required": ["degrees"],
            "additionalProperties": False,
            "description": "The weather of a day.",
        },
        "description": "One for each day.",
    }
    assert Function.of(quiet).spec.to_openapi()["responses"]["200"]["description"] == "Success"


def doubling(length: int) -> dict[str, Any]:
    """A schema whose definitions each have two properties of the next one: written out it is 2 ** length long."""
    made: dict[str, Any] = {
        f"D{number}": {
            "type": "object",
            "properties": {name: {"$ref": f"#/$defs/D{number + 1}"} for name in ("left", "right")},
        }
        for number in range(length)
    }
    return {"$ref": "#/$defs/D0", "$defs": {**made, f"D{length}": {"enum": list(range(1_000))}}}


RECURSIVE = {"type": "object", "properties": {"next": {"$ref": "#"}, "name": {"enum": ["x" * 5_000]}}}
WIDE = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(1_000)}}
TABLE = {
    "type": "array",
    "items": {"type": "object", "properties": {"rows": WIDE, "size": {"type": "integer"}}, "required": ["size"]},
}


@pytest.mark.parametrize("schema", [doubling(3), doubling(200), RECURSIVE, WIDE, TABLE, {"anyOf": [TABLE, WIDE]}])
def test_a_long_output_schema_is_shown_by_its_upper_levels_and_stays_whole(schema: dict[str, Any]) -> None:
    spec = FunctionSpec("a", "", {"type": "object", "properties": {}}, schema)
    shown = spec.to_openapi()["responses"]["200"]["content"]["application/json"]["schema"]
    assert len(json.dumps(shown)) <= 4_000
    assert "left out" in json.dumps(shown)
    assert "$ref" not in json.dumps(shown)
    assert spec.returns is schema


def test_of_a_long_output_schema_as_many_levels_are_shown_as_there_is_room_for() -> None:
    left_out = {"type": "object", "description": "What is inside is left out here."}
    shown = FunctionSpec("a", "", {}, TABLE).brief_returns
    assert shown == {
        **TABLE,
        "items": {**TABLE["items"], "properties": {"rows": left_out, "size": {"type": "integer"}}},
    }
    assert FunctionSpec("a", "", {}, WIDE).brief_returns == left_out


def test_the_tool_is_what_a_chat_service_takes() -> None:
    assert MANUAL.tool() == Tool("Weather-forecast", "Tell the weather of some days.", MANUAL.parameters)
    assert MANUAL.tool(name="forecast").name == "forecast"
    assert not MANUAL.tool().strict


@given(st.data())
def test_every_rendering_is_of_any_function_and_its_schemas_are_json_that_the_plain_validator_takes(
    data: st.DataObject,
) -> None:
    def run(first, second=None): ...  # type: ignore[no-untyped-def]

    case = data.draw(type_cases())
    default = data.draw(case.values)
    run.__annotations__ = {"first": case.hint, "second": case.hint, "return": case.hint}
    run.__defaults__ = (default,)
    function = Function.of(run)
    made = function.spec.to_openapi()
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    assert FunctionSpec.write_text([function.spec]).count("\n  - ") == 2
    validate = PlainSchemaValidator().compile(function.spec.tool().parameters)
    written = function.returns.unstructure(default)
    assert made["parameters"]["properties"]["second"]["default"] == written
    assert validate({"first": written}) == []
    PlainSchemaValidator().compile(made["responses"]["200"]["content"]["application/json"]["schema"])
