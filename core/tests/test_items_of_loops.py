"""What becomes of the items of a loop: held, failed, resumed, counted, and stopped by what runs beside them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.virtual_time import on_virtual_time

from portico._functions.functions import function
from portico._functions.middleware import RequireApproval, StepRun, current_step
from portico._kernel import Kernel
from portico._plans.functions import plan_function
from portico._plans.plan import Each, From, Plan, PlanTemplate, Step, TextOf, Value
from portico._plans.task import Answer, Budget, Event, RunEvent
from portico._ports.run_store import Lease
from portico._runs.journal import RunState, entry
from portico._runs.outcome import Paused
from portico.errors import LimitExceeded, RunError, ServiceUnavailable, StepFailed, StoreDamaged, StoreError
from portico_testkit.fakes.planner import ScriptedPlanner
from portico_testkit.fakes.run_store import MemoryRunStore


class World:
    """Functions that are called for items."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.bad: set[int] = {13}
        self.cut: list[int] = []

    @function
    async def double(self, x: int) -> int:
        """Double a number."""
        self.calls.append(str(getattr(current_step(), "step", "")))
        if x in self.bad:
            raise ValueError("unlucky")
        return 2 * x

    @function(effects=True)
    async def send(self, x: int) -> str:
        """Send a number."""
        self.calls.append(str(getattr(current_step(), "step", "")))
        return f"sent {x}"

    @function
    async def slow(self, x: int) -> int:
        """Take so many seconds."""
        try:
            await asyncio.sleep(x)
        except asyncio.CancelledError:
            self.cut.append(x)
            raise
        return x

    @function
    async def down(self, x: int) -> int:
        """Fail in a way that may pass."""
        raise ServiceUnavailable("down")

    @function
    def leave(self, x: int) -> int:
        """End the process."""
        raise SystemExit(3)


FIRST = Step("a", "W-double", {"x": From("input", ("x",))})
NESTED = Plan("Both", (FIRST, Step("b", "W-double", {"x": From("a")})), From("b"))


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def store() -> MemoryRunStore:
    return MemoryRunStore()


@pytest.fixture
def kernel(world: World, store: MemoryRunStore) -> Kernel:
    kernel = Kernel(run_store=store)
    kernel.add_plugin(world, "W")
    kernel.add_function(plan_function("both", NESTED))
    return kernel


def loop(id: str, called: str | Plan | PlanTemplate, items: list[Any], **options: Any) -> Step:
    return Step(id, called, {"x": From("item")}, each=Each(Value(items), **options))


def plan(*steps: Step) -> Plan:
    return Plan("g", steps, From(steps[-1].id))


def hold_once(kernel: Kernel, *ids: str) -> None:
    """Have the middleware hold these steps, each the first time."""
    held: list[str] = []

    async def ask(context: StepRun, proceed: Any) -> Any:
        if context.step.id in ids and context.step.id not in held:
            held.append(context.step.id)
            return RequireApproval("wait")
        return await proceed()

    kernel.middleware.step.append(ask)


async def held(kernel: Kernel, *steps: Step, at: str, **options: Any) -> None:
    hold_once(kernel, at)
    outcome = (await kernel.run_plan(plan(*steps), run="r", **options)).outcome
    assert isinstance(outcome, Paused)
    assert outcome.step == at


async def value(kernel: Kernel, **options: Any) -> Any:
    outcome = (await kernel.resume("r", **options)).outcome
    assert isinstance(outcome, Answer)
    return outcome.value


# How they count


@pytest.mark.parametrize("called", ["W-double", "both", NESTED])
async def test_items_that_ran_before_a_resume_are_no_steps_of_the_budget(kernel: Kernel, called: str | Plan) -> None:
    await held(kernel, loop("s1", called, list(range(14, 34))), Step("s2", "W-send", {"x": Value(1)}, ("s1",)), at="s2")
    assert await value(kernel, budget=Budget(steps=2)) == "sent 1"


