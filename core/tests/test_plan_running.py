"""Running: by the graph; concurrently where nothing forbids it; nothing left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.support.strategies import plans

from portico._functions.middleware import RequireApproval
from portico._plans.plan import From, ListOf, ObjectOf, Plan, Step, TextOf, Value, evaluate
from portico._runs.scheduling import Broken, PausedStep, run_steps
from portico.errors import StepFailed


def step(name: str, *after: str) -> Step:
    return Step(name, "f", after=after)


def plan(*steps: Step) -> Plan:
    return Plan("g", steps)


async def run(plan: Plan, execute: Any, results: dict[str, Any] | None = None) -> tuple[dict[str, Any], list[str]]:
    results = {} if results is None else results
    failures = await run_steps(plan, results, execute)
    return results, [failure.step for failure in failures]


@settings(max_examples=50)
@given(plans({"f": ["a", "b"]}, nested=False), st.randoms(use_true_random=False))
def test_results_do_not_depend_on_who_is_faster(drawn: Plan, random: Any) -> None:
    def execution(pauses: Callable[[], int]) -> Any:
        async def execute(step: Step, arguments: dict[str, Any]) -> Any:
            for _ in range(pauses()):
                await asyncio.sleep(0)
            return [step.id, arguments]

        return execute

    at_once = asyncio.run(run(drawn, execution(lambda: 0)))
    mixed = asyncio.run(run(drawn, execution(lambda: random.randrange(4))))
    assert at_once == mixed
    assert set(at_once[0]) == {each.id for each in drawn.steps}


@settings(max_examples=50)
@given(plans({"f": ["a"]}, nested=False))
def test_a_step_runs_once_and_after_all_that_it_depends_on(drawn: Plan) -> None:
    begun: list[str] = []
    ended: list[str] = []

    async def execute(step: Step, arguments: dict[str, Any]) -> None:
        assert step.depends_on() <= set(ended)
        begun.append(step.id)
        await asyncio.sleep(0)
        ended.append(step.id)

    asyncio.run(run(drawn, execute))
    assert sorted(begun) == sorted(each.id for each in drawn.steps)


async def test_independent_steps_overlap() -> None:
    together = asyncio.Barrier(3)

    async def execute(step: Step, arguments: dict[str, Any]) -> None:
        if step.id != "end":
            await together.wait()

    results, failures = await run(plan(step("a"), step("b"), step("c"), step("end", "a", "b", "c")), execute)
    assert set(results) == {"a", "b", "c", "end"}
    assert failures == []


async def test_a_step_begins_as_soon_as_its_own_predecessors_are_done() -> None:
    gate = asyncio.Event()

    async def execute(step: Step, arguments: dict[str, Any]) -> None:
        if step.id == "slow":
            await gate.wait()
        if step.id == "second":
            gate.set()

    results, _ = await run(plan(step("slow"), step("first"), step("second", "first")), execute)
    assert set(results) == {"slow", "first", "second"}


async def test_a_failure_lets_the_others_finish_and_skips_what_rests_on_it() -> None:
    async def execute(step: Step, arguments: dict[str, Any]) -> str:
        await asyncio.sleep(0)
        if step.id == "bad":
            raise ValueError("no")
        return step.id

    results, failures = await run(
        plan(step("bad"), step("good"), step("after", "bad"), step("later", "after"), step("fine", "good")), execute
    )
    assert set(results) == {"good", "fine"}
    assert failures == ["bad"]


async def test_a_failure_keeps_its_cause_and_does_not_cause_itself() -> None:
    async def execute(step: Step, arguments: dict[str, Any]) -> None:
        if step.id == "own":
            raise StepFailed("inner", ValueError("deep"))
        raise ValueError("plain")

    failures = {failure.step: failure for failure in await run_steps(plan(step("own"), step("plain")), {}, execute)}
    assert isinstance(failures["plain"].__cause__, ValueError)
    assert isinstance(failures["own"].__cause__, StepFailed)
    assert failures["own"].__cause__.step == "inner"


async def test_a_reference_to_nothing_is_a_failure_of_the_step() -> None:
    async def execute(step: Step, arguments: dict[str, Any]) -> dict[str, int]:
        return {"a": 1}

    refers = Step("x", "f", {"value": From("s", ("b",))})
    failures = await run_steps(plan(step("s"), refers), {}, execute)
    assert str(failures[0]) == "Step x failed: there is nothing at $.b in s"


@pytest.mark.parametrize("count", [1, 3])
async def test_a_cancellation_cancels_all_that_was_started(count: int) -> None:
    started: list[str] = []
    cancelled: list[str] = []

    async def execute(step: Step, arguments: dict[str, Any]) -> None:
        started.append(step.id)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            cancelled.append(step.id)
            raise

    running = asyncio.create_task(run(plan(*(step(f"s{n}") for n in range(count)), step("last", "s0")), execute))
    while len(started) < count:
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert sorted(cancelled) == sorted(started) == [f"s{n}" for n in range(count)]
    assert len(asyncio.all_tasks()) == 1, "a task was left behind"


@pytest.mark.parametrize("held", [{"s0"}, {"s1"}, {"s0", "s1", "s2"}])
async def test_a_held_step_lets_what_runs_come_to_its_end_and_nothing_new_begin(held: set[str]) -> None:
    """A person may be asked for hours; what others did meanwhile is not to be done again."""
    ended: list[str] = []
    results: dict[str, Any] = {}

    async def execute(step: Step, arguments: dict[str, Any]) -> str:
        await asyncio.sleep(0)
        if step.id in held:
            raise PausedStep(step, RequireApproval("ask first"))
        for _ in range(5):
            await asyncio.sleep(0)
        ended.append(step.id)
        return step.id

    drawn = plan(step("s0"), step("s1"), step("s2"), *(step(f"after-{name}", name) for name in ("s0", "s1", "s2")))
    with pytest.raises(PausedStep, match="ask first"):
        await run_steps(drawn, results, execute)
    assert sorted(ended) == sorted(results) == sorted({"s0", "s1", "s2"} - held)
    assert len(asyncio.all_tasks()) == 1


async def test_what_is_broken_stops_all_at_once() -> None:
    stopped: list[str] = []

    async def execute(step: Step, arguments: dict[str, Any]) -> None:
        if step.id == "s0":
            await asyncio.sleep(0)
            raise Broken(OSError("the disk is full"))
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(step.id)

    with pytest.raises(Broken, match="disk is full"):
        await run(plan(step("s0"), step("s1"), step("s2"), step("last", "s0")), execute)
    assert sorted(stopped) == ["s1", "s2"]
    assert len(asyncio.all_tasks()) == 1


async def test_a_step_that_failed_before_is_not_run_again_nor_is_what_rests_on_it() -> None:
    async def execute(step: Step, arguments: dict[str, Any]) -> str:
        return step.id

    results: dict[str, Any] = {"a": 1}
    drawn = plan(step("a"), step("b"), step("on-b", "b"), step("on-a", "a"))
    assert await run_steps(drawn, results, execute, failed=["b"]) == []
    assert results == {"a": 1, "on-a": "on-a"}


async def test_a_chain_needs_no_task_of_its_own() -> None:
    async def execute(step: Step, arguments: dict[str, Any]) -> int:
        return len(asyncio.all_tasks())

    row = plan(step("s0"), *(step(f"s{n}", f"s{n - 1}") for n in range(1, 10)))
    results, _ = await run(row, execute)
    assert set(results.values()) == {1}


async def test_results_that_are_there_are_used() -> None:
    async def execute(step: Step, arguments: dict[str, Any]) -> Any:
        return arguments

    results, _ = await run(plan(Step("s2", "f", {"a": From("s1")})), execute, {"s1": 5})
    assert results == {"s1": 5, "s2": {"a": 5}}


async def test_a_thousand_steps_in_a_row_or_side_by_side() -> None:
    async def execute(step: Step, arguments: dict[str, Any]) -> int:
        return int(arguments.get("a", 0)) + 1

    row = plan(step("s0"), *(Step(f"s{n}", "f", {"a": From(f"s{n - 1}")}) for n in range(1, 1000)))
    results, _ = await run(row, execute)
    assert results["s999"] == 1000
    results, _ = await run(plan(*(step(f"s{n}") for n in range(1000))), execute)
    assert len(results) == 1000


def test_expressions_are_evaluated() -> None:
    results = {"a": {"days": [{"high": 3.5}, {"high": None}]}, "b": "text"}
    every = ObjectOf(
        {
            "value": Value({"from": "a"}),
            "list": ListOf((From("b"), From("a", ("days", -1, "high")))),
            "text": TextOf(("It is ", From("b"), ", ", From("a", ("days", 0)), ", ", Value(None), Value("é"))),
        }
    )
    assert evaluate(every, results) == {
        "value": {"from": "a"},
        "list": ["text", None],
        "text": 'It is text, {"high": 3.5}, nullé',
    }
    for wrong in (From("c"), From("b", ("x",)), TextOf((From("a", ("days", 2)),))):
        with pytest.raises(LookupError):
            evaluate(wrong, results)


@pytest.mark.parametrize("count", [1, 3])
async def test_a_step_that_is_cancelled_from_elsewhere_does_not_vanish(count: int) -> None:
    """The whole is cancelled then: nobody is told that all is done when it is not."""
    ended: list[str] = []

    async def execute(step: Step, arguments: dict[str, Any]) -> Any:
        if step.id == "s0":
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        try:
            await asyncio.sleep(30)
        finally:
            ended.append(step.id)

    async def whole() -> None:
        await run_steps(plan(*(step(f"s{number}") for number in range(count)), step("last", "s0")), {}, execute)

    running = asyncio.create_task(whole())
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 30)
    assert len(ended) == len(set(ended))
    assert "s0" in ended
    assert len(asyncio.all_tasks()) == 1


async def test_a_step_that_takes_no_notice_of_being_stopped_begins_nothing_more() -> None:
    begun: list[str] = []

    async def execute(step: Step, arguments: dict[str, Any]) -> Any:
        begun.append(step.id)
        if step.id == "broken":
            await asyncio.sleep(0)
            raise Broken(ValueError("stop"))
        if step.id == "stubborn":
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                await asyncio.sleep(0)
        return step.id

    after = [step(name, "stubborn") for name in ("x", "y", "z")]
    with pytest.raises(Broken, match="stop"):
        await run_steps(plan(step("stubborn"), step("broken"), *after), {}, execute)
    assert begun == ["stubborn", "broken"]
    assert len(asyncio.all_tasks()) == 1
