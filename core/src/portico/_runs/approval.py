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
"""True approves; False, or the reason in words, pauses."""


def plan_approval(decide: DecidePlan | None) -> Callable[[PlanReview, Any], Awaitable[RequireApproval | None]]:
    """Return middleware that pauses every plan which ``decide`` does not approve."""

    async def approve(
        review: PlanReview, proceed: Callable[[], Awaitable[RequireApproval | None]]
    ) -> RequireApproval | None:
        if decide is None:
            return RequireApproval("the plan waits for approval")
        decided = await decide(review)
        return await proceed() if decided is True else RequireApproval(decided or "the plan was not approved")

    return approve


def effect_approval(kernel: KernelLike, decide: DecideStep | None) -> Callable[[StepRun, Any], Awaitable[Any]]:
    """Return middleware that pauses each step with effects which ``decide`` does not approve, one at a time."""
    asking = asyncio.Lock()

    async def approve(run: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        if not _has_effects(kernel, run):
            return await proceed()
        if decide is None:
            return RequireApproval(f"the step {run.step.id} has effects and waits for approval")
        async with asking:
            decided = await decide(run)
        if decided is True:
            return await proceed()
        return RequireApproval(decided or f"the step {run.step.id} was not approved")

    return approve


def _has_effects(kernel: KernelLike, run: StepRun) -> bool:
    called = run.step.function
    if isinstance(called, Plan | PlanTemplate):
        return False
    function = kernel.functions.get(called)
    return function is not None and function.effects and plan_of(function) is None
