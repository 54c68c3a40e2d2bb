"""Meeting: "always" and "never" are certain, and the schemas of everyday functions are decided."""

from __future__ import annotations

from itertools import product
from typing import Any

import jsonschema
import pytest
from hypothesis import assume, given, strategies as st
from tests.support.strategies import type_cases

from portico._schema.compare import fitting_paths, meeting
from portico._schema.paths import EACH, read_path
from portico._schema.validate import PlainSchemaValidator
from portico._schema.values import accepts
from portico._types.compiling import compile_type
from portico_testkit.strategies import json_values, near

SCALARS: list[Any] = [None, True, False, 0, 1, 1.0, 1.5, -2, 3, "", "x", "xyz", "2024-01-01"]
LISTS: list[Any] = [[], [1], ["x"], [1, 1.0], [None, "x"], [1, 2, 3], [[1]], [{"a": 1}]]
OBJECTS: list[Any] = [
    {name: value for name, value in (("a", a), ("b", b), ("c", c)) if value != "none"}
    for a, b, c in product(["none", 1, "x", None, {"a": 1}, {"a": None}], ["none", 1, "x", [1]], ["none", True])
]
DEEP: list[Any] = [{"a": {"a": {"a": None}}}, {"a": {"a": 1}, "b": {"b": 1}}, {"n": None}, {"n": {"n": None}}]
POOL: list[Any] = [*SCALARS, *LISTS, *OBJECTS, *DEEP]

ROOTS: list[dict[str, Any]] = [
    {
        "$defs": {
            "T": {"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#/$defs/T"}, {"type": "null"}]}}},
            "U": {
                "type": "object",
                "properties": {"a": {"anyOf": [{"$ref": "#/$defs/U"}, {"type": ["null", "integer"]}]}},
                "required": ["a"],
            },
        }
    },
    {
        "$defs": {
            "T": {"type": "object", "properties": {"a": {"$ref": "#/$defs/U"}}, "additionalProperties": False},
            "U": {"anyOf": [{"$ref": "#/$defs/T"}, {"const": 1}, {"type": "array", "items": {"$ref": "#/$defs/U"}}]},
        }
    },
]


def schemas() -> st.SearchStrategy[Any]:
    kinds = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
    names = st.sampled_from(["a", "b", "c"])
    small, few = st.integers(0, 3), st.sampled_from(SCALARS + LISTS + OBJECTS[:12])
    leaves = st.one_of(
        st.booleans(),
        st.just({}),
        st.builds(lambda kind: {"type": kind}, kinds | st.lists(kinds, min_size=1, max_size=2, unique=True)),
        st.builds(lambda options: {"enum": options}, st.lists(few, min_size=1, max_size=3)),
        st.builds(lambda value: {"const": value}, few),
        st.builds(lambda name: {"$ref": f"#/$defs/{name}"}, st.sampled_from(["T", "U", "X"])),
    )

    def bigger(inner: Any) -> Any:
        several = st.lists(inner, min_size=1, max_size=3)
        plain = {
            "type": kinds | st.lists(kinds, min_size=1, max_size=3, unique=True),
            "anyOf": several,
            "oneOf": several,
            "allOf": several,
            "not": inner,
            "minLength": small,
            "maxLength": small,
            "format": st.just("date"),
            "pattern": st.sampled_from(["^x", "1"]),
            "minimum": small,
            "exclusiveMaximum": small,
            "maximum": small,
            "exclusiveMinimum": small,
            "multipleOf": st.sampled_from([1, 2, 0.5]),
            "if": inner,
            "then": inner,
        }
        of_objects = {
            "properties": st.dictionaries(names, inner, max_size=3),
            "required": st.lists(names, max_size=2, unique=True),
            "additionalProperties": inner,
            "patternProperties": st.builds(lambda schema: {"^b": schema}, inner),
            "minProperties": small,
            "maxProperties": small,
            "propertyNames": inner,
        }
        of_arrays = {
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "minItems": small,
            "maxItems": small,
            "uniqueItems": st.booleans(),
            "contains": inner,
        }
        return (
            st.fixed_dictionaries({}, optional=plain)
            | st.fixed_dictionaries({"type": st.just("object")}, optional=of_objects)
            | st.fixed_dictionaries({"type": st.just("array")}, optional=of_arrays)
            | st.fixed_dictionaries({}, optional={**of_objects, **of_arrays})
        )

    return st.recursive(leaves, bigger, max_leaves=5)


