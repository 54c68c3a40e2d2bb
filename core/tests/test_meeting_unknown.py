"""What is decided where a schema says what is not known here, is malformed or large; and the paths that surely fit."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any

import pytest

from portico._plans.checking.shapes import object_of, whole
from portico._schema.compare import fitting_paths, meeting, paths_that_fit
from portico._schema.paths import JsonPath

TEXT, WHOLE, NUMBER, NULL = {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "null"}
OBJECT, ARRAY = {"type": "object"}, {"type": "array"}
NO_BOUNDS: list[Any] = [True, False, "1", None, [], math.inf, math.nan]
NO_COUNTS: list[Any] = [*NO_BOUNDS, -1, 1.5]
NO_STEPS: list[Any] = [True, "1", None, 0, -2]


def decided(given: Any, wanted: Any) -> str:
    one, other = deepcopy(given), deepcopy(wanted)
    return meeting(one, one, other, other)


@pytest.mark.parametrize(("name", "same", "other"), [
    ("format", "date", "time"),
    ("contentEncoding", "base64", "base32"),
    ("pattern", "^x", "^y"),
])  # fmt: skip
def test_what_is_not_looked_into_holds_where_it_is_said_in_the_same_words(name: str, same: str, other: str) -> None:
    said = {**TEXT, name: same}
    assert decided(said, said) == "always"
    assert decided(said, TEXT) == "always"
    assert decided(TEXT, said) == "maybe"
    assert decided({**TEXT, name: other}, said) == "maybe"
    assert decided({"allOf": [TEXT, {**TEXT, name: other}, said]}, said) == "always"
    assert decided({"allOf": [said, {**TEXT, name: other}]}, said) == "always"
    assert decided(WHOLE, {name: same}) == "always"


@pytest.mark.parametrize(("kind", "name", "argument"), [
    *(("array", name, argument) for name, argument in (("contains", {}), ("minContains", 0), ("maxContains", 9))),
    *(("object", name, {}) for name in ("patternProperties", "propertyNames", "dependentRequired", "dependentSchemas")),
    ("array", "unevaluatedItems", False),
    ("object", "unevaluatedProperties", False),
    ("string", "contentMediaType", "text/plain"),
])  # fmt: skip
def test_a_keyword_that_is_not_known_matters_to_its_kind_alone(kind: str, name: str, argument: Any) -> None:
    assert decided({"type": kind}, {name: argument}) == "maybe"
    assert decided({"type": kind, name: argument}, {"type": kind}) == "always"
    assert decided(WHOLE, {name: argument}) == "always"


def test_a_keyword_of_no_kind_that_is_not_known_matters_to_all() -> None:
    assert decided(TEXT, {"glow": 1}) == "maybe"
    assert decided(TEXT, {"if": {}}) == "maybe"
    assert decided({**TEXT, "glow": 1}, WHOLE) == "never"


@pytest.mark.parametrize(("given", "wanted", "decision"), [
    ({**TEXT, "nullable": True}, {"type": ["string", "null"]}, "always"),
    ({**TEXT, "nullable": True}, TEXT, "maybe"),
    ({**TEXT, "nullable": True}, NULL, "maybe"),
    ({**TEXT, "nullable": True}, WHOLE, "never"),
    ({**TEXT, "nullable": False}, TEXT, "always"),
    ({**TEXT, "nullable": False}, NULL, "never"),
    (NULL, {**TEXT, "nullable": True}, "maybe"),
    ({"enum": [None, "x"], **TEXT, "nullable": True}, TEXT, "maybe"),
    ({"enum": [None, "x"], **TEXT, "nullable": True}, {"type": ["string", "null"]}, "always"),
    ({"enum": [1, "x"], **TEXT, "nullable": True}, TEXT, "always"),
    ({"enum": [None, "x"], **TEXT, "nullable": False}, TEXT, "always"),
    ({"enum": [None, "x"], **TEXT}, TEXT, "always"),
])  # fmt: skip
def test_where_nullable_may_count_it_allows_null_and_nothing_else(given: Any, wanted: Any, decision: str) -> None:
    assert decided(given, wanted) == decision


@pytest.mark.parametrize(("given", "wanted", "decision"), [
    ({"$id": "one", **TEXT}, {"$id": "two", **TEXT}, "always"),
    ({"allOf": [{"$id": "one", **TEXT}]}, TEXT, "maybe"),
    ({"allOf": [{"$id": "one", **TEXT}, TEXT]}, TEXT, "always"),
    (TEXT, {"allOf": [{"$id": "two", **TEXT}]}, "maybe"),
    (TEXT, {"anyOf": [{"$id": "two", **TEXT}]}, "maybe"),
])  # fmt: skip
def test_a_schema_inside_another_with_references_of_its_own_is_not_known(
    given: Any, wanted: Any, decision: str
) -> None:
    assert decided(given, wanted) == decision


@pytest.mark.parametrize("reference", ["#/$defs/none", "#/$defs", "https://example.org/schema", 3, None])
def test_a_reference_that_leads_nowhere_is_not_decided(reference: Any) -> None:
    assert decided(TEXT, {"$ref": reference}) == "maybe"
    assert decided(TEXT, {"anyOf": [{"$ref": reference}, TEXT]}) == "always"


@pytest.mark.parametrize(("given", "wanted"), [
    ({"type": 3}, TEXT),
    ({**NUMBER, "minimum": "2"}, {**NUMBER, "maximum": 1}),
    ({**NUMBER, "exclusiveMaximum": True, "maximum": 1}, {**NUMBER, "minimum": 1}),
    ({**TEXT, "minLength": -1}, {**TEXT, "minLength": 1}),
    ({**TEXT, "maxLength": True}, {**TEXT, "maxLength": 1}),
    ({**OBJECT, "required": "ab"}, {**OBJECT, "required": ["a"]}),
    ({**OBJECT, "required": [3]}, {**OBJECT, "minProperties": 1}),
    ({**OBJECT, "properties": [3]}, {**OBJECT, "properties": {"a": TEXT}}),
    ({**ARRAY, "prefixItems": {"0": TEXT}}, {**ARRAY, "prefixItems": [TEXT]}),
    ({"allOf": TEXT}, TEXT),
    ({"anyOf": TEXT}, TEXT),
    ({"enum": "xy"}, TEXT),
    ("nonsense", TEXT),
])  # fmt: skip
def test_what_is_malformed_of_the_given_allows_everything(given: Any, wanted: Any) -> None:
    assert decided(given, wanted) == "maybe"
    assert decided(given, {}) == "always"


def test_alternatives_up_to_256_are_looked_at() -> None:
    for count, decision in ((256, "always"), (257, "maybe")):
        assert decided({"anyOf": [{"const": number} for number in range(count)]}, WHOLE) == decision
        assert decided({"oneOf": [{"const": number} for number in range(count)]}, WHOLE) == decision


def test_alternatives_count_together() -> None:
    for count, decision in ((255, "never"), (256, "always")):
        given = {"allOf": [{"anyOf": [{"const": number} for number in range(count)]}, {"anyOf": [TEXT]}]}
        assert decided(given, TEXT) == decision


def test_a_schema_fits_itself_whatever_it_says() -> None:
    odd = {"glow": 1}
    assert meeting(odd, odd, odd, odd) == "always"
    assert meeting(odd, {}, odd, {"$defs": {}}) == "maybe", "under another root it may be another"
    assert meeting(NUMBER, odd, WHOLE, odd) == "maybe", "another under the same root is another"


def test_a_root_may_be_empty() -> None:
    assert meeting(having("a"), {}, having("a"), {}) == "always"


def test_a_circle_says_nothing_of_itself_beside_what_is_inside() -> None:
    circle = {"$ref": "#/$defs/C", "$defs": {"C": {"properties": {"a": TEXT}, "allOf": [{"$ref": "#/$defs/C"}]}}}
    assert decided(having("a"), circle) == "maybe"


def test_a_schema_in_two_places_is_asked_for_in_both() -> None:
    """What is known of one part, or under one root, is not taken for another's."""
    ours, theirs = {"$defs": {"X": TEXT}}, {"$defs": {"X": WHOLE}}
    inner = {"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}}
    wanted = {
        "properties": {"a": {"$ref": "#/$defs/W"}, "b": {"$ref": "#/$defs/W"}},
        "$defs": {"W": {"properties": {"x": TEXT}}},
    }
    for first, second, found in ((ours, ours, ((),)), (ours, theirs, ()), (theirs, ours, ())):
        given = object_of({"a": ((inner, first),), "b": ((inner, second),)})
        assert paths_that_fit(given, whole(wanted), depth=0) == found
    texts = whole({"type": "object", "properties": {"x": TEXT}})
    both = {"allOf": [inner]}
    assert paths_that_fit(texts, ((both, ours),), depth=0) == ((),)
    assert paths_that_fit(texts, ((both, ours), (both, theirs)), depth=0) == ()


def nested(depth: int) -> dict[str, Any]:
    """Give the schema of objects inside each other, with a text inside the last."""
    schema: dict[str, Any] = TEXT
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    return schema


def having(*names: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": dict.fromkeys(names, TEXT), "required": list(names), **more}


def array(*fixed: Any, least: int, **more: Any) -> dict[str, Any]:
    return {"type": "array", "prefixItems": list(fixed), "minItems": least, **more}


@pytest.mark.parametrize(("schema", "paths"), [
    (TEXT, [()]),
    (WHOLE, []),
    (having("a", "b"), [("a",), ("b",)]),
    (having("a", "b", required=["b", "a"]), [("a",), ("b",)]),
    (having("a", "b", required=["b"]), [("b",)]),
    (having("a", properties={"a": WHOLE}), []),
    (having("b", required=["a", "b"], additionalProperties=TEXT), [("b",), ("a",)]),
    ({"allOf": [having("a"), having("b")]}, [("b",), ("a",)]),
    ({"anyOf": [having("a", "b"), having("b", "c")]}, [("b",)]),
    ({"anyOf": [having("a"), having("a", properties={"a": WHOLE})]}, []),
    ({"anyOf": [having("a"), having("a", required=[])]}, []),
    ({"anyOf": [having("a"), having("a"), having("a", required=[])]}, []),
    ({"anyOf": [having("a"), NULL]}, []),
    ({"anyOf": [having("a"), False]}, [("a",)]),
    ({"anyOf": [having("a"), array(TEXT, least=1)]}, []),
    ({"enum": [{"a": "x"}]}, []),
    ({"anyOf": [having("a"), {"const": {"a": "x"}}]}, []),
    (False, [()]),
    (array(TEXT, TEXT, least=1), [(0,)]),
    (array(TEXT, TEXT, least=2), [(0,), (1,)]),
    (array(WHOLE, TEXT, least=2), [(1,)]),
    (array(TEXT, least=0), []),
    (array(TEXT, least=2), [(0,)]),
    (array(WHOLE, least=20, items=TEXT), [(index,) for index in range(1, 8)]),
    ({"anyOf": [array(TEXT, TEXT, least=2), array(TEXT, TEXT, least=1)]}, [(0,)]),
    ({"anyOf": [array(TEXT, TEXT, least=1), array(TEXT, TEXT, least=2)]}, [(0,)]),
    (having("z", properties={"a": having("b"), "z": TEXT}, required=["a", "z"]), [("z",), ("a", "b")]),
    (having(properties={"a": having("x"), "b": having("y")}, required=["a", "b"]), [("a", "x"), ("b", "y")]),
    (array(array(TEXT, least=1), having("a"), least=2), [(0, 0), (1, "a")]),
    (nested(3), [("a", "a", "a")]),
    (nested(4), [("a", "a", "a", "a")]),
    (nested(5), []),
])  # fmt: skip
def test_the_paths_that_fit_are_those_that_every_value_has(schema: Any, paths: list[JsonPath]) -> None:
    assert fitting_paths(schema, dict(TEXT), {}) == tuple(paths)
    assert paths_that_fit(whole(schema), ((dict(TEXT), None),)) == tuple(paths)


def test_paths_are_found_as_deep_and_as_many_as_asked() -> None:
    for depth in range(6):
        assert fitting_paths(nested(depth), dict(TEXT), {}, depth=depth) == (("a",) * depth,)
        assert fitting_paths(nested(depth + 1), dict(TEXT), {}, depth=depth) == ()
    many = having(*(f"n{number:02}" for number in range(40)))
    names = [(name,) for name in many["properties"]]
    assert fitting_paths(many, dict(TEXT), {}) == tuple(names[:32])
    assert paths_that_fit(whole(many), ((dict(TEXT), None),)) == tuple(names[:32])
    for most in (1, 2, 39, 40, 41):
        assert fitting_paths(many, dict(TEXT), {}, most=most) == tuple(names[:most])


def test_references_of_a_schema_are_to_its_root() -> None:
    root = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"], "$defs": {"A": TEXT}}
    part = {"allOf": [{"$ref": "#/$defs/A"}]}
    assert fitting_paths(root, dict(TEXT), {}) == (("a",),)
    assert fitting_paths(part, dict(TEXT), {}) == ()
    assert fitting_paths(part, dict(TEXT), {}, root=root) == ((),)
    assert fitting_paths(TEXT, part, root) == ((),)


def test_what_cannot_be_read_ends_the_search_with_what_was_found() -> None:
    schema = array(TEXT, having("a"), TEXT, least=3)
    assert fitting_paths(schema, {"type": ["string", "object"], "properties": {}}, {}) == ((0,), (1,), (2,), (1, "a"))
    assert fitting_paths(schema, {"type": ["string", "object"], "properties": 3}, {}) == ((0,),)
