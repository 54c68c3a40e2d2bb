"""Planners that ask a model see the functions that the kernel's selector chooses; others of all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from portico._functions.functions import Function, FunctionPlugin, function
from portico._kernel import Kernel
from portico._plans.plan import From, Plan, PlanTemplate, Step
from portico._plans.task import Answer, Event, Infeasible, RunEvent, Task
from portico._prompts.calling import FunctionCall
from portico._selection.selection import FunctionsOffered
from portico.errors import PlanInvalid, StoreError
from portico_testkit.fakes.function_selector import WordSelector

TOPICS = ("invoice", "weather", "train", "museum", "recipe", "song", "garden", "river", "planet", "island")


class Modelled:
    """A planner whose proposals a model would write: it does what it is told to, with each task."""

    name = "modelled"
    asks_model = True

    def __init__(self, *proposals: Plan | Answer | Infeasible | Callable[[Task], Any]) -> None:
        self.proposals = list(proposals)
        self.tasks: list[Task] = []

    async def propose(self, task: Task, *, emit: Any) -> Plan | Answer | Infeasible:
        self.tasks.append(task)
        return self.proposals.pop(0)  # type: ignore[return-value]  # the tests give no callables


class Plain(Modelled):
    name = "plain"
    asks_model = False


class Perhaps:
    """A template language: each word of a template is perhaps called, and "…" may call anything."""

    name = "perhaps"

    def compile(self, source: str, *, name: str = "prompt") -> Perhaps:
        return type("Compiled", (Perhaps,), {"calls": self.calls_of(source)})()

    def calls_of(self, source: str) -> tuple[FunctionCall, ...] | None:
        calls = [FunctionCall(word, 0, (), 1, 1, certain=False) for word in source.split()]
        return None if source == "…" else tuple(calls)

    async def render(self, arguments: Any, *, call: Any) -> str:
        return "text"


class Older:
    """A planner that was written before there were selectors."""

    name = "older"

    def __init__(self) -> None:
        self.functions = 0

    async def propose(self, task: Task, *, emit: Any) -> Answer:
        self.functions = len(task.functions)
        return Answer("Done.")


def kernel_of(selector: Any) -> Kernel:
    def made(topic: str) -> Function:
        @function(name=topic, description=f"Tell of the {topic}.")
        async def call() -> str:
            return f"{topic}!"

        return Function.of(call, plugin="World")

    return Kernel(plugins=[FunctionPlugin("World", tuple(map(made, TOPICS)))], function_selector=selector)


def call(topic: str, id: str = "s1") -> Plan:
    return Plan("", (Step(id, f"World-{topic}"),))


async def test_a_planner_that_asks_a_model_is_told_of_those_chosen_in_the_order_of_the_catalogue():
    planner, events = Modelled(Answer("Done.")), list[RunEvent]()
    run = await kernel_of(WordSelector(2)).run_goal("The river, then the invoice", planner=planner, emit=events.append)
    assert [spec.name for spec in planner.tasks[0].functions] == ["World-invoice", "World-river"]
    (told,) = [event for event in events if isinstance(event, FunctionsOffered)]
    assert told.selection is run.selection
    assert told.selection.considered == len(TOPICS)


@pytest.mark.parametrize("selector", [None, WordSelector(len(TOPICS))], ids=["none", "all may be offered"])
async def test_where_nothing_is_left_out_nothing_is_said(selector: Any):
    planner, events = Modelled(Infeasible("No.")), list[RunEvent]()
    run = await kernel_of(selector).run_goal("The river", planner=planner, emit=events.append)
    assert len(planner.tasks[0].functions) == len(TOPICS)
    assert run.selection is None
    assert run.outcome == Infeasible("No.")
    assert not [event for event in events if isinstance(event, FunctionsOffered)]


@pytest.mark.parametrize("made", [lambda: Plain(Answer("Done.")), Older], ids=["says so", "says nothing"])
async def test_a_planner_that_asks_no_model_gets_everything_and_asks_no_selector(made: Callable[[], Any]):
    planner, selector = made(), WordSelector(2)
    run = await kernel_of(selector).run_goal("The river", planner=planner)
    told = planner.functions if isinstance(planner, Older) else len(planner.tasks[0].functions)
    assert told == len(TOPICS)
    assert (selector.contexts, run.selection) == ([], None)


@pytest.mark.parametrize("source", ["World-river World-song", "…"])
async def test_a_template_may_call_what_was_not_offered_and_not_what_the_run_leaves_out(source: str):
    kernel = kernel_of(WordSelector(2))
    kernel.template_languages["perhaps"] = Perhaps()
    write = PlanTemplate(source, "perhaps")
    inner = Plan("", (Step("i", write),))
    plan = Plan("", (Step("a", write), Step("b", inner), Step("c", PlanTemplate("World-train", "perhaps"))), From("a"))
    run = await kernel.run_goal("The invoice", planner=Modelled(plan))
    assert run.outcome.text == "text"
    proposal = await kernel.propose("The invoice", planner=Modelled(plan), exclude=["World-river"])
    message = "the template may call what this plan may not use: World-river"
    assert list(map(str, proposal.findings)) == [f"a function: {message}", f"b i function: {message}"]
    with pytest.raises(PlanInvalid, match=message):
        await kernel.run_goal("The invoice", planner=Modelled(*[plan] * 9), exclude=["World-river"])


async def test_it_is_chosen_once_for_a_run_and_again_when_there_are_other_functions():
    selector = WordSelector(2)
    kernel = kernel_of(selector)
    planner, events = Modelled(call("river"), call("invoice", "s2"), Answer("Done.")), list[RunEvent]()

    def heard(event: RunEvent) -> None:
        events.append(event)
        if len(planner.tasks) == 2 and "later" not in kernel.functions:
            kernel.add_function(Function.of(later))

    await kernel.run_goal("The river and the invoice", planner=planner, emit=heard)
    assert planner.tasks[0].functions is planner.tasks[1].functions
    assert selector.contexts == [("The river and the invoice",)] * 2
    assert len([event for event in events if isinstance(event, FunctionsOffered)]) == 2


def later() -> str:
    """Tell of the river and the invoice."""
    return "later"


async def test_an_infeasible_says_how_little_the_model_knew():
    planner = Modelled(Infeasible("No ferry.", ("a ferry",)))
    run = await kernel_of(WordSelector(2)).run_goal("The river", planner=planner)
    assert run.outcome == Infeasible(
        "No ferry. (Of 10 functions the function selector 'words' chose 2 for the goal, and the model saw no "
        "others. The selector can be set to choose more.)",
        ("a ferry",),
    )


async def test_where_nothing_fits_no_model_is_asked():
    planner = Modelled()
    run = await kernel_of(WordSelector(0)).run_goal("The river", planner=planner)
    assert isinstance(run.outcome, Infeasible)
    assert "function selector 'words' chose 0 for the goal" in run.outcome.reason
    assert planner.tasks == []


async def test_a_plan_that_calls_what_was_not_offered_is_refused_with_what_was():
    planner, events = Modelled(call("song"), call("river"), Answer("Done.")), list[RunEvent]()
    run = await kernel_of(WordSelector(2)).run_goal("The river", planner=planner, emit=events.append)
    (refused,) = [event for event in events if isinstance(event, Event.Refused)]
    assert "the function 'World-song' was not offered" in str(refused.findings[0])
    assert "Of 10 functions the function selector 'words' chose 2" in str(refused.findings[0])
    assert [record.step.function for record in run.steps] == ["World-river"]
    with pytest.raises(PlanInvalid, match="not offered"):
        await kernel_of(WordSelector(1)).run_goal("The river", planner=Modelled(*(call("song") for _ in range(4))))


async def test_a_template_that_calls_what_was_not_offered_is_told_so():
    plan = Plan("", (Step("s1", PlanTemplate("{{World.song}}", "semantic-kernel")),), From("s1"))
    with pytest.raises(PlanInvalid, match="the function 'World-song' was not offered"):
        await kernel_of(WordSelector(1)).run_goal("The river", planner=Modelled(*[plan] * 4))


async def test_a_function_that_does_not_exist_is_still_called_that():
    planner = Modelled(*(call("moon") for _ in range(4)))
    with pytest.raises(PlanInvalid, match="there is no function 'World-moon'"):
        await kernel_of(WordSelector(2)).run_goal("The river", planner=planner)


async def test_results_of_functions_that_are_not_offered_can_be_referred_to():
    """What another planner ran is there, whatever this one may call."""
    from portico._plans.plan import From

    planner = Modelled(call("river"), Plan("", (Step("s2", "World-river"),), From("s1")))
    run = await kernel_of(WordSelector(1)).run_goal("The river", planner=planner)
    assert isinstance(run.outcome, Answer)
    assert run.outcome.text == "river!"


async def test_what_a_selector_raises_ends_the_run():
    class Broken:
        name = "broken"

        async def select(self, functions: Any, context: Any, *, limit: int | None = None) -> Any:
            raise StoreError("The store of functions cannot be read.")

    with pytest.raises(StoreError, match="store of functions"):
        await kernel_of(Broken()).run_goal("The river", planner=Modelled())


async def test_a_selector_of_each_round_chooses_again_after_results_and_keeps_what_ran():
    class EachRound(WordSelector):
        each_round = True

    planner, events = Modelled(call("river"), call("river"), call("garden", "s2"), Answer("Done.")), list[RunEvent]()
    selector = EachRound(1)
    run = await kernel_of(selector).run_goal("The river", planner=planner, emit=events.append)
    assert selector.contexts == [("The river",), ("The river", "river!"), ("The river", "river!", "garden!")]
    assert [spec.name for spec in planner.tasks[0].functions] == ["World-river"]
    assert [spec.name for spec in planner.tasks[1].functions] == ["World-garden", "World-river"]
    assert run.selection is [event for event in events if isinstance(event, FunctionsOffered)][-1].selection
