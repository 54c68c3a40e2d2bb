"""Whether one value is valid under a schema: True and False are certain, None is for a keyword that is not known."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import jsonschema
import pytest

from portico._schema.values import accepts, is_kind, kind_of, resolve, same

Row: TypeAlias = tuple[Any, Any, bool]

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
T = {"$defs": {"T": TEXT}}

CERTAIN: dict[str, list[Row]] = {
    "type": [
        ("x", TEXT, True),
        (1, TEXT, False),
        (1, WHOLE, True),
        (1.0, WHOLE, True),
        (1.5, WHOLE, False),
        (True, WHOLE, False),
        ("1", WHOLE, False),
        (1.5, {"type": "number"}, True),
        (1, {"type": "number"}, True),
        (True, {"type": "number"}, False),
        (True, {"type": "boolean"}, True),
        (0, {"type": "boolean"}, False),
        (None, {"type": "null"}, True),
        (False, {"type": "null"}, False),
        ([], {"type": "array"}, True),
        ({}, {"type": "array"}, False),
        ({}, {"type": "object"}, True),
        ([], {"type": "object"}, False),
        ("x", {"type": ["null", "string"]}, True),
        (1, {"type": ["null", "string"]}, False),
        (1, {"type": []}, False),
    ],
    "boolean schemas": [("x", True, True), ("x", False, False), ("x", {}, True)],
    "enum and const": [
        ("x", {"enum": ["y", "x"]}, True),
        ("x", {"enum": ["y", "z"]}, False),
        ("x", {"enum": []}, False),
        (1, {"enum": [1.0]}, True),
        (1, {"enum": [True]}, False),
        ("x", {"const": "x"}, True),
        ("x", {"const": "y"}, False),
        ("x", {"const": ["x"]}, False),
        (["x"], {"const": ["x"]}, True),
        (None, {"const": None}, True),
        (0, {"const": False}, False),
    ],
    "lengths": [
        *((value, {"minLength": 2}, len(value) >= 2) for value in ("a", "ab", "abc")),
        *((value, {"maxLength": 2}, len(value) <= 2) for value in ("a", "ab", "abc")),
        *((value, {"minItems": 2}, len(value) >= 2) for value in ([1], [1, 2], [1, 2, 3])),
        *((value, {"maxItems": 2}, len(value) <= 2) for value in ([1], [1, 2], [1, 2, 3])),
        *((dict.fromkeys(names), {"minProperties": 2}, len(names) >= 2) for names in ("a", "ab", "abc")),
        *((dict.fromkeys(names), {"maxProperties": 2}, len(names) <= 2) for names in ("a", "ab", "abc")),
        *((1, {name: 5}, True) for name in ("minLength", "minItems", "minProperties")),
        *((1, {name: 0}, True) for name in ("maxLength", "maxItems", "maxProperties")),
        ([], {"minLength": 1, "minProperties": 1}, True),
        ("", {"minItems": 1, "minProperties": 1}, True),
        ({}, {"minItems": 1, "minLength": 1}, True),
    ],
    "numbers": [
        *((value, {"minimum": 1}, value >= 1) for value in (0.5, 1, 1.5)),
        *((value, {"maximum": 1}, value <= 1) for value in (0.5, 1, 1.5)),
        *((value, {"exclusiveMinimum": 1}, value > 1) for value in (0.5, 1, 1.5)),
        *((value, {"exclusiveMaximum": 1}, value < 1) for value in (0.5, 1, 1.5)),
        ("x", {"minimum": 1, "maximum": 0, "exclusiveMinimum": 1, "exclusiveMaximum": 0, "multipleOf": 7}, True),
        (True, {"minimum": 5}, True),
    ],
    "objects": [
        ({"a": "x"}, {"properties": {"a": TEXT}}, True),
        ({"a": 1}, {"properties": {"a": TEXT}}, False),
        ({"b": 1}, {"properties": {"a": TEXT}}, True),
        ({"a": "x", "b": 1}, {"properties": {"a": TEXT, "b": TEXT}}, False),
        ({"a": 1}, {"properties": {"a": {"$ref": "#"}}, "type": "object"}, False),
        ({"a": {}}, {"properties": {"a": {"$ref": "#"}}, "type": "object"}, True),
        ({"a": 1}, {"required": ["a"]}, True),
        ({"a": 1}, {"required": ["a", "b"]}, False),
        ({"a": 1}, {"required": []}, True),
        ({"a": 1}, {"additionalProperties": False}, False),
        ({}, {"additionalProperties": False}, True),
        ({"a": 1}, {"additionalProperties": WHOLE}, True),
        ({"a": 1, "b": "x"}, {"additionalProperties": WHOLE}, False),
        ({"a": 1}, {"properties": {"a": {}}, "additionalProperties": False}, True),
        ({"a": 1, "b": 1}, {"properties": {"a": {}}, "additionalProperties": False}, False),
        ({"a": "x", "b": 1}, {"properties": {"a": TEXT}, "additionalProperties": WHOLE}, True),
        ({"a": {}}, {"additionalProperties": {"$ref": "#"}, "type": "object"}, True),
        ({"a": 1}, {"additionalProperties": {"$ref": "#"}, "type": "object"}, False),
        ("x", {"properties": {"a": TEXT}, "required": ["a"], "additionalProperties": False}, True),
        ([1], {"properties": {"a": TEXT}, "required": ["a"], "additionalProperties": False}, True),
    ],
    "arrays": [
        ([1, 2], {"items": WHOLE}, True),
        ([1, "x"], {"items": WHOLE}, False),
        ([], {"items": False}, True),
        ([1], {"items": False}, False),
        ([1, "x"], {"prefixItems": [WHOLE, TEXT]}, True),
        ([1, 1], {"prefixItems": [WHOLE, TEXT]}, False),
        ([1], {"prefixItems": [WHOLE, TEXT]}, True),
        ([1, "x", None], {"prefixItems": [WHOLE, TEXT]}, True),
        ([1, "x"], {"prefixItems": [WHOLE], "items": TEXT}, True),
        ([1, 1], {"prefixItems": [WHOLE], "items": TEXT}, False),
        ([[], [[]]], {"items": {"$ref": "#"}, "type": "array"}, True),
        ([[], [1]], {"items": {"$ref": "#"}, "type": "array"}, False),
        ([[1]], {"prefixItems": [{"$ref": "#"}], "type": "array"}, False),
        ([1, 2], {"uniqueItems": True}, True),
        ([1, 1.0], {"uniqueItems": True}, False),
        ([2, 1, 2], {"uniqueItems": True}, False),
        ([1, 1], {"uniqueItems": False}, True),
        ([1, True], {"uniqueItems": True}, True),
        ("xx", {"items": False, "prefixItems": [False], "uniqueItems": True}, True),
        ({"a": 1}, {"items": False, "prefixItems": [False], "uniqueItems": True}, True),
    ],
    "several schemas": [
        ("x", {"allOf": [TEXT, {"minLength": 1}]}, True),
        ("x", {"allOf": [TEXT, {"minLength": 2}]}, False),
        ("x", {"anyOf": [WHOLE, TEXT]}, True),
        (None, {"anyOf": [WHOLE, TEXT]}, False),
        ("x", {"anyOf": [TEXT, {"minLength": 1}]}, True),
        ("x", {"oneOf": [WHOLE, TEXT]}, True),
        ("x", {"oneOf": [TEXT, {"minLength": 1}]}, False),
        (None, {"oneOf": [WHOLE, TEXT]}, False),
        ("x", {"not": WHOLE}, True),
        ("x", {"not": TEXT}, False),
        ("x", {"minLength": 1, "maxLength": 0}, False),
        ("x", {"maxLength": 0, "minLength": 1}, False),
        *(([1], {name: [{"items": {"$ref": "#/$defs/T"}}], **T}, False) for name in ("allOf", "anyOf", "oneOf")),
        ([1], {"not": {"items": {"$ref": "#/$defs/T"}}, **T}, True),
    ],
    "$ref": [
        ("x", {"$ref": "#/$defs/T", "$defs": {"T": TEXT}}, True),
        (1, {"$ref": "#/$defs/T", "$defs": {"T": TEXT}}, False),
        ("x", {"$ref": "#/$defs/T", "$defs": {"T": {"$ref": "#/$defs/U"}, "U": TEXT}}, True),
        ("x", {"$ref": "#/$defs/T", "$defs": {"T": TEXT}, "minLength": 2}, False),
    ],
    "annotations": [
        ("x", {"title": 1, "description": 2, "default": 3, "examples": [4], "$comment": "5", "deprecated": True}, True),
        ("x", {"x-order": False}, True),
        ("x", {"$schema": "https://json-schema.org/draft/2020-12/schema", "readOnly": True, "writeOnly": True}, True),
    ],
    "keywords of another kind": [
        *(
            (1, {name: argument}, True)
            for name, argument in {
                "contains": False, "contentEncoding": "base64", "contentMediaType": "x", "dependentRequired": {},
                "dependentSchemas": {"a": False}, "format": "date", "maxContains": 0, "minContains": 1, "pattern": "^y",
                "patternProperties": {"": False}, "propertyNames": False, "unevaluatedItems": False,
                "unevaluatedProperties": False,
            }.items()
        ),
    ],
}  # fmt: skip


@pytest.mark.parametrize("group", CERTAIN)
def test_what_is_certain_is_said(group: str) -> None:
    assert [row for row in CERTAIN[group] if accepts(row[0], row[1], row[1]) is not row[2]] == []


@pytest.mark.parametrize("group", CERTAIN)
def test_another_validator_says_the_same(group: str) -> None:
    wrong = [row for row in CERTAIN[group] if jsonschema.Draft202012Validator(row[1]).is_valid(row[0]) is not row[2]]
    assert wrong == []


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ("x", {"pattern": "^x"}),
        ("x", {"format": "date"}),
        (4, {"multipleOf": 2}),
        ([1], {"contains": {}}),
        ({"a": 1}, {"propertyNames": {}}),
        ({"a": 1}, {"patternProperties": {"^a": {}}}),
        ({"a": 1}, {"additionalProperties": False, "patternProperties": {"^a": {}}}),
        ("x", {"glow": 1}),
        ("x", {"if": {}, "then": {}}),
        ("x", {"$ref": "https://example.org/schema"}),
        ("x", {"$ref": "#/$defs/none"}),
        ("x", {"type": 3}),
        ("x", {"enum": "x"}),
        ("x", {"minLength": "1"}),
        ("x", {"maxLength": True}),
        (1, {"minimum": math.nan}),
        (None, {"nullable": True}),
        ("x", "no schema"),
        ("x", {"not": {"pattern": "^x"}}),
        ("x", {"pattern": "^x", "type": "string"}),
        ("x", {"type": "string", "pattern": "^x"}),
        ("x", {"allOf": [{"pattern": "^x"}, TEXT]}),
        ("x", {"anyOf": [{"pattern": "^x"}, WHOLE]}),
        ("x", {"anyOf": [WHOLE, {"pattern": "^x"}]}),
        ("x", {"oneOf": [{"pattern": "^x"}, TEXT]}),
        ("x", {"oneOf": [{"pattern": "^x"}, WHOLE]}),
        ({"a": "x"}, {"properties": {"a": {"pattern": "^x"}}}),
        ({"a": "x"}, {"additionalProperties": {"pattern": "^x"}}),
        (["x"], {"items": {"pattern": "^x"}}),
        (["x"], {"prefixItems": [{"pattern": "^x"}]}),
    ],
)
def test_what_is_not_known_is_not_guessed(value: Any, schema: Any) -> None:
    assert accepts(value, schema, schema) is None


@pytest.mark.parametrize(
    ("value", "schema", "valid"),
    [
        (1, {"pattern": "^x", **TEXT}, False),
        ("x", {"anyOf": [{"pattern": "^x"}, TEXT]}, True),
        ("x", {"allOf": [{"pattern": "^x"}, WHOLE]}, False),
        ("x", {"oneOf": [{"pattern": "^x"}, TEXT, {"minLength": 1}]}, False),
        ("x", {"nullable": True}, True),
        ("x", {"nullable": True, **WHOLE}, False),
        (None, {"nullable": False, **TEXT}, False),
        (None, {"nullable": False}, True),
    ],
)
def test_what_is_not_known_leaves_certain_what_does_not_hang_on_it(value: Any, schema: Any, valid: bool) -> None:
    assert accepts(value, schema, schema) is valid


def test_what_is_nested_a_little_is_followed() -> None:
    schema = {"type": "array", "items": {"$ref": "#"}}
    value: list[Any] = []
    for _ in range(20):
        value = [value]
    assert accepts(value, schema, schema) is True


@contextmanager
def deep_calls() -> Iterator[None]:
    """Let calls go deeper than Python does, so that what ends is ended by a limit of its own."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(5_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.parametrize(
    "schema",
    [{"$ref": "#"}, *({name: [{"$ref": "#"}]} for name in ("allOf", "anyOf", "oneOf")), {"not": {"$ref": "#"}}],
)
def test_a_circle_is_not_known(schema: Any) -> None:
    with deep_calls():
        assert accepts("x", schema, schema) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"items": {"$ref": "#"}},
        {"prefixItems": [{"$ref": "#"}]},
        {"properties": {"a": {"$ref": "#"}}},
        {"additionalProperties": {"$ref": "#"}},
    ],
)
def test_what_is_nested_without_end_is_not_known(schema: Any) -> None:
    value: Any = {}
    for _ in range(200):
        value = [value] if "properties" not in next(iter(schema)).lower() else {"a": value}
    with deep_calls():
        assert accepts(value, schema, schema) is None


