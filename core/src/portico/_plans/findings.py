"""Findings of a check, and how to fix a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from portico._plans.plan import STEP_OPTIONS, Expression, ListOf, ObjectOf, Plan, Step


@dataclass(frozen=True, slots=True)
class Fix:
    """One place of a plan, and what belongs there.

    ``within`` are the ids of the steps around the place, the outermost first. ``place`` is a path in the step's JSON
    form: ``("function",)``, ``("arguments", "day", "object", "date")``, ``("attempts",)``. ``new`` is the new
    expression; a string is the new name of the function or argument; None removes what is there.
    """

    within: tuple[str, ...]
    place: tuple[str | int, ...]
    new: Expression | str | None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a check found, with the step and the place inside it.

    ``severity`` is "error" or "warning". ``nearest`` are the names or paths that may be meant, the likeliest first.
    ``fix`` is set if only one thing can be meant; `fix_plan` applies it. ``hint`` is advice that not every form of
    plans can follow, such as a path that would fit; `words` is the message with the hint. ``unknown_function`` is the
    name of a function that the catalogue does not have. ``verdict`` is "ask" or "refuse" where a value may not flow
    to the place unasked, or at all.

    >>> str(Finding("there is no function 'wether'; nearest: weather", "s1", "function", nearest=("weather",)))
    "s1 function: there is no function 'wether'; nearest: weather"
    """

    message: str
    step: str | None = None
    place: str = ""
    severity: str = "error"
    nearest: tuple[str, ...] = ()
    fix: Fix | None = None
    hint: str = ""
    unknown_function: str = ""
    verdict: str = ""

    @property
    def words(self) -> str:
        """The message with the hint, without step and place."""
        return f"{self.message}; {self.hint}" if self.hint else self.message

    def __str__(self) -> str:
        where = " ".join(part for part in (self.step, self.place) if part)
        return f"{where}: {self.words}" if where else self.words

    @staticmethod
    def fix_plan(plan: Plan, findings: Iterable[Finding]) -> Plan:
        """Return the plan with every fix of the findings applied.

        >>> from portico._plans.plan import Step
        >>> plan = Plan("Shout", (Step("s1", "Tone.shout"),))
        >>> finding = Finding("it is written 'Tone-shout'", "s1", fix=Fix(("s1",), ("function",), "Tone-shout"))
        >>> Finding.fix_plan(plan, [finding]).steps[0].function
        'Tone-shout'

        The findings must come from a check of this plan; a fix of a place that is not there is ignored.
        """
        fixes = {
            (fix.within, fix.place, isinstance(fix.new, str)): fix
            for finding in findings
            if (fix := finding.fix) is not None
        }
        return _plan(plan, fixes, ()) if fixes else plan


_Place: TypeAlias = tuple[str | int, ...]
_Fixes: TypeAlias = Mapping[tuple[tuple[str, ...], _Place, bool], Fix]
"""By steps, place, and whether it is a name that changes: an argument may be renamed and have another value too."""


def _plan(plan: Plan, fixes: _Fixes, within: tuple[str, ...]) -> Plan:
    return replace(plan, steps=tuple(_step(step, fixes, (*within, step.id)) for step in plan.steps))


def _step(step: Step, fixes: _Fixes, within: tuple[str, ...]) -> Step:
    mended: dict[str, Any] = {}
    if isinstance(step.function, Plan):
        mended["function"] = _plan(step.function, fixes, within)
    for name, is_name in (("function", True), *((name, False) for name in STEP_OPTIONS)):
        if (within, (name,), is_name) in fixes:
            mended[name] = fixes[within, (name,), is_name].new
    step = step.map_expressions(lambda expression, place: _expression(expression, fixes, within, place))
    arguments: dict[str, Expression] = {}
    for name, expression in step.arguments.items():
        renamed = fixes.get((within, ("arguments", name), True))
        written = renamed.new if renamed is not None and isinstance(renamed.new, str) else name
        arguments[written] = expression
    return replace(step, arguments=arguments, **mended)


def _expression(expression: Any, fixes: _Fixes, within: tuple[str, ...], place: _Place) -> Any:
    fix = fixes.get((within, place, False))
    if fix is not None:
        return fix.new
    match expression:
        case ListOf(items):
            return ListOf(
                tuple(_expression(item, fixes, within, (*place, "list", index)) for index, item in enumerate(items))
            )
        case ObjectOf(members):
            inside = (*place, "object")
            return ObjectOf({name: _expression(each, fixes, within, (*inside, name)) for name, each in members.items()})
    return expression
