"""Schemas of any draft become JSON Schema 2020-12 that stands for itself."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft7Validator, Draft202012Validator

from portico_mcp._client.schemas import SchemaUnusable, read_schema
from portico_mcp._client.wire import tool_function
from portico_testkit.function_source import lost_references

DRAFT_7 = "http://json-schema.org/draft-07/schema#"

scalars = st.sampled_from([{"type": "string"}, {"type": "integer", "minimum": 0}, {"enum": [1, "a", None]}, {}])


def inside(schemas: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["id", "definitions", "items", "title"])
    return st.one_of(
        st.builds(lambda inner: {"type": "array", "items": inner}, schemas),
        st.builds(lambda first, rest: {"items": [first], "additionalItems": rest}, schemas, schemas | st.booleans()),
        st.builds(lambda key, inner: {"type": "object", "properties": {key: inner}, "required": [key]}, names, schemas),
        st.builds(lambda key, inner: {"dependencies": {key: inner}}, names, schemas | st.lists(names, unique=True)),
        st.builds(lambda one, other: {"anyOf": [one, other]}, schemas, schemas),
        st.just({"$ref": "#/definitions/Name"}),
        st.just({"$ref": "#/properties/first"}),
    )


values = st.recursive(
    st.none() | st.integers(-2, 2) | st.sampled_from(["a", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "definitions", "items", "title", "first", "second"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(st.recursive(scalars, inside, max_leaves=6), values)
def test_what_was_valid_under_draft_7_is_valid_under_the_schema_that_was_read_and_nothing_else(
    inner: Any, value: Any
) -> None:
    old = {
        "$schema": DRAFT_7,
        "definitions": {"Name": {"type": "string"}},
        "properties": {"first": {"type": "integer"}, "second": inner},
    }
    new = read_schema(old)
    assert Draft202012Validator(new).is_valid(value) == Draft7Validator(old).is_valid(value)
    assert not lost_references(new)


def test_a_schema_that_contains_itself_by_its_place_is_described_once() -> None:
    new = read_schema({"properties": {"child": {"properties": {"child": {"$ref": "#/properties/child"}}}}})
    assert new["properties"]["child"]["properties"]["child"]["properties"]["child"] == {}


@pytest.mark.parametrize("reference", ["file:///etc/hostname", "http://127.0.0.1/a.json", "other.json#/x", 7])
def test_a_reference_to_another_document_is_refused(reference: object) -> None:
    with pytest.raises(SchemaUnusable, match="another document"):
        read_schema({"properties": {"value": {"$ref": reference}}})


def test_a_reference_may_lead_through_a_list() -> None:
    first = {"anyOf": [{"type": "string"}, {"type": "integer"}]}
    new = read_schema({"properties": {"first": first, "second": {"$ref": "#/properties/first/anyOf/1"}}})
    assert new["properties"]["second"] == {"type": "integer"}


def test_a_schema_that_grows_by_its_references_is_refused() -> None:
    names = "abcdefghijkl"
    doubling = {name: {"allOf": [{"$ref": f"#/properties/{after}"}] * 4} for name, after in pairwise(names)}
    with pytest.raises(SchemaUnusable, match="parts"):
        read_schema({"properties": {**doubling, "l": {}}})


def test_a_bound_of_draft_4_that_is_true_is_a_number_of_today() -> None:
    old = {"minimum": 0, "exclusiveMinimum": True, "maximum": 5, "exclusiveMaximum": False}
    assert read_schema({"properties": {"a": old}}) == {"properties": {"a": {"exclusiveMinimum": 0, "maximum": 5}}}


@pytest.mark.parametrize(
    ("properties", "hints", "outside"),
    [
        ({"text": {"type": "string"}}, {}, False),
        ({"text": {"type": "string"}}, {"openWorldHint": True}, True),
        ({"text": {"type": "string"}}, {"openWorldHint": False}, False),
        ({"url": {"type": "string"}}, {}, True),
        ({"targetUri": {"type": "string"}}, {}, True),
        ({"base-urls": {"type": "array"}}, {}, True),
        ({"curl": {"type": "string"}}, {}, False),
        ({"place": {"type": "string", "format": "uri"}}, {}, True),
        ({"places": {"type": "array", "items": {"format": "uri"}}}, {"openWorldHint": False}, True),
        ({"place": True}, {}, False),
    ],
)
def test_a_tool_that_says_so_or_takes_a_url_reaches_out(
    properties: dict[str, Any], hints: dict[str, Any], *, outside: bool
) -> None:
    async def call(*_: Any, **__: Any) -> Any:
        raise AssertionError("a tool that is only described is not called")

    schema = {"type": "object", "properties": properties}
    said = {"name": "t", "inputSchema": schema, "annotations": {"readOnlyHint": True, **hints}}
    made = tool_function(said, "t", "Server", call, trusted=True, validator=None)
    assert made.labels is not None
    assert (made.effects, made.labels.reaches_out, made.labels.gives) == (False, outside, {})
