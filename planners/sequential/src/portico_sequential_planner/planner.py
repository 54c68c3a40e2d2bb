"""The sequential strategy: a model writes the whole plan at once, in XML."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from portico import Message
from portico.plans import (
    Answer,
    Asking,
    Emit,
    Expression,
    FittedFunctions,
    From,
    Infeasible,
    Plan,
    Task,
    TextOf,
    XmlPlan,
    references,
)
from portico.plugins import Services
from portico.ports import ChatService
from portico_sequential_planner._prompt import finished_steps, messages_for, repair
from portico_sequential_planner._reply import read_reply
from portico_sequential_planner.config import SequentialSettings


class SequentialPlanner:
    """Reach a goal with one plan, written by a model as XML in the form of Semantic Kernel's sequential planner.

    >>> SequentialPlanner.name
    'sequential'

    The reply is parsed strictly, then tolerantly where only one reading is possible; what was mended is in the
    plan's notes, under ``recovered``. A reply that is no plan goes back to the model with what is wrong and where,
    ``repairs`` times; then it is a ``PlanError``. What the loop refuses comes back with the findings. A plan that
    failed half-way is followed by another one, ``replans`` times, which may use the results that there are.
    ``<plan/>`` makes the goal infeasible.
    """

    name = "sequential"
    asks_model = True

    def __init__(self, settings: SequentialSettings, services: Services) -> None:
        self._settings = settings
        self._services = services

    async def propose(self, task: Task, *, emit: Emit) -> Plan | Answer | Infeasible:
        """Ask the model for a plan; raises ``PlanError`` when it writes none that can be read."""
        task.require_functions()
        settings = self._settings
        number = task.plan_number(replans=settings.replans)
        fitted = FittedFunctions.of(task.functions, task.goal, tokens=settings.manual_tokens)
        messages = messages_for(task, fitted.text, instructions=settings.instructions)
        read, text = await self._read(task, messages, emit)
        if isinstance(read, Infeasible):
            return fitted.explain(read)
        result = _with_results_before(read.plan.result, task)
        # What the model wrote is what it is shown again where the plan is refused, or fails.
        notes: dict[str, Any] = {"plan": number, "written": text}
        if result is not None:
            notes["result"] = list(dict.fromkeys(reference.step for reference in references(result)))
        if read.recovered:
            notes["recovered"] = [str(mend) for mend in read.recovered]
        return replace(read.plan, result=result, notes=notes)

    async def _read(self, task: Task, messages: list[Message], emit: Emit) -> tuple[XmlPlan | Infeasible, str]:
        settings = self._settings
        chat = self._services.get(ChatService, settings.chat)
        catalogue = {spec.name: spec for spec in task.functions}
        finished = {record.step.id for record in finished_steps(task)}
        taken = {record.step.id for record in task.steps}
        request = Asking.request(messages, settings)

        def read(text: str) -> XmlPlan | Infeasible:
            has_input = task.input is not None
            return read_reply(text, catalogue, goal=task.goal, finished=finished, taken=taken, has_input=has_input)

        return await Asking.until_usable(chat, request, emit, read=read, repair=repair, repairs=settings.repairs)


def _with_results_before(result: Expression | None, task: Task) -> Expression | None:
    """Put before a plan's result what is done of the result of the plan that failed: nobody writes it again."""
    marked = task.notes.get("result") if isinstance(task.notes, dict) else None
    if not isinstance(marked, list) or result is None:
        return result
    finished = {record.step.id for record in finished_steps(task)}
    before = [From(step) for step in marked if isinstance(step, str) and step in finished]
    here = {reference.step for reference in references(result)}
    parts: list[str | Expression] = []
    for reference in before:
        if reference.step not in here:
            parts += (reference, "\n")
    if not parts:
        return result
    return TextOf((*parts, *(result.parts if isinstance(result, TextOf) else (result,))))
