"""The JSON form of plans to its ends: all that it can hold, its bounds, and the whole words of what is refused."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from portico._plans.json_form import plan_from_json, plan_to_json
from portico._plans.plan import From, ListOf, ObjectOf, Plan, PlanTemplate, Step, TextOf, Value
from portico.errors import PlanFormatError

STEP = {"id": "s", "function": "f"}
VALUE: Any = {"value": 1}

FULL = {
    "version": 1,
    "goal": "Tell",
    "input": {"type": "object", "properties": {"city": {}}},
    "steps": [
        {
            "id": "s1",
            "function": {"template": "Hi", "language": "jinja2"},
            "arguments": {
                "a": {"text": ["on ", {"from": "s0", "path": "$.days[0]"}, {"text": []}]},
                "b": {"list": [{"object": {"k": {"value": [None, 1.5, {"x": True}]}}}, {"from": "input"}]},
            },
            "after": ["s0", "q"],
            "reason": "why",
            "seconds": 1_000_000,
            "attempts": 100,
        },
        {"id": "s2", "function": {"version": 1, "goal": "inner", "steps": [{"id": "i", "function": "f"}]}},
    ],
    "result": {"object": {}},
    "notes": [{"n": ""}],
    "fingerprints": {"f": "0"},
}
PLAN = Plan(
    "Tell",
    (
        Step(
            "s1",
            PlanTemplate("Hi", "jinja2"),
            {
                "a": TextOf(("on ", From("s0", ("days", 0)), TextOf(()))),
                "b": ListOf((ObjectOf({"k": Value([None, 1.5, {"x": True}])}), From("input"))),
            },
            ("s0", "q"),
            "why",
            1_000_000,
            100,
        ),
        Step("s2", Plan("inner", (Step("i", "f"),))),
    ),
    ObjectOf({}),
    [{"n": ""}],
    {"f": "0"},
    {"type": "object", "properties": {"city": {}}},
)


REST = "function, id, reason, seconds, when"


def document(**changes: Any) -> dict[str, Any]:
    return {"version": 1, "goal": "g", "steps": [STEP], **changes}


def step(**changes: Any) -> dict[str, Any]:
    return document(steps=[STEP, {**STEP, **changes}])


def nested(levels: int, wrap: Any, core: Any) -> Any:
    for _ in range(levels):
        core = wrap(core)
    return core


def listed(inner: Any) -> Any:
    return [inner]


def in_list(inner: Any) -> Any:
    return {"list": [inner]}


def in_text(inner: Any) -> Any:
    return {"text": ["", inner]}


def in_object(inner: Any) -> Any:
    return {"object": {"a": inner}}


def in_plan(inner: Any) -> Any:
    return document(steps=[{"id": "s", "function": inner}])


def test_everything_that_a_plan_can_hold_is_written_and_read() -> None:
    assert plan_to_json(PLAN) == FULL
    assert plan_from_json(FULL) == PLAN


def test_what_a_plan_does_not_have_is_not_written() -> None:
    plan = Plan("", (Step("", "", seconds=0.5), Step("t", "f", attempts=1)), Value(None), notes=0, input={})
    written = {
        "version": 1,
        "goal": "",
        "input": {},
        "steps": [{"id": "", "function": "", "seconds": 0.5}, {"id": "t", "function": "f", "attempts": 1}],
        "result": {"value": None},
        "notes": 0,
    }
    assert plan_to_json(plan) == written
    assert plan_from_json(written) == plan


def test_any_mapping_is_written_as_an_object() -> None:
    plan = Plan("g", fingerprints=MappingProxyType({"f": "0"}), input=MappingProxyType({"type": "null"}))
    written = plan_to_json(plan)
    assert type(written["fingerprints"]) is dict
    assert type(written["input"]) is dict
    assert plan_from_json(written) == plan


@pytest.mark.parametrize(
    "taken",
    [
        document(version=1.0),
        document(steps=[STEP] * 1_000),
        document(notes=2**14_000 - 1),
        document(notes=1 - 2**14_000),
        document(notes=nested(200, listed, 1)),
        document(notes=nested(200, lambda inner: {"a": inner}, None)),
        document(result=nested(50, in_list, VALUE)),
        document(result=nested(50, in_text, VALUE)),
        document(result=nested(50, in_object, VALUE)),
        nested(50, in_plan, document(steps=[])),
        step(seconds=1e-300),
        step(attempts=1),
        step(attempts=100.0),
    ],
    ids=lambda taken: str(taken)[:60],
)
def test_what_is_just_allowed_is_taken_and_comes_back(taken: Any) -> None:
    assert plan_to_json(plan_from_json(taken)) == taken


MANY = "$.steps: at most 1000 steps are allowed, not 1001."
KNOWN = "known are fingerprints, goal, input, notes, result, steps, version."
TAGS = 'exactly one of "value", "from" (with "path"), "text", "list" and "object" is needed.'
SECONDS = "$.steps[1].seconds: expected a number above 0, of at most 1,000,000"
ATTEMPTS = "$.steps[1].attempts: expected a whole number from 1 to 100"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("x" * 60, "$: expected an object"),
        ("x" * 61, "$: expected an object"),
        (True, "$: expected an object"),
        (None, "$: expected an object"),
        (1.5, "$: expected an object"),
        ([], "$: expected an object"),
        (Plan("g"), "$: expected an object"),
        ({}, "$: goal, steps, version are missing."),
        ({"version": 1, "steps": []}, "$: goal is missing."),
        (document(z=1, extra=2), f"$: unknown key 'extra'; {KNOWN}"),
        (document(**{"": 1}) | {2: 3}, f"$: unknown key ''; {KNOWN}"),
        (document(version=3), "$.version: expected 1 or 2, got "),
        (document(version=999), "$.version: expected 1 or 2, got "),
        (document(version=1_000), "$.version: expected 1 or 2, got "),
        (document(version=0), "$.version: expected 1 or 2, got "),
        (document(version=1.5), "$.version: expected 1 or 2, got "),
        (document(version=True), "$.version: expected 1 or 2, got "),
        (document(version="1"), "$.version: expected 1 or 2, got "),
        (document(goal=None), "$.goal: expected a string"),
        (document(input=[]), "$.input: expected a JSON Schema that is an object"),
        (document(input={"a": {1}}), "$.input.a: expected a JSON value, got a Python set."),
        (document(notes={"a": [1, {2}]}), "$.notes.a[1]: expected a JSON value, got a Python set."),
        (document(notes=2**14_000), "$.notes: a whole number of more than 4,000 digits is too long."),
        (document(notes=[float("nan")]), "$.notes[0]: JSON has no nan."),
        (document(notes=[{1: 2}]), "$.notes[0]: the names in a JSON object are strings, not int."),
        (document(notes=nested(201, listed, 1)), f"$.notes{'[0]' * 200}: values nest deeper than 200 levels."),
        (
            document(notes=nested(201, lambda inner: {"a": inner}, 1)),
            f"$.notes{'.a' * 200}: values nest deeper than 200 levels.",
        ),
        (document(fingerprints=[]), "$.fingerprints: expected an object"),
        (document(fingerprints={"f": 1}), "$.fingerprints.f: expected a string"),
        (document(steps="s"), "$.steps: expected an array"),
        (document(steps=[STEP] * 1_001), MANY),
        (document(steps=[STEP, 5]), "$.steps[1]: expected an object"),
        (document(steps=[STEP, {}]), "$.steps[1]: function, id are missing."),
        (step(wait=1), f"$.steps[1]: unknown key 'wait'; known are after, arguments, attempts, each, {REST}."),
        (step(id=1), "$.steps[1].id: expected a string"),
        (step(function=None), "$.steps[1].function: expected an object"),
        (step(function={"template": ""}), "$.steps[1].function: language is missing."),
        (
            step(function={"template": "", "language": "", "id": 1}),
            "$.steps[1].function: unknown key 'id'; known are language, template.",
        ),
        (step(function={"template": 1, "language": ""}), "$.steps[1].function.template: expected a string"),
        (step(function={"template": "", "language": 1}), "$.steps[1].function.language: expected a string"),
        (step(function=document(version=3)), "$.steps[1].function.version: expected 1 or 2, got "),
        (step(arguments=[]), "$.steps[1].arguments: expected an object"),
        (step(arguments={"a": 1}), "$.steps[1].arguments.a: expected an object"),
        (step(arguments={"a": in_text(5)}), "$.steps[1].arguments.a.text[1]: expected an object"),
        (step(after="s"), "$.steps[1].after: expected an array"),
        (step(after=["s", 1]), "$.steps[1].after[1]: expected a string"),
        (step(reason=None), "$.steps[1].reason: expected a string"),
        (step(seconds=None), SECONDS),
        (step(seconds=True), SECONDS),
        (step(seconds="5"), SECONDS),
        (step(seconds=0), SECONDS),
        (step(seconds=1_000_000.5), SECONDS),
        (step(seconds=float("nan")), SECONDS),
        (step(attempts=None), ATTEMPTS),
        (step(attempts=True), ATTEMPTS),
        (step(attempts=0), ATTEMPTS),
        (step(attempts=101), ATTEMPTS),
        (step(attempts=1.5), ATTEMPTS),
        (step(attempts=float("inf")), ATTEMPTS),
        (document(result=[]), "$.result: expected an object"),
        (
            document(result={"ref": "s"}),
            "$.result: unknown key 'ref'; known are from, list, object, path, text, value.",
        ),
        (document(result={}), f"$.result: {TAGS}"),
        (document(result={"path": "$"}), f"$.result: {TAGS}"),
        (document(result={"text": [], "path": "$"}), f"$.result: {TAGS}"),
        (document(result={"from": "s", "value": 1, "path": "$"}), f"$.result: {TAGS}"),
        (document(result={"value": {"a": {2}}}), "$.result.value.a: expected a JSON value, got a Python set."),
        (document(result={"from": 1}), "$.result.from: expected a string"),
        (document(result={"from": "s", "path": 1}), "$.result.path: expected a string"),
        (document(result={"text": "abc"}), "$.result.text: expected an array"),
        (document(result={"list": {}}), "$.result.list: expected an array"),
        (document(result={"object": []}), "$.result.object: expected an object"),
        (document(result=in_list(5)), "$.result.list[0]: expected an object"),
        (document(result=in_object("x")), "$.result.object.a: expected an object"),
        (
            document(result=nested(51, in_list, VALUE)),
            f"$.result{'.list[0]' * 51}: expressions nest deeper than 50 levels.",
        ),
        (
            document(result=nested(51, in_text, VALUE)),
            f"$.result{'.text[1]' * 51}: expressions nest deeper than 50 levels.",
        ),
        (
            document(result=nested(51, in_object, VALUE)),
            f"$.result{'.object.a' * 51}: expressions nest deeper than 50 levels.",
        ),
        (nested(50, in_plan, document()), f"${'.steps[0].function' * 50}.steps[0]: plans nest deeper than 50 levels."),
    ],
    ids=lambda each: str(each)[:60],
)
def test_what_is_refused_is_said_with_its_place(wrong: Any, says: str) -> None:
    with pytest.raises(PlanFormatError) as caught:
        plan_from_json(wrong)
    assert str(caught.value).startswith(says)


@pytest.mark.parametrize(
    ("goal", "shown"),
    [
        (None, "a JSON null"),
        (True, "a JSON boolean"),
        (5, "5"),
        (1.5, "1.5"),
        (10**5_000, "a JSON number"),
        (float("nan"), "a JSON number"),
        ([], "a JSON array"),
        ({}, "a JSON object"),
        (Plan("g"), "a JSON value"),
    ],
    ids=lambda each: str(each)[:20] if not isinstance(each, int) else "number",
)
def test_what_came_instead_is_said_in_few_words(goal: object, shown: str) -> None:
    with pytest.raises(PlanFormatError) as caught:
        plan_from_json(document(goal=goal))
    assert str(caught.value) == f"$.goal: expected a string, got {shown}."
    with pytest.raises(PlanFormatError, match=f"got '{'x' * 60}'"):
        plan_from_json("x" * 61)


DAMAGED = Value([1, {2}])
PYTHON = "expected a JSON value, got a Python set."


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        (Plan("g", input={"a": [{2}]}), f"$.input.a[0]: {PYTHON}"),
        (Plan("g", notes={"a": {2}}), f"$.notes.a: {PYTHON}"),
        (Plan("g", notes=float("-inf")), "$.notes: JSON has no -inf."),
        (Plan("g", result=DAMAGED), f"$.result.value[1]: {PYTHON}"),
        (Plan("g", result=TextOf(("", DAMAGED))), f"$.result.text[1].value[1]: {PYTHON}"),
        (Plan("g", result=ListOf((Value(1), DAMAGED))), f"$.result.list[1].value[1]: {PYTHON}"),
        (Plan("g", result=ObjectOf({"a": DAMAGED})), f"$.result.object.a.value[1]: {PYTHON}"),
        (Plan("g", (Step("s", "f"), Step("t", "f", {"a": DAMAGED}))), f"$.steps[1].arguments.a.value[1]: {PYTHON}"),
        (Plan("g", (Step("s", Plan("h", (Step("t", "f"),), notes={2})),)), f"$.steps[0].function.notes: {PYTHON}"),
    ],
)
def test_what_cannot_be_written_is_told_with_the_place_in_the_form(plan: Plan, says: str) -> None:
    with pytest.raises(PlanFormatError) as caught:
        plan_to_json(plan)
    assert str(caught.value) == says
