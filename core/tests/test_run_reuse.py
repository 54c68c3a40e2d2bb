"""Plans used again: only when asked for, only when they still fit, and never without saying so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from portico._agents.thread import Thread
from portico._chat.messages import Message
from portico._functions.functions import function
from portico._kernel import Kernel
from portico._plans.plan import From, Plan, Step, Value
from portico._plans.reuse import saved_plan
from portico._plans.saved import SavedPlan
from portico._plans.task import Answer, Event, RunEvent
from portico.errors import StoreError
from portico_testkit.fakes.plan_store import MemoryPlanStore
from portico_testkit.fakes.planner import ScriptedPlanner
from portico_testkit.fakes.run_store import MemoryRunStore


@function
async def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


PLAN = Plan("Shout", (Step("s", "shout", {"text": Value("hey")}),), From("s"))


@pytest.fixture
def kernel() -> Kernel:
    kernel = Kernel(plan_store=MemoryPlanStore(), run_store=MemoryRunStore())
    kernel.add_function(shout)
    return kernel


def store(kernel: Kernel) -> Any:
    return kernel.plan_store


async def test_a_plan_that_led_to_an_answer_is_used_again_in_place_of_a_proposal(kernel: Kernel) -> None:
    first = await kernel.run_goal("Shout", planner=ScriptedPlanner(PLAN), reuse=True)
    assert first.outcome == Answer("HEY", value="HEY")
    (saved,) = await store(kernel).plans()
    assert (saved.goal, saved.planner) == ("Shout", "scripted")
    unasked = ScriptedPlanner()
    events: list[RunEvent] = []
    again = await kernel.run_goal("Shout", planner=unasked, reuse=True, emit=events.append)
    assert isinstance(again.outcome, Answer)
    assert again.outcome.value == "HEY"
    assert again.outcome.warnings == (f"A plan saved at {saved.saved_at} was used again.",)
    assert unasked.tasks == []
    assert [event.saved_at for event in events if isinstance(event, Event.Proposed) and event.saved_at] == [
        saved.saved_at
    ]
    assert kernel.run_store is not None
    entries = await kernel.run_store.read(again.name)
    assert [entry.get("reused") for entry in entries if entry["type"] == "plan"] == [True]
    assert [plan.saved_at for plan in await store(kernel).plans()] == [saved.saved_at], "it is not saved anew"


class EditedPlans(MemoryPlanStore):
    """Its plans were edited, and one of another goal is damaged."""

    async def get(self, goal: str, catalogue: str) -> SavedPlan | None:
        saved = await super().get(goal, catalogue)
        return saved and replace(saved, edited=True)

    async def plans(self) -> list[SavedPlan]:
        raise StoreError("The saved plan in other.json cannot be read.")


async def test_a_plan_that_was_edited_is_used_and_the_answer_says_so_whatever_other_plans_are() -> None:
    kernel = Kernel(plan_store=EditedPlans())
    kernel.add_function(shout)
    await store(kernel).put(saved_plan("Shout", PLAN, kernel.specs))
    again = await kernel.run_goal("Shout", planner=ScriptedPlanner(), reuse=True)
    assert isinstance(again.outcome, Answer)
    assert again.outcome.warnings[0].endswith(", and edited since, was used again.")


async def test_nothing_is_saved_or_used_again_unless_it_is_asked_for(kernel: Kernel) -> None:
    await kernel.run_goal("Shout", planner=ScriptedPlanner(PLAN))
    assert await store(kernel).plans() == []
    await kernel.run_goal("Shout", planner=ScriptedPlanner(PLAN), reuse=True)
    planner = ScriptedPlanner(PLAN)
    assert (await kernel.run_goal("Shout", planner=planner)).outcome == Answer("HEY", value="HEY")
    assert len(planner.tasks) == 1


async def test_a_kernel_may_want_it_always_and_a_run_may_not() -> None:
    kernel = Kernel(plan_store=MemoryPlanStore(), reuse=True)
    kernel.add_function(shout)
    await kernel.run_goal("Shout", planner=ScriptedPlanner(PLAN), reuse=False)
    assert await store(kernel).plans() == []
    await kernel.run_goal("Shout", planner=ScriptedPlanner(PLAN))
    unasked = ScriptedPlanner()
    await kernel.run_goal("Shout", planner=unasked)
    assert unasked.tasks == []


async def test_moves_are_saved_as_the_one_plan_that_they_made(kernel: Kernel) -> None:
    moves = (Plan("g", PLAN.steps), Plan("g", (Step("t", "shout", {"text": From("s")}),), From("t")))
    await kernel.run_goal("Shout", planner=ScriptedPlanner(*moves), reuse=True)
    again = await kernel.run_goal("Shout", planner=ScriptedPlanner(), reuse=True)
    assert [step.id for step in again.plan.steps] == ["s", "t"]


async def test_an_answer_that_no_plan_gave_is_not_saved(kernel: Kernel) -> None:
    await kernel.run_goal("Shout", planner=ScriptedPlanner(Plan("g", PLAN.steps), Answer("HEY")), reuse=True)
    assert await store(kernel).plans() == []


async def test_a_plan_for_other_functions_is_not_used_and_the_answer_says_so(kernel: Kernel) -> None:
    await kernel.run_goal("Shout", planner=ScriptedPlanner(PLAN), reuse=True)
    other = Kernel(plan_store=kernel.plan_store)

    @function(name="shout")
    async def quieter(text: str, loudness: int) -> str:
        return text

    other.add_function(quieter)
    planner = ScriptedPlanner(Answer("hey"))
    run = await other.run_goal("Shout", planner=planner, reuse=True)
    assert isinstance(run.outcome, Answer)
    (warning,) = run.outcome.warnings
    assert "shout" in warning
    assert len(planner.tasks) == 1


async def test_a_plan_that_has_its_input_written_into_it_is_not_saved(kernel: Kernel) -> None:
    await kernel.run_goal("Shout it", planner=ScriptedPlanner(PLAN), input="hey", reuse=True)
    assert await store(kernel).plans() == []
    plan = Plan("g", (Step("s", "shout", {"text": From("input")}),), From("s"))
    await kernel.run_goal("Shout it", planner=ScriptedPlanner(plan), input="hey", reuse=True)
    again = await kernel.run_goal("Shout it", planner=ScriptedPlanner(), input="ho", reuse=True)
    assert again.outcome.value == "HO"  # type: ignore[union-attr]


async def test_a_plan_with_a_function_that_is_left_out_is_not_used_and_the_answer_says_why(kernel: Kernel) -> None:
    await kernel.run_goal("Shout", planner=ScriptedPlanner(PLAN), reuse=True)
    run = await kernel.run_goal("Shout", planner=ScriptedPlanner(Answer("No.")), reuse=True, exclude=["shout"])
    assert isinstance(run.outcome, Answer)
    (warning,) = run.outcome.warnings
    assert "shout: it is excluded" in warning


async def test_a_plan_is_used_again_where_nothing_was_said_before(kernel: Kernel) -> None:
    await kernel.run_goal("Shout", planner=ScriptedPlanner(PLAN), reuse=True)
    unasked = ScriptedPlanner()
    await kernel.run_goal("Shout", planner=unasked, reuse=True, context=Thread())
    assert unasked.tasks == []


async def test_no_plan_is_saved_or_used_again_for_a_goal_after_a_conversation(kernel: Kernel) -> None:
    said = [Message.of("user", "Say hey."), Message.of("assistant", "Hey.")]
    await kernel.run_goal("Louder", planner=ScriptedPlanner(PLAN), reuse=True, context=said)
    assert await store(kernel).plans() == []
    await kernel.run_goal("Louder", planner=ScriptedPlanner(PLAN), reuse=True)
    planner = ScriptedPlanner(PLAN)
    await kernel.run_goal("Louder", planner=planner, reuse=True, context=said)
    assert len(planner.tasks) == 1


async def test_a_plan_that_fails_this_time_is_followed_by_proposals(kernel: Kernel) -> None:
    calls: list[str] = []

    @function
    async def shaky() -> str:
        calls.append("call")
        if len(calls) == 2:
            raise ConnectionError("down")
        return "fine"

    kernel.add_function(shaky)
    plan = Plan("g", (Step("s", "shaky"),), From("s"))
    await kernel.run_goal("Try", planner=ScriptedPlanner(plan), reuse=True)
    again = Plan("g", (Step("t", "shaky"),), From("t"))
    run = await kernel.run_goal("Try", planner=ScriptedPlanner(again), reuse=True)
    assert run.outcome.value == "fine"  # type: ignore[union-attr]
    assert [record.step.id for record in run.steps] == ["s", "t"]


async def test_a_plan_that_cannot_be_saved_does_not_cost_the_answer(kernel: Kernel) -> None:
    class Full(MemoryPlanStore):
        async def put(self, saved: SavedPlan) -> None:
            raise StoreError("the disk is full")

    kernel.plan_store = Full()
    run = await kernel.run_goal("Shout", planner=ScriptedPlanner(PLAN), reuse=True)
    assert run.outcome == Answer("HEY", value="HEY", warnings=("The plan could not be saved: the disk is full",))


async def test_using_plans_again_needs_a_store() -> None:
    with pytest.raises(ValueError, match="store of plans"):
        await Kernel().run_goal("Shout", planner=ScriptedPlanner(PLAN), reuse=True)