def valid(schema: Any, root: dict[str, Any], value: Any) -> bool:
    if "$ref" in str(schema) and "'X'" not in str(schema):
        schema = {"allOf": [schema], **root}
    return jsonschema.Draft202012Validator(schema).is_valid(value)


def whole(schema: Any) -> bool:
    """Tell whether every reference leads somewhere: the reference validator raises for the others."""
    return "#/$defs/X" not in str(schema)


def loosened(schema: Any) -> st.SearchStrategy[Any]:
    """Make schemas that are a little other than one, since two random ones seldom agree on anything."""
    if not isinstance(schema, dict):
        return st.just(schema)
    without = [{key: value for key, value in schema.items() if key != dropped} for dropped in schema]
    return st.sampled_from([schema, *without, {"anyOf": [schema, {"type": "null"}]}, {"allOf": [{}, schema]}])


@given(st.data(), schemas().filter(whole), st.sampled_from(ROOTS), st.sampled_from(ROOTS))
def test_always_and_never_hold_for_every_value(data: st.DataObject, given_: Any, one: Any, other: Any) -> None:
    wanted = data.draw((schemas() | loosened(given_)).filter(whole))
    verdict = meeting(given_, one, wanted, other)
    if verdict == "maybe":
        return
    for value in POOL:
        if valid(given_, one, value):
            assert valid(wanted, other, value) == (verdict == "always"), f"{verdict}: {given_} in {wanted}: {value!r}"


@given(schemas().filter(whole), st.sampled_from(ROOTS), st.sampled_from(POOL) | json_values())
def test_what_is_accepted_for_sure_is_so(schema: Any, root: Any, value: Any) -> None:
    sure = accepts(value, schema, root)
    if sure is not None:
        assert sure == valid(schema, root, value), f"{value!r} under {schema}"


@given(st.data())
def test_every_type_that_is_not_recursive_fits_itself_and_an_optional_of_itself(data: st.DataObject) -> None:
    schema = compile_type(data.draw(type_cases()).hint).schema
    assume("$defs" not in schema)
    assert meeting(schema, schema, dict(schema), schema) == "always"
    nullable = {"anyOf": [{key: schema[key] for key in schema if key != "$defs"}, {"type": "null"}]}
    assert meeting(schema, schema, nullable, {**nullable, "$defs": schema.get("$defs", {})}) == "always"


@given(st.data())
def test_for_types_always_and_never_are_what_the_plain_validator_finds(data: st.DataObject) -> None:
    case, other = data.draw(type_cases()), data.draw(type_cases())
    one, two = compile_type(case.hint), compile_type(other.hint)
    verdict = meeting(one.schema, one.schema, two.schema, two.schema)
    value = data.draw(near(one.unstructure(data.draw(case.values))))
    if PlainSchemaValidator().compile(one.schema)(value):
        return
    fits = not PlainSchemaValidator().compile(two.schema)(value)
    assert verdict in ("maybe", "always" if fits else "never"), f"{verdict}: {one.schema} in {two.schema}: {value!r}"