ROOT = {
    "$defs": {"T": TEXT, "a/b": {"const": 1}, "a~b": {"const": 2}, "a b": {"const": 3}, "~1": {"const": 4}},
    "definitions": {"T": WHOLE, "list": [{"const": 5}, {"const": 6}]},
}


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        ("#", ROOT),
        ("#/$defs/T", TEXT),
        ("#/definitions/T", WHOLE),
        ("#/$defs/a~1b", {"const": 1}),
        ("#/$defs/a/b", {"const": 1}),  # as some write it
        ("#/$defs/a~0b", {"const": 2}),
        ("#/$defs/a%20b", {"const": 3}),
        ("#/$defs/~01", {"const": 4}),
        ("#/definitions/list/0", {"const": 5}),
        ("#/definitions/list/1", {"const": 6}),
        ("#/definitions/list/2", None),
        ("#/definitions/list/-1", None),
        ("#/definitions/list/x", None),
        ("#/definitions/list/1/const/0", None),
        ("#/$defs/none", None),
        ("#/none/T", None),
        ("#T", None),
        ("T", None),
        ("https://example.org/#/$defs/T", None),
        (None, None),
        (3, None),
    ],
)
def test_a_reference_leads_to_a_schema_or_nowhere(reference: Any, target: Any) -> None:
    assert resolve(reference, ROOT) == target


@pytest.mark.parametrize("root", [True, None, [], {"$defs": 3}, {}])
def test_a_reference_into_what_is_no_schema_leads_nowhere(root: Any) -> None:
    assert resolve("#/$defs/T", root) is None


KINDS = {"null": None, "boolean": True, "number": 1.5, "string": "x", "array": [1], "object": {"a": 1}}


@pytest.mark.parametrize("name", KINDS)
def test_a_value_is_of_one_kind(name: str) -> None:
    assert kind_of(KINDS[name]) == name
    assert [each for each in KINDS if is_kind(KINDS[name], each)] == [name]
    assert not is_kind(KINDS[name], "integer")


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (0, None, False),
        ("x", "x", True),
        ("x", "y", False),
        ([1], [1.0], True),
        ([1], [True], False),
        ([1], [1, 1], False),
        ([1, 2], [2, 1], False),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"b": 1}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
    ],
)
def test_values_are_equal_as_json_has_it(one: Any, other: Any, equal: bool) -> None:
    assert same(one, other) is equal
    assert same(other, one) is equal
