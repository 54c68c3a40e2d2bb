"""Filters that ask the person at the terminal, and what is done when something else holds a run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from portico_cli.person import Person, is_there

if TYPE_CHECKING:
    from portico.kernel import Kernel
    from portico.plans.task import Emit
    from portico.pursuit import Pursuit
    from portico_cli.invocation import Invocation

__all__ = ["add_approvals", "while_held"]


def add_approvals(
    kernel: Kernel,
    invocation: Invocation,
    quiet: Callable[[], AbstractContextManager[object]],
    *,
    plans: bool,
    effects: bool,
) -> Person | None:
    """Let a kernel ask before plans, or steps with effects, run; without a person it holds them.

    Returns the person, None where nobody is there.
    """
    from portico.approval import approve_effects, approve_plans

    person = Person(kernel, quiet) if is_there(invocation) else None
    if plans:
        kernel.filters.plan.append(approve_plans(person.about_plan if person else None))
    if effects:
        kernel.filters.step.append(approve_effects(kernel, person.about_step if person else None))
    return person


async def while_held(kernel: Kernel, person: Person | None, pursuit: Pursuit, emit: Emit) -> Pursuit:
    """Resume a run that a filter held, as long as the person says so.

    What the person refused is not asked for again, nor is an uncertain step, which a yes would not settle.
    """
    from portico.pursuit import Held

    while person is not None and kernel.run_store is not None:
        held = pursuit.outcome
        if not isinstance(held, Held) or held.uncertain or person.refused or not await person.goes_on(held.reason):
            break
        pursuit = await kernel.resume(pursuit.run, emit=emit)
    return pursuit
