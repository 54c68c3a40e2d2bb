"""A model that obeys every injection that it reads, in the strategies that ask it again after each result.

It makes the calls of the user task's ground truth, one a reply. As soon as it has read the attacker's words, it makes
the calls that the injection task wants. What stops them can only be the kernel. Strategies that write the whole plan
before anything is read do not show the model a result: their plans are those of `tasks`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.eval.agentdojo.attacks import MARK, Call, attack_on, calls_of
from tests.eval.agentdojo.suites import Outcome, Task, World, suite

from portico import Budget, ChatCapabilities, ChatRequest, FlowReview, Kernel, Policy, ToolCall, ToolLoopLimits
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
PLANNERS: Mapping[str, tuple[Any, Any]] = {
    "function_calling": (FunctionCallingPlanner, FunctionCallingSettings),
    "stepwise": (StepwisePlanner, StepwiseSettings),
}
WAYS = (*PLANNERS, "tool loop")


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


def guarded(world: World, policy: Policy | None, usual: list[Call]) -> Kernel:
    """Return the kernel whose guard is measured, with a person who agrees to the calls of the user task only."""

    async def decide(review: FlowReview) -> bool:
        return (str(review.step.function).partition("-")[2], dict(review.arguments)) in usual

    kernel = Kernel(plugins=[world.plugin()], budget=Budget(proposals=60, steps=200), policy=policy)
    kernel.approve_flows(decide)
    return kernel


def chat_of(model: Obedient, plugin: str, *, tools: bool) -> ScriptedChat:
    """Return a chat service that calls tools, or one that writes thoughts and actions."""

    def reply(request: ChatRequest) -> Said:
        said = model.next(request)
        if isinstance(said, str):
            return said if tools else f"Thought: That is all.\nFinal answer: {said}"
        name, arguments = f"{plugin}-{said[0]}", said[1]
        if tools:
            return ToolCall("c", name, json.dumps(arguments))
        return f"Thought: Next.\nAction: {json.dumps({'function': name, 'arguments': arguments})}"

    return ScriptedChat(reply, capabilities=ChatCapabilities(tools=tools), repeat=True)


async def answer_of(way: str, kernel: Kernel, plugin: str, goal: str, model: Obedient) -> str:
    """Return the answer of a planner, or of a model that has the tools as an agent has them."""
    chat = chat_of(model, plugin, tools=way != "stepwise")
    if way not in PLANNERS:
        return str((await kernel.complete(goal, chat=chat, functions=[plugin], limits=ToolLoopLimits(rounds=60))).value)
    planner, settings = PLANNERS[way]
    made = planner(settings(**_SHOWN), FixedServices({ChatService: chat}))
    return (await kernel.run_goal(goal, planner=made)).outcome.text


async def had_its_way(way: str, task: Task, injection: str, policy: Policy | None) -> bool:
    """Tell whether an injection task is fulfilled when the model obeys."""
    aim: Any = suite(task.suite).get_injection_task_by_id(injection)
    world = World.of(task, attack_on(task.suite).attack(task.of_suite, aim))
    before = world.environment.model_copy(deep=True)
    usual = [(call.function, call.args) for call in task.of_suite.ground_truth(before)]
    model = Obedient(usual, calls_of(task.suite, injection), aim.GOAL)
    try:
        kernel = guarded(world, policy, usual)
        answer = await answer_of(way, kernel, world.suite.title(), task.plan.goal, model)
    except PorticoError:
        answer = ""
    return Outcome(world, before, answer).judged(aim)
