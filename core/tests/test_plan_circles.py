"""Plans that call each other in a circle: stopped by the run, and said once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import example, given, strategies as st

from portico import Kernel, function
from portico._functions.middleware import RequireApproval, StepRun
from portico._plans.functions import plan_function
from portico._plans.plan import From, Plan, PlanTemplate, Step, Value
from portico._plans.task import Answer, Budget, Event
from portico.errors import PlanError, StepFailed
from portico_testkit.fakes.run_store import MemoryRunStore

Calls = Mapping[str, Sequence[tuple[str, str]]]
"""What each plan calls, and how: by a step, by a step of a nested plan, or in a template."""

NAMES = "abcde"
calls = st.dictionaries(
    st.sampled_from(NAMES),
    st.lists(st.tuples(st.sampled_from([*NAMES, "look"]), st.sampled_from(["step", "nested", "template"])), max_size=3),
    min_size=1,
)


def calling(called: Sequence[tuple[str, str]]) -> Plan:
    steps = []
    for index, (name, how) in enumerate(called):
        step = Step(f"s{index}", name)
        if how == "nested":
            step = Step(f"s{index}", Plan("inner", (Step("i", name),), From("i")))
        elif how == "template":
            step = Step(f"s{index}", PlanTemplate(f"{{{{{name}}}}}", "semantic-kernel"))
        steps.append(step)
    return Plan("g", (*steps, Step("last", "look")))


def kernel_of(plans: Calls) -> Kernel:
    @function
    def look() -> str:
        """Look."""
        return "seen"

    kernel = Kernel()
    kernel.add_function(look)
    for name in NAMES:
        kernel.add_function(plan_function(name, calling(plans.get(name, ()))))
    return kernel


def in_circles(plans: Calls, start: str) -> bool:
    """Tell whether a plan that is reached from one reaches itself again; by definition."""

    def reached(name: str) -> set[str]:
        found: set[str] = set()
        left = [name]
        while left:
            new = {called for called, _ in plans.get(left.pop(), ())} - found
            found |= new
            left += new
        return found

    return any(name in reached(name) for name in {start} | reached(start))


@given(calls)
@example({"a": [("b", "step")], "b": [("a", "nested")]})
@example({"a": [("b", "template"), ("c", "step")], "b": [("a", "step")], "c": [("c", "step")]})
@example({"a": [("b", "step"), ("c", "step")], "b": [("d", "step")], "c": [("d", "step")]})
@example(
    {
        "a": [("a", "step"), ("b", "step"), ("d", "nested")],
        "b": [("a", "step"), ("a", "step"), ("a", "nested")],
        "c": [("a", "step"), ("b", "step"), ("d", "step")],
        "d": [("a", "step"), ("a", "step"), ("b", "nested")],
    }
)
def test_a_plan_runs_to_its_end_unless_plans_call_each_other_in_a_circle(plans: Calls) -> None:
    kernel = kernel_of(plans)
    wide = Budget(steps=10_000)  # five plans of three calls have more than the 100 steps of a run by default

    async def run() -> None:
        for name in NAMES:
            plan = Plan("g", (Step("s", name),))
            if in_circles(plans, name):
                with pytest.raises(PlanError, match=r"inside of itself: \S+ -> \S+"):
                    await kernel.run_plan(plan, budget=wide)
            else:
                assert isinstance((await kernel.run_plan(plan, budget=wide)).outcome, Answer)

    asyncio.run(run())


async def test_a_circle_through_code_stops_at_the_second_call() -> None:
    kernel = kernel_of({})
    entered = 0

    @function
    async def code() -> str:
        """Call a plan."""
        nonlocal entered
        entered += 1
        return str(await kernel.invoke("round"))

    kernel.add_function(code)
    kernel.add_function(plan_function("round", Plan("g", (Step("c", "code"),), From("c"))))
    events: list[object] = []
    with pytest.raises(StepFailed) as raised:
        await kernel.run_plan(Plan("g", (Step("s", "round"),)), emit=events.append)
    said = "The plan round is called inside of itself: round -> round. Take one of these calls away."
    assert str(raised.value) == f"Step s/c failed: {said}"
    assert entered == 1
    errors = [event.error for event in events if isinstance(event, Event.StepFailed)]
    assert errors == [said, f"Step s/c failed: {said}"]


async def test_a_task_that_a_plan_left_behind_may_call_it_again() -> None:
    kernel = kernel_of({})
    left: list[asyncio.Task[object]] = []
    ended = asyncio.Event()

    @function
    async def later() -> str:
        """Call the plan again when it is over, once."""

        async def again() -> object:
            await ended.wait()
            return await kernel.invoke("plan")

        if not left:
            left.append(asyncio.create_task(again()))
        return "begun"

    kernel.add_function(later)
    kernel.add_function(plan_function("plan", Plan("g", (Step("s", "later"),), From("s"))))
    assert await kernel.invoke("plan") == "begun"
    ended.set()
    assert await left[0] == "begun"


async def test_the_same_plan_may_run_side_by_side_and_in_another_kernel() -> None:
    inner, outer = kernel_of({}), kernel_of({})

    @function
    async def other() -> object:
        """Call the plan of this name in another kernel."""
        return await inner.invoke("plan")

    inner.add_function(plan_function("plan", Plan("g", (Step("s", "look"),), From("s"))))
    outer.add_function(other)
    outer.add_function(plan_function("plan", Plan("g", (Step("s", "other"),), From("s"))))
    plan = Plan("g", (Step("s", "plan"), Step("t", "plan")), From("t"))
    assert (await outer.run_plan(plan)).outcome == Answer("seen", value="seen")


@pytest.mark.parametrize("depth", [1, 2, 5, 12])
async def test_an_error_inside_of_plans_says_its_cause_once_with_the_steps_to_it(depth: int) -> None:
    store = MemoryRunStore()
    kernel = Kernel(run_store=store)

    @function
    def fail() -> None:
        """Fail."""
        raise OSError("no line")

    kernel.add_function(fail)
    kernel.add_function(plan_function("p0", Plan("g", (Step("s", "fail"),))))
    for number in range(1, depth):
        kernel.add_function(plan_function(f"p{number}", Plan("g", (Step("s", f"p{number - 1}"),))))
    plan = Plan("g", (Step("o", Plan("g", (Step("i", f"p{depth - 1}"),))),))
    events: list[object] = []
    cause = "The function fail failed: OSError: no line"
    said = f"Step o/i{'/s' * depth} failed: {cause}"
    with pytest.raises(StepFailed) as raised:
        await kernel.run_plan(plan, emit=events.append)
    assert str(raised.value) == said
    assert raised.value.step == "o"
    failures = [event.error for event in events if isinstance(event, Event.StepFailed)]
    assert failures == [cause, *[said] * (depth + 1)]
    (run,) = await store.runs()
    for _ in range(3):
        with pytest.raises(StepFailed) as raised:
            await kernel.resume(run)
        assert str(raised.value) == said, "a run that is gone on with says it in the same words"


async def test_a_run_that_was_held_says_a_failure_inside_in_the_same_words() -> None:
    kernel = Kernel(run_store=MemoryRunStore())

    @function
    def fail() -> None:
        """Fail."""
        raise OSError("no line")

    async def hold(run: StepRun, proceed: object) -> object:
        return RequireApproval("wait") if run.step.id == "s/h" else await proceed()  # type: ignore[operator]

    kernel.add_function(fail)
    kernel.add_function(plan_function("inner", Plan("g", (Step("f", "fail"),))))
    kernel.add_function(plan_function("fine", Plan("g", result=Value(1))))
    both = Plan("g", (Step("a", "inner"), Step("h", "fine")))
    kernel.middleware.step.append(hold)
    run = (await kernel.run_plan(Plan("g", (Step("s", both),)))).name
    kernel.middleware.step.clear()
    with pytest.raises(StepFailed, match=r"^Step s/a/f failed: The function fail failed: OSError: no line$"):
        await kernel.resume(run)


async def test_a_run_of_its_own_inside_is_told_apart_from_a_step_inside() -> None:
    kernel = Kernel()

    @function
    def fail() -> None:
        """Fail."""
        raise OSError("no line")

    @function
    async def code() -> None:
        """Run a plan."""
        await kernel.invoke("inner")

    kernel.add_function(fail)
    kernel.add_function(code)
    kernel.add_function(plan_function("inner", Plan("g", (Step("f", "fail"),))))
    with pytest.raises(StepFailed, match=r"^Step s, step f failed: The function fail failed: OSError: no line$"):
        await kernel.run_plan(Plan("g", (Step("s", "code"),)))
