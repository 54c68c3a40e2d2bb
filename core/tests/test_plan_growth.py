"""What a plan puts together stays small, however often its steps double what came before."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from portico import Kernel, function
from portico._runs import spent
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
from portico_testkit.fakes.run_store import MemoryRunStore

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


@pytest.mark.parametrize("around", [lambda part: ListOf((part,)), lambda part: ObjectOf({"a": part, "b": Value(1)})])
def test_a_large_result_may_stand_in_a_list_or_an_object(around: Any) -> None:
    rows = [{"name": str(number)} for number in range(100_000)]
    value = {"s": rows}
    for _ in range(3):
        value = {"s": evaluate(around(From("s")), value)}
    assert evaluate(ListOf((Value(0), around(From("r")))), {"r": rows})
    with pytest.raises(LimitExceeded, match="4,000,000"):
        evaluate(around(ListOf((From("r"), From("r")))), {"r": rows})


async def test_steps_side_by_side_that_are_refused_hold_no_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spent, "_COMPOSED", 1_000_000)
    monkeypatch.setattr(spent, "_COMPOSED_A_STEP", 0)
    kernel = Kernel()
    kernel.add_function(echo)
    steps = [Step("s", "echo", {"x": Value("\N{GRINNING FACE}" * 25_000)})]
    steps += [Step(f"t{number}", "echo", {"x": TextOf((From("s"), "!"))}) for number in range(90)]
    tracemalloc.start()
    try:
        with pytest.raises(StepFailed, match="1,000,000"):
            await kernel.run_plan(Plan("Grow", tuple(steps), Value(0)))
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


async def test_large_entries_that_come_together_go_to_the_store_in_portions() -> None:
    class Watching(MemoryRunStore):
        async def append(self, lease: Any, entries: Any) -> None:
            portions.append(sum(len(json.dumps(entry)) for entry in entries))
            await super().append(lease, entries)

    portions: list[int] = []
    kernel = Kernel(run_store=Watching())
    kernel.add_function(echo)
    steps = [Step(f"t{number}", "echo", {"x": From("input")}) for number in range(30)]
    run = await kernel.run_plan(Plan("Side by side", tuple(steps), Value(0)), input="a" * 1_000_000)
    assert len(run.steps) == 30
    assert max(portions) < 10_000_000
    assert sum(portions) > 60_000_000


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