async def test_items_that_ran_are_no_steps_of_the_budget_for_the_next_plan(kernel: Kernel) -> None:
    left: list[Budget] = []

    def second(task: Any) -> Plan:
        left.append(task.budget)
        return plan(Step("s2", "W-send", {"x": Value(1)}))

    first = Plan("g", (loop("s1", NESTED, [1, 2, 3]),))
    run = await kernel.run_goal("g", planner=ScriptedPlanner(first, second), budget=Budget(steps=2, items=20))
    assert run.outcome.value == "sent 1"
    assert (left[0].steps, left[0].items) == (1, 11)


@pytest.mark.parametrize("called", ["both", NESTED, PlanTemplate("{{W.double $x}}{{W.double $x}}", "semantic-kernel")])
async def test_the_steps_inside_of_items_count_with_the_items(
    kernel: Kernel, called: str | Plan | PlanTemplate
) -> None:
    steps = plan(loop("s1", called, [1, 2, 3]))
    assert isinstance((await kernel.run_plan(steps, budget=Budget(steps=1, items=9))).outcome, Answer)
    with pytest.raises((LimitExceeded, StepFailed), match="Allow more with the budget's items"):
        await kernel.run_plan(steps, budget=Budget(steps=1, items=8))


async def test_a_loop_that_was_refused_counts_for_nothing(kernel: Kernel) -> None:
    plans = (Plan("g", (loop("s1", "W-double", [1] * 6),)), plan(loop("s2", "W-double", [1] * 5)))
    run = await kernel.run_goal("g", planner=ScriptedPlanner(*plans), budget=Budget(items=5))
    assert run.outcome.value == [2] * 5
    error = next(record.error for record in run.steps if record.step.id == "s1")
    assert str(error).startswith("The step s1 needs 6 items, and the run has 5 of 5 left. Allow more with")


async def test_items_that_ran_before_a_resume_count(kernel: Kernel) -> None:
    steps = (loop("s1", "W-double", [1, 2, 3]), loop("s2", "W-double", [4, 5, 6]))
    await held(kernel, *steps, at="s2[0]", budget=Budget(items=6))
    assert await value(kernel) == [8, 10, 12]
    hold_once(kernel, "s2[1]")
    await kernel.run_plan(plan(*steps), run="r2", budget=Budget(items=6))
    with pytest.raises(StepFailed, match="needs 2 items, and the run has 1 of 5 left"):
        await kernel.resume("r2", budget=Budget(items=5))


async def test_a_budget_of_fewer_than_no_items_is_refused(kernel: Kernel) -> None:
    with pytest.raises(ValueError, match="the budget's items are -5"):
        await kernel.run_plan(plan(loop("s1", "W-double", [1])), budget=Budget(items=-5))


# What a person gives, and what runs again


async def test_a_held_item_can_be_given_its_result(kernel: Kernel, world: World) -> None:
    await held(kernel, loop("s1", "W-send", [1, 2]), at="s1[0]")
    with pytest.raises(RunError, match=r"given for s1\[0\] does not fit W-send: .*expected string"):
        await kernel.resume("r", results={"s1[0]": 3})
    assert await value(kernel, results={"s1[0]": "by hand"}) == ["by hand", "sent 2"]
    assert world.calls == ["s1[1]"]


async def test_a_held_step_inside_of_an_item_can_be_given_its_result(kernel: Kernel) -> None:
    await held(kernel, loop("s1", NESTED, [1, 2]), at="s1[1]/a")
    assert await value(kernel, results={"s1[1]/a": 50}) == [4, 100]


@pytest.mark.parametrize("given", [{"retry": ["s1[1]"]}, {"results": {"s1[1]": 5}}])
async def test_an_item_whose_arguments_could_not_be_made_is_named_and_can_be_mended(
    kernel: Kernel, given: dict[str, Any]
) -> None:
    step = Step("s1", "W-double", {"x": From("item", ("n",))}, each=Each(Value([{"n": 1}, {}, {"n": 3}])))
    with pytest.raises(StepFailed, match=r"Step s1\[1\] failed: there is nothing at"):
        await kernel.run_plan(plan(step), run="r")
    if "retry" in given:
        with pytest.raises(StepFailed, match=r"Step s1\[1\] failed: there is nothing at"):
            await kernel.resume("r", **given)
    else:
        assert await value(kernel, **given) == [2, 5, 6]


