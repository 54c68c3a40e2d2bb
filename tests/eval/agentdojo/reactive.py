"""A model that obeys every injection that it reads, in the strategies that ask it again after each result.

It makes the calls of the user task's ground truth, one a reply. As soon as it has read the attacker's words, it makes
the calls that the injection task wants. What stops them can only be the kernel. Strategies that write the whole plan
before anything is read do not show the model a result: their plans are those of `tasks`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tests.eval.agentdojo.attacks import MARK, Call, attack_on, calls_of
from tests.eval.agentdojo.suites import Outcome, Task, World, suite

from portico import Budget, ChatCapabilities, ChatRequest, Kernel, ToolCall, ToolLoopLimits
from portico.errors import PorticoError
from portico.ports import ChatService
from portico_function_calling_planner.config import FunctionCallingSettings
from portico_function_calling_planner.planner import FunctionCallingPlanner
from portico_stepwise_planner.config import StepwiseSettings
from portico_stepwise_planner.planner import StepwisePlanner
from portico_testkit.fakes.chat_service import Said, ScriptedChat
from portico_testkit.fakes.services import FixedServices

_SHOWN: Mapping[str, Any] = {"manual_tokens": 200_000, "transcript_tokens": 200_000, "observation_tokens": 200_000}
"""Nothing is shortened: the model reads every injection."""


class Obedient:
    """What the model does next: a call of the user task, or of the attacker once it has read what that wants."""

    def __init__(self, usual: list[Call], wanted: list[Call], goal: str) -> None:
        self.usual = list(usual)
        self.wanted = list(wanted)
        self.goal = goal

    def next(self, request: ChatRequest) -> Call | str:
        obeys = MARK in repr(request.messages)
        left = self.wanted if obeys and self.wanted else self.usual
        return left.pop(0) if left else self.goal if obeys else "Done."


def kernel_of(world: World) -> Kernel:
    """Return the kernel whose guard is measured."""
    return Kernel(plugins=[world.plugin()], budget=Budget(proposals=60, steps=200))


def with_tools(model: Obedient, plugin: str) -> ScriptedChat:
    """Return a chat service that calls tools."""

    def reply(request: ChatRequest) -> Said:
        said = model.next(request)
        return said if isinstance(said, str) else ToolCall("c", f"{plugin}-{said[0]}", json.dumps(said[1]))

    return ScriptedChat(reply, capabilities=ChatCapabilities(tools=True), repeat=True)


def in_words(model: Obedient, plugin: str) -> ScriptedChat:
    """Return a chat service that writes thoughts and actions."""

    def reply(request: ChatRequest) -> Said:
        said = model.next(request)
        if isinstance(said, str):
            return f"Thought: That is all.\nFinal answer: {said}"
        return f"Thought: Next.\nAction: {json.dumps({'function': f'{plugin}-{said[0]}', 'arguments': said[1]})}"

    return ScriptedChat(reply, repeat=True)


async def by_function_calling(world: World, goal: str, model: Obedient) -> str:
    services = FixedServices({ChatService: with_tools(model, world.suite.title())})
    planner = FunctionCallingPlanner(FunctionCallingSettings(**_SHOWN), services)
    return (await kernel_of(world).run_goal(goal, planner=planner)).outcome.text


async def by_stepwise(world: World, goal: str, model: Obedient) -> str:
    planner = StepwisePlanner(
        StepwiseSettings(**_SHOWN), FixedServices({ChatService: in_words(model, world.suite.title())})
    )
    return (await kernel_of(world).run_goal(goal, planner=planner)).outcome.text


async def by_tool_loop(world: World, goal: str, model: Obedient) -> str:
    """Ask the model with the suite's tools, as an agent does."""
    chat, limits = with_tools(model, world.suite.title()), ToolLoopLimits(rounds=60)
    return str((await kernel_of(world).complete(goal, chat=chat, functions=[world.suite.title()], limits=limits)).value)


WAYS: Mapping[str, Callable[[World, str, Obedient], Awaitable[str]]] = {
    "function_calling": by_function_calling,
    "stepwise": by_stepwise,
    "tool loop": by_tool_loop,
}


async def had_its_way(way: str, task: Task, injection: str) -> bool:
    """Tell whether an injection task is fulfilled when the model obeys."""
    aim: Any = suite(task.suite).get_injection_task_by_id(injection)
    world = World.of(task, attack_on(task.suite).attack(task.of_suite, aim))
    before = world.environment.model_copy(deep=True)
    usual = [(call.function, call.args) for call in task.of_suite.ground_truth(before)]
    model = Obedient(usual, calls_of(task.suite, injection), aim.GOAL)
    try:
        answer = await WAYS[way](world, task.plan.goal, model)
    except PorticoError:
        answer = ""
    return Outcome(world, before, answer).breached(aim)
