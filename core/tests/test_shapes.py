"""What is known of a value before it is there: of all of it, of what is inside, and in which words it is said."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from tests.support.strategies import json_paths

from portico._plans.checking.shapes import array_of, at_path, constant, describe, itemize, meant, object_of, whole
from portico._schema.compare import Either, never_meet, pieces
from portico._schema.paths import JsonPath, is_many, read_path
from portico.plans import From
from portico_testkit.strategies import json_values

TEXT, WHOLE, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}
DATE = {"type": "object", "properties": {"date": TEXT, "weekday": WHOLE}, "required": ["date"]}
CLOSED = {**DATE, "additionalProperties": False}
PAIR = {"type": "array", "prefixItems": [WHOLE, TEXT]}
UNREADABLE = {"enum": [{"a": 1}], "properties": 3}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (TEXT, "string"),
        (WHOLE, "integer"),
        ({"type": "number"}, "number"),
        ({"type": "array"}, "array"),
        (DATE, "object"),
        (NULL, "null"),
        ({"type": "boolean"}, "boolean"),
        ({"type": ["string", "null", "integer"]}, "integer or null or string"),
        ({}, "array or boolean or null or number or object or string"),
        (False, "nothing"),
        ({"enum": []}, "nothing"),
        ({"const": "x"}, '"x"'),
        ({"const": "ä"}, '"ä"'),
        ({"const": [1, None]}, "[1, null]"),
        ({"enum": ["x", 1]}, '"x" or 1'),
        ({"anyOf": [NULL, {"const": "x"}]}, 'null or "x"'),
        ({"anyOf": [{"const": "x"}, {"const": "x"}]}, '"x"'),
        ({"enum": [1, 2, 3, 4, 5]}, "1 or 2 or 3 or 4 or 5"),
        ({"enum": [1, 2, 3, 4, 5, 6]}, "1 or 2 or 3 or 4 or 5 or …"),
        ({"const": "x" * 38}, f'"{"x" * 38}"'),
        ({"const": "x" * 39}, "one of certain values"),
        ({"enum": [1, "x" * 39]}, "one of certain values"),
        ({"enum": [1, 2, 3, 4, 5, "x" * 38]}, "1 or 2 or 3 or 4 or 5 or …"),
        ({"enum": [1, 2, 3, 4, 5, "x" * 39]}, "one of certain values"),
        ({"anyOf": [NULL, {"const": "x" * 39}]}, "null or one of certain values"),
        (UNREADABLE, "a value"),
    ],
)
def test_a_shape_is_said_in_few_words(schema: Any, words: str) -> None:
    assert describe(whole(schema)) == words


@pytest.mark.parametrize(
    ("schema", "path", "words"),
    [
        (DATE, (), "object"),
        (DATE, ("date",), "string"),
        (CLOSED, ("weekday",), "integer"),
        ({"properties": {"day": DATE}}, ("day", "date"), "string"),
        ({"type": "array", "items": DATE}, (0, "date"), "string"),
        ({"type": "array", "items": DATE}, (-1, "weekday"), "integer"),
        ({"anyOf": [DATE, NULL]}, ("date",), "string"),
        ({"anyOf": [CLOSED, {**CLOSED, "properties": {"date": NULL}}]}, ("date",), "null or string"),
        ({"anyOf": [CLOSED, {**CLOSED, "properties": {"day": NULL}, "required": []}]}, ("day",), "null"),
        (PAIR, (0,), "integer"),
        (PAIR, (1,), "string"),
        ({**PAIR, "items": NULL}, (2,), "null"),
        ({**PAIR, "items": NULL}, (-1,), "integer or null or string"),
        ({**PAIR, "items": False}, (-1,), "integer or string"),
        ({**PAIR, "items": NULL, "maxItems": 2}, (-1,), "integer or string"),
        ({**PAIR, "items": NULL, "maxItems": 3}, (-1,), "integer or null or string"),
        ({**PAIR, "items": NULL, "maxItems": 1}, (-1,), "integer"),
        ({"type": "array", "items": TEXT, "maxItems": 2}, (1,), "string"),
        ({"type": "array", "items": TEXT, "maxItems": 2}, (-2,), "string"),
        ({"const": {"a": [1, 2]}}, ("a",), "[1, 2]"),
        ({"const": {"a": [1, 2]}}, ("a", 1), "2"),
        ({"const": {"a": [1, 2]}}, ("a", -2), "1"),
        ({"enum": [{"a": 1}, {"a": "x"}, {"b": 2}, [3]]}, ("a",), '1 or "x"'),
        ({"enum": [{"a": 1}, [3]]}, (0,), "3"),
        ({"anyOf": [{"const": {"a": 1}}, {"const": {"a": 2}}]}, ("a",), "1 or 2"),
        ({"anyOf": [{"const": {"a": 1}}, {"type": "object", "properties": {"a": TEXT}}]}, ("a",), "string or 1"),
        ({"$ref": "#/$defs/Day", "$defs": {"Day": DATE}}, ("date",), "string"),
        ({"properties": {"a": {"$ref": "#/$defs/Day"}}, "$defs": {"Day": DATE}}, ("a", "date"), "string"),
    ],
)
def test_what_is_at_a_path_is_known(schema: Any, path: JsonPath, words: str) -> None:
    place = at_path(whole(schema), path)
    assert describe(place.shape) == words
    assert (place.problem, place.nearest) == ("", ())


@pytest.mark.parametrize(
    ("schema", "path", "problem", "nearest"),
    [
        (CLOSED, ("city",), "$.city; it has: date, weekday", ()),
        (CLOSED, ("dat",), "$.dat; it has: date, weekday", ("$.date",)),
        (CLOSED, ("day",), "$.day; it has: date, weekday", ("$.weekday",)),
        ({"type": "array", "items": CLOSED}, (0, "dat"), "$[0].dat; it has: date, weekday", ("$[0].date",)),
        (CLOSED, ("dat", "more"), "$.dat; it has: date, weekday", ("$.date",)),
        (CLOSED, (0,), "$[0]; $ is object", ()),
        (CLOSED, ("date", "x"), "$.date.x; $.date is string", ()),
        (PAIR, ("x",), "$.x; $ is array", ()),
        ({"type": "array", "items": TEXT, "maxItems": 2}, (2,), "$[2]; $ is array", ()),
        ({"type": "array", "items": TEXT, "maxItems": 2}, (-3,), "$[-3]; $ is array", ()),
        ({**PAIR, "items": False}, (2,), "$[2]; $ is array", ()),
        ({"type": ["string", "null"]}, ("x",), "$.x; $ is null or string", ()),
        ({"anyOf": [{"properties": {"a": TEXT}, "type": "object"}, NULL]}, ("a", 0), "$.a[0]; $.a is string", ()),
        ({"const": {"b": 1, "a": [1]}}, ("c",), "$.c; it has: a, b", ()),
        ({"const": {"b": 1, "a": [1]}}, ("a", 1), "$.a[1]; $.a is [1]", ()),
        ({"const": {"b": 1, "a": [1]}}, ("a", -2), "$.a[-2]; $.a is [1]", ()),
        ({"type": "object", "properties": {"a": False}}, ("a",), "$.a; it has: a", ("$.a",)),
        ({"type": "object", "additionalProperties": False}, ("a",), "$.a; $ is object", ()),
        ({"anyOf": [CLOSED, {"const": {"day": 1}}]}, ("x",), "$.x; it has: date, day, weekday", ()),
        (False, ("x",), "$.x; $ is nothing", ()),
    ],
)  # fmt: skip
def test_where_nothing_can_be_it_is_said_what_there_is(
    schema: Any, path: JsonPath, problem: str, nearest: tuple[str, ...]
) -> None:
    place = at_path(whole(schema), path)
    assert (place.shape, place.problem, place.nearest) == ((), f"there can be nothing at {problem}", nearest)


@pytest.mark.parametrize(
    ("name", "names", "found"),
    [
        ("weekDay", ["date", "weekday"], "weekday"),
        ("week_day", ["weekday"], "weekday"),
        ("week-day", ["week day"], "week day"),
        ("Week.Day", ["week_day"], "week_day"),
        ("weekday", ["weekday"], "weekday"),
        ("AB", ["aB", "a_b"], None),
        ("weekdays", ["weekday"], None),
        ("Maße", ["Masse"], None),
        ("x", [], None),
    ],
)
def test_names_that_differ_in_case_and_separators_mean_each_other(name: str, names: list[str], found: str) -> None:
    assert meant(name, names) == found
    assert meant(name, names, [name, "other"]) == found


def test_a_name_is_not_meant_twice() -> None:
    assert meant("Text", ["text", "x"], ["Text", "text"]) is None
    assert meant("Text", ["text", "x"], ["TEXT"]) is None
    assert meant("Text", ["text", "x"], ["x", "Text"]) == "text"


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], "none"),
        (["a"], "a"),
        (["b", "a"], "b, a"),
        ([*"abcdefghij"], "a, b, c, d, e, f, g, h, i, j"),
        ([*"abcdefghijk"], "a, b, c, d, e, f, g, h, i, j and 1 more"),
        ([*"abcdefghijklm"], "a, b, c, d, e, f, g, h, i, j and 3 more"),
    ],
)
def test_ten_names_are_listed(names: list[str], words: str) -> None:
    assert itemize(iter(names)) == words


def meets(shape: Any, schema: Any) -> bool:
    return not never_meet((*shape, (schema, schema)))


def test_a_list_put_together_has_its_elements_and_no_more() -> None:
    shape = array_of([constant(1), whole(TEXT)])
    assert describe(shape) == "array"
    assert describe(at_path(shape, (0,)).shape) == "1"
    assert describe(at_path(shape, (1,)).shape) == "string"
    assert at_path(shape, (2,)).problem == "there can be nothing at $[2]; $ is array"
    assert at_path(shape, (-3,)).problem
    assert meets(shape, {"minItems": 2, "maxItems": 2})
    assert not meets(shape, {"minItems": 3})
    assert not meets(shape, {"maxItems": 1})
    assert not meets(shape, {"items": TEXT})


def test_an_object_put_together_has_its_members_and_no_more() -> None:
    shape = object_of({"a": constant(1), "b": whole(TEXT)})
    assert describe(shape) == "object"
    assert describe(at_path(shape, ("a",)).shape) == "1"
    assert describe(at_path(shape, ("b",)).shape) == "string"
    assert at_path(shape, ("c",)).problem == "there can be nothing at $.c; it has: a, b"
    assert meets(shape, {"required": ["a", "b"]})
    assert not meets(shape, {"required": ["c"]})
    assert not meets(shape, {"properties": {"b": WHOLE}})
    assert not meets(shape, {"properties": {"a": {"const": 2}}})


def test_a_choice_of_shapes_is_as_many_schemas_at_once() -> None:
    few, many = (Either(tuple(constant(number) for number in range(count))) for count in (256, 257))
    assert not meets(((few, None),), TEXT)
    assert meets(((few, None),), {"const": 255})
    assert meets(((many, None),), TEXT), "more than 256 are not looked at"
    assert never_meet(((TEXT, TEXT), (WHOLE, WHOLE), (many, None))), "the others count beside them"
    assert never_meet(((Either((whole(NULL), (*whole(TEXT), *whole(WHOLE)))), None), (TEXT, TEXT)))
    assert not meets(((Either(()), None),), {})
    nested = Either((whole({"anyOf": [TEXT, WHOLE]}), whole(NULL)))
    assert describe(((nested, None),)) == "integer or null or string"


def test_choices_count_together() -> None:
    few, many = (Either(tuple(constant(number) for number in range(count))) for count in (255, 256))
    assert never_meet(((few, None), (Either((whole(TEXT),)), None)))
    assert not never_meet(((many, None), (Either((whole(TEXT),)), None)))


def test_a_circle_allows_what_is_said_beside_it() -> None:
    circle = {"$ref": "#/$defs/C", "$defs": {"C": {"anyOf": [{"$ref": "#/$defs/C"}], "type": "string"}}}
    assert describe(whole(circle)) == "string"


def test_what_cannot_be_read_may_meet_anything() -> None:
    assert not never_meet(whole(UNREADABLE))


def test_what_is_put_together_of_schemas_with_roots_of_their_own_keeps_them() -> None:
    inner = {"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}, "required": ["x"]}
    shape = object_of({
        "a": ((inner, {"$defs": {"X": TEXT}}),),
        "b": ((inner, {"$defs": {"X": WHOLE}}),),
    })  # fmt: skip
    assert describe(at_path(shape, ("a", "x")).shape) == "string"
    assert describe(at_path(shape, ("b", "x")).shape) == "integer"
    elements = array_of([((inner, {"$defs": {"X": TEXT}}),), ((inner, {"$defs": {"X": WHOLE}}),)])
    assert describe(at_path(elements, (-1, "x")).shape) == "integer or string"
    assert never_meet(((inner, {"$defs": {"X": TEXT}}), (inner, {"$defs": {"X": WHOLE}})))
    texts = {"properties": {"x": TEXT}}
    assert not meets(shape, {"properties": {"a": texts, "b": texts}})
    assert meets(shape, {"properties": {"a": {"properties": {"x": TEXT}}, "b": {"properties": {"x": WHOLE}}}})
    assert not meets(shape, {"properties": {"a": {"properties": {"x": WHOLE}}}})
    assert not meets(shape, {"properties": {"b": {"properties": {"x": TEXT}}}})


@pytest.mark.parametrize(
    ("schema", "path", "item"),
    [
        ({"type": "array", "items": DATE}, "$[*].date", "string"),
        ({"type": "array", "items": DATE}, "$[1:].weekday", "integer"),
        (
            {"properties": {"days": {"type": "array", "items": DATE}}},
            "$.days[*]['date','weekday']",
            "integer or string",
        ),
        (CLOSED, "$.*", "integer or string"),
        ({**PAIR, "items": NULL}, "$[*]", "integer or null or string"),
        ({**PAIR, "items": NULL}, "$[0,1]", "integer or string"),
        ({"const": {"a": [1, 2]}}, "$.a[*]", "1 or 2"),
        ({}, "$[*].a", "array or boolean or null or number or object or string"),
    ],
)
def test_a_path_that_selects_many_leads_to_an_array_of_what_there_is(schema: Any, path: str, item: str) -> None:
    [array] = pieces(at_path(whole(schema), From.parse_path(path)).shape)
    assert (array.kind, describe(array.item(0))) == ("array", item)


@pytest.mark.parametrize(
    ("schema", "path"),
    [(CLOSED, "$.days[*]"), ({"type": "array", "items": CLOSED}, "$[*].day"), (TEXT, "$[*]"), (TEXT, "$['a',0]")],
)
def test_a_path_that_can_select_nothing_is_wrong(schema: Any, path: str) -> None:
    assert "there can be nothing at" in at_path(whole(schema), From.parse_path(path)).problem


@given(json_values(), json_paths().filter(is_many))
def test_of_a_value_that_is_known_a_path_is_wrong_where_it_selects_nothing(value: Any, path: JsonPath) -> None:
    place = at_path(constant(value), path)
    assert bool(place.problem) == (read_path(value, path) == [])
