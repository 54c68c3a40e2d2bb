"""Definitions move to the root of a schema, each under one name, and every reference still means the same."""

from __future__ import annotations

import copy
from dataclasses import dataclass, make_dataclass
from typing import Any

import jsonschema
import pytest
from hypothesis import given, strategies as st

from portico._functions.functions import Function
from portico._schema.definitions import free_name, hoist
from portico._schema.validate import PlainSchemaValidator
from portico._types.compiled import Compiled, Mismatch
from portico._types.compiling import compile_type
from portico_testkit.strategies import json_values

_NAMES = ["Node", "Leaf", "Node2"]


@st.composite
def defined(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a schema of definitions that refer to one another."""
    names = draw(st.lists(st.sampled_from(_NAMES), min_size=1, unique=True))
    reference = st.sampled_from(names).map(lambda name: {"$ref": f"#/$defs/{name}"})
    simple = st.sampled_from(["string", "integer", "null"]).map(lambda kind: {"type": kind})
    inner = st.builds(lambda one, other: {"anyOf": [one, other]}, simple, reference | simple)
    body = st.dictionaries(st.sampled_from(["a", "$ref"]), inner, max_size=2).map(
        lambda properties: {"type": "object", "properties": properties, "default": {"$ref": "#/$defs/Node"}}
    )
    return {"type": "array", "items": draw(reference), "$defs": {name: draw(body) for name in names}}


@given(defined(), defined(), json_values(4) | st.sampled_from([[{"a": 1}], [{"a": {"a": "x"}}], [{"$ref": None}]]))
def test_a_schema_means_the_same_under_the_root(one: Any, other: Any, value: Any) -> None:
    definitions: dict[str, Any] = {}
    before = copy.deepcopy((one, other))
    moved = [hoist(one, definitions), hoist(other, definitions), hoist(one, definitions)]
    assert (one, other) == before
    assert moved[0] == moved[2], "the same schema twice is defined once"
    assert len(definitions) <= len(one["$defs"]) + len(other["$defs"])
    for alone, inside in zip((one, other), moved, strict=False):
        assert "$defs" not in inside
        expected = jsonschema.Draft202012Validator(alone).is_valid(value)
        assert jsonschema.Draft202012Validator({**inside, "$defs": definitions}).is_valid(value) == expected


def test_what_refers_to_a_definition_of_another_meaning_is_another_one_too() -> None:
    def schema(kind: str) -> dict[str, Any]:
        outer = {"type": "object", "properties": {"leaf": {"$ref": "#/$defs/Leaf"}}}
        return {"$ref": "#/$defs/Tree", "$defs": {"Tree": outer, "Leaf": {"type": kind}}}

    definitions: dict[str, Any] = {}
    assert hoist(schema("string"), definitions) == {"$ref": "#/$defs/Tree"}
    assert hoist(schema("integer"), definitions) == {"$ref": "#/$defs/Tree2"}
    assert definitions["Tree"]["properties"]["leaf"] == {"$ref": "#/$defs/Leaf"}
    assert definitions["Tree2"]["properties"]["leaf"] == {"$ref": "#/$defs/Leaf2"}


@pytest.mark.parametrize(("taken", "free"), [((), "a"), (("a",), "a2"), (("a", "a2"), "a3"), (("a2",), "a")])
def test_a_free_name_is_the_first_that_nothing_has(taken: tuple[str, ...], free: str) -> None:
    assert free_name("a", taken) == free


class Model:
    """Stands for a class of a package that defines what its schema refers to."""

    def __init__(self, value: Any) -> None:
        self.value = value


class OtherModel(Model): ...


class ModelCodec:
    """Makes schemas as pydantic does: with definitions of their own."""

    name = "models"

    def compile(self, hint: object, inner: Any) -> Compiled | None:
        if hint not in (Model, OtherModel):
            return None
        kind: Any = hint
        of = {"type": "string"} if hint is Model else {"type": "integer"}
        held = inner(Holder) if hint is OtherModel else None

        def structure(value: Any) -> Any:
            if not isinstance(value, dict):
                raise Mismatch([])
            return kind(value)

        properties = {"node": {"$ref": "#/$defs/Node"}} | ({"holder": held.schema} if held else {})
        definitions = {"Node": {"type": "object", "properties": {"of": of, "next": {"$ref": "#/$defs/Node"}}}}
        schema = {"type": "object", "properties": properties, "$defs": definitions}
        return Compiled(schema, structure, lambda model: model.value)


@dataclass
class Holder:
    value: int
    next: Holder | None = None


@dataclass
class Node:
    model: Model
    other: OtherModel
    again: Model
    next: Node | None = None


def test_the_definitions_of_a_codec_come_to_the_root_beside_those_of_core() -> None:
    schema = compile_type(list[Node], [ModelCodec()]).schema
    assert set(schema["$defs"]) == {"Node", "Node2", "Node3", "Holder"}
    validate = PlainSchemaValidator().compile(schema)
    whole = {
        "model": {"node": {"of": "a", "next": {"of": "b"}}},
        "other": {"node": {"of": 1, "next": {"of": 2}}, "holder": {"value": 1, "next": {"value": 2}}},
        "again": {"node": {"of": "a"}},
    }
    assert validate([whole | {"next": whole}]) == []
    assert validate([whole | {"next": whole | {"model": {"node": {"of": 1}}}}])
    assert validate([whole | {"next": whole | {"other": {"node": {"next": {"of": "a"}}}}}])
    assert validate([whole | {"other": {"holder": {"value": 1, "next": {"value": "a"}}}}])


def test_two_classes_of_one_name_keep_apart_among_the_parameters_of_a_function() -> None:
    def made(kind: type) -> Any:
        node = make_dataclass("Node", [("value", kind), ("next", Any, None)])
        node.__annotations__["next"] = node | None
        return node

    def run(left, right, last): ...  # type: ignore[no-untyped-def]

    text = made(str)
    run.__annotations__ = {"left": made(int), "right": list[text], "last": text}  # type: ignore[valid-type]
    schema = Function.of(run).spec.parameters
    assert set(schema["$defs"]) == {"Node", "Node2"}
    validate = PlainSchemaValidator().compile(schema)
    good = {"left": {"value": 1, "next": {"value": 2}}, "right": [{"value": "a"}], "last": {"value": "b"}}
    assert validate(good) == []
    assert validate(good | {"left": {"value": "a"}})
    assert validate(good | {"right": [{"value": "a", "next": {"value": 1}}]})
    assert validate(good | {"last": {"value": 1}})