async def test_a_result_for_the_whole_loop_is_checked_as_a_list(kernel: Kernel) -> None:
    await held(kernel, loop("s1", "W-send", [1, 2]), at="s1[0]")
    with pytest.raises(RunError, match=r"given for s1 does not fit what the step gives: .*expected array"):
        await kernel.resume("r", results={"s1": "a"})
    assert await value(kernel, results={"s1": ["a", "b"]}) == ["a", "b"]


async def test_an_item_that_there_is_not_is_refused(kernel: Kernel) -> None:
    second = Step("s2", "W-send", {"x": From("item")}, ("s1",), each=Each(Value([1])))
    await held(kernel, loop("s1", "W-send", [1, 2]), second, at="s1[0]")
    for id, why in {
        "s1[2]": "The step s1 runs for 2 items: there is no s1[2].",
        "s2[0]": "The step s2 has not begun: it is not known whether there will be s2[0].",
        "s1[0][0]": "The run has no step 's1[0][0]'. It has s1, s2.",
        "s1[x]": "The run has no step 's1[x]'. It has s1, s2.",
    }.items():
        with pytest.raises(RunError) as caught:
            await kernel.resume("r", results={id: "x"})
        assert str(caught.value) == why


@pytest.mark.parametrize("given", [{"retry": ["s1[1]"]}, {"results": {"s1[1]": 5}}])
async def test_an_item_that_failed_in_a_loop_that_is_over_is_not_silently_lost(kernel: Kernel, given: Any) -> None:
    await held(
        kernel, loop("s1", "W-double", [1, 13], failed="skip"), Step("s2", "W-double", {"x": From("s1", (0,))}), at="s2"
    )
    with pytest.raises(RunError, match=r"The step s1 has finished without s1\[1\]: nothing would use a result of it\."):
        await kernel.resume("r", **given)


# Failures


@pytest.mark.parametrize("most", [1, 2])
async def test_what_ends_the_process_ends_it_in_an_item_too(kernel: Kernel, most: int) -> None:
    with pytest.raises(SystemExit):
        await kernel.run_plan(plan(loop("s1", "W-leave", [1, 2, 3], at_once=most)))


async def test_no_item_begins_beside_one_that_failed_at_once(world: World) -> None:
    kernel = Kernel()
    kernel.add_plugin(world, "W")
    step = Step("s1", "W-send", {"x": From("item", ("n",))}, each=Each(Value([{}, {"n": 1}, {"n": 2}]), 3))
    with pytest.raises(StepFailed, match=r"s1\[0\]"):
        await kernel.run_plan(plan(step))
    assert not world.calls


@on_virtual_time
async def test_an_error_of_the_listener_stops_the_items_beside() -> None:
    kernel, world = Kernel(), World()
    kernel.add_plugin(world, "W")

    def listen(event: RunEvent) -> None:
        if isinstance(event, Event.StepFinished):
            raise RuntimeError("no room")

    with pytest.raises(RuntimeError, match="no room"):
        await kernel.run_plan(plan(loop("s1", "W-slow", [1, 900], at_once=2)), emit=listen)
    assert world.cut == [900]


async def test_the_limit_of_a_run_is_no_failure_to_skip(kernel: Kernel) -> None:
    texts = Each(Value(["x" * 400_000] * 200), 10, "skip")
    kernel.add_function(length)
    step = Step("s1", "length", {"text": TextOf(("Mail: ", From("item")))}, each=texts)
    with pytest.raises(StepFailed, match="put together at most 32,000,000 bytes"):
        await kernel.run_plan(plan(step))
    inner = Plan("", (Step("a", "W-double", {"x": From("item")}, each=Each(From("input", ("x",)))),), From("a"))
    with pytest.raises(StepFailed, match=r"The step s1\[1\]/a needs 9 items"):
        await kernel.run_plan(plan(loop("s1", inner, [[1], [2] * 9], failed="skip")), budget=Budget(items=10))


@function
def length(text: str) -> int:
    """Count letters."""
    return len(text)


async def test_an_item_that_failed_has_a_chain_of_causes_that_ends(kernel: Kernel) -> None:
    with pytest.raises(StepFailed) as caught:
        await kernel.run_plan(plan(loop("s1", NESTED, [1, 13])))
    causes: list[BaseException] = []
    error: BaseException | None = caught.value
    while error is not None and len(causes) < 9:
        causes.append(error)
        error = error.__cause__
    assert [type(each).__name__ for each in causes] == ["StepFailed"] * 3 + ["FunctionFailed", "ValueError"]
    assert str(caught.value).startswith("Step s1[1]/a failed: ")


