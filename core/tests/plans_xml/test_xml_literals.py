"""Which texts are JSON values for a parameter: those that are certain, by everything that its schema can say."""

from __future__ import annotations

from typing import Any

import pytest

from portico._schema.coerce import read_literal

ROOT: dict[str, Any] = {
    "$defs": {
        "count": {"type": "integer"},
        "by three": {"multipleOf": 3},
        "alias": {"$ref": "#/$defs/count"},
        "loop": {"$ref": "#/$defs/loop"},
        "tree": {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/tree"}]},
        "odd": 5,
    }
}
INTEGER = {"type": "integer"}
LONG = "1" * 18


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (INTEGER, "0", 0),
        (INTEGER, "7", 7),
        (INTEGER, "-7", -7),
        (INTEGER, LONG, int(LONG)),
        (INTEGER, f"{LONG}1", int(f"{LONG}1")),
        ({"type": "number"}, "-2", -2),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "boolean"}, "false", False),
        ({"type": "null"}, "null", None),
        ({"type": "array"}, ' [ 1 , "a" ] ', [1, "a"]),
        ({"type": "object"}, '{ "a": {} }', {"a": {}}),
        ({"type": ["boolean", "integer"]}, "true", True),
        ({"type": ["boolean", "integer"]}, "1", 1),
        ({"type": ["object", "array"]}, "[]", []),
        ({"type": ["object", 5]}, "{}", {}),
        ({"enum": [1, None]}, "null", None),
        ({"enum": [True]}, "true", True),
        ({"enum": [[1], {"a": 1}]}, "[1]", [1]),
        ({"enum": [2.5]}, "2.5", 2.5),
        ({"const": None}, "null", None),
        ({"const": 1}, "1", 1),
        ({"anyOf": [INTEGER, {"type": "null"}]}, "null", None),
        ({"oneOf": [INTEGER, {"type": "null"}]}, "3", 3),
        ({"anyOf": [{"oneOf": [{"const": 1}]}]}, "1", 1),
        ({"$ref": "#/$defs/count"}, "3", 3),
        ({"$ref": "#/$defs/alias"}, "3", 3),
        ({"$ref": "#/$defs/tree"}, "3", 3),
        ({"type": "integer", "$ref": "#/$defs/by three"}, "-3", -3),
    ],
)
def test_a_text_that_is_how_json_writes_a_kind_that_is_taken_is_that_value(schema: Any, text: str, value: Any) -> None:
    got = read_literal(text, schema, ROOT)
    assert (type(got), got) == (type(value), value)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (INTEGER, ""),
        (INTEGER, "00"),
        (INTEGER, "01"),
        (INTEGER, "+1"),
        (INTEGER, "-0"),
        (INTEGER, " 1"),
        (INTEGER, "1.0"),
        (INTEGER, "1e3"),
        (INTEGER, "٣"),
        (INTEGER, "²"),
        (INTEGER, "true"),
        (INTEGER, "null"),
        (INTEGER, '"1"'),
        (INTEGER, "[1]"),
        ({"type": "number"}, "true"),
        ({"type": "number"}, "1e3"),
        ({"type": "number"}, "NaN"),
        ({"type": "number"}, "-Infinity"),
        ({"type": "boolean"}, "1"),
        ({"type": "array"}, '{"a": 1}'),
        ({"type": "array"}, "[NaN]"),
        ({"type": "array"}, "[1"),
        ({"type": "array"}, "3"),
        ({"type": "object"}, "[]"),
        ({"type": "object"}, '{"a": 1, "a": 1}'),
        ({"type": "object"}, '{"a": {"b": 1, "b": 1}}'),
        ({"type": "unheard of"}, "3"),
        # Where a text is taken, or where the schema does not say, a text is one.
        ({"type": "string"}, "3"),
        ({"type": ["integer", "string"]}, "3"),
        ({"type": 5}, "3"),
        ({"type": []}, "3"),
        ({}, "3"),
        (True, "3"),
        (False, "3"),
        (None, "3"),
        ({"enum": ["1", 2]}, "2"),
        ({"enum": []}, "2"),
        ({"enum": 5}, "2"),
        ({"enum": [1]}, "null"),
        ({"const": "1"}, "1"),
        ({"const": 1}, "null"),
        ({"anyOf": [INTEGER, {}]}, "3"),
        ({"anyOf": [INTEGER, True]}, "3"),
        ({"anyOf": [INTEGER, {"type": 5}]}, "3"),
        ({"anyOf": [INTEGER, {"type": "string"}]}, "3"),
        ({"anyOf": [INTEGER, {"$ref": "#/$defs/odd"}]}, "3"),
        ({"anyOf": [INTEGER, {"$ref": "#/$defs/missing"}]}, "3"),
        ({"anyOf": [INTEGER, {"$ref": 5}]}, "3"),
        ({"anyOf": {"a": INTEGER}}, "3"),
        ({"$ref": "#/$defs/by three"}, "3"),
        ({"$ref": "#/$defs/loop"}, "3"),
        ({"$ref": "elsewhere"}, "3"),
    ],
)
def test_any_other_text_stays_one(schema: Any, text: str) -> None:
    assert read_literal(text, schema, ROOT) == text


@pytest.mark.parametrize("root", [{}, {"$defs": 5}, {"$defs": None}])
def test_a_reference_to_nothing_says_nothing(root: Any) -> None:
    assert read_literal("3", {"$ref": "#/$defs/count"}, root) == "3"
