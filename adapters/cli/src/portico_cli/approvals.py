"""Middleware that ask the person at the terminal."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from portico_cli.person import Person, is_there

if TYPE_CHECKING:
    from portico.approval import DecidePlan
    from portico.kernel import Kernel
    from portico.middleware import PlanReview
    from portico.plans.plan import Plan, PlanTemplate
    from portico_cli.invocation import Invocation

__all__ = ["add_approvals", "may_have_effects"]


def add_approvals(
    kernel: Kernel,
    invocation: Invocation,
    quiet: Callable[[], AbstractContextManager[object]],
    *,
    plans: bool,
    effects: bool,
    yes: bool,
) -> Person | None:
    """Let a kernel ask before plans, or steps with effects, run; without a person it holds them.

    A person who asks for neither is asked about plans that may do something in the world, but for ``yes``. Returns the
    person, None where nobody is there.
    """
    from portico.approval import approve_effects, approve_plans

    person = Person(kernel, quiet) if is_there(invocation) else None
    if plans:
        kernel.middleware.plan.append(approve_plans(person.about_plan if person else None))
    if effects:
        kernel.middleware.step.append(approve_effects(kernel, person.about_step if person else None))
    if person is not None and not (plans or effects or yes):
        kernel.middleware.plan.append(approve_plans(_where_effects(kernel, person)))
    return person


def _where_effects(kernel: Kernel, person: Person) -> DecidePlan:
    async def decide(review: PlanReview) -> bool | str:
        return await person.about_plan(review) if may_have_effects(kernel, review.plan) else True

    return decide


def may_have_effects(kernel: Kernel, plan: Plan) -> bool:
    """Tell whether a plan calls a function with effects, or has a template of which that is not known."""
    from portico.plans.plan import Plan, PlanTemplate

    def has(name: str) -> bool:
        return name in kernel.manuals and kernel.manuals[name].effects

    for step in plan.steps:
        match step.function:
            case Plan() as nested:
                found = may_have_effects(kernel, nested)
            case PlanTemplate() as template:
                called = _called_by(kernel, template)
                found = any(map(has, kernel.manuals if called is None else called))
            case name:
                found = has(name)
        if found:
            return True
    return False


def _called_by(kernel: Kernel, template: PlanTemplate) -> list[str] | None:
    """Return the names of the functions that a template calls, None where its language does not tell."""
    from portico.errors import PorticoError

    try:
        calls = getattr(kernel.template(template.source, language=template.language), "calls", None)
        return None if calls is None else [kernel.function(call.function).full_name for call in calls]
    except PorticoError:
        # The check says what is wrong with it.
        return None
