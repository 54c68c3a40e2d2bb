"""The overlap of two schemas: never too little, and where nothing but known keywords is used, not too much."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given, strategies as st

from portico._types.overlap import AS_IT_IS, Form, Format, Overlap, json_kinds, overlap
from portico_testkit.strategies import json_values

_NAMES = st.sampled_from(["a", "b"])
_SMALL = st.integers(0, 2)


def schemas() -> st.SearchStrategy[Any]:
    kinds = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
    leaves = (
        st.builds(lambda kind: {"type": kind}, kinds)
        | st.builds(lambda options: {"enum": options}, st.lists(st.sampled_from(["x", 1, 1.5, True, None]), min_size=1))
        | st.builds(lambda value: {"const": value}, json_values(1))
        | st.just({"$ref": "#/$defs/tree"})
        | st.just({})
    )

    def bigger(inner: Any) -> Any:
        return (
            st.fixed_dictionaries(
                {"type": st.just("object"), "properties": st.dictionaries(_NAMES, inner, max_size=2)},
                optional={"required": st.lists(_NAMES, unique=True), "additionalProperties": inner | st.just(False)},
            )
            | st.fixed_dictionaries(
                {"type": st.just("array")},
                optional={
                    "items": inner | st.just(False),
                    "prefixItems": st.lists(inner, min_size=1, max_size=2),
                    "minItems": _SMALL,
                    "maxItems": _SMALL,
                },
            )
            | st.builds(lambda options: {"anyOf": options}, st.lists(inner, min_size=1, max_size=2))
        )

    return st.recursive(leaves, bigger, max_leaves=4)


DEFINITIONS = {
    "tree": {
        "type": "object",
        "properties": {"a": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]}},
        "required": ["a"],
        "additionalProperties": False,
    }
}


def valid(schema: Any, value: Any) -> bool:
    return bool(jsonschema.Draft202012Validator({**schema, "$defs": DEFINITIONS}).is_valid(value))


@given(schemas(), schemas(), json_values(4) | st.sampled_from([{"a": None}, {"a": {"a": None}}, [{"a": None}], 1, "x"]))
def test_a_value_of_both_is_an_overlap(one: Any, other: Any, value: Any) -> None:
    if valid(one, value) and valid(other, value):
        assert overlap(one, other, DEFINITIONS) is not None
        assert overlap(other, one, DEFINITIONS) is not None


@given(schemas())
def test_a_schema_overlaps_with_itself_unless_it_allows_nothing(schema: Any) -> None:
    assert (overlap(schema, schema, DEFINITIONS) is None) == (overlap(schema, {}, DEFINITIONS) is None)


@given(schemas(), json_values(4))
def test_the_kinds_of_a_schema_are_those_of_its_values(schema: Any, value: Any) -> None:
    kinds = {str: "string", bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}
    if valid(schema, value):
        assert kinds.get(type(value), "null") in json_kinds(schema, DEFINITIONS)


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


STRING, INTEGER = {"type": "string"}, {"type": "integer"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (STRING, INTEGER),
        (closed(a=STRING), closed(b=STRING)),
        (closed(a=STRING), closed(a=INTEGER)),
        (closed(kind={"const": "a"}), closed(kind={"enum": ["b", "c"]})),
        (closed(a=STRING), closed()),
        ({"type": "array", "items": STRING, "minItems": 1}, {"type": "array", "items": INTEGER}),
        ({"type": "array", "prefixItems": [STRING], "minItems": 1}, {"type": "array", "maxItems": 0}),
        ({"type": "array", "prefixItems": [STRING], "minItems": 1}, {"type": "array", "items": INTEGER}),
        ({"enum": [1.5]}, INTEGER),
        ({"enum": [True]}, {"enum": [1]}),
        ({"$ref": "#/$defs/tree"}, closed(a=STRING)),
        ({"$ref": "#/$defs/tree"}, {"$ref": "#/$defs/endless"}),
        ({"enum": []}, {}),
    ],
)
def test_what_has_no_value_in_common_is_apart(one: Any, other: Any) -> None:
    definitions = DEFINITIONS | {"endless": closed(a={"$ref": "#/$defs/endless"})}
    assert overlap(one, other, definitions) is None
    assert overlap(other, one, definitions) is None


def test_a_definition_that_only_leads_to_itself_allows_nothing() -> None:
    assert overlap({"$ref": "#/$defs/a"}, {}, {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}) is None


def test_two_recursive_schemas_meet_where_a_finite_value_is_of_both() -> None:
    def ends(one: Any, other: Any) -> bool:
        definitions = {"one": closed(head=STRING, tail={"anyOf": [{"$ref": "#/$defs/one"}, one]})}
        definitions["other"] = closed(head=STRING, tail={"anyOf": [{"$ref": "#/$defs/other"}, other]})
        return overlap({"$ref": "#/$defs/one"}, {"$ref": "#/$defs/other"}, definitions) is not None

    assert ends({"type": "null"}, {"type": "null"})
    assert ends({"$ref": "#/$defs/other"}, {"type": "null"})
    assert not ends({"type": "null"}, INTEGER)
    assert not ends({"$ref": "#/$defs/other"}, {"$ref": "#/$defs/one"})


def test_what_reads_alike_is_mistaken_only_for_what_is_inside() -> None:
    texts, numbers = {"type": "array", "items": STRING}, {"type": "array", "items": {"type": "number"}}
    whole = {"type": "array", "items": INTEGER}
    forms = {id(texts): list, id(numbers): list, id(whole): list, id(INTEGER): int}

    def form(schema: Any) -> Form | None:
        return Form(forms[id(schema)]) if id(schema) in forms else None

    assert overlap(texts, numbers, {}) == Overlap((), "array")
    assert overlap(texts, numbers, {}, form=form) is None
    assert overlap(whole, numbers, {}, form=form) == Overlap((0,), "number")
    forms[id(numbers["items"])] = AS_IT_IS
    assert overlap(whole, numbers, {}, form=form) is None


def test_what_is_always_written_whole_is_not_taken_for_what_lacks_a_key() -> None:
    one, other = ({**closed(**{name: INTEGER}), "required": []} for name in "ab")
    assert overlap(one, other, {}) == Overlap((), "object")
    assert overlap(one, other, {}, form=lambda schema: Form(object(), whole=True)) is None


def test_strings_of_known_formats_are_apart_unless_one_takes_the_other() -> None:
    formats = {
        "even": Format(lambda text: len(text) % 2 == 0),
        "four": Format(lambda text: len(text) == 4, frozenset({"even"})),
    }
    even, four = {"type": "string", "format": "even"}, {"type": "string", "format": "four"}
    assert overlap(four, even, {}, formats=formats) is not None
    assert overlap(even, four, {}, formats=formats) is None
    assert overlap(even, {"enum": ["abc"]}, {}, formats=formats) is None
    assert overlap({"enum": ["abcd"]}, even, {}, formats=formats) is not None
    assert overlap(even, {"type": "string", "format": "email"}, {}, formats=formats) is not None
