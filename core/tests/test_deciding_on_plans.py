"""What a person decides on a plan: it runs, another runs instead, or the planner proposes again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from portico import Kernel, Planner, PlanReview, Policy, function
from portico.errors import LimitExceeded
from portico.plans import Answer, Emit, Finding, From, Plan, Refusal, Step, Task, Value
from portico.plugins import RunState
from portico_testkit.fakes.plan_store import MemoryPlanStore
from portico_testkit.fakes.run_store import MemoryRunStore


class Proposing(Planner):
    """Proposes one plan after the other, and keeps the tasks that it was given."""

    name = "proposing"

    def __init__(self, *plans: Plan) -> None:
        self.plans = list(plans)
        self.tasks: list[Task] = []

    async def propose(self, task: Task, *, emit: Emit) -> Plan:
        self.tasks.append(task)
        return self.plans.pop(0)


class Deciding:
    """Gives one decision after the other, and keeps what it was asked about."""

    def __init__(self, *decisions: Any) -> None:
        self.decisions = list(decisions)
        self.asked: list[Plan] = []

    async def __call__(self, review: PlanReview) -> Any:
        self.asked.append(review.plan)
        return self.decisions.pop(0)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def kernel(said: list[str]) -> Kernel:
    @function(effects=True)
    def say(text: str) -> str:
        said.append(text)
        return text

    made = Kernel(run_store=MemoryRunStore())
    made.add_function(say)
    return made


def saying(text: str, **more: Any) -> Plan:
    return Plan("Speak", (Step("s1", "say", {"text": Value(text)}),), From("s1"), **more)


def refusing(words: str) -> Refusal:
    return Refusal(Plan("Speak"), (Finding(words, None),))


async def state_of(kernel: Kernel, run: str) -> RunState:
    assert kernel.run_store is not None
    return RunState.of(await kernel.run_store.read(run))


async def test_an_edited_plan_runs_instead_and_keeps_the_goal_and_the_notes(kernel: Kernel, said: list[str]) -> None:
    decide = Deciding(Plan("Something else", saying("good evening").steps, From("s1")))
    kernel.approve_plans(decide)
    run = await kernel.run_goal("Speak", planner=Proposing(saying("good morning", notes={"plan": 1})))
    assert isinstance(run.outcome, Answer)
    assert (run.outcome.value, said, len(decide.asked)) == ("good evening", ["good evening"], 1)
    state = await state_of(kernel, run.name)
    [plan] = state.plans
    assert (plan.goal, plan.notes, state.proposals) == ("Speak", {"plan": 1}, 1)


async def test_other_middleware_sees_the_edited_plan(kernel: Kernel, said: list[str]) -> None:
    second = Deciding("not in the evening")
    kernel.approve_plans(Deciding(saying("good evening")))
    kernel.approve_plans(second)
    run = await kernel.run_goal("Speak", planner=Proposing(saying("good morning")))
    assert "not in the evening" in run.outcome.text
    assert [plan.steps for plan in second.asked] == [saying("good evening").steps]
    assert said == []


async def test_an_edited_plan_with_an_error_waits_and_loses_nothing(kernel: Kernel, said: list[str]) -> None:
    wrong = Plan("Speak", (Step("s1", "say", {"text": From("s9")}),), From("s1"))
    kernel.approve_plans(Deciding(wrong, True))
    run = await kernel.run_goal("Speak", planner=Proposing(saying("good morning")))
    assert "s9" in run.outcome.text
    assert said == []
    resumed = await kernel.resume(run.name, planner=Proposing())
    assert (resumed.outcome.text, said) == ("good morning", ["good morning"])


async def test_a_refusal_goes_to_the_planner_with_all_those_before_it(kernel: Kernel, said: list[str]) -> None:
    kernel.approve_plans(Deciding(refusing("too early"), refusing("too late"), True))
    planner = Proposing(saying("good morning", notes=1), saying("good night", notes=2), saying("good day", notes=3))
    run = await kernel.run_goal("Speak", planner=planner)
    assert (run.outcome.text, said) == ("good day", ["good day"])
    reasons = [[str(finding) for each in task.refused for finding in each.findings] for task in planner.tasks]
    assert reasons == [[], ["too early"], ["too early", "too late"]]
    # A plan that did not run is none that the planner goes on from.
    assert [task.notes for task in planner.tasks] == [None, None, None]
    assert [plan.notes for plan in (await state_of(kernel, run.name)).plans] == [3]


async def test_a_run_that_waits_is_refused_when_it_is_resumed(kernel: Kernel, said: list[str]) -> None:
    kernel.approve_plans(Deciding(refusing("too early"), False, refusing("too late"), True))
    held = await kernel.run_goal("Speak", planner=Proposing(saying("good morning"), saying("good night")))
    state = await state_of(kernel, held.name)
    assert ([str(each.findings[0]) for each in state.refused], state.proposals) == (["too early"], 2)
    planner = Proposing(saying("good day"))
    run = await kernel.resume(held.name, planner=planner)
    assert (run.outcome.text, said) == ("good day", ["good day"])
    assert [str(each.findings[0]) for each in planner.tasks[0].refused] == ["too early", "too late"]


async def test_a_person_may_refuse_as_often_as_there_may_be_proposals(kernel: Kernel) -> None:
    kernel.approve_plans(Deciding(*[refusing("no")] * 9, True))
    plans = [saying(f"hello {number}") for number in range(10)]
    assert (await kernel.run_goal("Speak", planner=Proposing(*plans))).outcome.text == "hello 9"


async def test_a_plan_without_a_planner_waits_where_it_is_refused(kernel: Kernel, said: list[str]) -> None:
    kernel.approve_plans(Deciding(refusing("too early"), saying("good evening")))
    run = await kernel.run_plan(saying("good morning"))
    assert "too early" in run.outcome.text
    assert (await kernel.resume(run.name)).outcome.text == "good evening"
    assert said == ["good evening"]


async def test_an_edited_plan_that_was_interrupted_is_asked_about_again(kernel: Kernel, said: list[str]) -> None:
    decide = Deciding(saying("good evening"), True)
    kernel.approve_plans(decide)
    kernel.approve_plans(Deciding("stop here", True))
    run = await kernel.run_goal("Speak", planner=Proposing(saying("good morning")))
    await kernel.resume(run.name, planner=Proposing())
    assert ([plan.steps for plan in decide.asked[1:]], said) == ([saying("good evening").steps], ["good evening"])


async def test_an_edited_plan_may_only_use_what_the_run_may(kernel: Kernel, said: list[str]) -> None:
    @function
    def shout(text: str) -> str:
        return text.upper()

    kernel.add_function(shout)
    plan = replace(saying("a"), steps=(Step("s1", "shout", {"text": Value("a")}),))
    kernel.approve_plans(Deciding(plan))
    run = await kernel.run_goal("Speak", planner=Proposing(saying("a")), exclude=["shout"])
    assert "shout" in run.outcome.text
    assert said == []


async def test_a_decision_about_a_plan_that_could_not_run_does_not_count_for_the_one_that_waits(
    kernel: Kernel, said: list[str]
) -> None:
    wrong = replace(saying("good morning"), input={"type": "string"})
    kernel.approve_plans(Deciding(wrong, "not yet"))
    held = await kernel.run_goal("Speak", planner=Proposing(saying("good morning")))
    run = await kernel.resume(held.name, planner=Proposing())
    assert "not yet" in run.outcome.text
    assert said == []


async def test_middleware_that_edits_its_own_plan_for_ever_is_stopped(kernel: Kernel) -> None:
    async def edit(review: PlanReview, proceed: Any) -> Plan:
        return replace(review.plan, steps=(replace(review.plan.steps[0], reason="Politeness."),))

    kernel.middleware.plan.append(edit)
    with pytest.raises(LimitExceeded, match="edited a plan"):
        await kernel.run_goal("Speak", planner=Proposing(saying("good morning")))


@pytest.mark.parametrize("waits", [False, True])
async def test_a_saved_plan_that_was_refused_is_not_said_to_have_been_used(kernel: Kernel, waits: bool) -> None:
    kernel.plan_store = MemoryPlanStore()
    await kernel.run_goal("Speak", planner=Proposing(saying("good morning")), reuse=True)
    kernel.approve_plans(Deciding(*(["wait"] if waits else []), refusing("too early"), "wait again", True))
    held = await kernel.run_goal("Speak", planner=Proposing(saying("good day")), reuse=True)
    if waits:
        held = await kernel.resume(held.name, planner=Proposing(saying("good day")))
    assert not (await state_of(kernel, held.name)).reused
    run = await kernel.resume(held.name, planner=Proposing())
    assert isinstance(run.outcome, Answer)
    assert (run.outcome.text, run.outcome.warnings) == ("good day", ())


async def test_an_edit_that_takes_a_flow_away_is_not_asked_about_it(said: list[str]) -> None:
    @function
    def mail() -> str:
        return "Send me all."

    @function(effects=True)
    def tell(text: str) -> str:
        said.append(text)
        return text

    kernel = Kernel(run_store=MemoryRunStore(), policy=Policy("enforce"))
    kernel.add_function(mail)
    kernel.add_function(tell)
    read = Step("s1", "mail")
    risky, safe = (
        Plan("Speak", (read, Step("s2", "tell", {"text": each})), From("s2")) for each in (From("s1"), Value("hello"))
    )
    kernel.approve_plans(Deciding("wait", safe))
    held = await kernel.run_goal("Speak", planner=Proposing(risky))
    assert held.outcome.text.endswith("wait")
    run = await kernel.resume(held.name, planner=Proposing())
    assert (run.outcome.text, said) == ("hello", ["hello"])
