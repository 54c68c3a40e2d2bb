"""So many steps at a time, whoever asks; and nobody waits for ever."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given, settings, strategies as st
from tests.support.virtual_time import on_virtual_time

from portico import From, Kernel, Plan, Step, Value, function
from portico.errors import StepFailed
from portico.plans import Answer, ListOf, PlanTemplate, plan_function
from portico.plugins import RunState
from portico_basics.config import LocalRunnerSettings
from portico_basics.local_runner.runner import LocalRunner
from portico_testkit.fakes.run_store import MemoryRunStore


class Counter:
    def __init__(self) -> None:
        self.running = 0
        self.most = 0

    @function
    async def work(self) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        for _ in range(5):
            await asyncio.sleep(0)
        self.running -= 1


def kernel_of(concurrency: int) -> Kernel:
    return Kernel(runner=LocalRunner(LocalRunnerSettings(concurrency=concurrency)))


@pytest.mark.parametrize(("concurrency", "most"), [(1, 1), (3, 3), (50, 20)])
async def test_at_most_so_many_steps_run_at_a_time_of_all_runs(concurrency: int, most: int) -> None:
    kernel, counter = kernel_of(concurrency), Counter()
    kernel.add_plugin(counter, "C")
    plan = Plan("g", tuple(Step(f"s{number}", "C-work") for number in range(10)))
    await asyncio.gather(kernel.run_plan(plan), kernel.run_plan(plan))
    assert counter.most == most


async def test_nested_plans_and_functions_that_run_plans_do_not_wait_for_their_own_place() -> None:
    kernel, counter = kernel_of(1), Counter()
    kernel.add_plugin(counter, "C")

    @function
    async def own() -> str:
        inner = await kernel.run_plan(Plan("inner", (Step("w", "C-work"),), Value("done")))
        return str(inner.outcome.value)  # type: ignore[union-attr]

    kernel.add_function(own)
    nested = Plan("n", (Step("a", "C-work"), Step("b", "C-work")))
    plan = Plan("g", (Step("own", "own"), Step("n", nested)), From("own"))
    run = await asyncio.wait_for(kernel.run_plan(plan), 30)
    assert run.outcome.value == "done"  # type: ignore[union-attr]


@on_virtual_time
async def test_waiting_for_a_place_is_not_part_of_a_steps_time() -> None:
    kernel = kernel_of(1)

    @function
    async def nap() -> None:
        await asyncio.sleep(0.05)

    kernel.add_function(nap)
    steps = tuple(Step(f"s{number}", "nap", seconds=2) for number in range(4))
    await kernel.run_plan(Plan("g", steps))
    with pytest.raises(StepFailed, match=r"did not end within its 0\.01 seconds"):
        await kernel.run_plan(Plan("g", (Step("s", "nap", seconds=0.01),)))


def test_it_serves_one_event_loop_after_the_other() -> None:
    kernel, counter = kernel_of(1), Counter()
    kernel.add_plugin(counter, "C")
    plan = Plan("g", (Step("a", "C-work"), Step("b", "C-work")))
    for _ in range(2):
        kernel.run_sync(kernel.run_plan(plan))


@pytest.mark.parametrize("wrong", [0, -1, 10_001])
def test_a_concurrency_that_makes_no_sense_is_refused(wrong: int) -> None:
    with pytest.raises(ValueError, match="concurrency"):
        LocalRunnerSettings(concurrency=wrong)


class Delayed:
    """Works for as many turns of the loop as chance says, never more than so many of it at a time."""

    def __init__(self, chance: random.Random, most: int) -> None:
        self.chance = chance
        self.most = most
        self.running = 0

    @function
    async def work(self, name: str, after: list[str]) -> str:
        """Say what came before."""
        self.running += 1
        assert self.running <= self.most, f"{self.running} steps run at a time, and {self.most} may"
        for _ in range(self.chance.randrange(5)):
            await asyncio.sleep(0)
        self.running -= 1
        return f"{name}({','.join(after)})"


def some_plan(chance: random.Random, depth: int = 0) -> Plan:
    """Make a plan of functions, nested plans, functions of plans and templates, some of them side by side."""
    steps: list[Step] = []
    for number in range(chance.randint(1, 7 if depth == 0 else 3)):
        id = f"s{number}"
        earlier = [step.id for step in steps]
        before = tuple(chance.sample(earlier, min(len(earlier), chance.randint(0, 2))))
        match chance.choice(["work", "work", "nested", "both", "template"]) if depth < 2 else "work":
            case "nested":
                steps.append(Step(id, some_plan(chance, depth + 1), {}, before))
            case "both":
                steps.append(Step(id, "both", {"name": Value(id)}, before))
            case "template":
                calls = "{{D.work name='x' after='[]'}}{{both name='y'}}"
                steps.append(Step(id, PlanTemplate(calls, "semantic-kernel"), {}, before))
            case _:
                texts = {step.id for step in steps if step.function == "D-work"}
                after = ListOf(tuple(From(step) for step in before if step in texts))
                steps.append(Step(id, "D-work", {"name": Value(id), "after": after}, before))
    return Plan("all", tuple(steps), ListOf(tuple(From(step.id) for step in steps)))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 6))
def test_the_results_are_the_same_however_many_steps_run_at_a_time(seed: int, concurrency: int) -> None:
    plan = some_plan(random.Random(seed))

    async def run(most: int, chance: int, store: MemoryRunStore | None = None) -> tuple[object, dict[str, object]]:
        kernel = Kernel(runner=LocalRunner(LocalRunnerSettings(concurrency=most)), run_store=store)
        kernel.add_plugin(Delayed(random.Random(chance), most), "D")
        inner = [Step(id, "D-work", {"name": From("input", ("name",)), "after": Value([id])}) for id in ("a", "b")]
        kernel.add_function(plan_function("both", Plan("both", tuple(inner), ListOf((From("a"), From("b"))))))
        ended = await asyncio.wait_for(kernel.run_plan(plan), 60)
        assert isinstance(ended.outcome, Answer)
        if store is not None:
            state = RunState.of(await store.read(ended.name))
            assert [record.step.id for record in state.records] == [record.step.id for record in ended.steps]
        assert len(asyncio.all_tasks()) == 1
        return ended.outcome.value, {record.step.id: record.result for record in ended.steps}

    value, results = asyncio.run(run(concurrency, seed, MemoryRunStore()))
    # The calls of a template are numbered in the order in which they are made, which is the same each time.
    assert asyncio.run(run(1, 0)) == (value, results)
    assert asyncio.run(run(10_000, seed + 1)) == (value, results)
