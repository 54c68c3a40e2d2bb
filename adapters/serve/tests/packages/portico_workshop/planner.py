"""A planner that proposes the plans of its goal, one after the other, and then answers."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

from portico import Citation, Usage
from portico.plans import Answer, Emit, Event, Infeasible, Task, plan_from_json


class Obedient:
    """The goal is JSON: ``{"plans": […], "answer": "…", "citations": […]}``; a goal in words is infeasible."""

    name = "obedient"

    def __init__(self, settings: None, services: Any) -> None:
        pass

    async def propose(self, task: Task, *, emit: Emit) -> Any:
        try:
            asked = json.loads(task.goal)
        except ValueError:
            return Infeasible("the goal is only words", ("a plan",))
        emit(Event.ChatUsed("oracle", "model-1", Usage(11, 7, cost=0.25)))
        if asked.get("crash"):
            raise RuntimeError("the planner fell over")
        number = (task.notes or {}).get("next", 0) + len(task.refused)
        if number < len(asked.get("plans", ())):
            plan = plan_from_json({"version": 2, "goal": "", **asked["plans"][number]})
            return replace(plan, goal="Do it", notes={"next": number + 1})
        for word in asked.get("answer", "Done.").split(" "):
            emit(Event.TextDelta(f"{word} "))
            await asyncio.sleep(asked.get("pause", 0))
        cited = tuple(Citation(**each) for each in asked.get("citations", ()))
        return Answer(asked.get("answer", "Done."), cited)
