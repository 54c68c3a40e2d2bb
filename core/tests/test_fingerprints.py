"""Fingerprints to the letter: what they count, what they do not, and every sentence about what changed."""

from __future__ import annotations

from typing import Any

import pytest

from portico._functions.functions import FunctionSpec
from portico._plans.plan import Plan
from portico._plans.reuse import Stale, fingerprint


def spec(parameters: dict[str, Any], returns: Any = None, *, effects: bool = False) -> FunctionSpec:
    return FunctionSpec("f", "", parameters, returns or {}, effects)


def one(schema: Any, **others: Any) -> FunctionSpec:
    return spec({"type": "object", "properties": {"a": schema}, **others})


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (spec({}), '{"e": 0, "p": {}, "r": "44136fa3"}'),
        (spec({"type": "object", "additionalProperties": False}), '{"e": 0, "p": {}, "r": "44136fa3"}'),
        (spec({"minProperties": 1}), '{"e": 0, "o": "bb9984f3", "p": {}, "r": "44136fa3"}'),
        (spec({"additionalProperties": True}), '{"e": 0, "o": "afabb58f", "p": {}, "r": "44136fa3"}'),
        (
            one({"$ref": "#/$defs/A"}, **{"$defs": {"A": {"type": "integer"}}}),
            '{"e": 0, "p": {"a": "0d0056f2"}, "r": "44136fa3"}',
        ),
        (
            spec({"properties": {"é": True}}, {"const": "é"}, effects=True),
            '{"e": 1, "p": {"é": "b5bea41b"}, "r": "e257e827"}',
        ),
    ],
)
def test_a_fingerprint_is_the_same_in_every_version(function: FunctionSpec, text: str) -> None:
    """Stores keep them: with others, every saved plan would be stale."""
    assert fingerprint(function) == text


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"type": "string", "minLength": 1}, {"minLength": 1, "type": "string"}),
        ({"items": {"type": "string", "description": "x"}}, {"items": {"type": "string"}}),
        ({"items": {"description": {}}}, {"items": {}}),
        ({"anyOf": [{"title": "x"}, {"examples": [1], "$comment": "x"}]}, {"anyOf": [{}, {}]}),
        ({"properties": {"title": {"title": "x"}}}, {"properties": {"title": {}}}),
    ],
)
def test_what_is_for_people_and_the_order_do_not_count(first: Any, second: Any) -> None:
    assert fingerprint(one(first)) == fingerprint(one(second))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"anyOf": [{"type": "string"}]}, {"anyOf": [{"type": "integer"}]}),
        ({"properties": {"title": {}}}, {"properties": {}}),
        ({"default": {"title": 1}}, {"default": {}}),
        ({"const": [{"description": "x"}]}, {"const": [{}]}),
        ({"enum": [{"examples": 1}]}, {"enum": [{}]}),
        ({"const": "\ud800"}, {"const": "\ud801"}),
    ],
)
def test_what_a_value_must_be_counts(first: Any, second: Any) -> None:
    assert fingerprint(one(first)) != fingerprint(one(second))


def test_a_definition_counts_where_something_leads_to_it() -> None:
    def defined(**definitions: Any) -> str:
        return fingerprint(one({"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": 1}]}, **{"$defs": definitions}))

    through = {"A": {"items": {"$ref": "#/$defs/B"}}, "B": {"type": "string"}}
    assert defined(**through) != defined(**{**through, "B": {"type": "integer"}})
    assert defined(**through) == defined(**through, C={}, **{"": {"type": "null"}})


@pytest.mark.parametrize(
    ("before", "now", "changes"),
    [
        (spec({}), one({}), ["the parameter 'a' is new"]),
        (spec({}), one({}, required=["a"]), ["the parameter 'a' is new and needed"]),
        (one({}), spec({}), ["the parameter 'a' is gone"]),
        (one({}), one({"type": "string"}, required=["a"]), ["the parameter 'a' changed"]),
        (one({}, required=["a"]), one({}), ["the parameter 'a' changed"]),
        (spec({}), spec({"minProperties": 1}), ["the rules for its arguments changed"]),
        (spec({"minProperties": 1}), spec({}), ["the rules for its arguments changed"]),
        (spec({"minProperties": 1}), spec({"minProperties": 2}), ["the rules for its arguments changed"]),
        (spec({"minProperties": 1}), spec({"minProperties": 1}, {"const": 1}), ["its result changed"]),
        (spec({}), spec({}, {"type": "null"}, effects=True), ["its result changed", "it has effects now"]),
        (spec({}, effects=True), spec({}), ["it has no effects any more"]),
    ],
)
def test_every_change_has_its_sentence(before: FunctionSpec, now: FunctionSpec, changes: list[str]) -> None:
    plan = Plan("g", fingerprints={"f": fingerprint(before)})
    assert Stale.of(plan, {"f": now}) == (Stale("f", tuple(changes)),)


def test_the_sentences_are_told_in_a_row() -> None:
    assert str(Stale("f", ("it is new", "it is gone"))) == "f: it is new; it is gone"
