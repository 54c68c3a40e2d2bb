"""Staleness: a plan says which of its functions are not what they were, and how."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal

import pytest

from portico._functions.functions import Function, FunctionSpec, Parameter
from portico._plans.plan import Plan
from portico._plans.reuse import Stale, fingerprint
from portico._types.compiling import compile_type


def spec(returns: Any = str, *, effects: bool = False, needed: bool = True, **parameters: Any) -> FunctionSpec:
    made = [Parameter(name, "", compile_type(hint), needed or name != "days", 1) for name, hint in parameters.items()]
    return Function("f", print, parameters=made, returns=compile_type(returns), effects=effects).spec


BEFORE = spec(city=str, days=int)


@pytest.mark.parametrize(
    ("now", "changes"),
    [
        (spec(city=str, days=int), ()),
        (spec(days=int, city=str), ()),
        (spec(city=str), ("the parameter 'days' is gone",)),
        (spec(city=str, days=int, scale=str), ("the parameter 'scale' is new and needed",)),
        (spec(city=str, days=float), ("the parameter 'days' changed",)),
        (spec(int, city=str, days=int), ("its result changed",)),
        (spec(city=str, days=int, effects=True), ("it has effects now",)),
        (
            spec(list[int], city=Literal["a"], scale=str),
            (
                "the parameter 'city' changed",
                "the parameter 'scale' is new and needed",
                "the parameter 'days' is gone",
                "its result changed",
            ),
        ),
    ],
    ids=str,
)
def test_what_changed_is_said(now: FunctionSpec, changes: tuple[str, ...]) -> None:
    plan = Plan("g", fingerprints={"f": fingerprint(BEFORE)})
    expected = (Stale("f", changes),) if changes else ()
    assert Stale.of(plan, {"f": now}) == expected


def test_whether_a_parameter_is_needed_counts() -> None:
    required = FunctionSpec("f", "", {"properties": {"a": {"type": "string"}}, "required": ["a"]}, {})
    optional = replace(required, parameters={"properties": {"a": {"type": "string"}}})
    for one, other, sentence in (
        (required, optional, "the parameter 'a' changed"),
        (optional, required, "the parameter 'a' changed"),
    ):
        assert Stale.of(Plan("g", fingerprints={"f": fingerprint(one)}), {"f": other})[0].changes == (sentence,)


def test_a_function_that_is_gone_and_a_fingerprint_of_another_kind_are_said_too() -> None:
    odd = ["0", "", "[]", '{"p": 1}', "{" * 10_000, "9f86d081884c7d65"]
    for text in odd:
        plan = Plan("g", fingerprints={"gone": "0", "f": text})
        assert [str(stale) for stale in Stale.of(plan, {"f": BEFORE})] == ["gone: it is gone", "f: it changed"]


def test_words_for_people_and_definitions_of_others_do_not_count() -> None:
    schema = {
        "properties": {"a": {"$ref": "#/$defs/A", "description": "x"}, "title": {"type": "string"}},
        "$defs": {"A": {"type": "string", "title": "A"}, "B": {"type": "integer"}},
    }
    other = {
        "properties": {"a": {"$ref": "#/$defs/A"}, "title": {"type": "string"}},
        "$defs": {"A": {"type": "string"}, "B": {"type": "number"}},
    }
    base = FunctionSpec("f", "", schema, {})
    assert fingerprint(base) == fingerprint(FunctionSpec("g", "words", other, {"description": "d"}))
    assert fingerprint(base) != fingerprint(replace(base, parameters={**schema, "$defs": {"A": {"type": "integer"}}}))
    assert fingerprint(base) != fingerprint(replace(base, parameters={**schema, "minProperties": 1}))
    without = replace(base, parameters={**schema, "properties": {"a": schema["properties"]["a"]}})
    assert fingerprint(base) != fingerprint(without), "a parameter may be called title"


def test_a_fingerprint_is_short_and_says_nothing_of_the_schemas() -> None:
    text = fingerprint(BEFORE)
    assert json.loads(text)["p"].keys() == {"city", "days"}
    assert len(text) < 100


def test_what_a_definition_says_counts_for_the_rules_of_the_parameters_too() -> None:
    def ruled(definition: dict[str, Any]) -> FunctionSpec:
        parameters = {"properties": {"a": {}}, "anyOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": definition}}
        return FunctionSpec("f", "", parameters, {})

    plan = Plan("g", fingerprints={"f": fingerprint(ruled({"required": ["a"]}))})
    assert Stale.of(plan, {"f": ruled({"required": ["a"]})}) == ()
    (stale,) = Stale.of(plan, {"f": ruled({"minProperties": 1})})
    assert stale.changes == ("the rules for its arguments changed",)


@pytest.mark.parametrize("definitions", [{}, {"$defs": {"B": {}}}], ids=["none", "another"])
def test_a_reference_to_no_definition_is_as_good_as_any_text(definitions: dict[str, Any]) -> None:
    dangling = FunctionSpec("f", "", {"properties": {"a": {"$ref": "#/$defs/A"}}, **definitions}, {})
    assert fingerprint(dangling) == fingerprint(dangling)
    assert fingerprint(dangling) != fingerprint(FunctionSpec("f", "", {"properties": {"a": {}}}, {}))
