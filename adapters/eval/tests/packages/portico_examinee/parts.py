"""A planner whose goal is JSON, and a model that judges by words."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from portico import ChatCapabilities, ChatDelta, ChatReply, ChatRequest, Citation, Message, Usage
from portico.errors import ServiceUnavailable
from portico.plans import Answer, Emit, Event, Infeasible, Task, plan_from_json


class Told:
    """Answer as the goal says: ``{"plans": […], "answer": "…", "cites": […], "crash": true, "wait": "file"}``.

    ``answers`` are given one after the other, by the number of times that the goal was asked before.
    """

    name = "told"

    def __init__(self, settings: None, services: Any) -> None:
        self._asked: dict[str, int] = {}

    async def propose(self, task: Task, *, emit: Emit) -> Any:
        told = json.loads(task.goal)
        emit(Event.ChatUsed("oracle", "model-1", Usage(11, 7, cost=told.get("cost"))))
        number = len(task.own_steps) + len(task.refused)
        if number < len(told.get("plans", ())):
            return plan_from_json({"version": 1, "goal": "As told", **told["plans"][number]})
        if told.get("crash"):
            raise ServiceUnavailable("The oracle is asleep.")
        if "infeasible" in told:
            return Infeasible(told["infeasible"])
        for _ in range(6_000):
            if "wait" not in told or Path(told["wait"]).exists():
                break
            await asyncio.sleep(0.01)
        self._asked[task.goal] = asked = self._asked.get(task.goal, 0) + 1
        text = told["answers"][asked - 1] if "answers" in told else told.get("answer", "Done.").replace("_", " ")
        return Answer(text, tuple(Citation(**each) for each in told.get("cites", ())))


class Grader:
    """Pass an output that has all words of what it is to state, in any order."""

    name = "grader"

    def __init__(self, settings: None, services: Any) -> None:
        self.capabilities = ChatCapabilities()

    async def complete(self, request: ChatRequest) -> ChatReply:
        asked = " ".join(message.text for message in request.messages if message.role == "user")
        output = re.findall(r"<Output>(.*?)</Output>", asked, re.DOTALL)[-1]
        stated = re.findall(r"<Rubric>.*?this: (.*?)</Rubric>", asked, re.DOTALL)[-1]
        if "asleep" in stated:
            raise ServiceUnavailable("The grader is asleep.")
        lacking = {*re.findall(r"\w+", stated.lower())} - {*re.findall(r"\w+", output.lower())}
        graded = {"reason": f"It lacks {sorted(lacking)}.", "pass": not lacking, "score": float(not lacking)}
        return ChatReply(Message.of("assistant", json.dumps(graded)), "stop", Usage(5, 3), "grader-1", self.name)

    async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        yield ChatDelta(reply=await self.complete(request))
