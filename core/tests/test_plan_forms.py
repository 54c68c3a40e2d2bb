"""Paths and the JSON form of plans: what is written is read back; anything else is a PlanFormatError."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st
from tests.support.strategies import json_paths, plans

from portico._plans.json_form import plan_from_json, plan_to_json
from portico._plans.plan import From, ListOf, ObjectOf, Plan, Step, TextOf, Value
from portico._schema.paths import JsonPath, Many, read_path
from portico.errors import PlanFormatError
from portico_testkit.strategies import json_values, near


@given(json_paths())
@example(("\ud800",))
@example(("\x00'\"\\/\x7f\u2028",))
def test_a_path_comes_back_as_it_was(path: JsonPath) -> None:
    assert From.parse_path(From.print_path(path)) == path


@given(st.text("$.[]'\"\\u0123abD8- \n*:?", max_size=12))
def test_any_text_is_a_path_or_a_format_error(text: str) -> None:
    try:
        path = From.parse_path("$" + text)
    except PlanFormatError as error:
        assert "character" in str(error)
    else:
        assert From.parse_path(From.print_path(path)) == path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("$", ()),
        ("$.a.b", ("a", "b")),
        ("$[0][-1]", (0, -1)),
        ("$['a b'][\"c\"]", ("a b", "c")),
        ("$ .a [ 0 ] [ 'b' ]", ("a", 0, "b")),
        ("$.日付", ("日付",)),
        (r"$['\u00e9\n\'\"'[0]".replace("'[0]", "']").replace(r"\"", '"'), ("é\n'\"",)),
        (r'$["\ud83e\udde6"]', ("🧦",)),
        (r'$["\/\\"]', ("/\\",)),
        ("$[9007199254740991]", (9007199254740991,)),
        ("$.*", (Many((None,)),)),
        ("$ [ * , 'a' , 1 ] .b", (Many((None, "a", 1)), "b")),
        ("$[1:2][:][ -1 : 0 : -2 ]", (Many(((1, 2, None),)), Many(((None, None, None),)), Many(((-1, 0, -2),)))),
    ],
)
def test_every_spelling_of_a_path_is_read(text: str, path: JsonPath) -> None:
    assert From.parse_path(text) == path


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("$.", 3),
        ("$..a", 2),
        ("$. a", 3),
        ("$.1", 3),
        ("$[01]", 3),
        ("$[-0]", 3),
        ("$[1:01]", 3),
        ("$[0,]", 5),
        ("$[]", 3),
        ("$[1:2:9007199254740992]", 3),
        ("$[?@.a]", 3),
        ("$[0", 3),
        ("$['a", 3),
        ("$['a\\", 3),
        (r"$['\x41']", 3),
        (r"$['\"']", 3),
        (r"$['\ud800']", 3),
        (r"$['\ud800\u0041']", 3),
        (r"$['\udc00']", 3),
        (r"$['\u12g4']", 3),
        ("$['\n']", 3),
        ("$a", 2),
        ("$.a ", 4),
        ("$.a-b", 4),
        ("$[9007199254740992]", 3),
        ("$[" + "9" * 5000 + "]", 3),
    ],
)
def test_what_is_no_path_is_refused_with_the_position(text: str, position: int) -> None:
    with pytest.raises(PlanFormatError, match=rf"wrong at character {position}:") as caught:
        From.parse_path(text)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("text", ["", "a", "@.a", " $.a", "." * 10**6])
def test_a_path_begins_with_a_dollar(text: str) -> None:
    with pytest.raises(PlanFormatError, match="does not begin"):
        From.parse_path(text)


@given(json_values(), st.data())
def test_a_path_to_a_place_reads_what_is_there(value: Any, data: st.DataObject) -> None:
    path: list[str | int] = []
    inside = value
    while isinstance(inside, list | dict) and inside and data.draw(st.booleans()):
        keys = list(inside) if isinstance(inside, dict) else range(-len(inside), len(inside))
        path.append(data.draw(st.sampled_from(list(keys))))
        inside = inside[path[-1]]
    assert read_path(value, tuple(path)) == inside


@pytest.mark.parametrize(
    ("path", "says"),
    [
        (("b",), r"nothing at \$.b"),
        (("a", 2), r"nothing at \$.a\[2\]"),
        (("a", -3), r"nothing at \$.a\[-3\]"),
        (("a", "x"), r"\$.a is not an object"),
        ((0,), r"\$ is not an array"),
        (("a", 0, 0), r"\$.a\[0\] is not an array"),
    ],
)
def test_a_path_to_nothing_says_how_far_it_came(path: JsonPath, says: str) -> None:
    with pytest.raises(LookupError, match=says):
        read_path({"a": ["xy", 2]}, path)


@settings(max_examples=50)
@example(Plan("", (), From("input", (Many(("a", '"\ud800')),))))
@given(plans())
def test_a_plan_comes_back_from_json_as_it_was(plan: Plan) -> None:
    assert plan_from_json(plan_to_json(plan)) == plan


@settings(max_examples=50)
@given(plans())
def test_the_json_of_a_plan_survives_being_text(plan: Plan) -> None:
    text = json.dumps(plan_to_json(plan), allow_nan=False)
    assert plan_to_json(plan_from_json(json.loads(text))) == json.loads(text)


@settings(max_examples=50)
@given(st.data())
def test_a_document_is_a_plan_or_a_format_error(data: st.DataObject) -> None:
    document = data.draw(near(plan_to_json(data.draw(plans(max_steps=3)))) | json_values())
    try:
        plan = plan_from_json(document)
    except PlanFormatError as error:
        assert str(error).startswith("$") or "path" in str(error)
    else:
        assert plan_from_json(plan_to_json(plan)) == plan


def test_the_form_is_as_published() -> None:
    plan = Plan(
        "Tell",
        (
            Step("s1", "Weather-get", {"place": Value("Oslo")}, reason="first"),
            Step("s2", Plan("inner", result=Value(1)), after=("s1",)),
            Step("s3", "Say-it", {"text": TextOf(("on ", From("s1", ("days", 0)))), "to": ListOf((Value("a"),))}),
        ),
        result=ObjectOf({"said": From("s3")}),
        notes={"round": 1},
        fingerprints={"Say-it": "0"},
    )
    assert plan_to_json(plan) == {
        "version": 1,
        "goal": "Tell",
        "steps": [
            {"id": "s1", "function": "Weather-get", "arguments": {"place": {"value": "Oslo"}}, "reason": "first"},
            {
                "id": "s2",
                "function": {"version": 1, "goal": "inner", "steps": [], "result": {"value": 1}},
                "after": ["s1"],
            },
            {
                "id": "s3",
                "function": "Say-it",
                "arguments": {
                    "text": {"text": ["on ", {"from": "s1", "path": "$.days[0]"}]},
                    "to": {"list": [{"value": "a"}]},
                },
            },
        ],
        "result": {"object": {"said": {"from": "s3"}}},
        "notes": {"round": 1},
        "fingerprints": {"Say-it": "0"},
    }


def document(**changes: Any) -> dict[str, Any]:
    return {"version": 1, "goal": "g", "steps": [{"id": "s1", "function": "f"}], **changes}


def deep(levels: int, wrap: Any, core: Any) -> Any:
    for _ in range(levels):
        core = wrap(core)
    return core


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (None, r"\$: expected an object, got a JSON null"),
        ([], r"\$: expected an object"),
        ({"version": 1}, r"\$: goal, steps are missing"),
        (document(version=3), r"\$\.version: expected 1 or 2, got 3. This Portico reads versions 1 and 2 of the form"),
        ({"version": 7, "nodes": []}, r"\$\.version: expected 1 or 2, got 7"),
        (document(version=True), r"\$\.version: expected 1"),
        (document(version=10**5000), r"\$\.version: expected 1 or 2, got a JSON number"),
        (document(version=deep(10**4, lambda inner: [inner], 1)), r"\$\.version: expected 1 or 2, got a JSON array"),
        (document(extra=1), "unknown key 'extra'"),
        (document(goal=1), r"\$\.goal: expected a string"),
        (document(steps={}), r"\$\.steps: expected an array"),
        (document(steps=[5]), r"\$\.steps\[0\]: expected an object"),
        (document(steps=[{"id": "s1"}]), r"\$\.steps\[0\]: function is missing"),
        (document(steps=[{"id": "s1", "function": 1}]), r"\$\.steps\[0\]\.function: expected an object"),
        (document(steps=[{"id": "s1", "function": "f"}] * 1001), "at most 1000 steps"),
        (document(steps=[{"id": "s1", "function": "f", "arguments": {"a": "x"}}]), r"arguments\.a: expected an object"),
        (document(steps=[{"id": "s1", "function": "f", "when": {"true": {}, "not": {}}}]), "exactly one of"),
        (document(result={}), "exactly one of"),
        (document(result={"value": 1, "from": "s1"}), "exactly one of"),
        (document(result={"value": 1, "path": "$"}), "exactly one of"),
        (document(result={"path": "$"}), "exactly one of"),
        (document(result={"from": "s1", "path": "$.."}), "wrong at character"),
        (document(result={"from": 1}), r"\$\.result\.from: expected a string"),
        (document(result={"text": "abc"}), r"\$\.result\.text: expected an array"),
        (document(result={"object": []}), r"\$\.result\.object: expected an object"),
        (document(fingerprints={"f": 1}), r"fingerprints.f: expected a string"),
        (document(input=None), r"\$\.input: expected a JSON Schema that is an object, got a JSON null"),
        (document(input={"a": float("inf")}), r"\$\.input\.a: JSON has no inf"),
        (document(notes=[float("nan")]), r"\$\.notes\[0\]: JSON has no nan"),
        (document(result={"value": {"a": [float("-inf")]}}), r"\$\.result\.value\.a\[0\]: JSON has no -inf"),
        (document(result={"value": 10**5_000}), r"\$\.result\.value: a whole number of more than 4,000 digits"),
        (document(result={"value": deep(300, lambda inner: [inner], 1)}), "values nest deeper than 200"),
        (document(steps=[{"id": "s", "function": "f", "seconds": None}]), r"seconds: expected a number above 0"),
        (document(steps=[{"id": "s", "function": "f", "seconds": 0}]), r"seconds: expected a number above 0"),
        (document(steps=[{"id": "s", "function": "f", "attempts": 0}]), r"attempts: expected a whole number from 1"),
        (document(steps=[{"id": "s", "function": "f", "attempts": True}]), r"attempts: expected a whole number"),
        (document(steps=[{"id": "s", "function": {"template": "x"}}]), r"function: language is missing"),
        (document(result=deep(60, lambda inner: {"list": [inner]}, {"value": 1})), "deeper than 50"),
        (document(result=deep(10**4, lambda inner: {"text": [inner]}, {"value": 1})), "deeper than 50"),
        (deep(60, lambda inner: document(steps=[{"id": "s", "function": inner}]), document()), "deeper than 50"),
        (deep(2_000, lambda inner: document(steps=[{"id": "s", "function": inner}]), document()), "deeper than 50"),
    ],
)
def test_what_is_not_a_plan_is_refused_with_the_place(wrong: Any, says: str) -> None:
    with pytest.raises(PlanFormatError, match=says):
        plan_from_json(wrong)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (float("nan"), r"\$\.steps\[0\]\.arguments\.x\.list\[1\]\.value\.deep\[0\]: JSON has no nan"),
        (float("-inf"), r"JSON has no -inf"),
        ((1, 2), r"expected a JSON value, got a Python tuple"),
        ({1: 2}, r"the names in a JSON object are strings, not int"),
        (b"x", r"expected a JSON value, got a Python bytes"),
        (object(), r"expected a JSON value, got a Python object"),
        pytest.param(10**5_000, r"a whole number of more than 4,000 digits", id="too long"),
    ],
)
def test_what_json_does_not_have_is_refused_with_the_place_when_a_plan_is_written(value: Any, says: str) -> None:
    argument = ListOf((Value(1), Value({"deep": [value]})))
    with pytest.raises(PlanFormatError, match=says):
        plan_to_json(Plan("g", (Step("s1", "f", {"x": argument}),)))
    with pytest.raises(PlanFormatError, match=r"\$\.notes"):
        plan_to_json(Plan("g", notes=value))
    with pytest.raises(PlanFormatError, match=r"\$\.steps\[0\]\.function\.input"):
        plan_to_json(Plan("g", (Step("s1", Plan("inner", input={"default": value})),)))


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(PlanFormatError, match="values nest deeper than 200 levels"):
        plan_to_json(Plan("g", result=Value(value)))


def test_two_point_zero_attempts_are_two() -> None:
    (step,) = plan_from_json(document(steps=[{"id": "s", "function": "f", "attempts": 2.0}])).steps
    assert type(step.attempts) is int
