"""What a plan puts together stays small, however often its steps double what came before."""

from __future__ import annotations

from typing import Any

import pytest

from portico import Kernel, function
from portico.errors import LimitExceeded, PlanFormatError, StepFailed
from portico.plans import (
    Expression,
    From,
    ListOf,
    ObjectOf,
    Plan,
    PlanTemplate,
    Step,
    TextOf,
    Value,
    evaluate,
    plan_from_json,
)

TWICE = [
    TextOf((From("s"), From("s"))),
    ListOf((From("s"), From("s"))),
    ObjectOf({"a": From("s"), "b": From("s")}),
    TextOf((ListOf((From("s"), From("s"))),)),
    ListOf((TextOf((From("s"),)), From("s"))),
]


@pytest.mark.parametrize("twice", TWICE)
@pytest.mark.parametrize("begin", ["a\\", []])
def test_what_doubles_each_time_ends_before_it_is_large(twice: Expression, begin: Any) -> None:
    value = begin
    with pytest.raises(LimitExceeded, match="4,000,000"):
        for _ in range(60):
            value = evaluate(twice, {"s": value})


@function
def echo(x: str) -> str:
    """Give back a text."""
    return x


INNER = Plan("again", result=TextOf((From("input", ("x",)), "!")))


@pytest.mark.parametrize(
    "kind",
    [
        lambda number: Step(f"t{number}", "echo", {"x": TextOf((From("s"), "!"))}),
        lambda number: Step(f"t{number}", INNER, {"x": From("s")}),
        lambda number: Step(f"t{number}", PlanTemplate("{{$x}}!", "semantic-kernel"), {"x": From("s")}),
    ],
)
async def test_the_texts_of_a_run_are_bounded_together(kind: Any) -> None:
    kernel = Kernel()
    kernel.add_function(echo)
    steps = [Step("s", "echo", {"x": Value("a" * 3_000_000)}), *map(kind, range(12))]
    with pytest.raises(StepFailed, match="32,000,000"):
        await kernel.run_plan(Plan("Grow", tuple(steps), Value(0)))
    run = await kernel.run_plan(Plan("Grow", tuple(steps[:9]), Value(0)))
    assert len(run.steps) >= 9


async def test_a_prompt_is_bounded_before_it_is_put_together() -> None:
    with pytest.raises(LimitExceeded, match="4,000,000"):
        await Kernel().render_prompt("{{$x}}" * 9_000, {"x": "a" * 1_000_000})
    with pytest.raises(LimitExceeded, match="4,000,000"):
        await Kernel().render_prompt("{{$x}}" * 9_000, {"x": ["a" * 1_000_000]})


def test_a_plan_of_too_many_values_is_refused() -> None:
    document = {"version": 1, "goal": "g", "steps": [], "result": {"value": [[]] * 200_000}}
    with pytest.raises(PlanFormatError, match="200,000 values"):
        plan_from_json(document)


def test_a_path_has_an_end() -> None:
    with pytest.raises(PlanFormatError, match="1,000 names"):
        From.parse_path("$" + "['a']" * 1_001)
