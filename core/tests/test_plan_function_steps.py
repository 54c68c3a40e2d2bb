"""The function of a plan as a step of another: its steps are journalled, held and gone on with like any others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from portico import Kernel, function
from portico._functions.middleware import FunctionInvocation, Middleware, PlanReview, RequireApproval, StepRun
from portico._plans.functions import plan_function, plan_of
from portico._plans.plan import From, Plan, PlanTemplate, Step, Value
from portico._plans.task import Answer, Budget
from portico._runs.journal import RunState
from portico._runs.outcome import Paused
from portico.errors import LimitExceeded, StepFailed
from portico_testkit.fakes.run_store import MemoryRunStore


class Deeds:
    """Counts what is done."""

    def __init__(self) -> None:
        self.done: list[str] = []

    @function
    async def look(self, at: str) -> str:
        """Look at something."""
        self.done.append(f"look {at}")
        return f"seen {at}"

    @function(effects=True)
    async def send(self, text: str) -> str:
        """Send something."""
        self.done.append(f"send {text}")
        return f"sent {text}"


REPORT = Plan(
    "Report on something",
    (
        Step("l", "D-look", {"at": From("input", ("what",))}),
        Step("s", "D-send", {"text": From("l")}),
        Step("m", "D-look", {"at": From("s")}),
    ),
    result=From("m"),
)
OUTER = Plan(
    "Report",
    (
        Step("r", "report", {"what": Value("sky")}),
        Step("t", PlanTemplate("{{report what='sea'}}!", "semantic-kernel"), {}, ("r",)),
    ),
    From("t"),
)
DONE = ["look sky", "send seen sky", "look sent seen sky", "look sea", "send seen sea", "look sent seen sea"]
SAID = "seen sent seen sea!"


def reporting(deeds: Deeds, store: MemoryRunStore | None = None, plan: Plan = REPORT, **options: Any) -> Kernel:
    kernel = Kernel(run_store=store, **options)
    kernel.add_plugin(deeds, "D")
    kernel.add_function(plan_function("report", plan))
    return kernel


async def cut_after(count: int) -> tuple[MemoryRunStore, str, list[Any]]:
    """Return the journal of a run that was killed after so many entries, and what came after them."""
    store = MemoryRunStore()
    run = (await reporting(Deeds(), store).run_plan(OUTER)).name
    entries = await store.read(run)
    store._entries[run] = store._entries[run][:count]
    return store, run, entries[count:]


async def test_killed_inside_of_it_nothing_is_done_twice() -> None:
    count, later = 2, [object()]
    while later:
        store, run, later = await cut_after(count)
        deeds = Deeds()
        kernel = reporting(deeds, store)
        ended = RunState.of(await store.read(run)).records
        before = [each for each in ended if each.step.function in ("D-look", "D-send")]
        if not later:
            break
        ended = await kernel.resume(run)
        if isinstance(ended.outcome, Paused):
            assert ended.outcome.uncertain
            assert ended.outcome.step in ("r/s", "t/1/s")
            ended = await kernel.resume(run, retry=[str(ended.outcome.step)])
        assert ended.outcome == Answer(SAID, value=SAID)
        assert deeds.done == DONE[len(before) :], f"after {count} entries"
        assert len(await store.runs()) == 1, "its run is that of the plan"
        count += 1
    assert count > 20


async def test_a_hold_inside_of_it_is_a_hold_of_the_run() -> None:
    store, deeds = MemoryRunStore(), Deeds()
    kernel = reporting(deeds, store)
    kernel.approve_effects()
    asked: list[str] = []
    ended = await kernel.run_plan(OUTER)
    while isinstance(ended.outcome, Paused):
        assert not ended.outcome.uncertain
        asked.append(str(ended.outcome.step))
        step = asked[-1]
        allowed = set(asked)

        async def decide(run: StepRun, allowed: set[str] = allowed) -> bool:
            return run.step.id in allowed

        kernel.middleware.step.clear()
        kernel.approve_effects(decide)
        assert len(asked) < 10, f"it is held at {step} again"
        ended = await kernel.resume(ended.name)
    assert ended.outcome == Answer(SAID, value=SAID)
    assert asked == ["r/s", "t/1/s"]
    assert deeds.done == DONE


async def test_its_plan_goes_through_the_plan_filters_once() -> None:
    store, deeds = MemoryRunStore(), Deeds()
    kernel = reporting(deeds, store)
    reviewed: list[str] = []

    async def review(
        review: PlanReview, proceed: Callable[[], Awaitable[RequireApproval | None]]
    ) -> RequireApproval | None:
        reviewed.append(review.plan.goal)
        return await proceed() if len(reviewed) != 2 else RequireApproval("look at it")

    async def hold(run: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        return RequireApproval("wait") if run.step.id == "r/s" and len(reviewed) == 3 else await proceed()

    kernel.middleware.plan.append(review)
    kernel.middleware.step.append(hold)
    ended = await kernel.run_plan(OUTER)
    assert ended.outcome == Paused("look at it", "r")
    assert deeds.done == []
    assert (await kernel.resume(ended.name)).outcome == Paused("wait", "r/s")
    kernel.middleware.step.clear()
    assert (await kernel.resume(ended.name)).outcome == Answer(SAID, value=SAID)
    assert reviewed == ["Report", "Report on something", "Report on something", "Report on something"]
    assert deeds.done == DONE


async def test_what_was_begun_is_gone_on_with_as_it_was() -> None:
    """Its plan was changed meanwhile: half of one and half of another is neither."""
    store, run, _ = await cut_after(5)
    assert [each.step.id for each in RunState.of(await store.read(run)).records] == ["r/l"]
    deeds = Deeds()
    short = Plan("Another", (Step("x", "D-look", {"at": From("input", ("what",))}),), From("x"))
    ended = await reporting(deeds, store, short).resume(run)
    assert isinstance(ended.outcome, Answer)
    assert ended.outcome.value == "seen sea!"
    assert "report: it has no effects any more" in ended.outcome.warnings[0]
    assert deeds.done == ["send seen sky", "look sent seen sky", "look sea"]


async def test_a_function_that_runs_no_plan_any_more_does_not_do_all_of_it_again() -> None:
    store, run, _ = await cut_after(9)
    deeds = Deeds()
    kernel = Kernel(run_store=store)
    kernel.add_plugin(deeds, "D")

    @function(effects=True)
    async def report(what: str) -> str:
        """Report on something."""
        deeds.done.append("all of it")
        return what

    kernel.add_function(report)
    with pytest.raises(StepFailed, match="Give its result"):
        await kernel.resume(run)
    assert deeds.done == []


async def test_its_steps_count_in_the_budget_of_the_run() -> None:
    deeds = Deeds()
    with pytest.raises(LimitExceeded, match="more than its 8 steps"):
        await reporting(deeds).run_plan(OUTER, budget=Budget(steps=8))
    assert len((await reporting(deeds).run_plan(OUTER, budget=Budget(steps=9))).steps) == 9


async def test_its_arguments_are_checked_and_its_failures_named() -> None:
    kernel = reporting(Deeds(), MemoryRunStore())
    kernel.add_function(plan_function("wrong", Plan("g", (Step("a", "D-nothing"),))))
    kernel.add_function(plan_function("broken", Plan("g", (Step("a", "D-look", {"at": From("input", ("x", "y"))}),))))
    with pytest.raises(StepFailed, match=r"Step s failed.*\n.*D-nothing"):
        await kernel.run_plan(Plan("g", (Step("s", "wrong"),)))
    with pytest.raises(StepFailed, match=r"there can be nothing at \$\.x\.y"):
        await kernel.run_plan(Plan("g", (Step("s", "broken", {"x": Value({"z": 1})}),)))


async def test_function_filters_are_around_it() -> None:
    seen: list[str] = []

    async def look(context: FunctionInvocation, proceed: Callable[[], Awaitable[Any]]) -> Any:
        seen.append(context.function.full_name)
        return await proceed()

    kernel = reporting(Deeds(), middleware=Middleware(function=[look]))
    await kernel.run_plan(OUTER)
    assert seen == ["report", "D-look", "D-send", "D-look"] * 2


async def test_code_that_calls_it_has_it_run_by_itself() -> None:
    """Only what a plan says is a step: a function that calls it three times is one."""
    store, deeds = MemoryRunStore(), Deeds()
    kernel = reporting(deeds, store)

    @function
    async def thrice() -> int:
        """Report three times."""
        for _ in range(3):
            await kernel.invoke("report", what="x")
        return 3

    kernel.add_function(thrice)
    run = await kernel.run_plan(Plan("g", (Step("s", "thrice"),), From("s")))
    assert [record.step.id for record in run.steps] == ["s"]
    assert len(await store.runs()) == 4


def test_an_object_that_has_a_plan_is_no_function_of_one() -> None:
    class Owner:
        plan = REPORT

        @function
        def say(self) -> str:
            """Say something."""
            return "something"

    kernel = Kernel()
    kernel.add_plugin(Owner(), "O")
    assert plan_of(kernel.function("O-say")) is None
