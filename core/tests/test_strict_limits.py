"""Sizes: what is too deep moves to a definition, what is too much is refused, and nothing takes for ever."""

from __future__ import annotations

from typing import Any

import pytest

from portico.errors import SchemaUnsupported
from portico.strict import strict_form
from portico.types import Mismatch

TEXT = {"type": "string"}


def closed(properties: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    names = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def nested(levels: int, required: list[str] | None = None) -> dict[str, Any]:
    schema: dict[str, Any] = TEXT
    for _ in range(levels):
        schema = closed({"x": schema}, required)
    return schema


def value_of(levels: int) -> Any:
    value: Any = "a"
    for _ in range(levels):
        value = {"x": value}
    return value


def test_ten_levels_stay_and_what_is_deeper_moves_to_a_definition() -> None:
    assert strict_form(nested(10)).schema == nested(10)
    form = strict_form(nested(11))
    assert form.identity, "references change no value"
    assert form.schema["$defs"] == {"part": nested(1)}
    part: Any = form.schema
    for _ in range(10):
        part = part["properties"]["x"]
    assert part == {"$ref": "#/$defs/part"}


def test_a_definition_that_is_too_deep_is_parted_as_well() -> None:
    schema = {**closed({"a": {"$ref": "#/$defs/part"}}), "$defs": {"part": nested(30)}}
    form = strict_form(schema)
    assert list(form.schema["$defs"]) == ["part", "part_2", "part_3", "part_4"]
    assert form.identity


def test_two_hundred_levels_are_taken_and_more_refused() -> None:
    form = strict_form(nested(150, required=[]))
    assert form.decode(form.encode(value_of(150))) == value_of(150)
    with pytest.raises(SchemaUnsupported, match="at #, the schema is deeper than 200 levels"):
        strict_form(nested(201))
    for word in ("items", "not", "x-mine"):
        endless: dict[str, Any] = {}
        endless[word] = endless
        with pytest.raises(SchemaUnsupported, match="deeper than 200 levels"):
            strict_form(endless)
    deep: Any = TEXT
    for _ in range(390):
        deep = {"type": "array", "items": deep}
    with pytest.raises(SchemaUnsupported, match="nested too deeply"):
        strict_form(deep)


def test_a_schema_of_too_many_parts_is_refused() -> None:
    wide: dict[str, Any] = {"anyOf": [TEXT]}
    for _ in range(20):
        wide = {"anyOf": [wide, wide]}
    with pytest.raises(SchemaUnsupported, match="the schema has more than 100,000 parts"):
        strict_form(wide)


def test_a_value_that_is_nested_too_deeply_is_refused() -> None:
    form = strict_form({})
    value: Any = []
    for _ in range(5000):
        value = [value]
    with pytest.raises(Mismatch, match="nested less deeply"):
        form.encode(value)
    with pytest.raises(Mismatch, match="nested less deeply"):
        form.decode({"value": value})


@pytest.mark.parametrize(
    ("fits", "exceeds", "rule"),
    [
        (
            closed({f"p{index}": TEXT for index in range(5000)}),
            closed({f"p{index}": TEXT for index in range(5001)}),
            "the strict form has 5,001 properties, and strict mode takes 5,000",
        ),
        (
            closed({"a": {"type": "integer", "enum": list(range(1000))}}),
            closed({"a": {"type": "integer", "enum": list(range(1001))}}),
            "the strict form has 1,001 values in enumerations, and strict mode takes 1,000",
        ),
        (
            closed({"a": {"type": "string", "enum": [f"{index:060}" for index in range(250)]}}),
            closed({"a": {"type": "string", "enum": [f"{index:060}" for index in range(251)]}}),
            "an enumeration of 251 values has 15,060 characters, and strict mode takes 15,000",
        ),
        (
            closed({"a" * 60_000: TEXT, "b" * 59_000: {"type": "string", "const": "c" * 1_000}}),
            closed({"a" * 60_000: TEXT, "b" * 59_000: {"type": "string", "const": "c" * 1_001}}),
            "the strict form has 120,001 characters in names and listed values, and strict mode takes 120,000",
        ),
    ],
    ids=["properties", "enum values", "a long enumeration", "characters"],
)
def test_a_limit_is_taken_to_the_last_and_then_refused_by_name(fits: Any, exceeds: Any, rule: str) -> None:
    assert strict_form(fits).schema == fits
    with pytest.raises(SchemaUnsupported, match=rule):
        strict_form(exceeds)


def test_references_that_fork_at_every_step_take_no_time_that_doubles() -> None:
    for word in ("anyOf", "allOf", "oneOf"):
        fork = {f"a{step}": {word: [{"$ref": f"#/$defs/a{step + 1}"}] * 2} for step in range(60)}
        schema = closed({"x": {"$ref": "#/$defs/a0"}}, required=[])
        form = strict_form({**schema, "$defs": {**fork, "a60": closed({"y": TEXT}, required=[])}})
        for value in ({}, {"x": {}}, {"x": {"y": "a"}}):
            assert form.decode(form.encode(value)) == value


def test_alternatives_that_repeat_at_every_level_of_a_value_take_no_time_that_doubles() -> None:
    def tagged(name: str) -> dict[str, Any]:
        return closed({"inner": {"$ref": "#/$defs/any"}, "kind": {"const": name}, "note": TEXT}, ["inner", "kind"])

    options = [tagged("a"), tagged("b"), tagged("b"), {"type": "integer"}]
    form = strict_form({"$defs": {"any": {"anyOf": options}}, "$ref": "#/$defs/any"})
    value: Any = 5
    wrong: Any = "not an integer"
    for _ in range(60):
        value = {"kind": "b", "inner": value}
        wrong = {"kind": "b", "inner": wrong}
    assert form.decode(form.encode(value)) == value
    with pytest.raises(Mismatch):
        form.encode(wrong)


def test_combinations_of_alternatives_are_bounded_and_what_is_left_out_is_named() -> None:
    def either(index: int) -> dict[str, Any]:
        return {"anyOf": [{"required": [f"a{index}"]}, {"required": [f"b{index}"]}]}

    form = strict_form({"type": "object", "allOf": [either(index) for index in range(20)]})
    assert len(form.schema["properties"]["value"]["anyOf"]) == 64
    assert len(form.loosened) == 14
    assert all("more than 64 combinations" in sentence for sentence in form.loosened)
    value = {f"{'ab'[index % 2]}{index}": index for index in range(20)}
    assert form.decode(form.encode(value)) == value


def test_merging_that_would_make_ever_new_parts_is_given_up_and_named() -> None:
    """Each combination of definitions is a part of its own, and there are 2 ** 20."""

    def both(one: int, other: int) -> dict[str, Any]:
        return {"allOf": [{"$ref": f"#/$defs/d{one}"}, {"$ref": f"#/$defs/d{other}"}]}

    definitions = {
        f"d{one}": {"type": "object", "properties": {f"p{other}": both(one, other) for other in range(20)}}
        for one in range(20)
    }
    schema = {"$ref": "#/$defs/d0", "$defs": definitions}
    form = strict_form(schema, close=True)
    assert any("what is to be merged has more than 10,000 parts" in sentence for sentence in form.loosened)
    value = {"p1": {"p2": {"p3": {"p4": {}}}}}
    assert form.decode(form.encode(value)) == value
