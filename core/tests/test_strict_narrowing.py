"""Requiring nullable defaults: absent and null are one by declaration, so a model writes null."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.errors import SchemaUnsupported
from portico.strict import require_nullable_defaults, strict_form
from portico_testkit.strategies import json_values

NULLABLE: list[Any] = [
    {"type": "null"},
    {"type": ["string", "null"]},
    {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    {"oneOf": [{"type": "integer"}, {"const": None}]},
    {"enum": ["a", None]},
    {"allOf": [{}, {"type": ["null", "array"]}]},
    {"$ref": "#/$defs/maybe"},
    {"$ref": "#"},
    {"description": "Anything."},
]
NOT_NULLABLE: list[Any] = [
    {"type": "string"},
    {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    {"enum": ["a"]},
    {"const": 0},
    {"allOf": [{"type": ["null", "array"]}, {"type": "array"}]},
    {"$ref": "#/$defs/never"},
    {"$ref": "#/$defs/circle"},
    {"$ref": "https://example.org/schema"},
    {"type": ["string", "null"], "not": {"type": "null"}},
]
DEFINITIONS: dict[str, Any] = {
    "maybe": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/never"}]},
    "never": {"type": "string"},
    "circle": {"anyOf": [{"$ref": "#/$defs/circle"}]},
}


def with_property(member: Any) -> Any:
    return {"properties": {"x": member}, "$defs": DEFINITIONS}


@pytest.mark.parametrize("member", NULLABLE, ids=str)
def test_a_property_that_is_null_by_default_is_required(member: Any) -> None:
    schema = with_property({**member, "default": None})
    before = copy.deepcopy(schema)
    assert require_nullable_defaults(schema)["required"] == ["x"]
    assert schema == before, "the schema that was given is as it was"


@pytest.mark.parametrize("member", [*({**part, "default": None} for part in NOT_NULLABLE), *NULLABLE, True], ids=str)
def test_one_that_cannot_be_null_or_has_another_default_stays_optional(member: Any) -> None:
    assert require_nullable_defaults(with_property(member)) == with_property(member)
    if isinstance(member, dict) and "default" not in member:
        other = with_property({**member, "default": 0})
        assert require_nullable_defaults(other) == other


def test_every_object_is_narrowed_wherever_it_is_but_not_under_a_negation() -> None:
    found = {"properties": {"x": {"type": "null", "default": None}}}
    narrowed = {**found, "required": ["x"]}
    for word in ("items", "additionalProperties", "then"):
        assert require_nullable_defaults({word: found}) == {word: narrowed}
    for word in ("anyOf", "allOf", "oneOf", "prefixItems"):
        assert require_nullable_defaults({word: [found, True]}) == {word: [narrowed, True]}
    for word in ("properties", "$defs", "definitions", "patternProperties"):
        assert require_nullable_defaults({word: {"a": found}}) == {word: {"a": narrowed}}
    for word in ("not", "if", "const", "default", "examples"):
        assert require_nullable_defaults({word: found}) == {word: found}


def test_the_strict_form_then_needs_no_wrapper() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": ["integer", "null"], "default": None}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert not strict_form(schema).identity
    form = strict_form(require_nullable_defaults(schema))
    assert form.identity
    assert form.schema["properties"]["b"] == {"type": ["integer", "null"]}


def test_a_schema_nested_too_deeply_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(201):
        schema = {"items": schema}
    with pytest.raises(SchemaUnsupported, match="200 levels"):
        require_nullable_defaults(schema)


def test_references_that_fork_at_every_step_take_no_time_that_doubles() -> None:
    fork = {f"a{step}": {"anyOf": [{"$ref": f"#/$defs/a{step + 1}"}] * 2} for step in range(60)}
    schema = {"properties": {"x": {"$ref": "#/$defs/a0", "default": None}}, "$defs": {**fork, "a60": {"type": "null"}}}
    assert require_nullable_defaults(schema)["required"] == ["x"]


def narrowable() -> st.SearchStrategy[Any]:
    leaves = st.sampled_from([{"type": "string"}, {"type": ["integer", "null"]}, {}, {"$ref": "#"}])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(
                lambda members, required: {"type": "object", "properties": members, "required": required},
                st.dictionaries(st.sampled_from("ab"), inner.map(lambda part: {**part, "default": None}), max_size=2),
                st.lists(st.sampled_from("ab"), max_size=1),
            ),
            st.builds(lambda item: {"type": "array", "items": item}, inner),
            st.builds(lambda options: {"anyOf": options}, st.lists(inner, min_size=1, max_size=2)),
        ),
        max_leaves=5,
    )


@given(narrowable(), json_values())
def test_what_is_valid_under_the_narrower_schema_is_valid_under_the_first(member: Any, value: Any) -> None:
    schema = {"properties": {"a": {**member, "default": None}, "b": {"type": "null", "default": None}}}
    narrower = jsonschema.Draft202012Validator(require_nullable_defaults(schema))
    if narrower.is_valid(value):
        assert jsonschema.Draft202012Validator(schema).is_valid(value)
