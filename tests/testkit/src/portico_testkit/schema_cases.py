"""JSON Schemas with values that they allow and values that they do not, keyword by keyword."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["EVERYTHING", "MALFORMED", "ODD_VALUES", "PLAIN", "SchemaCase", "deep"]


@dataclass(frozen=True, slots=True)
class SchemaCase:
    """A schema, values that are valid under it, and others with the places where they are not."""

    schema: Any
    valid: Sequence[Any]
    invalid: Sequence[tuple[Any, Sequence[str]]]


_KINDS: dict[str, Any] = {"string": "a", "integer": 3, "boolean": True, "null": None, "array": [], "object": {}}

PLAIN: Sequence[SchemaCase] = (
    *(
        SchemaCase({"type": name}, [value], [(other, ["$"]) for kind, other in _KINDS.items() if kind != name])
        for name, value in _KINDS.items()
    ),
    SchemaCase({}, list(_KINDS.values()), []),
    SchemaCase({"type": "number"}, [1, 1.5, -2, 1e300], [(True, ["$"]), ("1", ["$"]), (None, ["$"])]),
    SchemaCase({"type": "integer"}, [0, -1, 2.0, 10**30], [(2.5, ["$"]), (False, ["$"]), ("2", ["$"])]),
    SchemaCase({"type": ["string", "null"]}, ["", None], [(1, ["$"]), ([], ["$"])]),
    SchemaCase(
        {"enum": ["a", 1, None, [1]]}, ["a", 1, 1.0, None, [1.0]], [(True, ["$"]), ("b", ["$"]), ([True], ["$"])]
    ),
    SchemaCase({"const": {"a": [False]}}, [{"a": [False]}], [({"a": [0]}, ["$"]), ({}, ["$"])]),
    SchemaCase({"const": 0}, [0, 0.0], [(False, ["$"]), ("0", ["$"])]),
    SchemaCase(
        {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
        [[1], [1, 2, 3]],
        [([], ["$"]), ([1, 2, 3, 4], ["$"]), ([1, "b", None], ["$[1]", "$[2]"])],
    ),
    SchemaCase(
        {"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": {"type": "null"}},
        [["a", 1], ["a"], [], ["a", 1, None], "x"],
        [([1, "a"], ["$[0]", "$[1]"]), (["a", 1, 2], ["$[2]"])],
    ),
    SchemaCase(
        {"uniqueItems": True}, [[1, "1", True, [1], {}], []], [([1, 1.0], ["$"]), ([{"a": 1}, {"a": 1}], ["$"])]
    ),
    SchemaCase({"uniqueItems": False}, [[1, 1]], []),
    SchemaCase(
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b c": {"type": "array", "items": {"type": "string"}}},
            "required": ["a"],
            "additionalProperties": False,
        },
        [{"a": 1}, {"a": 1, "b c": ["x"]}],
        [({}, ["$"]), ({"a": "x", "b c": [1]}, ["$.a", "$.b c[0]"]), ({"a": 1, "d": 2}, ["$"])],
    ),
    SchemaCase({"additionalProperties": {"type": "integer"}}, [{}, {"a": 1}, 5], [({"a": 1, "b": "x"}, ["$.b"])]),
    SchemaCase({"properties": {"a": False}}, [{}, {"b": 1}], [({"a": 1}, ["$.a"])]),
    SchemaCase({"anyOf": [{"type": "integer"}, {"type": "null"}]}, [1, None], [("x", ["$"]), (1.5, ["$"])]),
    SchemaCase(
        {
            "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": ["id"]}},
            "$ref": "#/$defs/node",
        },
        [{"id": 1}, {"id": 1, "next": {"id": 2}}],
        [({"id": 1, "next": {}}, ["$.next"]), ({"id": 1, "next": {"id": 1, "next": 5}}, ["$.next.next"])],
    ),
)
"""The keywords that core emits: every validator knows these."""

_META = "https://json-schema.org/draft/2020-12/schema"

EVERYTHING: Sequence[SchemaCase] = (
    SchemaCase({"$schema": _META, "type": "null"}, [None], [(1, ["$"])]),
    SchemaCase({"minimum": 0, "maximum": 5}, [0, 5, "x", True], [(-1, ["$"]), (5.5, ["$"])]),
    SchemaCase({"exclusiveMinimum": 0, "exclusiveMaximum": 5}, [1, 4.5, "x"], [(0, ["$"]), (5, ["$"])]),
    SchemaCase({"multipleOf": 0.1}, [0.3, 1, -0.7, "x"], [(0.25, ["$"])]),
    SchemaCase({"multipleOf": 3}, [0, 3, 10**400 * 3, 9.0], [(4, ["$"]), (1e300 + 1, ["$"])]),
    SchemaCase({"minLength": 2, "maxLength": 3}, ["ab", "🙂🙂🙂", 5], [("a", ["$"]), ("abcd", ["$"])]),
    SchemaCase({"pattern": "^a+$"}, ["aaa", 5], [("b", ["$"]), ("a\n", ["$"]), ("xa", ["$"])]),
    SchemaCase({"pattern": r"\d\w"}, ["1a"], [("٣a", ["$"])]),
    SchemaCase({"minProperties": 1, "maxProperties": 1}, [{"a": 1}, []], [({}, ["$"]), ({"a": 1, "b": 2}, ["$"])]),
    SchemaCase({"propertyNames": {"maxLength": 2}}, [{"ab": 1}, 5], [({"abc": 1}, ["$"])]),
    SchemaCase(
        {"patternProperties": {"^n_": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
        [{"n_a": 1, "b": "x"}],
        [({"n_a": "x", "b": 1}, ["$.n_a", "$.b"])],
    ),
    SchemaCase(
        {"properties": {"a": True}, "patternProperties": {"^x": True}, "additionalProperties": False},
        [{"a": 1, "xb": 2}],
        [({"b": 1}, ["$"])],
    ),
    SchemaCase({"dependentRequired": {"a": ["b"]}}, [{}, {"a": 1, "b": 2}, {"b": 1}], [({"a": 1}, ["$"])]),
    SchemaCase(
        {"dependentSchemas": {"a": {"properties": {"b": {"type": "integer"}}}}},
        [{"b": "x"}, {"a": 1, "b": 2}],
        [({"a": 1, "b": "x"}, ["$.b"])],
    ),
    SchemaCase({"contains": {"type": "integer"}}, [["a", 1], 5], [([], ["$"]), (["a"], ["$"])]),
    SchemaCase(
        {"contains": {"type": "integer"}, "minContains": 2, "maxContains": 3},
        [[1, 2, "x"], [1, 2, 3]],
        [([1], ["$"]), ([1, 2, 3, 4], ["$"])],
    ),
    SchemaCase({"contains": {"type": "integer"}, "minContains": 0}, [[], ["a"]], []),
    SchemaCase({"allOf": [{"minimum": 1}, {"maximum": 3}]}, [2], [(0, ["$"]), (4, ["$"])]),
    SchemaCase({"oneOf": [{"type": "integer"}, {"minimum": 3}]}, [1, 3.5], [(5, ["$"]), (1.5, ["$"])]),
    SchemaCase({"not": {"type": "string"}}, [1, None], [("x", ["$"])]),
    SchemaCase({"not": {}}, [], [(1, ["$"])]),
    SchemaCase(
        {"if": {"type": "integer"}, "then": {"minimum": 3}, "else": {"type": "string"}},
        [3, "x"],
        [(1, ["$"]), (None, ["$"])],
    ),
    SchemaCase({"then": False, "else": False}, [1, "x"], []),
    SchemaCase(
        {"allOf": [{"properties": {"a": {"type": "integer"}}}], "unevaluatedProperties": False},
        [{}, {"a": 1}],
        [({"a": 1, "b": 2}, ["$"])],
    ),
    SchemaCase({"prefixItems": [{"type": "string"}], "unevaluatedItems": False}, [["a"], []], [(["a", 1], ["$"])]),
    SchemaCase(
        {"$defs": {"a": {"$anchor": "here", "type": "integer"}}, "properties": {"x": {"$ref": "#here"}}},
        [{"x": 1}],
        [({"x": "y"}, ["$.x"])],
    ),
    SchemaCase(
        {
            "$id": "https://example.org/root",
            "$defs": {"part": {"$id": "part", "type": "integer"}},
            "items": {"$ref": "part"},
        },
        [[1]],
        [(["x"], ["$[0]"])],
    ),
    SchemaCase(
        {
            "$id": "https://example.org/strict",
            "$dynamicAnchor": "node",
            "$ref": "tree",
            "unevaluatedProperties": False,
            "$defs": {
                "tree": {
                    "$id": "tree",
                    "$dynamicAnchor": "node",
                    "type": "object",
                    "properties": {"data": True, "children": {"items": {"$dynamicRef": "#node"}}},
                }
            },
        },
        [{"data": 1, "children": [{"children": []}]}],
        [({"children": [{"daat": 1}]}, ["$.children[0]"])],
    ),
    SchemaCase({"$ref": _META}, [{"type": "integer"}, True], [({"type": "intger"}, ["$.type"])]),
    SchemaCase(
        {"title": "t", "description": "d", "default": 5, "examples": [1], "deprecated": True, "readOnly": True,
         "writeOnly": False, "$comment": "c", "contentEncoding": "base64", "contentMediaType": "text/plain"},
        ["%", 5],
        [],
    ),
)  # fmt: skip
"""What the rest of 2020-12 can say: a validator knows a keyword of these or refuses it."""

MALFORMED: Sequence[Any] = (
    5, None, [], "string", {"type": "date"}, {"type": 5}, {"type": {"string": 1}}, {"enum": 3}, {"properties": []},
    {"properties": {"a": 5}}, {"items": "string"}, {"anyOf": None}, {"prefixItems": 2}, {"required": 1},
    {"minItems": "2"}, {"minItems": -1}, {"$ref": 3}, {"$ref": "#/$defs/missing"}, {"$defs": [], "$ref": "#/$defs/a"},
    {"$defs": {"a": 5}, "$ref": "#/$defs/a"}, {"properties": {"a": {"items": [{}]}}},
    {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
    {"$defs": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"},
)  # fmt: skip

ODD_VALUES: Sequence[Any] = (
    10**5_000, -(10**400), 1e308, 5e-324, -0.0, float("nan"), float("inf"), "half a \ud800 character", "\x00",
    "x" * 100_000, {"": {"": []}}, [[[[]]]], {"a\nb": 1}, list(range(1_000)),
)  # fmt: skip


def deep(levels: int, inner: Any = None) -> Any:
    """Return an array in an array, so many levels deep."""
    value: Any = [] if inner is None else inner
    for _ in range(levels):
        value = [value]
    return value
