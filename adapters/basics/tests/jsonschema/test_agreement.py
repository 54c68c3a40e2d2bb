"""It finds valid what the vendor finds valid, whatever the schema, and says where the rest is not."""

from __future__ import annotations

from typing import Any

import jsonschema
from hypothesis import given, strategies as st

from portico_basics.jsonschema.validator import JsonschemaValidator
from portico_testkit.strategies import json_values

VALIDATOR = JsonschemaValidator()
NAMES = st.sampled_from(["a", "b", "c", "date"])
KINDS = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
SMALL = st.integers(0, 3)
REFERENCES = st.sampled_from(["#/$defs/x", "#/$defs/y", "#/$defs/x/items"])


def schemas() -> st.SearchStrategy[Any]:
    leaves = st.one_of(
        st.booleans(),
        st.just({}),
        st.builds(lambda kind: {"type": kind}, KINDS | st.lists(KINDS, min_size=1, max_size=2, unique=True)),
        st.builds(lambda options: {"enum": options}, st.lists(json_values(2), min_size=1, max_size=3)),
        st.builds(lambda value: {"const": value}, json_values(2)),
        st.builds(lambda reference: {"$ref": reference}, REFERENCES),
    )
    return st.recursive(leaves, larger, max_leaves=8)


def larger(inner: Any) -> Any:
    """Draw a schema of any keywords of 2020-12 but those whose meaning differs on purpose."""
    several = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(NAMES, inner, max_size=3)
    keywords = {
        "type": KINDS,
        "properties": named,
        "required": st.lists(NAMES, max_size=2, unique=True),
        "additionalProperties": inner,
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b", "^.$", "[cd]"]), inner, max_size=2),
        "propertyNames": inner,
        "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=2, unique=True), max_size=2),
        "dependentSchemas": named,
        "unevaluatedProperties": inner,
        "items": inner,
        "prefixItems": several,
        "contains": inner,
        "minContains": SMALL,
        "maxContains": SMALL,
        "unevaluatedItems": inner,
        "uniqueItems": st.booleans(),
        "minItems": SMALL,
        "maxItems": SMALL,
        "minLength": SMALL,
        "maxLength": SMALL,
        "minProperties": SMALL,
        "maxProperties": SMALL,
        "pattern": st.sampled_from(["^a", "b+", r"^\d", "^[^a]*"]),
        "minimum": SMALL,
        "exclusiveMaximum": SMALL,
        "multipleOf": st.sampled_from([1, 2, 3]),
        "allOf": several,
        "anyOf": several,
        "oneOf": several,
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
        "description": st.text(max_size=3),
        "format": st.sampled_from(["date", "uri"]),
    }
    chosen = st.lists(st.sampled_from(sorted(keywords)), min_size=1, max_size=4, unique=True)
    return chosen.flatmap(lambda names: st.fixed_dictionaries({name: keywords[name] for name in names}))


@st.composite
def whole_schemas(draw: st.DrawFn) -> Any:
    """Draw a schema with definitions that its references lead to; none of them leads to itself."""
    schema = draw(schemas())
    if not isinstance(schema, dict):
        return schema
    plain = {"x": {"items": {"type": "integer"}, "minItems": 1}, "y": {"properties": {"a": {"$ref": "#/$defs/x"}}}}
    return {**schema, "$defs": plain}


@given(whole_schemas(), st.lists(json_values(), min_size=1, max_size=4))
def test_it_agrees_with_the_vendor_on_any_schema(schema: Any, values: list[Any]) -> None:
    vendor = jsonschema.Draft202012Validator(schema)
    validate = VALIDATOR.compile(schema)
    for value in values:
        faults = validate(value)
        assert (not faults) == vendor.is_valid(value), f"{schema} and {value!r}: {faults or 'valid'}"
        for fault in faults:
            assert fault.startswith("$"), fault


@given(whole_schemas(), json_values())
def test_its_places_are_those_of_the_vendor_or_deeper(schema: Any, value: Any) -> None:
    """Where it says what is wrong with an alternative, the vendor names only the place of all of them."""
    faults = VALIDATOR.compile(schema)(value)
    for error in jsonschema.Draft202012Validator(schema).iter_errors(value):
        if error.validator is None:
            # The vendor loses the last step to what is false.
            continue
        assert any(fault.startswith(place(error.absolute_path)) for fault in faults), f"{error.json_path}: {faults}"


def place(path: Any) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
