"""Functions that run plans which call each other in a circle: whatever is begun there never comes to an end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from portico.errors import PorticoError
from portico.plans.checking.around import Around
from portico.plans.checking.cycles import cycles
from portico.plans.checking.notes import Notes
from portico.plans.plan import Plan, PlanTemplate

__all__ = ["check_circles"]

_MOST = 20
_SHOWN = 12


def check_circles(calls: Iterable[str], around: Around, notes: Notes) -> None:
    """Note each way round among the plans that called functions run; once in a check.

    Steps always call what they say, so that a circle of steps is an error. What is written in a template may stand
    under a condition: a circle that goes through one is a warning.
    """
    if around.plans is None:
        return
    surely: dict[str, list[str]] = {}
    written: dict[str, list[str]] = {}
    left = [name for call in calls if (name := _meant(call, around)) is not None]
    while left:
        name = left.pop()
        if name in around.walked:
            continue
        around.walked.add(name)
        plan = around.plans(name)
        if plan is None:
            continue
        surely[name], written[name] = [], []
        for call, sure in _calls(plan, around):
            called = _meant(call, around)
            if called is not None:
                (surely if sure else written)[name].append(called)
        left += surely[name] + written[name]
    if not surely:
        return
    either = {name: [*surely[name], *written[name]] for name in surely}
    for severity, graph in (("error", surely), ("warning", either)):
        for circle in islice(cycles(graph), _MOST):
            # One way round is enough of those that meet.
            if around.circling.isdisjoint(circle):
                around.circling.update(circle)
                verb = "calls" if severity == "error" else "may call"
                shown = circle if len(circle) <= _SHOWN else [*circle[: _SHOWN - 2], "…", *circle[-2:]]
                way = " -> ".join(shown)
                message = f"the plan {circle[0]} {verb} itself: {way}; take one of these calls away"
                notes.add(message, ("function",), severity=severity)


def _meant(name: str, around: Around) -> str | None:
    return name if name in around.catalogue else around.names.meant(name)


def _calls(plan: Plan, around: Around) -> Iterator[tuple[str, bool]]:
    """Yield the functions that a plan calls, and whether it surely does."""
    plans = [plan]
    while plans:
        for step in plans.pop().steps:
            function = step.function
            if isinstance(function, str):
                yield function, True
            elif isinstance(function, Plan):
                plans.append(function)
            else:
                yield from ((name, False) for name in _written(function, around))


def _written(template: PlanTemplate, around: Around) -> Iterator[str]:
    if around.templates is None:
        return
    try:
        compiled = around.templates(template.source, template.language)
    except PorticoError:
        # What is wrong with it is noted when the plan that it belongs to is checked.
        return
    for call in getattr(compiled, "calls", ()):
        yield call.function
