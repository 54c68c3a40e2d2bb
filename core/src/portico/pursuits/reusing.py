"""Plans that were kept: run in place of a proposal, and kept when they led to an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from portico.errors import StoreError
from portico.plans.plan import INPUT, Plan, references
from portico.plans.reuse import StalePlan, find_plan, saved_plan

if TYPE_CHECKING:
    from portico.functions import FunctionManual
    from portico.ports.plan_store import PlanStore

__all__ = ["keep", "kept_plan"]


async def kept_plan(
    store: PlanStore, goal: str, manuals: Mapping[str, FunctionManual]
) -> tuple[Plan, str] | str | None:
    """Return the plan kept for a goal and when it was saved; or why there is none to use, None where there is none."""
    found = await find_plan(store, goal, manuals)
    if found is None:
        return None
    if isinstance(found, StalePlan):
        return str(found)
    # What another planner noted to itself, another time, says nothing to this one.
    return replace(found.plan, notes=None), found.saved.saved_at


async def keep(
    store: PlanStore, goal: str, plan: Plan, manuals: Mapping[str, FunctionManual], *, planner: str, with_input: bool
) -> str | None:
    """Keep a plan that led to an answer; return the warning where that failed, for the answer is there all the same.

    A plan that was made for an input but does not refer to it may have the input's values in it: it is not kept.
    """
    if plan.result is None or (with_input and not _refers_to_input(plan)):
        return None
    try:
        await store.put(saved_plan(goal, plan, manuals, planner=planner))
    except StoreError as error:
        return f"The plan could not be saved: {error}"
    return None


def _refers_to_input(plan: Plan) -> bool:
    expressions = [argument for step in plan.steps for argument in step.arguments.values()]
    expressions += [] if plan.result is None else [plan.result]
    return any(reference.step == INPUT for expression in expressions for reference in references(expression))
