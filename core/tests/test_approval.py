"""Approval: plans and steps with effects wait for a person."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from portico._functions.functions import function
from portico._kernel import Kernel
from portico._plans.plan import From, ListOf, Plan, Step, Value
from portico._plans.task import Answer
from portico._runs.outcome import Paused

PLAN = Plan(
    "Do it",
    (
        Step("s1", "look", {"text": Value("a")}),
        Step("s2", "send", {"text": From("s1")}),
        Step("s3", "send", {"text": From("s1")}),
    ),
    result=ListOf((From("s2"), From("s3"))),
)


@pytest.fixture
def sent() -> list[str]:
    return []


@pytest.fixture
def kernel(sent: list[str]) -> Kernel:
    @function
    def look(text: str) -> str:
        return text

    @function(effects=True)
    def send(text: str) -> str:
        sent.append(text)
        return text

    made = Kernel()
    made.add_function(look)
    made.add_function(send)
    return made


async def test_without_anybody_to_ask_a_plan_waits(kernel: Kernel, sent: list[str]) -> None:
    kernel.approve_plans()
    outcome = (await kernel.run_plan(PLAN)).outcome
    assert isinstance(outcome, Paused)
    assert (outcome.step, sent) == (None, [])
    assert "waits for approval" in outcome.reason


@pytest.mark.parametrize(("decided", "reason"), [(False, "not approved"), ("ask Ada first", "ask Ada first")])
async def test_what_is_refused_is_held_with_the_reason(
    kernel: Kernel, sent: list[str], decided: Any, reason: str
) -> None:
    async def decide(_: object) -> Any:
        return decided

    kernel.approve_plans(decide)
    outcome = (await kernel.run_plan(PLAN)).outcome
    assert isinstance(outcome, Paused)
    assert reason in outcome.reason
    kernel.middleware.plan.clear()
    kernel.approve_effects(decide)
    outcome = (await kernel.run_plan(PLAN)).outcome
    assert isinstance(outcome, Paused)
    assert reason in outcome.reason
    assert outcome.step in ("s2", "s3")
    assert sent == []


async def test_only_steps_with_effects_are_asked_for_one_at_a_time(kernel: Kernel, sent: list[str]) -> None:
    asked: list[str] = []
    asking = 0

    async def decide(run: Any) -> bool:
        nonlocal asking
        asking += 1
        assert asking == 1, "two questions at once"
        await asyncio.sleep(0.01)
        asking -= 1
        asked.append(run.step.id)
        assert run.arguments == {"text": "a"}
        return True

    kernel.approve_effects(decide)
    assert isinstance((await kernel.run_plan(PLAN)).outcome, Answer)
    assert (sorted(asked), sent) == (["s2", "s3"], ["a", "a"])


async def test_the_steps_of_a_nested_plan_are_asked_for_by_themselves(kernel: Kernel, sent: list[str]) -> None:
    inner = Plan("inner", (Step("a", "send", {"text": Value("x")}),), result=From("a"))
    kernel.approve_effects()
    outcome = (await kernel.run_plan(Plan("outer", (Step("s1", inner),), result=From("s1")))).outcome
    assert isinstance(outcome, Paused)
    assert (outcome.step, sent) == ("s1/a", [])
