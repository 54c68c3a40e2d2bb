"""The part of JSON Schema that Claude is held to."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given, strategies as st

from portico.errors import SchemaUnsupported
from portico.plugins import StrictForm
from portico_anthropic._schemas import held_form

KNOWN = {
    *("type", "enum", "const", "anyOf", "$ref", "$defs", "properties", "required", "additionalProperties", "items"),
    *("minItems", "format", "title", "description", "default"),
}


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def test_a_schema_that_is_held_stays_as_it_is():
    schema = {
        **closed(
            name={"type": "string", "description": "Who."},
            size={"type": "string", "enum": ["small", "large"]},
            day={"type": "string", "format": "date"},
            cats={"anyOf": [{"type": "integer"}, {"type": "null"}]},
            parts={"type": "array", "items": {"$ref": "#/$defs/part"}, "minItems": 1},
        ),
        "$defs": {"part": closed(kind={"const": "lid"})},
    }
    held = held_form(schema)
    assert held is not None
    # The values say what they are.
    assert held["properties"].pop("size") == {"enum": schema["properties"].pop("size")["enum"]}
    assert held == schema


def test_what_is_not_held_is_told_in_the_description():
    held = held_form(closed(age={"type": "integer", "minimum": 1, "description": "In years."}))
    assert held is not None
    assert held["properties"]["age"] == {"type": "integer", "description": "In years.\n\n{minimum: 1}"}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"a": {}}, "required": []},
        {"type": "object", "properties": {"a": True}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "patternProperties": {"b": {}}},
        {"type": "array", "items": {"not": {"type": "string"}}},
        {"enum": [{"a": 1}]},
        {"$ref": "https://example.org/schema"},
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": closed(next={"$ref": "#/$defs/a"})}},
        {"$ref": "#/$defs/a", "$defs": {"a": closed(b={"$ref": "#/$defs/b"}), "b": closed(a={"$ref": "#/$defs/a"})}},
    ],
)
def test_what_cannot_be_held_has_no_form(schema: dict[str, Any]):
    assert held_form(schema) is None


LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "maxLength": 3},
        {"type": "string", "format": "uuid"},
        {"type": "integer", "minimum": 0},
        {"type": ["integer", "null"]},
        {"type": "boolean"},
        {"const": 3},
        {"enum": ["a", 1, None]},
        {"type": "object", "additionalProperties": {"type": "integer"}},
    ]
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items, "maxItems": 3}, inner),
        st.builds(lambda some: {"anyOf": some}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(
            lambda given: {"type": "object", "properties": given}, st.dictionaries(st.sampled_from("abc"), inner)
        ),
        st.builds(lambda given: closed(**given), st.dictionaries(st.sampled_from("abc"), inner)),
    ),
    max_leaves=8,
)


def subschemas(schema: Any):
    yield schema
    for each in (*schema.get("properties", {}).values(), *schema.get("anyOf", ()), *schema.get("$defs", {}).values()):
        yield from subschemas(each)
    if "items" in schema:
        yield from subschemas(schema["items"])


@given(schema=SCHEMAS)
def test_a_held_form_has_what_is_known_and_closes_every_object(schema: dict[str, Any]):
    held = held_form(schema)
    if held is None:
        return
    for each in subschemas(held):
        assert each.keys() <= KNOWN
        assert {"type", "enum", "const", "anyOf", "$ref"} & each.keys()
        if each.get("type") == "object":
            assert each["additionalProperties"] is False
    jsonschema.Draft202012Validator.check_schema(held)


@given(schema=SCHEMAS)
def test_strict_forms_are_held_unless_something_in_them_is_anything(schema: dict[str, Any]):
    """They are what tools and replies are asked for with; a value that may be anything refers to itself."""
    root = closed(value=schema)
    try:
        strict = StrictForm.of(root)
    except SchemaUnsupported:
        return
    assert held_form(strict.schema) is not None or "$defs" in strict.schema
