"""What a package can watch: middleware around runs, proposals and turns, and the origin of runs."""

from __future__ import annotations

from typing import Any

import pytest

from portico import ChatAgent, From, Kernel, Plan, ProposalInvocation, RunInvocation, Step, TurnInvocation, function
from portico.errors import StepFailed
from portico.plugins import RunState
from portico.ports import ChatService
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.planner import ScriptedPlanner
from portico_testkit.fakes.run_store import MemoryRunStore

PLAN = Plan("Tell the time", (Step("s1", "now", {}),), From("s1"))


@function
def now() -> str:
    """Tell the time."""
    return "noon"


def observed(**options: Any) -> tuple[Kernel, list[Any]]:
    kernel, seen = Kernel(**options), list[Any]()
    kernel.add_function(now)

    async def note(context: Any, proceed: Any) -> Any:
        seen.append(context)
        result = await proceed()
        seen.append(result)
        return result

    kernel.middleware.run.append(note)
    kernel.middleware.proposal.append(note)
    return kernel, seen


async def test_a_run_and_its_proposals_have_middleware_around_them() -> None:
    kernel, seen = observed()
    run = await kernel.run_goal("Tell the time", planner=ScriptedPlanner(PLAN))
    beginning, asked, proposed, ended = seen
    assert beginning == RunInvocation(run.name, "Tell the time", "scripted")
    assert isinstance(asked, ProposalInvocation)
    assert (asked.planner, asked.task.goal) == ("scripted", "Tell the time")
    assert proposed.steps == PLAN.steps
    assert ended is run


async def test_what_runs_without_a_proposal_is_told_and_an_error_comes_out_of_the_middleware() -> None:
    kernel, seen = observed()
    kernel.middleware.step.append(_refuse)
    with pytest.raises(StepFailed):
        await kernel.run_plan(PLAN)
    (beginning,) = seen
    assert (beginning.plan, beginning.resumed) == (PLAN, False)


async def _refuse(context: Any, proceed: Any) -> Any:
    raise LookupError("not now")


async def test_the_origin_of_a_run_has_what_middleware_adds_and_a_resumed_run_gets_it() -> None:
    store = MemoryRunStore()
    kernel, seen = observed(run_store=store)
    kernel.origin = {"application": "clock", "place": "here"}
    kernel.middleware.origin.append(lambda: {"place": "there", "trace": "t1"})
    kernel.approve_plans()
    run = await kernel.run_plan(PLAN)
    wanted = {"application": "clock", "place": "there", "trace": "t1"}
    assert RunState.of(await store.read(run.name)).origin == wanted
    kernel.middleware.plan.clear()
    await kernel.resume(run.name)
    resumed = next(each for each in seen if isinstance(each, RunInvocation) and each.resumed)
    assert (resumed.run, resumed.plan.steps, resumed.origin) == (run.name, PLAN.steps, wanted)


async def test_a_turn_has_middleware_that_passes_its_events_on() -> None:
    kernel = Kernel({ChatService: ScriptedChat("Noon.", "One.")})
    seen: list[Any] = []

    async def note(context: Any, events: Any) -> Any:
        seen.append(context)
        async for event in events:
            seen.append(type(event).__name__)
            yield event

    kernel.middleware.turn.append(note)
    agent = ChatAgent("clock", kernel=kernel)
    reply = await agent.invoke("When is it?")
    assert seen == [TurnInvocation("clock", reply.thread.id), "AgentReply"]
    assert [type(event).__name__ async for event in agent.stream("And now?")] == seen[3:]
