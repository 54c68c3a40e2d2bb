"""Schemas in llama.cpp's words mean what they meant, or less; never more."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico.errors import SchemaUnsupported
from portico_llamacpp._exchange import moved, prepared


def pattern_of(schema: dict[str, Any]) -> re.Pattern[str] | None:
    """Return what llama.cpp holds a text to; it matches all of it, and a dot matches every letter."""
    written = prepared(schema).get("pattern")
    if written is None:
        return None
    assert written.startswith("^")
    assert written.endswith("$")
    assert written.isascii(), f"{written} would break the grammar"
    return re.compile(rf"\A(?:{written[1:-1]})\Z", re.DOTALL)


PATTERNS = [
    r"^a+$", r"b", r"^ab", r"ab$", r"a|b", r"^a|b$", r"^(a|b)c$", r"\d", r"^\d{2,3}$", r"^[\d\-]+$", r"^\w+$", r"\s",
    r"^[^a]+$", r"^\D+$", r"^a\.b$", r"^a\/b$", r"^ä+$", r"^[äö]$", r"^a\\$", r"^\$a", r"a\$", r"^(?:ab)*$", r"^$", r"",
    r"^a{2}$", r"^[a-c]{1,3}x?$", r"^.$", r"a.b", r"^[$^]$", r"^[\]a]+$", r"^\u0061$", r"\[a\]",
]  # fmt: skip


LETTERS = "abcdxyäö$^ _019.-]\\/[\t"


@given(st.sampled_from(PATTERNS), st.text(LETTERS, max_size=6))
def test_a_text_that_is_let_through_matches_the_pattern(pattern: str, text: str) -> None:
    held = pattern_of({"type": "string", "pattern": pattern})
    assert held is not None, f"{pattern} is not held to"
    if held.match(text):
        assert re.search(pattern, text), f"{held.pattern} lets {text!r} through, {pattern} does not"


@given(st.sampled_from(PATTERNS), st.data())
def test_texts_that_match_are_let_through(pattern: str, data: st.DataObject) -> None:
    held = pattern_of({"type": "string", "pattern": pattern})
    text = data.draw(st.from_regex(re.compile(pattern, re.ASCII), alphabet=st.sampled_from(LETTERS)))
    text = text.removesuffix("\n")  # a dollar sign of Python's allows one more line break
    assert held is not None
    if pattern != r"^a|b$":  # the one of which only a part is kept
        assert held.match(text), f"{held.pattern} does not let {text!r} through, {pattern} does"


@pytest.mark.parametrize(
    "pattern", [r"(?=a)b", r"^(?!a)b$", r"\bword\b", r"(a)\1", r"^\p{L}$", r"a^b", r"^🙂$", r"[ab", r"^[^\D]$", r"a*+"]
)
def test_a_pattern_without_words_in_llama_cpp_does_not_constrain(pattern: str) -> None:
    assert prepared({"type": "string", "pattern": pattern}) == {"type": "string"}


@given(st.dates(), st.times(), st.decimals(-1e9, 1e9, allow_nan=False, places=2))
def test_every_value_of_a_format_can_be_said(day: date, clock: time, number: Decimal) -> None:
    clock = clock.replace(microsecond=clock.microsecond // 1000 * 1000, tzinfo=None, fold=0)
    shown = clock.isoformat("milliseconds" if clock.microsecond else "seconds")
    for format, text in {
        "date": day.isoformat(),
        "time": shown,
        "date-time": f"{day.isoformat()}T{shown}Z",
        "decimal": str(number),
    }.items():
        held = pattern_of({"type": "string", "format": format})
        assert held is not None
        assert held.match(text), f"{text} is a {format}, and {held.pattern} does not let it through"


READERS: dict[str, Callable[[str], Any]] = {
    "date": date.fromisoformat,
    "date-time": datetime.fromisoformat,
    "time": time.fromisoformat,
    "decimal": Decimal,
}


@given(st.data())
def test_every_text_of_a_format_is_a_value(data: st.DataObject) -> None:
    format = data.draw(st.sampled_from(sorted(READERS)))
    held = pattern_of({"type": "string", "format": format})
    assert held is not None
    READERS[format](data.draw(st.from_regex(held, fullmatch=True)))


@pytest.mark.parametrize("text", ["2025-02-29", "1900-02-29", "2025-02-30", "2025-04-31", "0000-01-01", "2025-13-01"])
def test_days_that_no_calendar_has_cannot_be_said(text: str) -> None:
    held = pattern_of({"type": "string", "format": "date"})
    assert held is not None
    assert not held.match(text)
    with pytest.raises(ValueError, match=r"\w"):
        datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_schemas_that_are_true_or_false_are_said_in_other_words() -> None:
    schema = {
        "type": "object",
        "properties": {"a": True, "b": False, "c": {"type": "array", "prefixItems": [True, {}], "items": False}},
        "additionalProperties": False,
        "anyOf": [True, False],
    }
    before = copy.deepcopy(schema)
    assert prepared(schema) == {
        "type": "object",
        "properties": {"a": {}, "c": {"type": "array", "prefixItems": [{}, {}], "maxItems": 2}},
        "additionalProperties": False,
        "anyOf": [{}],
    }
    assert schema == before, "the caller's schema was changed"


@pytest.mark.parametrize(
    "schema",
    [False, 5, "x", {"items": {"items": 7}}, {"properties": {"a": False}, "required": ["a"]}, {"allOf": [False]}],
)
def test_what_allows_nothing_or_is_no_schema_is_refused(schema: Any) -> None:
    with pytest.raises(SchemaUnsupported):
        prepared(schema)


def test_a_schema_that_is_too_deep_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(100):
        schema = {"items": schema}
    with pytest.raises(SchemaUnsupported, match="64 levels"):
        prepared(schema)


def test_references_of_a_schema_that_moves_move_with_it() -> None:
    schema = {
        "properties": {"a": {"$ref": "#/$defs/b"}, "$ref": {"type": "string"}, "self": {"$ref": "#"}},
        "enum": [{"$ref": "#/kept"}],
        "$defs": {"b": {"$ref": "https://example.org/x"}},
    }
    assert moved(schema, "#/$defs/here") == {
        "properties": {
            "a": {"$ref": "#/$defs/here/$defs/b"},
            "$ref": {"type": "string"},
            "self": {"$ref": "#/$defs/here"},
        },
        "enum": [{"$ref": "#/kept"}],
        "$defs": {"b": {"$ref": "https://example.org/x"}},
    }
