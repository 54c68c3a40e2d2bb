"""Plans that follow each other, and steps that repeat themselves."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico._planning.prompts import FittedFunctions, PromptText
from portico._plans.plan import Step, Value
from portico._plans.task import Infeasible, StepRecord, Task
from portico.errors import PlanError

FAILED = StepRecord(Step("s1", "look"), error="it is dark")


def ran(id: str, city: str = "Oslo", result: str = "rain", error: str | None = None) -> StepRecord:
    return StepRecord(Step(id, "look", {"city": Value(city)}, reason=id), result, error)


@pytest.mark.parametrize(("notes", "number"), [(None, 1), ({"plan": 2}, 3), ({"plan": True}, 1), ("plan", 1), ([], 1)])
def test_plans_are_counted_by_the_notes_of_the_last_one(notes: Any, number: int) -> None:
    assert Task("?", notes=notes).plan_number(replans=0) == number


def test_a_failure_is_followed_by_as_many_plans_as_are_allowed() -> None:
    assert Task("?", steps=(FAILED,), notes={"plan": 1}).plan_number(replans=1) == 2
    with pytest.raises(PlanError, match=r"and so did the 1 after it\. The last error was: it is dark"):
        Task("?", steps=(FAILED,), notes={"plan": 2}).plan_number(replans=1)
    with pytest.raises(PlanError, match=r"The plan failed\. The last error was"):
        Task("?", steps=(FAILED,), notes={"plan": 1}).plan_number(replans=0)


def test_the_same_call_with_the_same_result_is_counted_from_the_end() -> None:
    def count(*records: StepRecord) -> int:
        return Task("?", steps=records).repeats()

    assert count() == 0
    assert count(ran("s1")) == 1
    assert count(ran("s1"), ran("s1/1", "Rome"), ran("s2")) == 2, "the steps inside of a step do not count"
    assert count(ran("s1", "Rome"), ran("s2"), ran("s3")) == 2
    assert count(ran("s1", result="sun"), ran("s2")) == 1, "another result is news"
    assert count(ran("s1", error="no"), ran("s2")) == 1
    assert count(ran("s1"), ran("s2", error="no")) == 0


def test_an_outcome_says_of_how_many_functions_the_model_was_told() -> None:
    outcome = Infeasible("No.", ("x",))
    assert FittedFunctions((), "").explain(outcome) is outcome
    told = FittedFunctions((), "", ("a", "b")).explain(outcome)
    assert told == Infeasible("No. (The model saw 0 of 2 functions; manual_tokens allows more.)", ("x",))


@given(st.text() | st.lists(st.text(alphabet="\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029<|a")))
def test_a_value_within_a_prompt_stays_on_its_line_and_is_still_itself(value: Any) -> None:
    line = PromptText.line(value)
    assert len(line.splitlines()) == 1
    assert "<|" not in line
    assert json.loads(line) == value
