"""The Planner kit passes a correct planner and catches broken ones."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from portico import Kernel, function
from portico.errors import PlanError, ServiceUnavailable
from portico.plans import Answer, Emit, Event, Infeasible, Plan, Step, Task, Value
from portico_testkit.kit_failures import Fault, KnownFaults
from portico_testkit.planner import PlannerKit


class Tone:
    @function
    def shout(self, text: str) -> str:
        return text.upper()


class Echo:
    """Have the goal shouted, then answer with what came."""

    name = "echo"
    fails = False

    async def propose(self, task: Task, *, emit: Emit) -> Any:
        await asyncio.sleep(0)
        if self.fails and task.steps:
            self.fail()
        if task.refused:
            raise PlanError("The only plan there is was refused.")
        if not task.functions:
            return Infeasible("Nobody can shout.", ("a function that shouts",))
        if not task.steps:
            return self.first(task)
        return self.last(task, emit)

    def fail(self) -> None:
        raise ServiceUnavailable("Nobody is there to shout.")

    def first(self, task: Task) -> Any:
        return Plan(task.goal, (Step("s1", task.functions[0].name, {"text": Value(task.goal)}),), notes={"round": 1})

    def last(self, task: Task, emit: Emit) -> Any:
        done = [record for record in task.steps if record.error is None]
        if not done:
            raise PlanError(f"Nothing worked: {task.steps[0].error}")
        emit(Event.TextDelta(done[-1].result))
        return Answer(done[-1].result)


class Fixtures:
    @pytest.fixture
    def kernel(self) -> Kernel:
        return a_kernel()

    @pytest.fixture
    def goal(self) -> str:
        return "hey"


class TestEcho(Fixtures, PlannerKit):
    @pytest.fixture
    def planner(self) -> Echo:
        return Echo()


def a_kernel() -> Kernel:
    kernel = Kernel()
    kernel.add_plugin(Tone)
    return kernel


def failing(kind: type[Echo]) -> Echo:
    planner = kind()
    planner.fails = True
    return planner


FAULTS = KnownFaults(
    PlannerKit,
    lambda kind: {"planner": kind, "failing_planner": lambda: failing(kind), "kernel": a_kernel, "goal": lambda: "hey"},
)


@FAULTS.caught_by("a_cancelled_proposal_leaves_it_usable")
class DeadAfterCancellation(Echo):
    busy = False

    async def propose(self, task, *, emit):
        if self.busy:
            raise PlanError("another call is on its way")
        self.busy = True
        proposal = await super().propose(task, emit=emit)
        self.busy = False
        return proposal


@FAULTS.caught_by("any_text_may_be_a_goal")
class FormatsTheGoal(Echo):
    def first(self, task):
        f"Shout {task.goal}".format()
        return super().first(task)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: Fault, given: Any) -> None:
    await FAULTS.check(fault, given)
