"""The Planner kit passes a correct planner and catches broken ones."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

import pytest

from portico.errors import PlanError, ServiceUnavailable
from portico.functions import function
from portico.kernel import Kernel
from portico.plans.plan import From, Plan, PlanTemplate, Step, Value
from portico.plans.task import Answer, Emit, Infeasible, Task, TextDelta
from portico_testkit.kit_failures import KnownFaults, keeps_its_lock
from portico_testkit.kit_of_a_kit import KitOfAKit
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


def failing(kind: type[Echo]) -> Echo:
    planner = kind()
    planner.fails = True
    return planner


FAULTS = KnownFaults(
    PlannerKit,
    lambda kind: {
        "planner": kind,
        "failing_planner": lambda: failing(kind),
        "kernel": a_kernel,
        "goal": lambda: "hey",
    },
)


@FAULTS.caught_by("name_is_filled")
class Nameless(Echo):
    name = " "


@FAULTS.caught_by("a_first_plan_passes_the_check")
class UnknownFunction(Echo):
    def first(self, task):
        return Plan(task.goal, (Step("s1", "Tone-whisper", {"text": Value(task.goal)}),))


@FAULTS.caught_by("a_first_plan_passes_the_check")
class MissingArgument(Echo):
    def first(self, task):
        return Plan(task.goal, (Step("s1", "Tone-shout"),))


@FAULTS.caught_by("equal_tasks_give_equal_proposals")
class Counting(Echo):
    calls = 0

    def first(self, task):
        self.calls += 1
        return Plan(task.goal, (Step(f"s{self.calls}", "Tone-shout", {"text": Value(task.goal)}),))


@FAULTS.caught_by("interleaved_tasks_do_not_mix")
class RemembersTheGoal(Echo):
    goal: str | None = None

    async def propose(self, task, *, emit):
        self.goal = task.goal
        await asyncio.sleep(0)
        proposal = await super().propose(task, emit=emit)
        return Answer(self.goal) if isinstance(proposal, Answer) else proposal


@FAULTS.caught_by("interleaved_tasks_do_not_mix")
class RemembersTheFirstAnswer(Echo):
    answer: Any = None

    def first(self, task):
        return self.answer or super().first(task)

    def last(self, task, emit):
        self.answer = super().last(task, emit)
        return self.answer


@FAULTS.caught_by("failing_steps_do_not_make_it_go_on_for_ever")
class GoesOnWhenStepsFail(Echo):
    def last(self, task, emit):
        if all(record.error for record in task.steps):
            return Plan(task.goal, (Step(f"s{len(task.steps) + 1}", "Tone-shout", {"text": Value("again")}),))
        return super().last(task, emit)


@FAULTS.caught_by("a_pursuit_ends_within_the_budget")
class NeverEnds(Echo):
    def last(self, task, emit):
        return Plan(task.goal, (Step(f"s{len(task.steps) + 1}", "Tone-shout", {"text": Value("on")}),))


@FAULTS.caught_by("without_functions_it_ends")
class CrashesWithoutFunctions(Echo):
    async def propose(self, task, *, emit):
        return self.last(task, emit) if task.steps and not task.refused else self.first(task)


@FAULTS.caught_by("a_refused_proposal_does_not_upset_it")
class CrashesWhenRefused(Echo):
    async def propose(self, task, *, emit):
        if task.refused:
            raise KeyError(task.refused[0].findings[0].place)
        return await super().propose(task, emit=emit)


@FAULTS.caught_by("a_pursuit_ends_within_the_budget")
class ReturnsNothing(Echo):
    def last(self, task, emit):
        return None


@FAULTS.caught_by("a_pursuit_ends_within_the_budget")
class EmitsWords(Echo):
    def last(self, task, emit):
        emit("some words")
        return super().last(task, emit)


@FAULTS.caught_by("the_task_is_left_as_it_was")
class ChangesTheContext(Echo):
    def first(self, task):
        if task.context:
            task.context["user"]["name"] = "Eve"
        return super().first(task)


@FAULTS.caught_by("a_plan_survives_its_json_form")
class NotesAreNoJson(Echo):
    def first(self, task):
        return Plan(task.goal, super().first(task).steps, notes={"seen": {1, 2}})


@FAULTS.caught_by("a_plan_survives_its_json_form")
class NotesChangeInJson(Echo):
    def first(self, task):
        return Plan(task.goal, super().first(task).steps, notes={"seen": (1, 2)})


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


@FAULTS.caught_by("a_pursuit_ends_within_the_budget")
class EmptyAnswer(Echo):
    def last(self, task, emit):
        return Answer("")


@FAULTS.caught_by("the_second_plan_takes_no_id_of_a_step_that_ran")
class TakesIdsOfStepsThatRan(Echo):
    def last(self, task, emit):
        return Plan(task.goal, (Step(task.steps[0].step.id, "Tone-shout", {"text": Value(task.goal)}),), From("s1"))


@FAULTS.caught_by("templates_in_its_plans_can_be_compiled_and_checked")
class WritesTemplatesOfNoLanguage(Echo):
    def first(self, task):
        return Plan(task.goal, (Step("s1", PlanTemplate("{{Tone.shout 'a'}}", "esperanto")),))


@FAULTS.caught_by("without_functions_it_ends", "it fails and says 'no' only")
class FailsWithoutAWord(Echo):
    async def propose(self, task, *, emit):
        if not task.functions:
            raise PlanError("no")
        return await super().propose(task, emit=emit)


class FailsInWordsOfItsOwn(Echo):
    async def propose(self, task, *, emit):
        if not task.functions:
            raise PlanError("Il n'y a rien à appeler.")
        return await super().propose(task, emit=emit)


class KnowsOneGoal(Echo):
    async def propose(self, task, *, emit):
        if task.goal != "hey":
            raise PlanError(f"Nobody shouts {task.goal[:20]!r} here.")
        return await super().propose(task, emit=emit)


@FAULTS.caught_by("a_proposal_leaves_the_event_loop_free", "the event loop waits by time.sleep in")
class BlocksTheLoop(Echo):
    def first(self, task):
        time.sleep(0.05)
        return super().first(task)


@FAULTS.caught_by("a_proposal_leaves_the_event_loop_free", "the event loop waits by time.sleep in")
class BlocksTheLoopAtTheEnd(Echo):
    def last(self, task, emit):
        time.sleep(0.05)
        return super().last(task, emit)


@FAULTS.caught_by("what_it_stands_on_fails_as_an_error_of_ours", "a pursuit raised ConnectionError: refused")
class LetsTheVendorsErrorOut(Echo):
    def fail(self):
        raise ConnectionError("refused")


@FAULTS.caught_by("what_it_stands_on_fails_as_an_error_of_ours", "what it stands on fails")
class AnswersWhereItFails(Echo):
    def fail(self):
        pass


@FAULTS.caught_by("what_it_stands_on_fails_as_an_error_of_ours", "a pursuit fails and says 'down' only")
class FailsWithOneWord(Echo):
    def fail(self):
        raise ServiceUnavailable("down")


@FAULTS.caught_by("whether_it_asks_a_model_is_said_by_true_or_false", "not True or False")
class SaysWhichModelItAsks(Echo):
    asks_model = "gpt"


@FAULTS.caught_by("interleaved_tasks_do_not_mix", "what one proposal emits comes with another")
class EmitsToTheLastWhoAsked(Echo):
    async def propose(self, task, *, emit):
        self.emit = emit
        await asyncio.sleep(0)
        return await super().propose(task, emit=self.emit_to_the_last)

    def emit_to_the_last(self, event):
        self.emit(event)


@FAULTS.caught_by("pursuits_side_by_side_end_as_one_alone", "ended otherwise than alone")
class AnswersOtherwiseWhenBusy(Echo):
    at_work = 0

    async def propose(self, task, *, emit):
        self.at_work += 1
        try:
            proposal = await super().propose(task, emit=emit)
            return Answer("later") if isinstance(proposal, Answer) and self.at_work > 1 else proposal
        finally:
            self.at_work -= 1


@FAULTS.caught_by("a_cancelled_proposal_leaves_it_usable", "as if nobody had cancelled it")
class TakesNoNoticeOfCancellation(Echo):
    async def propose(self, task, *, emit):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.001)
        return await super().propose(task, emit=emit)


@FAULTS.caught_by("a_cancelled_proposal_leaves_it_usable", "a cancelled call raised PlanError")
class TakesCancellationForAFailure(Echo):
    async def propose(self, task, *, emit):
        try:
            return await super().propose(task, emit=emit)
        except asyncio.CancelledError:
            raise PlanError("The model did not answer.") from None


@FAULTS.caught_by("a_cancelled_proposal_leaves_it_usable", "after a cancelled call it never answers")
class KeepsItsLockWhenCancelled(Echo):
    propose = keeps_its_lock(Echo.propose)


@FAULTS.caught_by("a_cancelled_proposal_leaves_it_usable", "tasks go on")
class ThinksOnWhenCancelled(Echo):
    async def propose(self, task, *, emit):
        thinking = asyncio.create_task(asyncio.sleep(5))
        await asyncio.sleep(0)
        thinking.cancel()
        return await super().propose(task, emit=emit)


class TestThePlannerKit(KitOfAKit):
    faults = FAULTS
    correct = (Echo, FailsInWordsOfItsOwn, KnowsOneGoal)
