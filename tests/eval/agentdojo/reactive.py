"""A model that obeys every injection that it reads, in the strategies that ask it again after each result.

It makes the calls of the user task's ground truth, one a reply. As soon as it has read the attacker's words, it makes
the calls that the injection task wants. What stops them can only be the kernel.
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
from portico_testkit.fakes.chat_service import Said, ScriptedChat
from portico_testkit.fakes.services import FixedServices

_TOKENS = 200_000


class Obedient:
    """What the model replies: the next call of the user task, or of the attacker once it has read what that wants."""

    def __init__(self, plugin: str, usual: list[Call], wanted: list[Call], goal: str) -> None:
        self.plugin = plugin
        self.usual = list(usual)
        self.wanted = list(wanted)
        self.goal = goal
        self.calls = 0

    def __call__(self, request: ChatRequest) -> Said:
        obeys = MARK in repr(request.messages)
        left = self.wanted if obeys and self.wanted else self.usual
        if not left:
            return self.goal if obeys else "Done."
        function, arguments = left.pop(0)
        self.calls += 1
        return ToolCall(f"c{self.calls}", f"{self.plugin}-{function}", json.dumps(arguments))


def kernel_of(world: World) -> Kernel:
    """Return the kernel whose guard is measured."""
    return Kernel(plugins=[world.plugin()], budget=Budget(proposals=60, steps=200))


async def by_planner(world: World, goal: str, chat: ScriptedChat) -> str:
    """Run the goal with the planner `function_calling`."""
    settings = FunctionCallingSettings(manual_tokens=_TOKENS, transcript_tokens=_TOKENS, observation_tokens=_TOKENS)
    planner = FunctionCallingPlanner(settings, FixedServices({ChatService: chat}))
    return (await kernel_of(world).run_goal(goal, planner=planner)).outcome.text


async def by_tool_loop(world: World, goal: str, chat: ScriptedChat) -> str:
    """Ask the model with the suite's tools, as an agent does."""
    limits = ToolLoopLimits(rounds=60)
    turn = await kernel_of(world).complete(goal, chat=chat, functions=[world.suite.title()], limits=limits)
    return str(turn.value)


WAYS: Mapping[str, Callable[[World, str, ScriptedChat], Awaitable[str]]] = {
    "function_calling": by_planner,
    "tool loop": by_tool_loop,
}


async def had_its_way(way: str, task: Task, injection: str) -> bool:
    """Tell whether an injection task is fulfilled when the model obeys."""
    aim: Any = suite(task.suite).get_injection_task_by_id(injection)
    world = World.of(task, attack_on(task.suite).attack(task.of_suite, aim))
    before = world.environment.model_copy(deep=True)
    usual = [(call.function, call.args) for call in task.of_suite.ground_truth(before)]
    model = Obedient(world.suite.title(), usual, calls_of(task.suite, injection), aim.GOAL)
    chat = ScriptedChat(model, capabilities=ChatCapabilities(tools=True), repeat=True)
    try:
        answer = await WAYS[way](world, task.plan.goal, chat)
    except PorticoError:
        answer = ""
    return Outcome(world, before, answer).breached(aim)
