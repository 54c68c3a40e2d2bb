"""Replies of any kind are steps or have faults; what is recursive or open has an end."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico import Function
from portico.errors import SchemaUnsupported
from portico.plans import INPUT, From, Infeasible, Plan, PromptText, ReplyProblem, Step, plan_from_json, plan_to_json
from portico.plugins import PlainSchemaValidator
from portico_structured_planner.forms import Bounds, ParameterForm, bound_schema
from portico_structured_planner.reading import Call, Finish, read_step
from portico_structured_planner.steps import Forms, Origin, Rules, schema_of, step_form
from portico_testkit.strategies import json_values, near

BOUNDS = Bounds(20, 4, levels=True)


@dataclass(frozen=True)
class Tree:
    name: str
    parts: tuple[Tree, ...] = ()


def plant(tree: Tree, names: list[str], anything: Any, note: str = "") -> Tree:
    return tree


MANUAL = Function.of(plant, plugin="Garden").spec
ORIGINS = (Origin(INPUT, (schema_of({"name": "a", "names": ["b"]}),)), Origin("s1", (MANUAL.returns,)))
FORM = step_form([MANUAL], ORIGINS, Forms(), Rules(BOUNDS))
GOOD = {
    "next": {
        "function": "Garden-plant",
        "reason": "r",
        "arguments": {
            "tree": {"object": {"name": {"from": "s1", "path": "$.name"}, "parts": {"value": []}}},
            "names": {"list": [{"from": "input", "path": "$.name"}, {"value": "x"}]},
            "anything": {"from": "s1", "path": "$"},
            "note": {"text": ["a", {"from": "input", "path": "$"}]},
        },
    }
}


def test_a_good_step_is_read() -> None:
    for held in (True, False):
        step = read_step(json.dumps(GOOD), FORM, PlainSchemaValidator(), held=held)
        assert isinstance(step, Call)
        assert set(step.arguments) == {"tree", "names", "anything", "note"}


def test_a_list_may_be_a_part_of_every_element_of_a_result() -> None:
    pages = schema_of([{"link": "a"}, {"link": "b"}])
    form = step_form([MANUAL], (Origin("s1", (pages,)),), Forms(), Rules(BOUNDS))
    names, tree = {"from": "s1", "path": "$[*].link"}, {"value": {"name": "t"}}
    arguments = {"tree": tree, "names": names, "anything": {"value": 1}}
    reply = {"next": {"function": "Garden-plant", "reason": "r", "arguments": arguments}}
    step = read_step(json.dumps(reply), form, PlainSchemaValidator(), held=False)
    assert isinstance(step, Call)
    assert step.arguments["names"] == From("s1", From.parse_path("$[*].link"))


@pytest.mark.fuzz
@given(near(GOOD), st.booleans())
def test_what_is_nearly_a_step_is_one_or_has_faults(value: Any, held: bool) -> None:
    steps_or_faults(json.dumps(value), held)


@pytest.mark.fuzz
@given(st.text() | json_values().map(json.dumps) | st.integers(0, 400).map(lambda end: json.dumps(GOOD)[:end]))
def test_any_text_is_a_step_or_has_faults(text: str) -> None:
    for held in (True, False):
        steps_or_faults(text, held)


def steps_or_faults(text: str, held: bool) -> None:
    try:
        step = read_step(text, FORM, PlainSchemaValidator(), held=held)
    except ReplyProblem as error:
        assert error.faults, "what is wrong is said"
        assert all(len(fault) < 3_000 for fault in error.faults)
        return
    assert isinstance(step, Call | Finish | Infeasible)
    if isinstance(step, Call):
        plan = Plan("", (Step("s2", step.function, step.arguments, reason=step.reason),))
        written = json.dumps(plan_to_json(plan), allow_nan=False, ensure_ascii=False).encode()
        assert plan_from_json(json.loads(written)) == plan


@pytest.mark.parametrize("text", ["[" * 100_000, '{"next":' * 50_000, '{"next": {"function": ' + "9" * 5_000 + "}}"])
@pytest.mark.parametrize("held", [True, False])
def test_what_is_built_to_upset_a_reader_has_faults(text: str, held: bool) -> None:
    with pytest.raises(ReplyProblem):
        read_step(text, FORM, PlainSchemaValidator(), held=held)


def test_infinities_are_no_numbers() -> None:
    reply = json.loads(json.dumps(GOOD))
    reply["next"]["arguments"]["anything"] = {"value": 5}
    text = json.dumps(reply).replace("5}", "1e999}")
    with pytest.raises(ReplyProblem, match="anything: it cannot be written as JSON"):
        read_step(text, FORM, PlainSchemaValidator(), held=False)


def test_what_is_recursive_is_written_out() -> None:
    for schema in (MANUAL.parameters["properties"]["tree"], {}, {"type": "array"}, {"type": "object"}):
        literal = ParameterForm(schema, MANUAL.parameters["$defs"]).literal(BOUNDS)
        assert literal is not None
        assert not recursive(literal)
    strict = ParameterForm({}).literal(Bounds(None, 4, levels=False))
    assert strict is not None
    assert recursive(strict), "a service with strict mode takes it as it is"


def test_what_never_ends_is_no_literal() -> None:
    node = {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "required": ["n"]}
    form = ParameterForm({"$ref": "#/$defs/N"}, {"N": node})
    assert form.literal(BOUNDS) is None
    with pytest.raises(SchemaUnsupported, match="ends"):
        bound_schema({"$ref": "#/$defs/N", "$defs": {"N": {**node, "additionalProperties": False}}}, BOUNDS)


def recursive(schema: Any) -> bool:
    definitions = schema.get("$defs", {})

    def leads(part: Any, trail: tuple[str, ...]) -> bool:
        if isinstance(part, list):
            return any(leads(each, trail) for each in part)
        if not isinstance(part, dict):
            return False
        if "$ref" in part:
            name = part["$ref"].removeprefix("#/$defs/")
            return name in trail or leads(definitions[name], (*trail, name))
        return any(leads(each, trail) for key, each in part.items() if key != "$defs")

    return leads(schema, ())


@given(json_values(20))
def test_a_value_is_valid_under_its_schema(value: Any) -> None:
    assert PlainSchemaValidator().compile(schema_of(value))(value) == []


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({}, "any"),
        (True, "any"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"enum": ["a", 1]}, '"a" | 1'),
        ({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}, "(string | integer)[]"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "{[name]: number}"),
        ({"$ref": "#/$defs/N", "$defs": {"N": {"type": "array", "items": {"$ref": "#/$defs/N"}}}}, "any[][]"),
        ({"type": "array", "prefixItems": [{"type": "string"}, {}]}, "[string, any]"),
    ],
)
def test_schemas_are_shown_in_few_words(schema: Any, shown: str) -> None:
    assert PromptText.shape(schema) == shown
