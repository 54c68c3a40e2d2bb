"""Schemas in llama.cpp's words mean what they meant, or less; never more."""

from __future__ import annotations

import copy
import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico.errors import SchemaUnsupported
from portico_llamacpp._exchange import prepare_schema


def pattern_of(schema: dict[str, Any]) -> re.Pattern[str] | None:
    """Return what llama.cpp holds a text to; it matches all of it, and a dot matches every letter."""
    written = prepare_schema(schema).get("pattern")
    if written is None:
        return None
    assert written.startswith("^")
    assert written.endswith("$")
    assert written.isascii(), f"{written} would break the grammar"
    return re.compile(rf"\A(?:{written[1:-1]})\Z", re.DOTALL)


PATTERNS = [
    r"^a+$", r"^(a|b)c$", r"^a|b$", r"^\d{2,3}$", r"^[^a]+$", r"^(?:ab)*$", r"^$", r"^a{2}$", r"^[a-c]{1,3}x?$", r"^.$",
    r"b", r"^ab", r"ab$", r"^\w+$", r"^a\.b$", r"^ä+$", r"^[\d\-]+$", r"(?=a)b", r"^(?!a)b$", r"^\bword\b$", r"^(a)\1$",
    r"^a^b$", r"^[ab", r"^a*+$",
]  # fmt: skip
LETTERS = "abcdxyäö$^ _019.-]\\/[\t"


@given(st.sampled_from(PATTERNS), st.text(LETTERS, max_size=6))
def test_a_text_that_is_let_through_matches_the_pattern(pattern: str, text: str) -> None:
    held = pattern_of({"type": "string", "pattern": pattern})
    if held is not None and held.match(text):
        assert re.search(pattern, text), f"{held.pattern} lets {text!r} through, {pattern} does not"


def test_a_simple_pattern_is_held_to_and_another_one_is_left_to_the_check_of_the_reply() -> None:
    held = [pattern for pattern in PATTERNS if pattern_of({"type": "string", "pattern": pattern}) is not None]
    assert held == PATTERNS[:5] + PATTERNS[6:10]


@given(st.decimals(-1e9, 1e9, allow_nan=False, places=2))
def test_every_decimal_number_can_be_said(number: Decimal) -> None:
    held = pattern_of({"type": "string", "format": "decimal"})
    assert held is not None
    assert held.match(str(number))


def test_schemas_that_are_true_are_written_in_other_words() -> None:
    schema = {
        "type": "object",
        "properties": {"a": True, "c": {"type": "array", "prefixItems": [True, {}], "items": False}},
        "additionalProperties": False,
        "anyOf": [True],
    }
    before = copy.deepcopy(schema)
    assert prepare_schema(schema) == {
        "type": "object",
        "properties": {"a": {}, "c": {"type": "array", "prefixItems": [{}, {}], "maxItems": 2}},
        "additionalProperties": False,
        "anyOf": [{}],
    }
    assert schema == before, "the caller's schema was changed"


@pytest.mark.parametrize("schema", [False, 5, "x", {"items": {"items": 7}}, {"allOf": [False]}])
def test_what_allows_nothing_or_is_no_schema_is_refused(schema: Any) -> None:
    with pytest.raises(SchemaUnsupported):
        prepare_schema(schema)


def test_a_schema_that_is_too_deep_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(100):
        schema = {"items": schema}
    with pytest.raises(SchemaUnsupported, match="64 levels"):
        prepare_schema(schema)


def test_references_of_a_schema_that_moves_move_with_it() -> None:
    schema = {
        "properties": {"a": {"$ref": "#/$defs/b"}, "$ref": {"type": "string"}, "self": {"$ref": "#"}},
        "enum": [{"$ref": "#/kept"}],
        "$defs": {"b": {"$ref": "https://example.org/x"}},
    }
    assert prepare_schema(schema, "#/$defs/here") == {
        "properties": {
            "a": {"$ref": "#/$defs/here/$defs/b"},
            "$ref": {"type": "string"},
            "self": {"$ref": "#/$defs/here"},
        },
        "enum": [{"$ref": "#/kept"}],
        "$defs": {"b": {"$ref": "https://example.org/x"}},
    }
