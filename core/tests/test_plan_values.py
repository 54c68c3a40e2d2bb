"""What the expressions of a plan come to, and what a task tells of the steps that ran."""

from __future__ import annotations

from typing import Any

import pytest

from portico._plans.plan import From, Step, TextOf, Value, evaluate
from portico._plans.task import StepRecord, Task


@pytest.mark.parametrize(
    ("expression", "error", "says"),
    [
        (From("input", ("x",)), LookupError, "no input was given"),
        (From("s1"), LookupError, "the step s1 has no result"),
        (TextOf(("a", From("s2"))), LookupError, "the step s2 has no result"),
        (3, TypeError, "3 is no expression"),
    ],
)
def test_what_comes_to_nothing_is_told(expression: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error) as raised:
        evaluate(expression, {"s": 1})
    assert raised.value.args == (says,)


def test_what_is_no_text_stands_in_a_text_as_json_with_its_letters() -> None:
    assert evaluate(TextOf(("to ", From("input"), Value("!"))), {"input": {"name": "Zoé"}}) == 'to {"name": "Zoé"}!'


def test_a_task_has_the_results_of_the_steps_that_finished() -> None:
    one, two = Step("s1", "f"), Step("s2", "f")
    task = Task("g", steps=(StepRecord(one, error="down"), StepRecord(two, 2), StepRecord(one, 1)))
    assert (task.result_of("s1"), task.result_of("s2")) == (1, 2)
    for steps, missing in (((StepRecord(one, error="down"),), "s1"), (task.steps, "s3")):
        with pytest.raises(KeyError) as raised:
            Task("g", steps=steps).result_of(missing)
        assert raised.value.args == (missing,)
