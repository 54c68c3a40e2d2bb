"""A planner that proposes what it is told to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from portico.errors import PlanError
from portico.plans import Answer, Emit, Infeasible, Plan, Task

__all__ = ["ScriptedPlanner"]

Proposal: TypeAlias = Plan | Answer | Infeasible


class ScriptedPlanner:
    """Propose the parts of a script, one after the other; a part may be made from the task by a function.

    >>> planner = ScriptedPlanner(Plan("greet"), lambda task: Answer(f"{len(task.steps)} steps"))

    How far the script has come is told by the task alone: by the notes of the last plan that ran or was
    refused. So one planner may serve several runs at once. ``tasks`` are those that it was given, for
    tests to look at. Raises ``PlanError`` at the end of the script.
    """

    name = "scripted"

    def __init__(self, *script: Proposal | Callable[[Task], Proposal]) -> None:
        self._script: Sequence[Proposal | Callable[[Task], Proposal]] = script
        self.tasks: list[Task] = []

    async def propose(self, task: Task, *, emit: Emit) -> Proposal:
        """Return the next part of the script."""
        self.tasks.append(task)
        notes: Any = task.refused[-1].plan.notes if task.refused else task.notes
        position = notes["script"] if isinstance(notes, dict) else 0
        if position >= len(self._script):
            raise PlanError(f"The script has {len(self._script)} parts and no more.")
        part = self._script[position]
        proposal = part(task) if callable(part) else part
        return replace(proposal, notes={"script": position + 1}) if isinstance(proposal, Plan) else proposal