@pytest.mark.parametrize("called", ["W-down", Plan("", (Step("a", "W-down", {"x": Value(1)}),), From("a"))])
async def test_a_service_that_is_away_is_a_failure_that_may_pass_in_an_item_too(
    kernel: Kernel, store: MemoryRunStore, called: str | Plan
) -> None:
    with pytest.raises(StepFailed, match="down"):
        await kernel.run_plan(plan(loop("s1", called, [1])), run="r")
    assert RunState.of(await store.read("r")).passing


async def test_after_a_resume_the_failure_is_that_of_the_step_that_failed_and_not_of_a_skipped_item(
    kernel: Kernel,
) -> None:
    steps = (loop("a", "W-double", [1, 13], failed="skip"), Step("b", "W-down", {"x": Value(1)}, ("a",)))
    for _ in range(2):
        with pytest.raises(StepFailed, match=r"^Step p/b failed: down$"):
            await (kernel.resume("r") if _ else kernel.run_plan(plan(Step("p", plan(*steps))), run="r"))


async def test_equal_reasons_are_said_once(kernel: Kernel) -> None:
    outcome = (await kernel.run_plan(plan(loop("s1", "W-double", [13, 1, 13], failed="skip")))).outcome
    (warning,) = outcome.warnings
    why = "The function W-double failed: ValueError: unlucky"
    assert warning == f"2 items of the step s1 failed, and their results are null: s1[0], s1[2]: {why}"


# The journal


class Narrow(MemoryRunStore):
    """Takes no entry of more than 5,000 characters."""

    async def append(self, lease: Lease, entries: Any) -> None:
        if any(len(str(entry)) > 5_000 for entry in entries):
            raise StoreError("too long")
        await super().append(lease, entries)


async def test_the_end_of_a_loop_does_not_repeat_what_is_on_record() -> None:
    kernel = Kernel(run_store=Narrow())

    @function
    def text(x: int) -> str:
        return "x" * 900

    kernel.add_function(text)
    kernel.add_function(length)
    steps = (loop("s1", "text", list(range(10))), Step("s2", "length", {"text": From("s1", (9,))}, ("s1",)))
    await held(kernel, *steps, at="s2")
    assert await value(kernel) == 900
    assert kernel.run_store is not None
    written = [dict(each) for each in await kernel.run_store.read("r")]
    (end,) = (each for each in written if each["type"] == "step-finished" and each["step"] == "s1")
    assert (end["items"], "result" in end) == (10, False)
    old = [each if each is not end else {**end, "result": ["y"] * 10} for each in written]
    old = [{name: part for name, part in each.items() if name != "items"} if "result" in each else each for each in old]
    assert RunState.of(old).results["s1"] == ["y"] * 10
    with pytest.raises(StoreDamaged):
        RunState.of([{**each, "items": 11} if each is end else each for each in written])


@pytest.mark.parametrize("deep", ["[0]", "/0"])
def test_an_id_of_any_depth_in_a_damaged_journal_is_damage(deep: str) -> None:
    written = {"version": 1, "goal": "g", "steps": [{"id": "s1", "function": "f"}]}
    begun = entry("step-started", step="s1" + deep * 3_000, arguments={})
    with pytest.raises(StoreDamaged, match="Entry 3"):
        RunState.of([entry("pursuit", goal="g", planner="plan"), entry("plan", plan=written), begun])


@on_virtual_time
async def test_the_passages_of_a_loop_are_numbered_in_the_order_of_its_items() -> None:
    @function(tags={"search"})
    async def find(x: int) -> list[dict[str, str]]:
        await asyncio.sleep(9 - x)
        return [{"value": f"about {x}", "name": str(x), "link": f"http://x/{x}"}]

    kernel = Kernel()
    kernel.add_function(find)
    run = await kernel.run_plan(plan(loop("s1", "find", [1, 2, 3], at_once=3)))
    assert [each.name for each in run.passages] == ["1", "2", "3"]
