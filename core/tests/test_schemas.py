"""The plain validator: the meaning of JSON Schema 2020-12 for the keywords that it knows, and no others."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given, strategies as st
from tests.support.strategies import type_cases

from portico._schema.validate import PlainSchemaValidator
from portico._types.compiling import compile_type
from portico.errors import SchemaUnsupported
from portico_testkit.strategies import json_values, near


def faults(schema: Any, value: Any) -> list[str]:
    return PlainSchemaValidator().compile(schema)(value)


def agree(schema: Any, value: Any) -> None:
    expected = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert (faults(schema, value) == []) == expected, f"{schema} and {value!r}: the reference says {expected}"


@given(st.data())
def test_it_agrees_with_the_reference_on_the_schemas_of_types(data: st.DataObject) -> None:
    case = data.draw(type_cases())
    compiled = compile_type(case.hint)
    value = data.draw(near(compiled.unstructure(data.draw(case.values))) | json_values())
    agree(compiled.schema, value)


def schemas() -> st.SearchStrategy[Any]:
    kinds = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
    names = st.sampled_from(["a", "b", "c"])
    leaves = st.one_of(
        st.booleans(),
        st.just({}),
        st.builds(lambda kind: {"type": kind}, kinds | st.lists(kinds, min_size=1, max_size=2, unique=True)),
        st.builds(lambda options: {"enum": options}, st.lists(json_values(2), min_size=1, max_size=3)),
        st.builds(lambda value: {"const": value}, json_values(2)),
    )

    def bigger(inner: Any) -> Any:
        small = st.integers(0, 3)
        keywords = {
            "type": kinds,
            "properties": st.dictionaries(names, inner, max_size=3),
            "required": st.lists(names, max_size=2, unique=True),
            "additionalProperties": inner,
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "minItems": small,
            "maxItems": small,
            "uniqueItems": st.booleans(),
            "anyOf": st.lists(inner, min_size=1, max_size=3),
            "description": st.text(max_size=3),
        }
        return st.fixed_dictionaries({}, optional=keywords)

    return st.recursive(leaves, bigger, max_leaves=6)


@given(schemas(), json_values())
def test_it_agrees_with_the_reference_on_any_schema_of_its_keywords(schema: Any, value: Any) -> None:
    agree(schema, value)


@pytest.mark.parametrize(
    "keyword",
    [
        "pattern",
        "minimum",
        "oneOf",
        "allOf",
        "not",
        "if",
        "$dynamicRef",
        "minLength",
        "ref",
        "$type",
        "$items",
        "any_of",
    ],
)
def test_a_keyword_that_it_does_not_know_is_refused_never_ignored(keyword: str) -> None:
    with pytest.raises(SchemaUnsupported, match=r"portico-basics"):
        PlainSchemaValidator().compile({"type": "object", "properties": {"a": {keyword: True}}})


@pytest.mark.parametrize(
    "schema",
    [
        5,
        None,
        [],
        {"type": "date"},
        {"type": 5},
        {"type": {"string": 1}},
        {"enum": 3},
        {"properties": []},
        {"properties": {"a": 5}},
        {"items": "string"},
        {"anyOf": None},
        {"prefixItems": 2},
        {"required": 1},
        {"minItems": "2"},
        {"$ref": 3},
        {"$ref": "#/$defs/missing"},
        {"$ref": "https://example.org/schema"},
        {"$defs": [], "$ref": "#/$defs/a"},
    ],
    ids=str,
)
def test_a_malformed_schema_is_refused_when_it_is_compiled(schema: Any) -> None:
    with pytest.raises(SchemaUnsupported):
        PlainSchemaValidator().compile(schema)


def test_a_schema_nested_too_deeply_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(201):
        schema = {"items": schema}
    with pytest.raises(SchemaUnsupported, match="200 levels"):
        PlainSchemaValidator().compile(schema)


def test_a_value_nested_too_deeply_for_a_recursive_schema_is_a_fault() -> None:
    schema = {"$defs": {"list": {"type": "array", "items": {"$ref": "#/$defs/list"}}}, "$ref": "#/$defs/list"}
    value: list[Any] = []
    for _ in range(5000):
        value = [value]
    assert "200 levels" in faults(schema, value)[0]


def test_a_reference_that_only_leads_to_itself_is_refused() -> None:
    """It would be followed for ever without coming one level deeper into the value."""
    for definitions in ({"a": {"$ref": "#/$defs/a"}}, {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}):
        with pytest.raises(SchemaUnsupported, match="leads to itself"):
            PlainSchemaValidator().compile({"$defs": definitions, "$ref": "#/$defs/a"})


def test_alternatives_that_repeat_at_every_level_take_no_time_that_doubles_with_each() -> None:
    def tagged(name: str) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {"kind": {"enum": [name]}, "inner": {"$ref": "#/$defs/any"}},
            "required": ["kind", "inner"],
            "additionalProperties": False,
        }

    schema = {"$defs": {"any": {"anyOf": [tagged("a"), tagged("b"), {"type": "null"}]}}, "$ref": "#/$defs/any"}
    value: Any = 5
    for _ in range(90):
        value = {"kind": "b", "inner": value}
    assert len(faults(schema, value)) == 1


def test_every_fault_is_told_with_its_place() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "integer"}}, "b": {"enum": ["x", 1]}},
        "required": ["a", "c"],
        "additionalProperties": False,
    }
    assert faults(schema, {"a": [1, "2", 2.5], "b": True, "d": 0}) == [
        "$.a[1]: expected integer, got string",
        "$.a[2]: expected integer, got number",
        "$.b: expected one of 'x', 1",
        "$: 'c' is missing",
        "$: 'd' is not a known key",
    ]


def test_numbers_are_compared_as_json_does() -> None:
    assert faults({"const": 1}, 1.0) == []
    assert faults({"const": 1}, True)
    assert faults({"uniqueItems": True}, [1, True]) == []
    assert faults({"uniqueItems": True}, [1, 1.0])
    assert faults({"type": "integer"}, 3.0) == []


def test_a_compiled_schema_may_be_used_again() -> None:
    validate = PlainSchemaValidator().compile({"type": "string"})
    assert [validate(1), validate("a"), validate(1)] == [["$: expected string, got integer"], [], validate(1)]
