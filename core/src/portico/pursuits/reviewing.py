"""The plan filters: whether a plan may run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from portico.middleware import PlanReview, RequireApproval, run_middleware

if TYPE_CHECKING:
    from portico.kernel import Kernel
    from portico.plans.plan import Plan

__all__ = ["reviewed"]


async def reviewed(kernel: Kernel, plan: Plan, run: str) -> RequireApproval | None:
    """Return the hold of the filter that does not let a plan through; None where all do.

    Raises ``TypeError`` for a filter that neither proceeds nor holds.
    """
    if not kernel.middleware.plan:
        return None
    approved: list[Plan] = []

    async def approve() -> None:
        approved.append(plan)

    given: Any = await run_middleware(kernel.middleware.plan, PlanReview(plan, run), approve)
    if isinstance(given, RequireApproval):
        return given
    # A plan that nobody let through must not run because a filter gave back the wrong thing.
    if given is not None or not approved:
        raise TypeError(f"a plan middleware returns a RequireApproval or what `await proceed()` gave, not {given!r}")
    return None
