"""A durable runner and a run: what is recorded is not done again, what cannot be recorded is done all the same."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from portico._functions.functions import function
from portico._functions.middleware import RequireApproval, StepRun
from portico._kernel import Kernel
from portico._plans.plan import From, Plan, PlanTemplate, Step, Value
from portico._plans.task import Answer, Event, RunEvent
from portico._runs.journal import RunState
from portico._runs.outcome import Paused
from portico.errors import RunError, ServiceUnavailable, StepFailed, StoreBusy, StoreError, StoreUnavailable
from portico_testkit.fakes.durable_runs import MemoryDurableRunner
from portico_testkit.fakes.planner import ScriptedPlanner
from portico_testkit.fakes.run_store import MemoryRunStore


class World:
    """What is done in it."""

    def __init__(self, kernel: Kernel | None = None) -> None:
        self.sent: list[str] = []
        self.kernel = kernel

    @function
    async def read(self, text: str = "") -> str:
        """Read something, as often as one likes."""
        self.sent.append(f"read {text}")
        return f"read {text}"

    @function(effects=True)
    async def send(self, text: str = "") -> str:
        """Send something, once."""
        self.sent.append(text)
        if text == "failing":
            raise ServiceUnavailable("down")
        return f"sent {text}"

    @function
    async def run_goal(self) -> str:
        """Run a goal of its own."""
        assert self.kernel is not None
        run = await self.kernel.run_goal("inside", planner=ScriptedPlanner(PLAN))
        return str(run.outcome)


class Runner(MemoryDurableRunner):
    """Tells what it was asked for."""

    def __init__(self, record: dict[str, dict[str, str]] | None = None) -> None:
        super().__init__(record=record)
        self.asked: list[str] = []

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        self.asked.append(name)
        return await super().execute(run, name, action)


def step(name: str, what: str = "send", *after: str) -> Step:
    return Step(name, f"W-{what}", {"text": Value(name)}, after)


PLAN = Plan("g", (step("a"), step("b", "read", "a")), From("b"))


def kernel_of(world: World, runner: Any = None, store: MemoryRunStore | None = None, **options: Any) -> Kernel:
    kernel = Kernel(run_store=MemoryRunStore() if store is None else store, runner=runner, **options)
    kernel.add_plugin(world, "W")
    world.kernel = kernel
    return kernel


async def cut_after(store: MemoryRunStore, run: str, count: int) -> MemoryRunStore:
    """Return what another process finds of a run when the first one ended so early."""
    left = MemoryRunStore()
    lease = await left.acquire(run, owner="before", seconds=1)
    await left.append(lease, (await store.read(run))[:count])
    await left.release(lease)
    return left


async def test_every_step_is_an_action_and_the_run_is_one() -> None:
    world, runner = World(), Runner()
    kernel = kernel_of(world, runner)
    planner = ScriptedPlanner(Plan("wrong", (Step("x", "W-nothing"),)), Plan("move", (step("a"),)), Answer("there"))
    run = await kernel.run_goal("g", planner=planner, run="r")
    assert run.outcome == Answer("there")
    assert runner.asked == ["a"]
    assert list(await runner.durable.recorded("r")) == runner.asked
    assert not runner.durable.is_run("r")


async def test_without_a_journal_nothing_is_recorded() -> None:
    """A run that cannot be gone on with needs no record, which might be of other steps of the same names."""
    world, runner = World(), Runner()
    kernel = Kernel(runner=runner)
    kernel.add_plugin(world, "W")
    assert (await kernel.run_goal("g", planner=ScriptedPlanner(PLAN), run="r")).outcome == Answer(
        "read b", value="read b"
    )
    assert runner.asked == ["a", "b"], "the runner executes steps, as any does"
    assert not runner.durable.record


async def test_a_run_that_a_step_makes_is_part_of_that_step() -> None:
    world, runner = World(), Runner()
    kernel = kernel_of(world, runner)
    await kernel.run_plan(Plan("g", (Step("p", "W-run_goal"),), From("p")), run="r")
    assert set(runner.durable.record) == {"r"}
    assert list(await runner.durable.recorded("r")) == ["p"]


async def test_a_step_that_is_on_record_is_finished_with_that_result() -> None:
    first = World()
    runner, store = Runner(), MemoryRunStore()
    await kernel_of(first, runner, store).run_plan(PLAN, run="r")
    del runner.durable.record["r"]["b"]
    world, left = World(), await cut_after(store, "r", 3)
    kernel = kernel_of(world, Runner(runner.durable.record), left)
    assert RunState.of(await left.read("r")).uncertain == ("a",)
    events: list[RunEvent] = []
    run = await kernel.resume("r", emit=events.append)
    assert run.outcome == Answer("read b", value="read b")
    assert world.sent == ["read b"]
    written = [(each["type"], each.get("step"), each.get("recorded")) for each in await left.read("r")]
    assert written[2:] == [
        ("step-started", "a", None),
        ("resumed", None, None),
        ("step-finished", "a", True),
        ("step-started", "b", None),
        ("step-finished", "b", None),
        ("outcome", None, None),
    ]
    assert [event.step.id for event in events if isinstance(event, Event.StepStarted)] == ["a", "b"]


@pytest.mark.parametrize("given", [{"retry": ["a"]}, {"results": {"a": "sent by hand"}}])
async def test_a_step_that_is_on_record_has_finished_whatever_a_person_thinks(given: dict[str, Any]) -> None:
    runner, store = Runner(), MemoryRunStore()
    await kernel_of(World(), runner, store).run_plan(PLAN, run="r")
    left, world = await cut_after(store, "r", 3), World()
    with pytest.raises(RunError, match="The step a has finished"):
        await kernel_of(world, runner, left).resume("r", **given)
    assert world.sent == []
    assert len(await left.read("r")) == 3, "nothing was written"


async def test_a_step_that_is_on_record_needs_its_function_no_more() -> None:
    """Its plan can be gone on with where only the function of that step is gone."""
    runner, store = Runner(), MemoryRunStore()
    await kernel_of(World(), runner, store).run_plan(PLAN, run="r")
    left = await cut_after(store, "r", 3)

    class Less:
        @function
        async def read(self, text: str = "") -> str:
            """Read something, as often as one likes."""
            return f"read {text}"

    kernel = Kernel(run_store=left, runner=Runner(runner.durable.record))
    kernel.add_plugin(Less(), "W")
    assert (await kernel.resume("r")).outcome == Answer("read b", value="read b")


@pytest.mark.parametrize("inside", ["nested", "template"])
async def test_steps_inside_of_others_are_taken_from_the_record_too(inside: str) -> None:
    within: Plan | PlanTemplate = Plan("inner", (step("a"),), From("a"))
    if inside == "template":
        within = PlanTemplate("{{W.send text='a'}}", "semantic-kernel")
    plan = Plan("outer", (Step("n", within), step("b", "read", "n")), From("n"))
    runner, store = Runner(), MemoryRunStore()
    whole = await kernel_of(World(), runner, store).run_plan(plan, run="r")
    entries = await store.read("r")
    began = next(
        place for place, each in enumerate(entries, 1) if each.get("step") in ("n/a", "n/1") and "effects" in each
    )
    left, world = await cut_after(store, "r", began), World()
    assert RunState.of(await left.read("r")).uncertain
    run = await kernel_of(world, Runner(runner.durable.record), left).resume("r")
    assert (run.outcome, world.sent) == (whole.outcome, [])
    assert [each["step"] for each in await left.read("r") if each.get("recorded")] == [
        next(iter(runner.durable.record["r"]))
    ]


async def test_a_filter_sees_a_recorded_result_as_it_saw_the_first() -> None:
    """What it makes of a result is not recorded: it makes it again."""
    seen: list[Any] = []

    async def loud(context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        result = await proceed()
        seen.append(result)
        return result.upper()

    runner, store = Runner(), MemoryRunStore()
    kernel = kernel_of(World(), runner, store)
    kernel.middleware.step.append(loud)
    whole = await kernel.run_plan(Plan("g", (step("a"),), From("a")), run="r")
    assert whole.outcome == Answer("SENT A", value="SENT A")
    left, world = await cut_after(store, "r", 3), World()
    kernel = kernel_of(world, Runner(runner.durable.record), left)
    kernel.middleware.step.append(loud)
    assert (await kernel.resume("r")).outcome == whole.outcome
    assert (world.sent, seen) == ([], ["sent a", "sent a"])


async def test_a_recorded_step_that_a_filter_holds_waits_with_its_result() -> None:
    runner, store = Runner(), MemoryRunStore()
    await kernel_of(World(), runner, store).run_plan(PLAN, run="r")
    left, world = await cut_after(store, "r", 3), World()
    kernel = kernel_of(world, Runner(runner.durable.record), left)
    holding = [True]

    async def hold(context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        return RequireApproval("look at it") if holding[0] else await proceed()

    kernel.middleware.step.append(hold)
    assert (await kernel.resume("r")).outcome == Paused("look at it", "a")
    holding.clear()
    holding.append(False)
    assert (await kernel.resume("r")).outcome == Answer("read b", value="read b")
    assert "a" not in world.sent


async def test_a_filter_that_proceeds_again_has_the_step_executed_again() -> None:
    """Each time is an action of its own, also for a process that goes on."""

    async def thrice(context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        return [await proceed() for _ in range(3)]

    runner, store, world = Runner(), MemoryRunStore(), World()
    kernel = kernel_of(world, runner, store)
    kernel.middleware.step.append(thrice)
    plan = Plan("g", (step("a", "read"),), From("a"))
    whole = await kernel.run_plan(plan, run="r")
    assert (world.sent, runner.asked) == (["read a"] * 3, ["a", "a//2", "a//3"])
    del runner.durable.record["r"]["a//3"]
    left, world = await cut_after(store, "r", 3), World()
    kernel = kernel_of(world, again := Runner(runner.durable.record), left)
    kernel.middleware.step.append(thrice)
    assert (await kernel.resume("r")).outcome == whole.outcome
    assert (world.sent, again.asked) == (["read a"], ["a//2", "a//3"])


async def test_a_step_that_failed_is_executed_again_when_a_person_asks() -> None:
    runner, world = Runner(), World()
    kernel = kernel_of(world, runner)
    plan = Plan("g", (Step("a", "W-send", {"text": Value("failing")}),), From("a"))
    with pytest.raises(StepFailed):
        await kernel.run_plan(plan, run="r")
    with pytest.raises(StepFailed):
        await kernel.resume("r", retry=["a"])
    assert (world.sent, runner.asked) == (["failing"] * 2, ["a", "a"])


class Shaky(Runner):
    """Fails where it is told to: before an action, or after it."""

    def __init__(self, when: str, error: Exception) -> None:
        super().__init__()
        self.when = when
        self.error = error

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        if self.when == "before":
            raise self.error
        await super().execute(run, name, action)
        raise self.error


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_runner_that_is_away_costs_the_record_only(when: str) -> None:
    world = World()
    kernel = kernel_of(world, Shaky(when, StoreUnavailable("The server restarts.")))
    planner = ScriptedPlanner(PLAN)
    assert (await kernel.run_goal("g", planner=planner)).outcome == Answer("read b", value="read b")
    assert world.sent == ["a", "read b"], "each once"
    assert len(planner.tasks) == 1


@pytest.mark.parametrize("error", [StoreError("no"), StoreBusy("another has it")])
async def test_what_is_done_counts_though_the_runner_could_not_record_it(error: Exception) -> None:
    world = World()
    assert (await kernel_of(world, Shaky("after", error)).run_plan(PLAN)).outcome == Answer("read b", value="read b")
    assert world.sent == ["a", "read b"]


@pytest.mark.parametrize("error", [StoreError("no"), StoreBusy("another has it"), ValueError("what?")])
async def test_a_runner_that_refuses_is_a_failure(error: Exception) -> None:
    world = World()
    with pytest.raises(StepFailed, match=str(error)):
        await kernel_of(world, Shaky("before", error)).run_plan(PLAN)
    assert world.sent == []


async def test_what_an_action_raises_of_a_store_of_its_own_is_its_failure() -> None:
    class Own:
        calls = 0

        @function
        async def look(self) -> str:
            """Look into a store."""
            Own.calls += 1
            raise StoreUnavailable("The function's own store is away.")

    kernel = Kernel(run_store=MemoryRunStore(), runner=Runner())
    kernel.add_plugin(Own(), "O")
    with pytest.raises(StepFailed, match="function's own store"):
        await kernel.run_plan(Plan("g", (Step("s", "O-look"),)))
    assert Own.calls == 1


async def test_a_record_that_cannot_be_read_leaves_the_run_as_it_is() -> None:
    runner, store = Runner(), MemoryRunStore()
    await kernel_of(World(), runner, store).run_plan(PLAN, run="r")
    left, world = await cut_after(store, "r", 3), World()

    async def away(run: str) -> Mapping[str, Any]:
        raise StoreUnavailable("The server restarts.")

    runner.durable.recorded = away  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable):
        await kernel_of(world, runner, left).resume("r")
    assert (world.sent, len(await left.read("r"))) == ([], 3)
    assert left.holder("r") is None


async def test_a_run_without_an_open_step_is_gone_on_with_whatever_is_recorded() -> None:
    runner, store = Runner(), MemoryRunStore()
    await kernel_of(World(), runner, store).run_plan(PLAN, run="r")

    async def away(run: str) -> Mapping[str, Any]:
        raise StoreUnavailable("The server restarts.")

    runner.durable.recorded = away  # type: ignore[method-assign]
    left = await cut_after(store, "r", 4)
    assert (await kernel_of(World(), runner, left).resume("r")).outcome == Answer("read b", value="read b")


async def test_a_run_that_is_cancelled_inside_of_its_record_is_interrupted() -> None:
    class Waiting:
        @function
        async def wait(self) -> None:
            """Wait for ever."""
            await asyncio.Event().wait()

    runner, store = Runner(), MemoryRunStore()
    kernel = Kernel(run_store=store, runner=runner)
    kernel.add_plugin(Waiting(), "T")
    running = asyncio.create_task(kernel.run_plan(Plan("g", (Step("s", "T-wait"),)), run="r"))
    while not runner.durable.is_run("r") or not runner.asked:
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not runner.durable.is_run("r")
    assert RunState.of(await store.read("r")).state == "interrupted"
    assert runner.durable.record == {}
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize("moments", range(12))
async def test_a_held_run_that_is_not_gone_on_with_after_all_stays_held(moments: int) -> None:
    """Who is cancelled while it looks whether it can has changed nothing."""
    runner, store = Runner(), MemoryRunStore()
    kernel = kernel_of(World(), runner, store)

    async def hold(context: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        return RequireApproval("look at it")

    kernel.middleware.step.append(hold)
    await kernel.run_plan(PLAN, run="r")
    running = asyncio.create_task(kernel.resume("r"))
    for _ in range(moments):
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    types = [each["type"] for each in await store.read("r")]
    assert types.count("interrupted") <= types.count("resumed")
    assert store.holder("r") is None
