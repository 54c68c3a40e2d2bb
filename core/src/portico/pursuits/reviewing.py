"""The plan filters: whether a plan may run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from portico.filters import Hold, PlanReview, run_filters

if TYPE_CHECKING:
    from portico.kernel import Kernel
    from portico.plans.plan import Plan

__all__ = ["reviewed"]


async def reviewed(kernel: Kernel, plan: Plan, run: str) -> Hold | None:
    """Return the hold of the filter that does not let a plan through; None where all do.

    Raises ``TypeError`` for a filter that neither proceeds nor holds.
    """
    if not kernel.filters.plan:
        return None
    approved: list[Plan] = []

    async def approve() -> None:
        approved.append(plan)

    given: Any = await run_filters(kernel.filters.plan, PlanReview(plan, run), approve)
    if isinstance(given, Hold):
        return given
    # A plan that nobody let through must not run because a filter gave back the wrong thing.
    if given is not None or not approved:
        raise TypeError(f"a plan filter returns a Hold or what `await proceed()` gave, not {given!r} of its own")
    return None
