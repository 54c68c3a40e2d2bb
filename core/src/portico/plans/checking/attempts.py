"""How long a step may take, and how often it may be tried."""

from __future__ import annotations

from collections.abc import Sequence

from portico.plans.checking.around import Around
from portico.plans.checking.notes import Notes
from portico.plans.plan import Plan, PlanTemplate, Step

__all__ = ["check_attempts", "check_bounds"]


def check_bounds(step: Step, around: Around, notes: Notes) -> None:
    """Note time-outs and numbers of tries that no step can have."""
    if step.seconds is not None and not step.seconds > 0:
        notes.add(f"a step has more than 0 seconds, not {step.seconds!r}", ("seconds",))
    if step.attempts is not None and step.attempts < 1:
        notes.add(f"a step is tried once at least, not {step.attempts!r} times", ("attempts",))
    elif not isinstance(step.function, PlanTemplate):
        check_attempts(step, _functions(step.function), around, notes)


def check_attempts(step: Step, functions: Sequence[str], around: Around, notes: Notes) -> None:
    """Note a function with effects in a step that is to be tried again."""
    if step.attempts is None or step.attempts < 2:
        return
    for name in functions:
        found = name if name in around.catalogue else around.names.meant(name)
        if found is not None and around.catalogue[found].effects:
            message = f"{found} has effects: it must not happen twice, and is tried once only"
            notes.add(message, ("attempts",), new=None)
            return


def _functions(function: str | Plan | PlanTemplate) -> list[str]:
    if isinstance(function, Plan):
        return [name for step in function.steps for name in _functions(step.function)]
    return [function] if isinstance(function, str) else []
