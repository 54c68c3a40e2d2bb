"""Approval of plans and steps by a person, as middleware."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from portico._functions.middleware import PlanReview, RequireApproval, StepRun
from portico._plans.functions import plan_of
from portico._plans.plan import Plan, PlanTemplate

if TYPE_CHECKING:
    from portico._kernel_like import KernelLike

DecidePlan: TypeAlias = Callable[[PlanReview], Awaitable[bool | str]]
DecideStep: TypeAlias = Callable[[StepRun], Awaitable[bool | str]]
"""True lets it go on; False, or the reason in words, holds it."""

_PLAN_WAITS = "the plan waits for approval"
_PLAN_REFUSED = "the plan was not approved"


def approve_plans(decide: DecidePlan | None = None) -> Callable[[PlanReview, Any], Awaitable[RequireApproval | None]]:
    """Return a plan filter that holds every plan which ``decide`` does not let through; without it, every plan.

    >>> from portico import Kernel, function
    >>> from portico._plans.plan import From, Step, Value
    >>> @function
    ... def shout(text: str) -> str:
    ...     return text.upper()
    >>> async def yes(review):
    ...     return len(review.plan.steps) < 10
    >>> kernel = Kernel()
    >>> _ = kernel.add_function(shout)
    >>> kernel.middleware.plan.append(approve_plans(yes))
    >>> plan = Plan("Shout", (Step("s1", "shout", {"text": Value("hey")}),), result=From("s1"))
    >>> kernel.run_sync(kernel.run_plan(plan)).outcome.text
    'HEY'

    A plan that is held can be resumed; then it is asked for again.
    """

    async def filter(
        review: PlanReview, proceed: Callable[[], Awaitable[RequireApproval | None]]
    ) -> RequireApproval | None:
        if decide is None:
            return RequireApproval(_PLAN_WAITS)
        decided = await decide(review)
        return await proceed() if decided is True else RequireApproval(decided or _PLAN_REFUSED)

    return filter


def approve_effects(kernel: KernelLike, decide: DecideStep | None = None) -> Callable[[StepRun, Any], Awaitable[Any]]:
    """Return a step filter that holds each step with effects which ``decide`` does not let through.

    ``decide`` is asked about one step at a time, also where several are ready at once; it may look at the arguments
    that the step is given. Without it, every such step is held. Steps without effects are not asked for. Of a nested
    plan each step is asked for by itself.
    """
    asking = asyncio.Lock()

    async def filter(run: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        if not _has_effects(kernel, run):
            return await proceed()
        if decide is None:
            return RequireApproval(f"the step {run.step.id} has effects and waits for approval")
        async with asking:
            decided = await decide(run)
        return (
            await proceed()
            if decided is True
            else RequireApproval(decided or f"the step {run.step.id} was not approved")
        )

    return filter


def _has_effects(kernel: KernelLike, run: StepRun) -> bool:
    called = run.step.function
    if isinstance(called, Plan | PlanTemplate):
        return False
    function = kernel.functions.get(called)
    return function is not None and function.effects and plan_of(function) is None
