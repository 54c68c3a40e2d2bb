"""What the check keeps of a manual: what its parameters take, what of a literal is wrong and what was meant by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from portico._functions.functions import FunctionSpec
from portico._plans.check import path_problem
from portico._plans.checking.notes import FunctionNames
from portico._plans.checking.plans import cycles
from portico._plans.checking.shapes import UNKNOWN, Known, Taken, known_of, whole
from portico._schema.compare import Together
from portico._schema.validate import PlainSchemaValidator
from portico.errors import SchemaUnsupported

TEXT, COUNT, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}
LIST = {"type": "array", "items": COUNT}
CLOSED = {"type": "object", "properties": {"date": TEXT}, "required": ["date"], "additionalProperties": False}
ROOT = {"$defs": {"day": CLOSED}, "properties": {"a": {"$ref": "#/$defs/day"}}}
PLAIN = PlainSchemaValidator()


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        (("date",), None),
        (("Date",), "there can be nothing at $.Date; it has: date"),
        (("other",), "there can be nothing at $.other; it has: date"),
        (("date", 0), "there can be nothing at $.date[0]; $.date is string"),
    ],
)
def test_a_path_is_taken_at_its_word(path: tuple[str | int, ...], problem: str | None) -> None:
    assert path_problem(CLOSED, path) == problem


@pytest.mark.parametrize(
    ("schema", "kinds"),
    [
        ({}, {str, bool, int, float, type(None)}),
        (True, {str, bool, int, float, type(None)}),
        (False, set()),
        (TEXT, {str}),
        (COUNT, {int}),
        ({"type": "number"}, {int, float}),
        ({"type": ["string", "null"]}, {str, type(None)}),
        ({"type": "boolean"}, {bool}),
        ({"enum": ["a"]}, set()),
        ({"type": "string", "maxLength": 9}, set()),
        (LIST, set()),
        ({"$ref": "#/$defs/text", "$defs": {"text": TEXT}}, {str}),
    ],
)
def test_a_type_of_which_every_value_is_taken_needs_no_look(schema: Any, kinds: set[type]) -> None:
    taken = Taken(whole(schema))
    for _ in range(2):
        assert {kind for kind in (str, bool, int, float, type(None), list, dict) if taken.takes_every(kind)} == kinds


def test_what_is_taken_under_several_schemas_holds_for_all_of_them() -> None:
    both: Together = (*whole({"type": ["string", "integer"]}), *whole({"type": ["string", "null"]}))
    assert [Taken(both).takes_every(kind) for kind in (str, int, type(None))] == [True, False, False]
    assert Taken(both).faults(1, PLAIN) == ["$: expected string or null, got integer"]
    assert Taken(both).faults([], PLAIN) == [
        "$: expected string or integer, got array",
        "$: expected string or null, got array",
    ]


@pytest.mark.parametrize(
    ("schema", "value", "faults", "meant"),
    [
        (TEXT, "a", [], None),
        (TEXT, 7, ["$: expected string, got integer"], ("7",)),
        (TEXT, {}, ["$: expected string, got object"], None),
        (COUNT, "7", ["$: expected integer, got string"], (7,)),
        (COUNT, "x", ["$: expected integer, got string"], None),
        ({"enum": ["low", "High"]}, "HIGH", ["$: expected one of 'low', 'High'"], ("High",)),
        ({"enum": ["low", "LOW"]}, "Low", ["$: expected one of 'low', 'LOW'"], None),
        ({"enum": ["low", 1]}, "x", ["$: expected one of 'low', 1"], None),
        ({"anyOf": [{"const": "on"}, {"enum": ["off", 3]}]}, "OFF", None, ("off",)),
        ({"type": "boolean"}, "True", ["$: expected boolean, got string"], (True,)),
        ({"type": "boolean"}, "False", ["$: expected boolean, got string"], (False,)),
        ({"type": "boolean"}, "true", ["$: expected boolean, got string"], (True,)),
        ({"type": "boolean"}, "TRUE", ["$: expected boolean, got string"], None),
        ({"type": ["integer", "boolean"]}, "True", ["$: expected integer or boolean, got string"], (True,)),
        (NULL, "True", ["$: expected null, got string"], None),
        (NULL, "other", ["$: expected null, got string"], None),
        ({"type": ["null", "integer"]}, "x", ["$: expected null or integer, got string"], None),
        ({"type": ["boolean", "null"]}, "maybe", ["$: expected boolean or null, got string"], None),
        (LIST, ["1"], ["$[0]: expected integer, got string"], ([1],)),
    ],
)
def test_what_is_wrong_with_a_literal_and_what_was_meant(
    schema: Any, value: Any, faults: list[str] | None, meant: tuple[Any] | None
) -> None:
    taken = Taken(whole(schema))
    assert faults is None or taken.faults(value, PLAIN) == faults
    assert taken.mended(value, PLAIN) == meant
    assert meant is None or taken.faults(meant[0], PLAIN) == []


class Recording:
    """A validator that keeps the schemas that it was given."""

    name = "recording"

    def __init__(self) -> None:
        self.schemas: list[Any] = []

    def compile(self, schema: Mapping[str, Any]) -> Callable[[Any], list[str]]:
        self.schemas.append(schema)
        return lambda value: []


OLD = {"definitions": {"day": TEXT}, "$defs": {"b": COUNT}, "properties": {"a": TEXT}, "title": "T"}


@pytest.mark.parametrize(
    ("schema", "root", "compiled"),
    [
        (TEXT, TEXT, TEXT),
        (OLD, OLD, OLD),
        (TEXT, {"properties": {}}, TEXT),
        (TEXT, ROOT, {**TEXT, "$defs": {"day": CLOSED}}),
        (TEXT, OLD, {**TEXT, "$defs": {"b": COUNT}, "definitions": {"day": TEXT}}),
        (True, OLD, True),
        (TEXT, None, TEXT),
        (TEXT, ["$defs"], TEXT),
    ],
)
def test_a_validator_reads_a_schema_with_the_definitions_around_it_once(schema: Any, root: Any, compiled: Any) -> None:
    taken, validator, other = Taken(((schema, root),)), Recording(), Recording()
    for _ in range(3):
        assert taken.faults("a", validator) == []
    assert validator.schemas == [compiled]
    if not root or schema is root or "$defs" not in root:
        assert validator.schemas[0] is schema
    taken.faults("a", other)
    assert other.schemas == [compiled]


def test_a_schema_that_a_validator_does_not_know_is_said_each_time() -> None:
    taken = Taken(whole({"pattern": "^a"}))
    for _ in range(2):
        with pytest.raises(SchemaUnsupported, match="'pattern' is not handled"):
            taken.faults("a", PLAIN)


@pytest.mark.parametrize(
    ("schema", "kind", "there"),
    [
        (LIST, "array", True),
        (LIST, "object", False),
        (CLOSED, "object", True),
        ({"anyOf": [LIST, CLOSED]}, "array", True),
        ({"anyOf": [LIST, {"type": "array"}]}, "array", False),
        ({"const": [1]}, "array", False),
        ({"$ref": "#/$defs/day", **ROOT}, "object", True),
        ({"enum": [{"a": 1}], "properties": 3}, "object", False),
    ],
)
def test_there_is_a_way_into_values_of_a_kind_where_there_is_one_only(schema: Any, kind: str, there: bool) -> None:
    taken = Taken(whole(schema))
    piece = taken.single(kind)
    assert (piece is not None) is there
    assert piece is None or piece.kind == kind
    assert taken.single(kind) is piece


def test_what_is_inside_is_known_by_its_place() -> None:
    members, elements = Taken(whole(CLOSED)), Taken(whole({**LIST, "prefixItems": [TEXT]}))
    day, row = members.single("object"), elements.single("array")
    assert day is not None
    assert row is not None
    assert members.inside(day, "date").shape == ((TEXT, CLOSED),)
    assert members.inside(day, "other").shape == ((False, CLOSED),)
    assert [elements.inside(row, index).shape[0][0] for index in (0, 1, 2)] == [TEXT, COUNT, COUNT]
    assert members.inside(day, "date") is members.inside(day, "date")
    assert elements.inside(row, 0) is elements.inside(row, 0)


@pytest.mark.parametrize(
    ("parameters", "names", "required", "closed"),
    [
        ({}, [], (), False),
        ({"properties": {"a": TEXT, "b": False, "c": True}}, ["a", "c"], (), False),
        ({"properties": [], "required": {}}, [], (), False),
        ({"required": ["a", 3, None, "b"]}, [], ("a", "b"), False),
        ({"additionalProperties": False}, [], (), True),
        ({"additionalProperties": {}}, [], (), False),
    ],
)
def test_of_parameters_the_check_knows_names_what_is_needed_and_whether_others_may_be(
    parameters: dict[str, Any], names: list[str], required: tuple[str, ...], closed: bool
) -> None:
    known = known_of(FunctionSpec("f", "", parameters, COUNT))
    assert (known.name, list(known.parameters), known.required, known.closed) == ("f", names, required, closed)
    shapes = [taken.shape for taken in known.parameters.values()]
    assert shapes == [((parameters["properties"][name], parameters),) for name in names]
    assert (known.effects, known.output.shape) == (False, whole(COUNT))
    assert known_of(FunctionSpec("f", "", parameters, COUNT, effects=True)).effects is True
    assert Known("f", parameters, True).closed is closed
    assert Known("f", parameters, True, closed=True).closed is True
    assert (Known("f", parameters, True).effects, UNKNOWN.shape) == (False, ())


NAMES = [f"Plugin-function{number}" for number in range(8)]


@pytest.mark.parametrize(
    ("known", "near", "hint"),
    [
        ([], (), ""),
        (["a"], (), "; the functions are: a"),
        (NAMES, (), f"; the functions are: {', '.join(NAMES)}"),
        ([*NAMES, "more"], (), ""),
        (NAMES, ("a",), "; nearest: a"),
        (NAMES, ("a", "b"), "; nearest: a, b"),
    ],
)
def test_after_an_unknown_function_those_that_are_there_are_said(
    known: list[str], near: tuple[str, ...], hint: str
) -> None:
    assert FunctionNames(known).hint(near) == hint


def test_twenty_names_of_a_plan_are_looked_for_in_the_catalogue() -> None:
    names = FunctionNames(["forecast", "say"])
    assert [names.nearest("forecasts") for _ in range(21)] == [("forecast",)] * 20 + [()]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Weather-Day_Forecast", "Weather-Day_Forecast"),
        ("Weather.Day_Forecast", "Weather-Day_Forecast"),
        (" weather/day forecast\n", "Weather-Day_Forecast"),
        ("functions.weather:day-forecast", "Weather-Day_Forecast"),
        ("DAY_FORECAST", "Weather-Day_Forecast"),
        ("Forecast", None),
        ("mix", None),
        ("a-mix", "A-mix"),
        ("say", "say"),
        ("STRASSE", "Straße"),
        ("other", None),
        ("", None),
    ],
)
def test_a_name_means_the_one_function_that_differs_in_case_and_separators_only(name: str, meant: str | None) -> None:
    names = FunctionNames(["Weather-Day_Forecast", "A-mix", "B-mix", "say", "Straße"])
    assert [names.meant(name), names.meant(name)] == [meant, meant]


@pytest.mark.parametrize(
    ("waits", "walks"),
    [
        ({}, []),
        ({"a": [], "b": ["a"], "c": ["a", "b"]}, []),
        ({"a": ["a"]}, [["a", "a"]]),
        ({"a": ["b"], "b": ["a"]}, [["a", "b", "a"]]),
        ({"a": ["b"], "b": ["c"], "c": ["b"]}, [["b", "c", "b"]]),
        ({"a": ["x", "y"], "y": ["a"]}, [["a", "y", "a"]]),
        ({"a": ["c", "b"], "b": ["a"], "c": ["a"]}, [["a", "b", "a"], ["a", "c", "a"]]),
        ({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": ["a"]}, [["a", "b", "d", "a"]]),
        ({"a": ["b"], "b": [], "c": ["b", "d"], "d": ["c", "a"]}, [["c", "d", "c"]]),
        ({"b": ["b"], "a": ["b", "a"]}, [["b", "b"], ["a", "a"]]),
    ],
)
def test_each_way_round_among_steps_is_walked_once(waits: dict[str, list[str]], walks: list[list[str]]) -> None:
    assert list(cycles(waits)) == walks
