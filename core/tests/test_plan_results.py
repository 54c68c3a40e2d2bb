"""What a plan gives: the schema of its result, told as far as its functions tell theirs and no further."""

from __future__ import annotations

from typing import Any

import pytest

from portico._functions.functions import FunctionSpec
from portico._plans.functions import result_schema
from portico._plans.plan import From, ListOf, ObjectOf, Plan, PlanTemplate, Step, Value
from portico._schema.paths import JsonPath

PERSON = {"type": "object", "properties": {"name": {"type": "string"}, "boss": {"$ref": "#/$defs/P"}}}


def given(returns: Any, path: JsonPath) -> dict[str, Any]:
    plan = Plan("g", (Step("s", "f"),), From("s", path))
    return result_schema(plan, {"f": FunctionSpec("f", "", {"type": "object"}, returns)})


@pytest.mark.parametrize(
    ("plan", "schema"),
    [
        (Plan("g", (Step("s", PlanTemplate("Hi", "semantic-kernel")),), From("s")), {"type": "string"}),
        (Plan("g", (Step("s", Plan("i", result=Value([]))),), From("s")), {"type": "array"}),
        (Plan("g", (Step("s", Plan("i")),), From("s")), {"type": "null"}),
        (Plan("g", result=ListOf(())), {"type": "array", "minItems": 0, "maxItems": 0}),
        (Plan("g", result=From("input")), {}),
    ],
)
def test_what_is_inside_of_a_plan_is_told(plan: Plan, schema: dict[str, Any]) -> None:
    assert result_schema(plan, {}) == schema


@pytest.mark.parametrize(
    ("returns", "path", "schema"),
    [
        ({"type": "array", "items": {"type": "string"}}, (-1,), {"type": "string"}),
        ({"prefixItems": [{"type": "string"}, {"type": "integer"}]}, (0,), {"type": "string"}),
        ({"prefixItems": [{"type": "string"}, {"type": "integer"}]}, (1,), {"type": "integer"}),
        ({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}, (-1,), {}),
        ({"prefixItems": [True]}, (0,), {}),
        ({"items": False}, (0,), {}),
        ({"properties": {"x": True}}, ("x",), {}),
        ({"properties": {"x": True}}, ("x", "y"), {}),
        ({"additionalProperties": {"type": "integer"}}, ("x",), {"type": "integer"}),
        ({"patternProperties": {"^x": {"type": "string"}}, "additionalProperties": {"type": "integer"}}, ("x",), {}),
        ({"properties": {"x": {"$ref": "#/$defs/Gone"}}}, ("x", "y"), {}),
        ({"properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": {"$ref": "#/$defs/X"}}}, ("x", "y"), {}),
        ({"$ref": "#/$defs/P", "$defs": {"P": PERSON}}, ("boss", "boss", "name"), {"type": "string"}),
    ],
)
def test_a_path_leads_as_far_into_a_schema_as_it_says(returns: Any, path: JsonPath, schema: dict[str, Any]) -> None:
    found = given(returns, path)
    assert {name: said for name, said in found.items() if name != "$defs"} == schema


def test_what_is_inside_of_a_definition_keeps_the_definitions() -> None:
    returns = {"$ref": "#/$defs/P", "$defs": {"P": PERSON}}
    assert given(returns, ("boss",)) == {"$ref": "#/$defs/P", "$defs": {"P": PERSON}}
    assert given(returns, ()) == returns


def test_a_result_that_is_used_twice_on_each_level_is_looked_at_once() -> None:
    looked: list[str] = []

    class Counted(dict[str, FunctionSpec]):
        def __getitem__(self, name: str) -> FunctionSpec:
            looked.append(name)
            return super().__getitem__(name)

    returns = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
    both = ObjectOf({name: From("s", (name,)) for name in ("a", "b")})
    plan = Plan("g", (Step("s", "f"),), result=both)
    for _ in range(8):
        plan = Plan("g", (Step("s", plan),), result=both)
    schema = result_schema(plan, Counted(f=FunctionSpec("f", "", {"type": "object"}, returns)))
    assert schema["properties"] == returns["properties"]
    assert looked == ["f"]
