"""Schemas of OpenAPI 3.0 and 3.1 become JSON Schema 2020-12 that stands for itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator

from portico.plugins import Mismatch
from portico_openapi._documents import Documents
from portico_openapi._errors import Unusable
from portico_openapi._schemas import Schemas
from portico_openapi._validation import compile_schema


def compiled(schema: Any, /, *, old: bool = False, hidden: Any = "readOnly", **schemas: Any) -> dict[str, Any]:
    root = {"components": {"schemas": schemas}}
    documents = Documents("file:///d.json", {"file:///d.json": root}, {})
    made = Schemas(documents, hidden, old=old).compile(schema, "file:///d.json")
    Draft202012Validator.check_schema(made)
    json.dumps(made, allow_nan=False)
    return made


def to(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "nullable": False}, {"type": "string"}),
        ({"type": "string", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"enum": ["a"], "nullable": True}, {"anyOf": [{"enum": ["a"]}, {"type": "null"}]}),
        ({"nullable": True}, {}),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"minimum": 1, "exclusiveMinimum": False}, {"minimum": 1}),
        ({"maximum": 9, "exclusiveMaximum": True}, {"exclusiveMaximum": 9}),
        ({"exclusiveMaximum": True}, {}),
        ({"type": "integer", "example": 5}, {"type": "integer", "examples": [5]}),
        ({"type": "file"}, {"type": "string", "format": "binary"}),
        ({"type": "string", "xml": {}, "externalDocs": {}, "x-more": 1}, {"type": "string"}),
        ({"additionalProperties": True}, {"additionalProperties": True}),
        ({"oneOf": [{"type": "string"}]}, {"anyOf": [{"type": "string"}]}),
    ],
)
def test_what_3_0_says_in_its_own_way(schema, expected):
    assert compiled(schema, old=True) == expected


@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["string", "null"], "minLength": 1, "maxLength": 2, "pattern": "^a"},
        {"const": {"a": [None]}, "default": 0, "examples": [1]},
        {"type": "array", "prefixItems": [{"type": "null"}], "items": False, "uniqueItems": True, "contains": {}},
        {"type": "object", "patternProperties": {"^x": {"type": "integer"}}, "propertyNames": {"maxLength": 3}},
        {"if": {"type": "null"}, "then": True, "else": {"minimum": 1}},
        {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}}},
        {"unevaluatedProperties": False, "anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]},
        {"not": {"type": "null"}, "deprecated": True, "contentEncoding": "base64", "contentMediaType": "image/png"},
        {"multipleOf": 0.5, "exclusiveMinimum": 0, "exclusiveMaximum": 10, "format": "float"},
        {"allOf": [{"minimum": 1}, {"maximum": 2}], "oneOf": [{"multipleOf": 2}], "anyOf": [{"type": "integer"}]},
        {"minContains": 1, "maxContains": 2, "minProperties": 1, "maxProperties": 2, "minItems": 1, "maxItems": 3},
    ],
)
def test_what_is_2020_12_already_stays(schema):
    assert compiled(schema) == schema


@pytest.mark.parametrize(
    ("schema", "left"),
    [
        ({"minLength": "1"}, {}),
        ({"maxItems": -1}, {}),
        ({"minimum": "0"}, {}),
        ({"multipleOf": 0}, {}),
        ({"required": True}, {}),
        ({"required": ["a", 5, "a"]}, {"required": ["a"]}),
        ({"enum": []}, {}),
        ({"enum": "a"}, {}),
        ({"uniqueItems": "maybe"}, {}),
        ({"pattern": "(?<name>x)["}, {}),
        ({"pattern": 5}, {}),
        ({"pattern": "x" * 5_000}, {}),
        ({"description": 5, "title": None}, {}),
        ({"dependentRequired": {"a": "b"}}, {}),
        ({"patternProperties": {"[": {}}}, {"patternProperties": {}}),
        ({"enum": list(range(20_000))}, {}),
        ({"properties": None, "allOf": None, "type": None}, {}),
        ({"allOf": []}, {}),
        ({"examples": {"a": 1}}, {}),
        ({"$id": "x", "$schema": "y", "$comment": "z", "$anchor": "a", "$defs": {"b": {}}}, {}),
    ],
)
def test_a_constraint_that_makes_no_sense_is_left_out(schema, left):
    assert compiled(schema) == left


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (5, "expected a schema, not 5"),
        ([], "expected a schema, not a list"),
        ({"type": "strng"}, "type: 'strng' is no type of JSON Schema"),
        ({"type": ["string", 5]}, "type: 5 is no type"),
        ({"type": {}}, "type: an object is no type"),
        ({"properties": []}, "properties: expected an object, not a list"),
        ({"properties": {"a": {"properties": {"b": 7}}}}, "properties.a.properties.b: expected a schema, not 7"),
        ({"items": 5}, "items: expected a schema, not 5"),
        ({"anyOf": {}}, "anyOf: expected a list, not an object"),
        ({"anyOf": [{}, 5]}, r"anyOf\[1\]: expected a schema, not 5"),
        ({"allOf": [{"$ref": 5}]}, "a reference is text"),
        ({"$ref": "#/components/schemas/No"}, "leads nowhere: there is no 'No'"),
        ({"properties": {"a": {"$ref": "#/x"}}}, r"properties\.a\.\$ref: '#/x' leads nowhere"),
    ],
)
def test_a_wrong_shape_is_told_with_its_place(schema, reason):
    with pytest.raises(Unusable, match=reason):
        compiled(schema)


def test_only_the_definitions_needed_come_along():
    schemas = {
        "A": {"type": "object", "properties": {"b": to("B")}},
        "B": {"type": "array", "items": to("C")},
        "C": {"type": "integer"},
        "D": {"type": "string"},
    }
    assert compiled({"type": "array", "items": to("B")}, **schemas) == {
        "type": "array",
        "items": {"$ref": "#/$defs/B"},
        "$defs": {"B": {"type": "array", "items": {"$ref": "#/$defs/C"}}, "C": {"type": "integer"}},
    }
    # At the top what a name stands for is written out.
    assert compiled(to("D"), **schemas) == {"type": "string"}
    assert compiled(to("A"), **schemas)["type"] == "object"
    assert list(compiled(to("A"), **schemas)["$defs"]) == ["B", "C"]


def test_recursion_stays_recursion():
    tree = {"type": "object", "properties": {"children": {"type": "array", "items": to("Tree")}}}
    made = compiled(to("Tree"), Tree=tree)
    assert made["$defs"]["Tree"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    structure = compile_schema(made).structure
    assert structure({"children": [{"children": []}]})
    with pytest.raises(Mismatch, match=r"\$\.children\[0\]\.children: expected array, got 5"):
        structure({"children": [{"children": 5}]})


@pytest.mark.parametrize(
    "schemas",
    [
        {"A": to("A")},
        {"A": to("B"), "B": to("C"), "C": to("A")},
        {"A": {"allOf": [to("B"), {"type": "string"}]}, "B": {"anyOf": [to("A")]}},
        {"A": {"not": to("B")}, "B": {"if": to("A")}},
        {"A": {"type": "object", "properties": {"b": to("B")}}, "B": {"oneOf": [to("B")]}},
    ],
)
def test_references_that_lead_to_themselves_are_refused(schemas):
    with pytest.raises(Unusable, match=r"components/schemas/\w: its references lead back to itself"):
        compiled(to("A"), **schemas)


def test_a_broken_definition_breaks_what_leads_to_it_and_nothing_else():
    schemas = {
        "Bad": {"type": "nonsense"},
        "Leads": {"type": "object", "properties": {"bad": to("Bad"), "good": to("Good")}},
        "Good": {"type": "object", "properties": {"leads": {"type": "string"}}},
    }
    root = {"components": {"schemas": schemas}}
    made = Schemas(Documents("file:///d", {"file:///d": root}, {}), "readOnly", old=False)
    for _ in range(2):
        with pytest.raises(Unusable, match="components/schemas/Bad: type: 'nonsense' is no type"):
            made.compile(to("Leads"), "file:///d")
        assert made.compile(to("Good"), "file:///d") == schemas["Good"]


def test_data_that_looks_like_a_reference_is_data():
    schema = {
        "type": "object",
        "properties": {"$ref": {"type": "string"}},
        "enum": [{"$ref": "#/nowhere"}],
        "default": {"$ref": 5},
        "examples": [{"$ref": "x.yaml"}],
    }
    assert compiled(schema) == schema


def test_beside_a_reference_3_1_counts_and_3_0_only_describes():
    beside = {**to("A"), "description": "An A.", "minLength": 2, "nullable": True}
    assert compiled({"items": beside}, A={"type": "string"})["items"] == {
        "$ref": "#/$defs/A",
        "description": "An A.",
        "minLength": 2,
    }
    assert compiled({"items": beside}, old=True, A={"type": "string"})["items"] == {
        "$ref": "#/$defs/A",
        "description": "An A.",
    }
    assert compiled(beside, old=True, A={"type": "string", "description": "Any A."}) == {
        "type": "string",
        "description": "An A.",
    }


def test_an_alternative_with_texts_beside_it_is_that_alternative():
    described = {"allOf": [to("Mark")], "description": "The winner.", "nullable": True}
    assert compiled({"items": described}, old=True, Mark={"enum": ["X", "O"]})["items"] == {
        "description": "The winner.",
        "anyOf": [{"$ref": "#/$defs/Mark"}, {"type": "null"}],
    }


def test_what_an_object_inherits_becomes_its_own():
    schemas = {
        "Named": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}, "title": "N"},
        "Aged": {"allOf": [to("Named"), {"properties": {"age": {"type": "integer"}}}], "description": "Aged."},
        "Pet": {"allOf": [to("Named"), to("Aged")], "required": ["id"], "properties": {"id": {}}, "description": "P."},
    }
    assert compiled(to("Pet"), **schemas) == {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "id": {}},
        "required": ["name", "id"],
        "description": "P.",
    }


def test_an_object_that_inherits_inside_of_itself_is_no_end():
    node = {"type": "object", "properties": {"parent": {"allOf": [to("Node")], "description": "Its parent."}}}
    made = compiled(to("Node"), Node=node)
    assert made["properties"]["parent"] == {"$ref": "#/$defs/Node", "description": "Its parent."}
    more = {"type": "object", "properties": {"extra": {"type": "integer"}}}
    grown = {"type": "object", "properties": {"parent": {"allOf": [to("Grown"), more]}, "name": {"type": "string"}}}
    made = compiled(to("Grown"), Grown=grown)
    assert made["properties"]["parent"] == {"allOf": [{"$ref": "#/$defs/Grown"}, more]}


@pytest.mark.parametrize(
    "part",
    [
        {"type": "object", "properties": {"name": {"type": "integer"}}},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "minProperties": 1},
        {"type": "array"},
        {"anyOf": [{"required": ["a"]}]},
        {"nullable": True, "type": "object"},
        True,
    ],
)
def test_what_says_more_than_one_object_stays_an_all_of(part):
    schema = {"allOf": [{"type": "object", "properties": {"name": {"type": "string"}}}, part]}
    assert list(compiled(schema)) == ["allOf"]


def test_read_only_is_for_responses_and_write_only_for_requests():
    pet = {
        "type": "object",
        "required": ["id", "name", "key"],
        "properties": {
            "id": {"type": "integer", "readOnly": True},
            "stamp": to("Stamp"),
            "name": {"type": "string"},
            "key": {"type": "string", "writeOnly": True},
            "inner": {"type": "object", "properties": {"id": {"readOnly": True}}, "required": ["id"]},
        },
    }
    schemas = {"Pet": pet, "Stamp": {"type": "string", "readOnly": True}}
    request = compiled(to("Pet"), **schemas)
    assert (list(request["properties"]), request["required"]) == (["name", "key", "inner"], ["name", "key"])
    assert request["properties"]["inner"] == {"type": "object", "properties": {}}
    response = compiled(to("Pet"), hidden="writeOnly", **schemas)
    assert (list(response["properties"]), response["required"]) == (["id", "stamp", "name", "inner"], ["id", "name"])
    over_parts = {"allOf": [{"properties": {"id": {"readOnly": True}}, "minProperties": 1}, {"required": ["id", "x"]}]}
    assert compiled({**over_parts, "required": ["id"]})["allOf"] == [
        {"properties": {}, "minProperties": 1},
        {"required": ["id", "x"]},
    ]


def test_a_discriminator_keeps_the_name_of_its_property():
    schema = {
        "oneOf": [to("Cat"), to("Dog")],
        "discriminator": {
            "propertyName": "kind",
            "mapping": {"cat": "#/components/schemas/Cat", "dog": "Dog", "cow": "Cow", "no": "#/nowhere", "bad": 5},
        },
    }
    animal = {"type": "object", "properties": {"kind": {"type": "string"}}}
    made = compiled(schema, Cat=animal, Dog=animal, Cow=animal)
    assert made["anyOf"] == [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]
    assert made["discriminator"] == {"propertyName": "kind"}
    assert set(made["$defs"]) == {"Cat", "Dog"}


def test_names_of_definitions_are_readable_and_distinct():
    schemas = {"a.b": {"type": "string"}, "a-b": {"type": "integer"}, "Ü": {"type": "null"}, "😀": {"const": 1}}
    items = [to("a.b"), to("a-b"), to("Ü"), to("😀"), to("a.b")]
    made = compiled({"prefixItems": items}, **schemas)
    assert [part["$ref"] for part in made["prefixItems"]] == [
        "#/$defs/a_b",
        "#/$defs/a_b_2",
        "#/$defs/U",
        "#/$defs/schema",
        "#/$defs/a_b",
    ]


def test_long_texts_are_cut():
    assert len(compiled({"description": "word " * 10_000})["description"]) <= 2_000


def test_a_schema_of_a_thousand_levels_is_refused():
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(150):
        deep = {"type": "array", "items": deep}
    with pytest.raises(Unusable, match="nests deeper than 60 schemas"):
        compiled(deep)


def test_a_deep_value_is_refused_and_not_followed_for_ever():
    made = compile_schema(compiled(to("Tree"), Tree={"type": "object", "properties": {"t": to("Tree")}}))
    value: dict[str, Any] = {}
    for _ in range(5_000):
        value = {"t": value}
    with pytest.raises(Mismatch, match="nests too deeply"):
        made.structure(value)


@pytest.mark.parametrize(
    ("schema", "value", "faults"),
    [
        ({"type": "integer"}, "5", ["$: expected integer, got '5'"]),
        ({"type": "integer"}, True, ["$: expected integer, got True"]),
        ({"type": ["integer", "null"]}, [], ["$: expected integer or null, got an array"]),
        ({"type": "string", "minLength": 2, "pattern": "^a"}, "b", ["$: expected minLength 2, got 'b'",
                                                                  "$: expected pattern ^a, got 'b'"]),
        ({"enum": ["a", 1]}, "b", ["$: expected one of 'a', 1, got 'b'"]),
        ({"const": "a"}, "b", ["$: expected 'a', got 'b'"]),
        ({"properties": {"a": {"type": "null"}}, "required": ["b"], "additionalProperties": False}, {"a": 1, "c": 2},
         ["$.a: expected null, got 1", "$.b: expected a value, got nothing",
          "$.c: expected one of a, got an unknown key"]),
        ({"items": {"type": "integer"}, "minItems": 3, "uniqueItems": True}, [1, 1.5],
         ["$[1]: expected integer, got 1.5", "$: expected minItems 3, got an array"]),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 5, ["$: expected string or null, got 5"]),
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"b2": 1}, ["$.a: expected a value, got nothing"]),
        ({"not": {}}, 5, ["$: expected a value that the rule 'not' allows, got 5"]),
        ({"properties": {"a": {"not": {}}}}, {"a": 1},
         ["$.a: expected a value that the rule 'not' allows, got 1"]),
        ({"multipleOf": 2, "exclusiveMaximum": 5}, 7, ["$: expected multipleOf 2, got 7",
                                                      "$: expected exclusiveMaximum 5, got 7"]),
        ({"format": "date", "type": "string"}, "no date", []),
    ],
)  # fmt: skip
def test_every_fault_is_a_sentence_with_its_place(schema, value, faults):
    try:
        compile_schema(compiled(schema)).structure(value)
        told: list[str] = []
    except Mismatch as error:
        told = [str(fault) for fault in error.faults]
    assert sorted(told) == sorted(faults)


@pytest.mark.parametrize("pattern", ["(a+)+$", r"^([a-z0-9_.+-]+)+@([a-z0-9-]+\.)+[a-z]+$", ".*.*.*=.*"])
def test_a_pattern_of_a_stranger_ends_on_values_and_keys(pattern):
    text = "a" * 50_000 + "!"
    keys = {"patternProperties": {pattern: False}, "propertyNames": {"pattern": f"{pattern}|!"}}
    for schema, value in (({"pattern": pattern}, text), ({**keys, "required": ["b"]}, {text: 1})):
        with pytest.raises(Mismatch) as raised:
            compile_schema(compiled(schema)).structure(value)
        assert len(raised.value.faults) == 1


def test_a_check_that_would_not_end_is_one_clear_fault():
    forks = {f"f{step}": {"anyOf": [to(f"f{step + 1}")] * 2} for step in range(40)}
    made = compile_schema(compiled({"properties": {"a": to("f0")}}, **forks, f40={"type": "null"}))
    with pytest.raises(Mismatch, match="too large or too entangled to be checked") as raised:
        made.structure({"a": 1, "b": "x"})
    assert len(raised.value.faults) == 1


def test_a_large_value_may_take_more_steps():
    made = compile_schema(
        {"properties": {"file": {"pattern": "^[A-Za-z0-9+/]+={0,2}$"}, "rows": {"items": {"minimum": 0}}}}
    )
    assert made.structure({"file": "a" * 3_000_000 + "==", "rows": [*range(50_000)]})


def test_equal_elements_are_found_by_json_equality():
    made = compile_schema({"uniqueItems": True})
    assert made.structure([1, True, "1", [1], {"a": 1}]) == [1, True, "1", [1], {"a": 1}]
    for twice in ([1, 1.0], [{"a": [0]}, {"a": [0.0]}]):
        with pytest.raises(Mismatch):
            made.structure(twice)


def test_there_is_an_end_to_the_faults_told():
    with pytest.raises(Mismatch) as raised:
        compile_schema({"items": {"type": "integer"}}).structure(["x"] * 1_000)
    assert len(raised.value.faults) == 20


def test_nothing_is_fetched_for_a_schema():
    # The suite refuses connections: a validator that went looking would fail otherwise than this.
    with pytest.raises(Exception, match=r"Unresolvable|https://a\.example/x"):
        compile_schema({"$ref": "https://a.example/x"}).structure(5)


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers())
def test_numbers_stay_equal_and_lose_no_digit(number):
    made = compile_schema({"type": "number"}).structure(number)
    assert made == number
    assert isinstance(made, int) or not float(made).is_integer() or abs(made) >= 2**53


SCHEMAS = st.recursive(
    st.sampled_from(
        [{}, {"type": "string"}, {"type": "integer", "minimum": 0}, {"enum": ["a", 1, None]}, {"$ref": "R"}]
    ),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
                "required": st.lists(st.sampled_from("abc"), unique=True, max_size=2),
            }
        ),
    ),
    max_leaves=8,
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["a", "b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(schema=SCHEMAS, definition=SCHEMAS, value=VALUES)
def test_the_schema_written_takes_exactly_what_the_documents_own_takes(schema, definition, value):
    """An independent judge: jsonschema on the document as it is, its references resolved by it."""
    text = json.dumps({"schema": schema, "components": {"schemas": {"R": definition}}})
    root = json.loads(text.replace('"$ref": "R"', '"$ref": "#/components/schemas/R"'))
    documents = Documents("file:///d", {"file:///d": root}, {})
    try:
        made = Schemas(documents, "readOnly", old=False).compile(root["schema"], "file:///d")
    except Unusable as error:
        assert "lead back" in str(error)
        return
    try:
        expected = Draft202012Validator({"$ref": "#/schema", **root}).is_valid(value)
    except RecursionError:
        return
    try:
        compile_schema(made).structure(value)
        taken = True
    except Mismatch:
        taken = False
    assert taken == expected
