"""Rewriting a schema for strict mode takes work by the size of what comes out, and ends at the limits."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from portico._schema.strict import StrictForm
from portico.errors import SchemaUnsupported

TEXT = {"type": "string"}


def described(size: int, to: str = "#") -> dict[str, Any]:
    return {f"m{index}": {"description": f"d{index}", "type": "object", "$ref": to} for index in range(size)}


def an_object(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), **more}


def leading_everywhere(size: int, seed: int = 7) -> dict[str, Any]:
    """Return definitions that lead to each other in any direction, with and without words beside the reference."""
    drawn = random.Random(seed)

    def member(index: int) -> Any:
        reference = {"$ref": f"#/$defs/a{drawn.randrange(size)}"}
        beside: list[dict[str, Any]] = [{}, {"description": f"d{index}"}, {"type": "object"}, {"minProperties": index}]
        inner = {**reference, **drawn.choice(beside)}
        return drawn.choice([inner, {"type": "array", "items": inner}, {"anyOf": [inner, TEXT]}, {"allOf": [inner]}])

    members = {f"a{index}": an_object({f"p{each}": member(index) for each in range(3)}) for index in range(size)}
    return {"$ref": "#/$defs/a0", "$defs": members}


def nested(size: int) -> dict[str, Any]:
    parts = [{"type": "array", "items": TEXT, "maxItems": each} for each in range(size)]
    schema: dict[str, Any] = {"anyOf": parts}
    for _ in range(9):
        schema = an_object({"x": schema})
    return schema


FAMILIES: dict[str, Callable[[int], dict[str, Any]]] = {
    "to the root": lambda size: an_object(described(size)),
    "to one large object": lambda size: an_object(
        described(size, "#/$defs/large"), **{"$defs": {"large": an_object({f"p{each}": TEXT for each in range(size)})}}
    ),
    "random": leading_everywhere,
    "parts of one": lambda size: {"allOf": [an_object({f"p{each}": TEXT}) for each in range(size)]},
    "a chain": lambda size: {
        "$ref": "#/$defs/a0",
        "$defs": {f"a{each}": an_object({"x": {"$ref": f"#/$defs/a{each + 1}"}}) for each in range(size)}
        | {f"a{size}": TEXT},
    },
    "one name in many places": lambda size: {
        **an_object({f"p{each}": {"$ref": f"#/x-in/{each}/x"} for each in range(size)}),
        "x-in": [{"x": {"type": "string", "pattern": str(each)}} for each in range(size)],
    },
    "many constants": lambda size: an_object({"x": {"anyOf": [{"const": f"a{each}"} for each in range(size)]}}),
    "one of many": lambda size: an_object({"x": {"oneOf": [{"const": f"a{each}"} for each in range(size)]}}),
    "optional ones": lambda size: {
        "type": "object",
        "properties": {f"p{each}": {"$ref": "#/$defs/wide"} for each in range(size)},
        "$defs": {"wide": {"anyOf": [{"type": "string", "pattern": str(each)} for each in range(size)]}},
    },
    "below the tenth level": nested,
}


def work(schema: Any) -> int:
    """Count the calls of functions that rewriting a schema takes."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        StrictForm.of(schema)
    except SchemaUnsupported:
        pass
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize("family", FAMILIES)
def test_doubling_a_schema_at_most_doubles_the_work(family: str) -> None:
    sizes = [64, 128, 256]
    counts = [work(FAMILIES[family](size)) for size in sizes]
    assert counts[1] <= 2.2 * counts[0] + 3_000, counts
    assert counts[2] <= 2.2 * counts[1] + 3_000, counts


@settings(max_examples=15)
@given(st.integers(0, 1_000_000))
def test_a_schema_that_leads_everywhere_becomes_about_as_large_as_it_is(seed: int) -> None:
    schema = leading_everywhere(15, seed)
    form = StrictForm.of(schema)
    assert len(json.dumps(form.schema)) < 8 * len(json.dumps(schema))


def test_four_hundred_properties_that_lead_to_the_root_are_done() -> None:
    form = StrictForm.of(an_object(described(400)))
    assert form.schema["properties"]["m7"] == {"anyOf": [{"$ref": "#/$defs/root"}], "description": "d7"}
    assert len(json.dumps(form.schema)) < 80_000


def test_properties_beyond_the_limit_are_not_written_first() -> None:
    schema = an_object({name: {**each, "minProperties": 1} for name, each in described(400).items()})
    with pytest.raises(SchemaUnsupported, match=r"at least 5,[0-9]{3} properties, and strict mode takes 5,000"):
        StrictForm.of(schema)
    assert work(schema) < 500_000