DAY = {"type": "object", "properties": {"date": {"type": "string", "format": "date"}}, "required": ["date"]}
TREE = {"$ref": "#/$defs/Tree"}
TREES = {
    "$defs": {
        "Tree": {
            "type": "object",
            "properties": {"value": {"type": "integer"}, "next": {"anyOf": [TREE, {"type": "null"}]}},
            "required": ["value", "next"],
            "additionalProperties": False,
        }
    }
}
LOOSE = {"$defs": {"Tree": {"properties": {"value": {"type": "number"}, "next": {"anyOf": [{"type": "null"}, TREE]}}}}}


@pytest.mark.parametrize(
    ("one", "other", "verdict"),
    [
        ({"type": "integer"}, {"type": "number"}, "always"),
        ({"type": "number"}, {"type": "integer"}, "maybe"),
        ({"type": "string"}, {"type": "integer"}, "never"),
        ({"type": "string"}, {"type": ["string", "null"]}, "always"),
        ({"type": ["string", "null"]}, {"type": "string"}, "maybe"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "string"}, "maybe"),
        ({"enum": ["c", "f"]}, {"enum": ["f", "c", "k"]}, "always"),
        ({"enum": ["c", "f"]}, {"enum": ["k"]}, "never"),
        ({"enum": ["c", "f"]}, {"type": "string", "maxLength": 1}, "always"),
        ({"type": "boolean"}, {"enum": [True, False]}, "always"),
        ({"type": "string"}, {"const": "x"}, "maybe"),
        ({"type": "string", "maxLength": 3}, {"type": "string", "maxLength": 4, "minLength": 1}, "maybe"),
        ({"type": "string", "format": "date"}, {"type": "string"}, "always"),
        ({"type": "string"}, {"type": "string", "format": "date"}, "maybe"),
        ({"type": "string", "format": "date"}, {"type": "string", "format": "date"}, "always"),
        ({"type": "string"}, {"type": "string", "glow": 1}, "maybe"),
        ({"type": "string", "glow": 1}, {"type": "string"}, "always"),
        ({"type": "string"}, {"type": "string", "x-order": 1, "description": "d", "default": ""}, "always"),
        ({"type": "integer"}, {"type": "integer", "format": "int64"}, "always"),
        ({"type": "integer", "minimum": 1}, {"type": "number", "exclusiveMinimum": 0}, "maybe"),
        ({"type": "integer", "minimum": 1}, {"type": "number", "minimum": 0}, "maybe"),
        ({"type": "integer", "minimum": 1}, {"type": "number", "minimum": 1}, "always"),
        (DAY, {"type": "object"}, "always"),
        (DAY, {"type": "object", "required": ["date"]}, "always"),
        (DAY, {"type": "object", "required": ["day"]}, "maybe"),
        ({**DAY, "additionalProperties": False}, {"type": "object", "required": ["day"]}, "never"),
        (DAY, {**DAY, "additionalProperties": False}, "maybe"),
        ({**DAY, "additionalProperties": False}, {**DAY, "additionalProperties": False}, "always"),
        (DAY, {"properties": {"date": {"type": "integer"}}, "required": ["date"]}, "never"),
        ({"type": "array", "items": DAY}, {"type": "array", "items": {"type": "object"}}, "always"),
        ({"type": "array", "items": DAY}, {"type": "array", "items": {"type": "string"}}, "maybe"),
        ({"type": "array", "items": DAY, "minItems": 1}, {"type": "array", "items": {"type": "string"}}, "never"),
        (
            {"prefixItems": [{"type": "string"}], "items": False, "type": "array"},
            {"type": "array", "items": {"type": "string"}, "maxItems": 1},
            "always",
        ),
        ({}, {"type": "string"}, "maybe"),
        ({"type": "string"}, {}, "always"),
        (False, {"type": "string"}, "never"),
        ({"type": "string", "nullable": True}, {"type": "string"}, "maybe"),
        ({"type": "string"}, {"type": "string", "nullable": True}, "always"),
        ({"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A"}, "maybe"),
        ({"type": "string"}, {"type": 3, "items": "nonsense", "required": None}, "maybe"),
        ({"type": "object", "properties": 3, "required": {"a": 1}}, DAY, "maybe"),
    ],
)
def test_everyday_schemas_are_decided(one: Any, other: Any, verdict: str) -> None:
    assert meeting(one, one, other, other) == verdict


