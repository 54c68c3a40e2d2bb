"""Which functions a planner may use: those that the run and the kernel include and do not exclude."""

from __future__ import annotations

from typing import Any

import pytest

from portico import ChatCapabilities, Function, FunctionPlugin, Kernel, ToolChoice, function
from portico._runs.submitting import read_job, run_job
from portico.errors import ConfigurationError, FunctionNotFound, PlanInvalid
from portico.plans import Answer, Plan, Step, Task
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.run_store import MemoryRunStore


@function
def today() -> str:
    return "1 May"


@function
def send() -> str:
    return "sent"


@function
def draft() -> str:
    return "drafted"


class Looking:
    """Answers with the names that it was offered, after the plans that it was given."""

    name = "looking"

    def __init__(self, *plans: Plan) -> None:
        self.plans = list(plans)

    async def propose(self, task: Task, *, emit: Any) -> Plan | Answer:
        return self.plans.pop(0) if self.plans else Answer(" ".join(each.name for each in task.functions))


def kernel_of(**options: Any) -> Kernel:
    plugins = {"Mail": (send, draft), "Clock": (today,)}
    made = [FunctionPlugin(name, [Function.of(each, plugin=name) for each in own]) for name, own in plugins.items()]
    return Kernel(None, made, **options)


async def offered(kernel: Kernel, **options: Any) -> str:
    return (await kernel.run_goal("Look.", planner=Looking(), **options)).outcome.text


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, "Mail-send Mail-draft Clock-today"),
        ({"functions": ["Mail"]}, "Mail-send Mail-draft"),
        ({"functions": ["Clock.today", "send"]}, "Mail-send Clock-today"),
        ({"exclude": ["Mail"]}, "Clock-today"),
        ({"functions": ["Mail"], "exclude": ["Mail-send"]}, "Mail-draft"),
        ({"functions": []}, ""),
    ],
)
async def test_a_planner_sees_the_functions_that_a_run_names(options: Any, names: str) -> None:
    assert await offered(kernel_of(), **options) == names
    proposal = await kernel_of().propose("Look.", planner=Looking(), **options)
    assert isinstance(proposal.outcome, Answer)
    assert proposal.outcome.text == names


async def test_what_the_kernel_leaves_out_stays_out() -> None:
    kernel = kernel_of(planner_include=["Mail", "Clock"], planner_exclude=["Mail-send"])
    assert await offered(kernel) == "Mail-draft Clock-today"
    assert await offered(kernel, functions=["Mail"]) == "Mail-draft"


async def test_a_wrong_name_is_an_error_before_anything_is_written() -> None:
    kernel = kernel_of(run_store=MemoryRunStore())
    with pytest.raises(FunctionNotFound, match="Clock-today"):
        await offered(kernel, exclude=["Clock-tody"])
    with pytest.raises(FunctionNotFound, match="Clock-today"):
        await offered(kernel, functions=["Clock-tody"])
    with pytest.raises(TypeError, match="several"):
        await offered(kernel, functions="Clock")
    assert kernel.run_store is not None
    assert await kernel.run_store.runs() == []
    with pytest.raises(ConfigurationError, match=r"\[planner\].*Clock-today"):
        await offered(kernel_of(planner_include=["Clock-tody"]))


async def test_a_plan_with_a_function_that_is_left_out_is_refused() -> None:
    plans = [Plan("Send.", (Step("s1", "Mail-send"),)) for _ in range(4)]
    with pytest.raises(PlanInvalid, match="leaves it out"):
        await kernel_of().run_goal("Send.", planner=Looking(*plans), exclude=["send"])


async def test_a_resumed_run_keeps_its_choice() -> None:
    kernel = kernel_of(run_store=MemoryRunStore())
    kernel.approve_plans()
    planner = Looking(Plan("Look.", (Step("s1", "Clock-today"),)))
    await kernel.run_goal("Look.", planner=planner, run="r1", functions=["Clock", "Mail"], exclude=["send"])
    kernel.middleware.plan.clear()
    assert (await kernel.resume("r1", planner=planner)).outcome.text == "Mail-draft Clock-today"


async def test_a_resumed_run_leaves_out_more_than_before_and_only_where_that_is_asked() -> None:
    kernel = kernel_of(run_store=MemoryRunStore())
    kernel.approve_plans()
    for run, exclude, left in (("r1", ["Mail"], "Clock-today"), ("r2", [], "Mail-draft Clock-today")):
        planner = Looking(Plan("Look.", (Step("s1", "Clock-today"),)))
        await kernel.run_goal("Look.", planner=planner, run=run, exclude=["send"])
        with pytest.raises(FunctionNotFound, match="Clock-today"):
            await kernel.resume(run, planner=planner, exclude=["Clock-tody"])
        kernel.middleware.plan.clear()
        assert (await kernel.resume(run, planner=planner, exclude=exclude)).outcome.text == left
        kernel.approve_plans()


async def test_a_turn_takes_plugins_as_a_planner_does() -> None:
    chat = ScriptedChat("Yes.", capabilities=ChatCapabilities(tools=True))
    await kernel_of().complete("Now?", chat=chat, tool_choice=ToolChoice(exclude=("Mail",)))
    assert [tool.name for tool in chat.requests[0].tools] == ["Clock-today"]


def test_a_submitted_goal_keeps_its_choice() -> None:
    job = run_job(kernel_of(), "Look.", functions=("Mail", "Clock"), exclude=["Mail-send"])
    read = read_job(job)
    assert (read["functions"], read["exclude"]) == (["Mail", "Clock"], ["Mail-send"])
