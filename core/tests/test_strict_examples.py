"""Strict forms, rule by rule: what is written for what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from portico.errors import SchemaUnsupported
from portico.schemas import PlainSchemaValidator
from portico.strict import strict_form
from portico.types import Mismatch, compile_type

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
NOTHING = {"type": "null"}


def closed(properties: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    names = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def entries_of(value: Any, key: Any = TEXT) -> dict[str, Any]:
    return {"type": "array", "items": closed({"key": key, "value": value})}


def rewritten(member: Any, **definitions: Any) -> Any:
    """Return what becomes of the schema of a required property."""
    form = strict_form({**closed({"x": member}), "$defs": definitions})
    assert form.loosened == ()
    return form.schema["properties"]["x"]


def there(member: Any, value: Any) -> Any:
    """Encode a value, and check that it comes back."""
    form = strict_form(closed({"x": member}))
    encoded = form.encode({"x": value})
    assert form.decode(encoded) == {"x": value}
    return encoded["x"]


JSON = {
    "anyOf": [
        NOTHING,
        {"type": "boolean"},
        {"type": "number"},
        TEXT,
        {"type": "array", "items": {"$ref": "#/$defs/json"}},
        closed({"entries": entries_of({"$ref": "#/$defs/json"})}),
    ]
}


def test_the_schemas_of_the_guide_come_out_as_they_are() -> None:
    step = closed({"explanation": TEXT, "output": TEXT})
    guide = [
        closed({"steps": {"type": "array", "items": step}, "final_answer": TEXT}),
        closed({"name": TEXT, "date": TEXT, "participants": {"type": "array", "items": TEXT}}),
        {
            **closed({"steps": {"type": "array", "items": {"$ref": "#/$defs/step"}}, "final_answer": TEXT}),
            "$defs": {"step": step},
        },
        closed({"unit": {"type": ["string", "null"], "description": "The unit.", "enum": ["F", "C", None]}}),
        closed({"email": {"type": "string", "format": "email"}, "name": {"type": "string", "pattern": "^@[a-z]+$"}}),
        closed({"degrees": {"type": "number", "minimum": -130, "maximum": 130}}),
        closed({"item": {"anyOf": [closed({"name": TEXT, "age": WHOLE}), closed({"number": TEXT, "street": TEXT})]}}),
    ]
    for schema in guide:
        form = strict_form(schema)
        assert form.schema == schema
        assert form.identity
        assert form.loosened == ()


@dataclass
class Step:
    explanation: str
    output: str


@dataclass
class MathReasoning:
    steps: list[Step]
    final_answer: str


def test_a_dataclass_comes_out_as_the_guide_has_it() -> None:
    form = strict_form(compile_type(MathReasoning).schema)
    step = closed({"explanation": TEXT, "output": TEXT})
    assert form.schema == closed({"steps": {"type": "array", "items": step}, "final_answer": TEXT})
    assert form.identity


def test_what_does_not_change_is_not_even_copied() -> None:
    value = {"name": "Ada"}
    form = strict_form(closed({"name": TEXT}))
    assert form.encode(value) is value
    assert form.decode(value) is value


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (TEXT, closed({"value": TEXT})),
        ({"anyOf": [TEXT, WHOLE]}, closed({"value": {"anyOf": [TEXT, WHOLE]}})),
        ({"type": "object", "additionalProperties": WHOLE}, closed({"value": entries_of(WHOLE)})),
        ({"$ref": "#/$defs/a", "$defs": {"a": closed({"b": TEXT})}}, closed({"b": TEXT})),
        (
            {"$ref": "#/$defs/a", "$defs": {"a": TEXT}},
            {**closed({"value": {"$ref": "#/$defs/a"}}), "$defs": {"a": TEXT}},
        ),
        ({"allOf": [closed({"b": TEXT})], "title": "T"}, {**closed({"b": TEXT}), "title": "T"}),
        (True, {**closed({"value": {"$ref": "#/$defs/json"}}), "$defs": {"json": JSON}}),
    ],
    ids=["text", "union", "map", "object by reference", "text by reference", "all of one", "anything"],
)
def test_the_root_is_an_object(schema: Any, expected: Any) -> None:
    assert strict_form(schema).schema == expected


def test_a_value_that_is_no_object_is_wrapped() -> None:
    form = strict_form({"type": "array", "items": WHOLE})
    assert not form.identity
    assert form.encode([1]) == {"value": [1]}
    assert form.decode({"value": [1]}) == [1]
    for other in ([1], {}, {"value": [], "more": 1}, None):
        with pytest.raises(Mismatch, match='one key "value"'):
            form.decode(other)


def test_an_optional_property_is_null_when_it_is_not_there() -> None:
    form = strict_form(closed({"a": TEXT, "b": WHOLE}, required=["a"]))
    assert form.schema == closed({"a": TEXT, "b": {"anyOf": [WHOLE, NOTHING]}})
    assert form.encode({"a": ""}) == {"a": "", "b": None}
    assert form.decode({"a": "", "b": None}) == {"a": ""}
    with pytest.raises(Mismatch, match=r"\$\.b: expected a value, or nothing at all"):
        form.encode({"a": "", "b": None})


def test_an_optional_property_that_may_be_null_is_told_from_one_that_is_not_there() -> None:
    form = strict_form(closed({"a": {"type": ["string", "null"]}}, required=[]))
    assert form.schema == closed({"a": {"anyOf": [closed({"value": {"type": ["string", "null"]}}), NOTHING]}})
    for value, encoded in (
        ({}, {"a": None}),
        ({"a": None}, {"a": {"value": None}}),
        ({"a": "x"}, {"a": {"value": "x"}}),
    ):
        assert form.encode(value) == encoded
        assert form.decode(encoded) == value
    with pytest.raises(Mismatch, match=r'\$\.a: expected an object with the one key "value", or null'):
        form.decode({"a": "x"})


def test_the_alternatives_of_an_optional_property_are_not_nested() -> None:
    form = strict_form(closed({"a": {"anyOf": [TEXT, WHOLE], "description": "What."}}, required=[]))
    assert form.schema["properties"]["a"] == {"anyOf": [TEXT, WHOLE, NOTHING], "description": "What."}


def test_a_map_is_an_array_of_entries() -> None:
    schema = {"type": "object", "additionalProperties": WHOLE}
    assert rewritten(schema) == entries_of(WHOLE)
    assert there(schema, {"a": 1, "b": 2}) == [{"key": "a", "value": 1}, {"key": "b", "value": 2}]
    bounded = {**schema, "minProperties": 1, "maxProperties": 2}
    assert rewritten(bounded) == {**entries_of(WHOLE), "minItems": 1, "maxItems": 2}


def test_the_keys_of_a_map_keep_their_schema() -> None:
    names = {"type": "string", "enum": ["a", "b"]}
    schema = {"type": "object", "additionalProperties": WHOLE, "propertyNames": {"$ref": "#/$defs/names"}}
    assert rewritten(schema, names=names) == entries_of(WHOLE, key=names)


def test_entries_that_say_one_thing_twice_are_refused_since_one_would_be_lost() -> None:
    form = strict_form({"type": "object", "properties": {"a": WHOLE}, "additionalProperties": WHOLE})
    entry = {"key": "b", "value": 1}
    with pytest.raises(Mismatch, match=r"\$\.entries\[1\]\.key: expected a key of its own, got 'b'"):
        form.decode({"a": None, "entries": [entry, entry]})
    with pytest.raises(Mismatch, match=r"\$\.entries\[0\]\.key: expected a key of its own, got 'a'"):
        form.decode({"a": 1, "entries": [{"key": "a", "value": 2}]})
    for broken in ({"key": "b"}, {"key": 1, "value": 1}, [], None):
        with pytest.raises(Mismatch, match=r"\$\.entries\[0\]: expected an object with"):
            form.decode({"a": 1, "entries": [broken]})


def test_the_other_keys_of_an_object_are_entries_beside_its_properties() -> None:
    schema = {"type": "object", "properties": {"entries": TEXT}, "required": ["entries"], "additionalProperties": WHOLE}
    assert rewritten(schema) == closed({"entries": TEXT, "entries_2": entries_of(WHOLE)})
    assert there(schema, {"entries": "", "b": 2}) == {"entries": "", "entries_2": [{"key": "b", "value": 2}]}


def test_an_object_that_says_nothing_of_other_keys_has_them_unless_it_is_to_be_closed() -> None:
    schema = {"type": "object", "properties": {"a": TEXT}, "required": ["a"]}
    assert list(strict_form(schema).schema["properties"]) == ["a", "entries"]
    assert strict_form(schema, close=True).schema == closed({"a": TEXT})
    parts = {"allOf": [schema, {"type": "object", "properties": {"b": TEXT}, "required": ["b"]}]}
    assert strict_form(parts, close=True).schema == closed({"a": TEXT, "b": TEXT})
    for told in ({"additionalProperties": True}, {"patternProperties": {"^x": TEXT}}):
        assert "entries" in strict_form({**schema, **told}, close=True).schema["properties"]
    assert strict_form({"type": "object"}, close=True).schema == strict_form({"type": "object"}).schema


def test_free_json_is_kept_to_the_last_bit() -> None:
    form = strict_form(closed({"x": {}}))
    assert form.schema == {**closed({"x": {"$ref": "#/$defs/json"}}), "$defs": {"json": JSON}}
    value = [1, 1.0, True, None, "a", {"b": [{}]}]
    encoded = form.encode({"x": value})["x"]
    inner = [{"entries": []}]
    assert encoded == [1, 1.0, True, None, "a", {"entries": [{"key": "b", "value": inner}]}]
    assert repr(form.decode({"x": encoded})) == repr({"x": value})


def test_an_array_with_a_schema_for_each_place_is_an_object_with_a_property_for_each() -> None:
    schema = {"type": "array", "prefixItems": [TEXT, WHOLE], "minItems": 2, "maxItems": 2}
    assert rewritten(schema) == closed({"item_1": TEXT, "item_2": WHOLE})
    assert there(schema, ["a", 1]) == {"item_1": "a", "item_2": 1}
    assert rewritten({"items": [TEXT, WHOLE], "additionalItems": False, "minItems": 2, "type": "array"}) == rewritten(
        schema
    ), "as it was written before draft 2020-12"


def test_places_that_are_all_alike_stay_an_array() -> None:
    schema = compile_type(tuple[int, int]).schema
    assert rewritten(schema) == {"type": "array", "items": WHOLE, "minItems": 2, "maxItems": 2}


def test_an_array_of_several_lengths_is_an_object_for_each_length() -> None:
    schema = {"type": "array", "prefixItems": [TEXT, WHOLE], "minItems": 1, "items": {"type": "boolean"}}
    assert rewritten(schema) == {
        "anyOf": [
            closed({"item_1": TEXT}),
            closed({"item_1": TEXT, "item_2": WHOLE, "rest": {"type": "array", "items": {"type": "boolean"}}}),
        ]
    }
    assert there(schema, ["a"]) == {"item_1": "a"}
    assert there(schema, ["a", 1, True]) == {"item_1": "a", "item_2": 1, "rest": [True]}


def test_an_array_of_many_lengths_is_loosened() -> None:
    form = strict_form(closed({"x": {"type": "array", "prefixItems": [TEXT, WHOLE] * 5, "items": False}}))
    assert form.schema["properties"]["x"] == {"type": "array", "items": {"anyOf": [TEXT, WHOLE]}, "maxItems": 10}
    assert form.loosened == (
        "#/properties/x/prefixItems is not held: it would take more than 8 alternatives, one for a length",
    )


def test_alternatives_that_do_not_change_stay_as_they_are() -> None:
    schema = {"anyOf": [closed({"a": TEXT}), closed({"a": WHOLE}), TEXT]}
    assert rewritten(schema) == schema
    assert strict_form(closed({"x": schema})).identity


def test_alternatives_are_told_apart_by_kind_keys_or_a_tag() -> None:
    def tagged(tag: Any, required: list[str]) -> Any:
        return closed({"kind": tag, "b": WHOLE}, required)

    for options in (
        [{"type": "object", "additionalProperties": TEXT}, TEXT],
        [closed({"a": TEXT}, []), closed({"b": TEXT}, [])],
        [tagged({"const": "a"}, ["kind"]), tagged({"enum": ["b", "c"]}, ["kind", "b"])],
        [tagged({"const": "a"}, ["kind"]), tagged({"$ref": "#/$defs/tag"}, ["kind", "b"])],
    ):
        written = str(rewritten({"anyOf": options}, tag={"enum": ["b", 1]}))
        assert "option_" not in written


def test_alternatives_that_look_alike_when_encoded_are_wrapped() -> None:
    schema = {"anyOf": [closed({"a": TEXT}), closed({"a": WHOLE}, required=[])]}
    first, second = closed({"a": TEXT}), closed({"a": {"anyOf": [WHOLE, NOTHING]}})
    assert rewritten(schema) == {"anyOf": [closed({"option_1": first}), closed({"option_2": second})]}
    assert there(schema, {"a": "x"}) == {"option_1": {"a": "x"}}
    assert there(schema, {}) == {"option_2": {"a": None}}


def test_a_map_among_arrays_is_known_by_its_entries() -> None:
    schema = {"anyOf": [{"type": "array", "items": TEXT}, {"type": "object", "additionalProperties": TEXT}]}
    assert rewritten(schema) == {"anyOf": [{"type": "array", "items": TEXT}, closed({"entries": entries_of(TEXT)})]}
    assert there(schema, {"a": "b"}) == {"entries": [{"key": "a", "value": "b"}]}
    assert there(schema, ["a"]) == ["a"]


def test_the_first_alternative_that_fits_is_taken() -> None:
    schema = {"anyOf": [closed({"a": TEXT}, []), closed({"a": {}}, [])]}
    assert there(schema, {"a": "x"}) == {"option_1": {"a": "x"}}
    assert there(schema, {"a": None}) == {"option_2": {"a": {"value": None}}}


def test_one_of_is_any_of_where_only_one_can_fit() -> None:
    def tagged(tag: str) -> Any:
        return closed({"kind": {"const": tag}, "a": TEXT})

    assert rewritten({"oneOf": [TEXT, WHOLE]}) == {"anyOf": [TEXT, WHOLE]}
    assert len(rewritten({"oneOf": [tagged("a"), tagged("b"), NOTHING]})["anyOf"]) == 3
    assert len(rewritten({"oneOf": [closed({"a": TEXT}), closed({"b": TEXT})]})["anyOf"]) == 2
    overlapping = strict_form(closed({"x": {"oneOf": [WHOLE, {"type": "number"}]}}))
    assert overlapping.loosened == (
        "#/properties/x/oneOf is not held: it becomes anyOf, and a value may fit several of its alternatives",
    )


def test_several_types_are_alternatives_unless_the_other_is_null() -> None:
    assert rewritten({"type": ["string", "null"]}) == {"type": ["string", "null"]}
    assert rewritten({"type": ["string", "integer"], "minimum": 1}) == {"anyOf": [TEXT, {**WHOLE, "minimum": 1}]}
    assert rewritten({"type": ["object", "null"], "additionalProperties": TEXT}) == {
        **entries_of(TEXT),
        "type": ["array", "null"],
    }


def test_listed_values_have_their_type() -> None:
    assert rewritten({"enum": ["a", "b"]}) == {"type": "string", "enum": ["a", "b"]}
    assert rewritten({"const": 1}) == {"type": "integer", "const": 1}
    assert rewritten({"enum": [1, 2.5]}) == {"type": "number", "enum": [1, 2.5]}
    assert rewritten({"enum": [True]}) == {"type": "boolean", "enum": [True]}
    assert rewritten({"type": "string", "enum": ["a", 1, None]}) == {"type": "string", "enum": ["a"]}
    assert rewritten({"enum": ["a", 1]}) == {"anyOf": [{**TEXT, "enum": ["a"]}, {**WHOLE, "enum": [1]}]}
    assert rewritten({"const": {"a": True}}) == closed({"a": {"type": "boolean", "const": True}})
    assert rewritten({"enum": [["a", 1]]}) == closed(
        {"item_1": {**TEXT, "const": "a"}, "item_2": {**WHOLE, "const": 1}}
    )


def test_what_stands_beside_a_reference_is_kept() -> None:
    point = closed({"x": WHOLE})
    described = {"$ref": "#/$defs/point", "description": "Where."}
    assert rewritten(described, point=point) == {"anyOf": [{"$ref": "#/$defs/point"}], "description": "Where."}
    assert rewritten({"$ref": "#/$defs/size", "minimum": 3}, size=WHOLE) == {**WHOLE, "minimum": 3}


@pytest.mark.parametrize(
    "reference",
    ["#", "#/$defs/node", "#/definitions/a~1b", "#/properties/in%20side", "#/$defs/list/anyOf/1", "#/$defs/alias"],
)
def test_every_local_reference_leads_to_a_definition(reference: str) -> None:
    node = closed({"next": {"$ref": reference}}, required=[])
    schema = {
        **closed({"in side": node, "next": {"$ref": reference}}, required=[]),
        "$defs": {"node": node, "list": {"anyOf": [NOTHING, node]}, "alias": {"$ref": "#/$defs/node"}},
        "definitions": {"a/b": node},
    }
    form = strict_form(schema)
    assert form.loosened == ()
    value = {"next": {"next": {"next": {}}}}
    assert form.decode(form.encode(value)) == value
    name = form.schema["properties"]["next"]["anyOf"][0]["$ref"].removeprefix("#/$defs/")
    assert name in form.schema["$defs"]


def test_parts_that_must_all_hold_are_merged() -> None:
    schema = {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "number", "minimum": 1}}, "required": ["a"]},
            {"properties": {"a": {"type": "integer", "maximum": 3, "multipleOf": 2}, "b": TEXT}},
            {"$ref": "#/$defs/closed"},
        ]
    }
    closing = {"properties": {"a": {"multipleOf": 3}, "b": True, "c": False}, "additionalProperties": False}
    merged = rewritten(schema, closed=closing)
    bounds = {"minimum": 1, "maximum": 3, "multipleOf": 6}
    assert merged == closed({"a": {**WHOLE, **bounds}, "b": {"anyOf": [TEXT, NOTHING]}})


def test_what_stands_beside_alternatives_holds_for_each() -> None:
    schema = {
        "type": "object",
        "properties": {"a": TEXT, "b": TEXT},
        "additionalProperties": False,
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    }
    maybe = {"anyOf": [TEXT, NOTHING]}
    first, second = closed({"a": TEXT, "b": maybe}), closed({"a": maybe, "b": TEXT})
    assert rewritten(schema) == {"anyOf": [closed({"option_1": first}), closed({"option_2": second})]}


def test_what_cannot_be_there_is_left_out() -> None:
    assert rewritten(closed({"a": TEXT, "b": False}, required=["a"])) == closed({"a": TEXT})
    assert rewritten({"anyOf": [TEXT, False]}) == TEXT
    assert rewritten({"anyOf": [TEXT, {"$ref": "#/$defs/none"}]}, none={"not": {}}) == TEXT
    assert rewritten({"type": "array", "items": False}) == {"type": "array", "items": NOTHING, "maxItems": 0}


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "string", "minLength": 1}, "minLength"),
        ({"type": "string", "maxLength": 1}, "maxLength"),
        ({"type": "string", "pattern": "^(?=a)"}, "pattern"),
        ({"type": "string", "pattern": r"(a)\1"}, "pattern"),
        ({"type": "string", "pattern": r"\p{L}"}, "pattern"),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "uniqueItems"),
        ({"type": "array", "items": {"type": "string"}, "contains": {"const": "a"}}, "contains"),
        ({"type": "array", "items": {"type": "string"}, "unevaluatedItems": False}, "unevaluatedItems"),
        ({"type": "object", "patternProperties": {"^x": {}}}, "patternProperties"),
        ({"type": "object", "unevaluatedProperties": False}, "unevaluatedProperties"),
        ({"type": "object", "dependentRequired": {"a": ["b"]}}, "dependentRequired"),
        ({"type": "object", "propertyNames": {"anyOf": [{"const": "a"}, {"pattern": "b"}]}}, "propertyNames"),
        ({"type": "object", "properties": {"a": {}}, "minProperties": 1}, "minProperties"),
        ({"type": "object", "properties": {"a": {}}, "maxProperties": 1}, "maxProperties"),
        ({"allOf": [{"type": "number", "multipleOf": 0.5}, {"multipleOf": 0.3}]}, "allOf/1/multipleOf"),
        ({"type": "string", "not": {"const": "a"}}, "not"),
        ({"type": "string", "if": {"const": "a"}, "then": False}, "if"),
        ({"type": "string", "nullable": True}, "nullable"),
        ({"type": "string", "$dynamicRef": "#a"}, "$dynamicRef"),
    ],
    ids=str,
)
def test_what_strict_mode_does_not_have_is_dropped_and_named(schema: Any, place: str) -> None:
    form = strict_form({"type": "array", "items": schema})
    (sentence,) = form.loosened
    assert sentence.startswith(f"#/items/{place} is not held: ")
    with pytest.raises(SchemaUnsupported, match="no exact strict form") as caught:
        strict_form({"type": "array", "items": schema}, loosen=False)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "format": "uri", "default": "a", "examples": ["a"], "x-mine": 1, "$comment": "c"},
        {"type": "string", "minLength": 0, "contains": {}, "uniqueItems": True, "not": False},
        {"type": "array", "items": {}, "uniqueItems": False, "unevaluatedItems": True, "maxItems": 3},
        {"type": "array", "items": {}, "uniqueItems": True, "maxItems": 1},
        {"type": "object", "properties": {"a": {}}, "required": ["a"], "minProperties": 1, "dependentRequired": {}},
    ],
    ids=str,
)
def test_what_asks_nothing_of_a_value_is_not_missed(schema: Any) -> None:
    assert strict_form(schema, loosen=False).loosened == ()


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (False, "at #, nothing is valid"),
        ({"enum": []}, "at #, nothing is valid"),
        (closed({"a": False}), "at #, nothing is valid"),
        ({"allOf": [TEXT, WHOLE]}, "at #, nothing is valid"),
        ({"$ref": "#"}, "at #, the schema leads to itself"),
        (closed({"a": {"$ref": "#/properties/a"}}), "at #/properties/a, the schema leads to itself"),
        ({"$defs": {"a": {"anyOf": [TEXT, {"$ref": "#/$defs/a"}]}}, "items": {"$ref": "#/$defs/a"}}, "leads to itself"),
        ({"$ref": "https://example.org/a"}, "'https://example.org/a' is no reference to a place in this schema"),
        ({"$ref": "#anchor"}, "'#anchor' is no reference to a place in this schema"),
        ({"$ref": "#/$defs/a"}, "'#/$defs/a' leads nowhere"),
        ({"$ref": "#/anyOf/2", "anyOf": [TEXT]}, "'#/anyOf/2' leads nowhere"),
        ({"items": {"$id": "https://example.org/a", "$ref": "#/$defs/a"}, "$defs": {"a": TEXT}}, "an $id of its own"),
        ({"$ref": 5}, "at #/$ref, a string is expected"),
        (5, "a JSON Schema is an object, true or false, not int"),
        ({"properties": {"a": 5}}, "at #/properties/a, a JSON Schema is an object, true or false, not int"),
        ({"properties": []}, "at #/properties, an object with a schema for each name is expected"),
        ({"type": "date"}, "at #/type, 'date' is not a JSON type"),
        ({"type": 5}, "at #/type, an array is expected"),
        ({"enum": "ab"}, "at #/enum, an array is expected"),
        ({"type": "object", "required": "a"}, "at #/required, an array is expected"),
        ({"type": "object", "required": [1]}, "at #/required, an array of strings is expected"),
        ({"type": "array", "minItems": -1}, "at #/minItems, an integer of at least 0 is expected, not -1"),
        ({"type": "array", "maxItems": 1.5}, "at #/maxItems, an integer of at least 0 is expected, not 1.5"),
        ({"type": "number", "minimum": "1"}, "at #/minimum, a number is expected, not '1'"),
        ({"type": "number", "multipleOf": 0}, "at #/multipleOf, a number above 0 is expected, not 0"),
        ({"type": "string", "pattern": 1}, "at #/pattern, a string is expected"),
        ({"type": "object", "patternProperties": {"(": {}}}, "'(' is no regular expression here"),
    ],
    ids=str,
)
def test_what_has_no_strict_form_is_refused_with_place_and_rule(schema: Any, reason: str) -> None:
    with pytest.raises(SchemaUnsupported) as caught:
        strict_form(schema)
    assert reason in str(caught.value)


def test_a_part_that_is_impossible_only_through_itself_is_left_out() -> None:
    """Whoever reads it must have taken a reference to it before that is known."""
    endless = {"type": "object", "properties": {"a": {"allOf": [{"$ref": "#/$defs/x"}, {}]}, "b": False}}
    definitions = {"x": {**endless, "required": ["b"]}}
    assert rewritten({"anyOf": [TEXT, {"$ref": "#/$defs/x"}]}, **definitions) == TEXT


def test_a_validator_refuses_what_had_to_be_loosened_too() -> None:
    schema = {"type": "array", "items": TEXT, "uniqueItems": True}
    assert strict_form(schema).encode(["a", "a"]) == {"value": ["a", "a"]}
    form = strict_form(schema, validator=PlainSchemaValidator())
    assert form.encode(["a", "b"]) == {"value": ["a", "b"]}
    with pytest.raises(Mismatch, match="the elements are not all different"):
        form.encode(["a", "a"])


def test_a_validator_that_does_not_know_a_keyword_says_so_only_when_it_is_needed() -> None:
    form = strict_form({"type": "integer", "minimum": 1}, validator=PlainSchemaValidator())
    assert form.decode({"value": 2}) == 2
    with pytest.raises(SchemaUnsupported, match="portico-basics"):
        form.encode(2)


@pytest.mark.parametrize(
    ("schema", "value", "fault"),
    [
        (closed({"a": TEXT}, []), [], r"\$: expected an object, got an array"),
        (closed({"a": {"type": "object", "additionalProperties": TEXT}}), {}, r"\$\.a: expected a value, got nothing"),
        (closed({"a": TEXT}, []), {"b": 1}, r"\$\.b: expected one of a, got an unknown key"),
        ({"type": "array", "items": closed({"a": TEXT}, [])}, [{"b": 1}], r"\$\[0\]\.b: expected one of a"),
        ({"type": "array", "items": closed({"a": TEXT}, [])}, {}, r"\$: expected an array, got an object"),
        (
            {"type": "array", "prefixItems": [TEXT, WHOLE], "minItems": 2, "maxItems": 2},
            ["a"],
            "expected an array of 2",
        ),
        ({"anyOf": [closed({"a": TEXT}, []), TEXT, WHOLE]}, [], "expected a value of one of 3 alternatives"),
        ({"anyOf": [closed({"a": TEXT}, []), NOTHING]}, {"b": 1}, r"\$\.b: expected one of a, got an unknown key"),
    ],
)
def test_a_value_that_cannot_be_encoded_is_refused_with_its_place(schema: Any, value: Any, fault: str) -> None:
    with pytest.raises(Mismatch, match=fault):
        strict_form(schema).encode(value)


@pytest.mark.parametrize(
    ("schema", "value", "fault"),
    [
        (closed({"a": TEXT}, []), [], r"\$: expected an object, got an array"),
        (closed({"a": TEXT}, []), {"b": 1}, r"\$\.b: expected one of a, got an unknown key"),
        (
            closed({"x": {"type": "object", "additionalProperties": TEXT}}),
            {"x": {}},
            r"\$\.x: expected an array of entries",
        ),
        (
            closed({"x": {"prefixItems": [TEXT, WHOLE], "minItems": 2, "maxItems": 2, "type": "array"}}),
            {"x": []},
            r"\$\.x:",
        ),
        (closed({"x": {"anyOf": [closed({"a": TEXT}, []), TEXT]}}), {"x": 1}, r"\$\.x: expected a value of one of 2"),
        (closed({"x": {"type": "array", "items": closed({"a": TEXT}, [])}}), {"x": [{"b": 1}]}, r"\$\.x\[0\]\.b"),
    ],
)
def test_what_is_not_of_the_strict_form_is_refused_with_its_place(schema: Any, value: Any, fault: str) -> None:
    with pytest.raises(Mismatch, match=fault):
        strict_form(schema).decode(value)


def test_a_reply_can_be_decoded_while_it_comes() -> None:
    pair = {"type": "array", "prefixItems": [TEXT, WHOLE], "minItems": 2, "maxItems": 2}
    shape = {
        "anyOf": [closed({"kind": {"const": "a"}, "b": TEXT}, ["kind"]), closed({"kind": {"const": "c"}, "b": TEXT})]
    }
    form = strict_form(closed({"name": TEXT, "note": TEXT, "pair": pair, "shape": shape}, required=["name"]))
    assert form.decode({}) == {}
    assert form.decode({"name": "A"}) == {"name": "A"}
    assert form.decode({"name": "A", "note": None, "pair": {"item_1": "x"}}) == {"name": "A", "pair": ["x"]}
    assert form.decode({"shape": {"kind": "a"}}) == {"shape": {"kind": "a"}}
    with pytest.raises(Mismatch):
        form.decode({"shape": {}})