def test_recursive_schemas_are_followed_until_they_are_met_again() -> None:
    assert meeting(TREE, TREES, TREE, TREES) == "always"
    assert meeting(TREE, TREES, TREE, LOOSE) == "maybe"
    assert meeting(TREE, LOOSE, TREE, TREES) == "maybe"
    assert meeting(TREE, TREES, {"type": "string"}, {}) == "never"


def test_a_circle_says_nothing() -> None:
    circle = {"$defs": {"C": {"$ref": "#/$defs/C"}, "D": {"anyOf": [{"$ref": "#/$defs/D"}]}}}
    for name in "CD":
        assert meeting({"type": "string"}, {}, {"$ref": f"#/$defs/{name}"}, circle) == "maybe"
        assert meeting({"$ref": f"#/$defs/{name}"}, circle, {"type": "string"}, {}) == "maybe"


def test_schemas_made_to_take_long_end_with_maybe() -> None:
    options = {"anyOf": [{"type": "object", "properties": {name: {"type": "string"}}} for name in "abcdefgh"]}
    many = {"allOf": [dict(options) for _ in range(12)]}
    assert meeting(many, many, {"type": "object", "required": ["z"]}, {}) == "maybe"
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(2_000):
        deep = {"type": "array", "items": deep, "minItems": 1}
    assert meeting(deep, deep, {**deep}, deep) == "maybe"


def test_the_paths_that_fit_are_those_that_are_surely_there() -> None:
    weather = {
        "type": "object",
        "properties": {
            "place": {"type": "string"},
            "note": {"type": "string"},
            "high": {"type": "integer"},
            "wind": {"type": ["string", "null"]},
            "day": {"$ref": "#/$defs/Day"},
            "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "minItems": 2},
            "odd name": {"type": "string"},
        },
        "required": ["place", "high", "wind", "day", "pair", "odd name"],
        "$defs": {"Day": DAY},
    }
    assert fitting_paths(weather, {"type": "string"}, {}) == (("place",), ("odd name",), ("day", "date"), ("pair", 0))
    assert fitting_paths(weather, {"type": "number"}, {}) == (("high",), ("pair", 1))
    assert fitting_paths(weather, {"type": "string"}, {}, depth=1, most=1) == (("place",),)
    assert fitting_paths({"anyOf": [weather, {"type": "null"}]}, {"type": "string"}, {}, root=weather) == ()
    either = {"anyOf": [DAY, {**DAY, "properties": {"date": {"type": "string"}}}]}
    assert fitting_paths(either, {"type": "string"}, {}) == (("date",),)
    assert fitting_paths(either, {}, {}) == ((), ("date",))
    pages = {"type": "object", "properties": {"results": {"type": "array", "items": DAY}}, "required": ["results"]}
    texts = {"type": "array", "items": {"type": "string"}}
    assert fitting_paths(pages, texts, {}) == (("results", EACH, "date"),)
    assert fitting_paths(pages, {"type": "string"}, {}) == ()


@given(st.data(), schemas().filter(whole), st.sampled_from(ROOTS))
def test_at_a_fitting_path_of_any_value_there_is_one_that_fits(data: st.DataObject, inner: Any, root: Any) -> None:
    schema = data.draw(
        schemas().filter(whole) | st.just({"type": "object", "properties": {"a": inner}, "required": ["a"]})
    )
    wanted = data.draw(schemas().filter(whole) | loosened(inner))
    for path in fitting_paths(schema, wanted, root, root=root):
        for value in POOL:
            if valid(schema, root, value):
                assert valid(wanted, root, read_path(value, path)), f"{path} of {value!r}: {schema} in {wanted}"
