"""So many steps at a time, whoever asks; and nobody waits for ever."""

from __future__ import annotations

import asyncio

import pytest

from portico import From, Kernel, Plan, Step, Value, function
from portico.errors import StepFailed
from portico_local_runner.config import LocalRunnerSettings
from portico_local_runner.runner import LocalRunner


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
async def test_at_most_so_many_steps_run_at_a_time_of_all_pursuits(concurrency: int, most: int) -> None:
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
    pursuit = await asyncio.wait_for(kernel.run_plan(plan), 30)
    assert pursuit.outcome.value == "done"  # type: ignore[union-attr]


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
