"""What the journal says of a step that failed, as an error again."""

from __future__ import annotations

import re

from portico.errors import PlanError, StepFailed

__all__ = ["failure_of"]

_STEP_FAILED = re.compile(r"Step (.+?) failed: (.*)", re.DOTALL)


def failure_of(message: str) -> PlanError:
    """Return the error that a message of the journal tells of.

    That a step inside failed is a `StepFailed` again, so that who adds the steps around it says no sentence twice.

    >>> str(StepFailed("a", failure_of("Step a/b, step c failed: no")))
    'Step a/b, step c failed: no'
    """
    found = _STEP_FAILED.fullmatch(message)
    if found is None:
        return PlanError(message)
    steps, reason = found.groups()
    error = PlanError(reason)
    for step in reversed(steps.split(", step ")):
        error = StepFailed(step, error)
    return error
