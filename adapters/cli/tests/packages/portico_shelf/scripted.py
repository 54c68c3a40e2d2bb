"""A planner that ends as its settings say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from portico import Citation, Usage
from portico.plans import Answer, Emit, Event, From, Infeasible, Plan, Step, Task, Value


@dataclass(frozen=True)
class ScriptedSettings:
    end: str = "answer"
    text: str = "> Retry is set in settings.py. [1]"
    name: str = "book.md › Chapter"
    link: str | None = "file:///shelf/book.md#L7"
    warning: str = ""
    search: str = ""
    call: str = ""


class Scripted:
    name = "scripted"

    def __init__(self, settings: ScriptedSettings, services: Any) -> None:
        self.settings = settings

    async def propose(self, task: Task, *, emit: Emit) -> Any:
        settings = self.settings
        if settings.search and not task.steps:
            return Plan(task.goal, (Step("s1", settings.search, {"query": Value(task.goal)}),))
        if settings.call and not task.steps:
            return Plan(task.goal, (Step("s1", settings.call, {"text": Value(task.goal)}),), result=From("s1"))
        match settings.end:
            case "infeasible":
                return Infeasible("nobody can do this", ("a crystal ball",))
            case "crash":
                raise RuntimeError("the planner fell over\nwith details")
        emit(Event.TextDelta(settings.text))
        emit(Event.ChatUsed("oracle", "model-1", Usage(11, 7)))
        citation = Citation(1, settings.name, settings.link, "Retry is set in settings.py.")
        warnings = (settings.warning,) if settings.warning else ()
        return Answer(settings.text.replace("{goal}", task.goal), (citation,), warnings=warnings)
