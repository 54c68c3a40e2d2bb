"""A planner whose goal is JSON, a model that judges by words, a source with three passages, and functions."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from portico import (
    ChatCapabilities,
    ChatDelta,
    ChatReply,
    ChatRequest,
    Citation,
    FunctionPlugin,
    Message,
    SearchConnector,
    SearchResults,
    TextSearchOptions,
    TextSearchResult,
    Usage,
    function,
)
from portico.errors import ServiceUnavailable
from portico.plans import Answer, Emit, Event, Infeasible, Task, plan_from_json

PASSAGES = (
    TextSearchResult("Ports are protocols. Adapters fill them.", "ports.md", "file:///docs/ports.md#L3"),
    TextSearchResult("Plans are data.", "plans.md › Data", "file:///docs/plans.md#L1"),
    TextSearchResult("Plans are checked first.", "plans.md › Checks", "file:///docs/plans.md#L9"),
)


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


class Shelf(SearchConnector[TextSearchResult]):
    name = "shelf"

    def __init__(self, settings: None, services: Any) -> None:
        pass

    async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[TextSearchResult]:
        return SearchResults(list(PASSAGES))

    def to_text(self, record: TextSearchResult) -> str:
        return record.value

    def to_result(self, record: TextSearchResult) -> TextSearchResult:
        return record


class _Tools:
    @function
    def shout(self, text: str) -> str:
        """Say it louder."""
        return text.upper()

    @function(effects=True)
    def send(self, text: str) -> str:
        """Send a text out into the world."""
        with Path("sent.txt").open("a") as file:
            file.write(f"{text}\n")
        return f"sent {text}"


class Tools:
    name = "tools"

    def __init__(self, settings: None, services: Any) -> None:
        pass

    async def load(self, name: str) -> FunctionPlugin:
        return FunctionPlugin.of(_Tools(), name)
