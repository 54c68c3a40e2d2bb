"""The Planner kit passes a correct planner and catches broken ones."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from portico.errors import PlanError
from portico.functions import function
from portico.kernel import Kernel
from portico.plans.plan import From, Plan, PlanTemplate, Step, Value
from portico.plans.task import Answer, Emit, Infeasible, Task, TextDelta
from portico_testkit.kit_failures import kit_failures
from portico_testkit.planner import PlannerKit


class Tone:
    @function
    def shout(self, text: str) -> str:
        return text.upper()


class Echo:
    """Have the goal shouted, then answer with what came."""

    name = "echo"

    async def propose(self, task: Task, *, emit: Emit) -> Any:
        await asyncio.sleep(0)
        if task.refused:
            raise PlanError("The only plan there is was refused.")
        if not task.functions:
            return Infeasible("Nobody can shout.", ("a function that shouts",))
        if not task.steps:
            return self.first(task)
        return self.last(task, emit)

    def first(self, task: Task) -> Any:
        return Plan(task.goal, (Step("s1", task.functions[0].name, {"text": Value(task.goal)}),), notes={"round": 1})

    def last(self, task: Task, emit: Emit) -> Any:
        done = [record for record in task.steps if record.error is None]
        if not done:
            raise PlanError(f"Nothing worked: {task.steps[0].error}")
        emit(TextDelta(done[-1].result))
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


class Nameless(Echo):
    name = " "


class UnknownFunction(Echo):
    def first(self, task):
        return Plan(task.goal, (Step("s1", "Tone-whisper", {"text": Value(task.goal)}),))


class MissingArgument(Echo):
    def first(self, task):
        return Plan(task.goal, (Step("s1", "Tone-shout"),))


class Counting(Echo):
    calls = 0

    def first(self, task):
        self.calls += 1
        return Plan(task.goal, (Step(f"s{self.calls}", "Tone-shout", {"text": Value(task.goal)}),))


class RemembersTheGoal(Echo):
    goal: str | None = None

    async def propose(self, task, *, emit):
        self.goal = task.goal
        await asyncio.sleep(0)
        proposal = await super().propose(task, emit=emit)
        return Answer(self.goal) if isinstance(proposal, Answer) else proposal


class RemembersTheFirstAnswer(Echo):
    answer: Any = None

    def first(self, task):
        return self.answer or super().first(task)

    def last(self, task, emit):
        self.answer = super().last(task, emit)
        return self.answer


class GoesOnWhenStepsFail(Echo):
    def last(self, task, emit):
        if all(record.error for record in task.steps):
            return Plan(task.goal, (Step(f"s{len(task.steps) + 1}", "Tone-shout", {"text": Value("again")}),))
        return super().last(task, emit)


class NeverEnds(Echo):
    def last(self, task, emit):
        return Plan(task.goal, (Step(f"s{len(task.steps) + 1}", "Tone-shout", {"text": Value("on")}),))


class CrashesWithoutFunctions(Echo):
    async def propose(self, task, *, emit):
        return self.last(task, emit) if task.steps and not task.refused else self.first(task)


class CrashesWhenRefused(Echo):
    async def propose(self, task, *, emit):
        if task.refused:
            raise KeyError(task.refused[0].findings[0].place)
        return await super().propose(task, emit=emit)


class ReturnsNothing(Echo):
    def last(self, task, emit):
        return None


class EmitsWords(Echo):
    def last(self, task, emit):
        emit("some words")
        return super().last(task, emit)


class ChangesTheContext(Echo):
    def first(self, task):
        if task.context:
            task.context["user"]["name"] = "Eve"
        return super().first(task)


class NotesAreNoJson(Echo):
    def first(self, task):
        return Plan(task.goal, super().first(task).steps, notes={"seen": {1, 2}})


class NotesChangeInJson(Echo):
    def first(self, task):
        return Plan(task.goal, super().first(task).steps, notes={"seen": (1, 2)})


class DeadAfterCancellation(Echo):
    busy = False

    async def propose(self, task, *, emit):
        if self.busy:
            raise PlanError("another call is on its way")
        self.busy = True
        proposal = await super().propose(task, emit=emit)
        self.busy = False
        return proposal


class FormatsTheGoal(Echo):
    def first(self, task):
        f"Shout {task.goal}".format()
        return super().first(task)


class EmptyAnswer(Echo):
    def last(self, task, emit):
        return Answer("")


class TakesIdsOfStepsThatRan(Echo):
    def last(self, task, emit):
        return Plan(task.goal, (Step(task.steps[0].step.id, "Tone-shout", {"text": Value(task.goal)}),), From("s1"))


class WritesTemplatesOfNoLanguage(Echo):
    def first(self, task):
        return Plan(task.goal, (Step("s1", PlanTemplate("{{Tone.shout 'a'}}", "esperanto")),))


class FailsWithoutSayingThatFunctionsAreMissing(Echo):
    async def propose(self, task, *, emit):
        if not task.functions:
            raise PlanError("It cannot be done.")
        return await super().propose(task, emit=emit)


BROKEN = [
    each for each in list(globals().values()) if isinstance(each, type) and issubclass(each, Echo) and each is not Echo
]


async def failures(planner: type[Echo], *tests: str) -> dict[str, str]:
    fixtures = {"planner": planner, "kernel": a_kernel, "goal": lambda: "hey"}
    return await kit_failures(PlannerKit, fixtures, tests or None)


async def test_the_kit_finds_nothing_wrong_with_what_the_broken_ones_share() -> None:
    assert await failures(Echo) == {}


@pytest.mark.parametrize("planner", BROKEN, ids=lambda planner: planner.__name__)
async def test_the_kit_catches(planner: type[Echo]) -> None:
    assert await failures(planner), f"no test of the kit fails for {planner.__name__}"


@pytest.mark.parametrize(
    ("planner", "test"),
    [
        (UnknownFunction, "test_a_first_plan_passes_the_check"),
        (Counting, "test_equal_tasks_give_equal_proposals"),
        (RemembersTheGoal, "test_interleaved_tasks_do_not_mix"),
        (RemembersTheFirstAnswer, "test_interleaved_tasks_do_not_mix"),
        (GoesOnWhenStepsFail, "test_failing_steps_do_not_make_it_go_on_for_ever"),
        (NeverEnds, "test_a_pursuit_ends_within_the_budget"),
        (CrashesWithoutFunctions, "test_without_functions_it_ends"),
        (CrashesWhenRefused, "test_a_refused_proposal_does_not_upset_it"),
        (EmitsWords, "test_a_pursuit_ends_within_the_budget"),
        (ChangesTheContext, "test_the_task_is_left_as_it_was"),
        (NotesAreNoJson, "test_a_plan_survives_its_json_form"),
        (DeadAfterCancellation, "test_a_cancelled_proposal_leaves_it_usable"),
        (FormatsTheGoal, "test_any_text_may_be_a_goal"),
        (TakesIdsOfStepsThatRan, "test_the_second_plan_takes_no_id_of_a_step_that_ran"),
        (WritesTemplatesOfNoLanguage, "test_templates_in_its_plans_can_be_compiled_and_checked"),
        (FailsWithoutSayingThatFunctionsAreMissing, "test_without_functions_it_ends"),
    ],
)
async def test_a_fault_is_caught_by_the_test_that_names_it(planner: type[Echo], test: str) -> None:
    assert await failures(planner, test)
