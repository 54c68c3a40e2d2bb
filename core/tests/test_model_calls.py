"""Calls that a model wrote, as steps of a plan."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from hypothesis import given, strategies as st

from portico._functions.functions import Function
from portico._planning.model_calls import ModelCall
from portico._plans.plan import From, Step, Value
from portico._plans.task import Infeasible, StepRecord, Task
from portico._schema.coerce import mend, structure_leniently
from portico._types.compiled import Mismatch
from portico._types.compiling import compile_type
from portico.errors import ArgumentsInvalid


def forecast(city: str, days: int = 1, units: Literal["C", "F"] = "C") -> str:
    return "Sun"


def now(city: str) -> str:
    return "Noon"


FUNCTIONS = {
    each.full_name: each for each in (Function.of(forecast, plugin="Weather"), Function.of(now, plugin="Clock"))
}
CATALOGUE = {name: each.spec for name, each in FUNCTIONS.items()}

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 99)
    | st.sampled_from(["5", "05", "true", "null", "[1]", '{"a": 1}', "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=5,
)


@given(VALUES, st.sampled_from([int, str, bool, list[int], dict[str, int], int | None, list[dict[str, bool]]]))
def test_what_is_understood_in_a_tool_call_is_understood_in_a_plan(value: Any, kind: Any) -> None:
    compiled = compile_type(kind)
    try:
        expected = structure_leniently(compiled, value)
    except Mismatch:
        return
    assert compiled.structure(mend(compiled.schema, value)) == expected


@given(VALUES)
def test_mending_leaves_alone_what_fits_and_what_no_schema_speaks_of(value: Any) -> None:
    assert mend({}, value) == value
    everything = {"type": ["string", "integer", "boolean", "null", "array", "object"]}
    assert mend(everything, value) == value


def test_a_step_has_values_only_whatever_the_arguments_look_like() -> None:
    step = ModelCall.step("now", {"city": {"from": "s1", "path": "$"}}, CATALOGUE, id="s2", reason="So.")
    assert step == Step("s2", "Clock-now", {"city": Value({"from": "s1", "path": "$"})}, reason="So.")
    assert ModelCall.faults(step, CATALOGUE)


@given(st.dictionaries(st.sampled_from(["city", "days", "units", "when"]), VALUES, max_size=4))
def test_a_step_without_faults_can_be_called_with_its_arguments(arguments: dict[str, Any]) -> None:
    step = ModelCall.step("forecast", arguments, CATALOGUE, id="s1")
    given_values = {name: each.value for name, each in step.arguments.items() if isinstance(each, Value)}
    if not ModelCall.faults(step, CATALOGUE):
        FUNCTIONS["Weather-forecast"].structure_arguments(given_values)
    else:
        with pytest.raises(ArgumentsInvalid):
            FUNCTIONS["Weather-forecast"].structure_arguments(given_values)


def test_ids_are_new_in_the_run() -> None:
    records = tuple(StepRecord(Step(id, "f"), 1) for id in ("s1", "s3", "s3/1", "other"))
    ids = Task("g", steps=records).fresh_ids({"s5"})
    assert [next(ids) for _ in range(3)] == ["s6", "s7", "s8"]
    assert next(Task("g").fresh_ids()) == "s1"
    assert [record.step.id for record in Task("g", steps=records).own_steps] == ["s1", "s3", "other"]


def test_arguments_are_those_that_a_step_was_given_as_far_as_they_are_known() -> None:
    done = StepRecord(Step("s1", "f"), {"city": "Oslo"})
    step = Step("s2", "f", {"a": From("s1", ("city",)), "b": From("gone"), "c": From("input"), "d": Value(None)})
    assert Task("g", steps=(done,), input=7).arguments_of(step) == {"a": "Oslo", "c": 7, "d": None}


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=3))
def test_an_object_is_read_as_it_was_written(value: dict[str, Any]) -> None:
    assert ModelCall.arguments(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Expecting value"),
        ("[]", "no JSON object"),
        ('{"a": 1, "a": 1}', "'a' stands there twice"),
        ('{"a": NaN}', "NaN is no JSON value"),
        ('{"a": ' * 100_000, "nested too deeply|Expecting"),
    ],
)
def test_what_is_no_object_or_could_be_two_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ModelCall.arguments(text)


@pytest.mark.parametrize(
    ("arguments", "said", "outcome"),
    [
        (
            {"reason": "No ferry.", "missing": ["a timetable", " ", 3]},
            "",
            Infeasible("No ferry.", ("a timetable", "3")),
        ),
        ({"reason": " ", "missing": " "}, " There is no ferry. ", Infeasible("There is no ferry.")),
        (
            {"reason": ["No."], "missing": {"a": 1}},
            "",
            Infeasible("The model says that these functions cannot reach the goal."),
        ),
    ],
)
def test_a_model_that_gives_up_is_understood_however_it_fills_the_call_in(
    arguments: dict[str, Any], said: str, outcome: Infeasible
) -> None:
    assert Infeasible.from_call(arguments, said=said) == outcome
