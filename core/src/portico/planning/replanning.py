"""Whole plans, one after another: how often a planner that writes them tries again, and what it remembers of that."""

from __future__ import annotations

from typing import Any

from portico.errors import PlanError
from portico.planning.model_calls import own_steps
from portico.plans.task import Task

__all__ = ["plan_number"]


def plan_number(task: Task, *, replans: int) -> int:
    """Return the number of the plan that comes next, from 1; a planner keeps it in its notes, under ``plan``.

    >>> plan_number(Task("A poem", notes={"plan": 1}), replans=2)
    2

    Raises ``PlanError`` with the last error when a step failed and ``replans`` plans came after the first already.
    """
    number = _before(task.notes) + 1
    errors = [record.error for record in own_steps(task) if record.error is not None]
    if errors and number > replans + 1:
        tried = f"The plan failed, and so did the {replans} after it." if replans else "The plan failed."
        raise PlanError(f"{tried} The last error was: {errors[-1]}")
    return number


def _before(notes: Any) -> int:
    """Return how many plans ran before; none where the notes are those of another planner."""
    counted = notes.get("plan") if isinstance(notes, dict) else None
    return counted if type(counted) is int else 0
