"""Mending a plan where a check was certain of what was meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from portico.plans.findings import Finding, Fix
from portico.plans.plan import ListOf, ObjectOf, Plan, Step, TextOf

__all__ = ["apply_fixes"]

_Place: TypeAlias = tuple[str | int, ...]
_Fixes: TypeAlias = Mapping[tuple[tuple[str, ...], _Place, bool], Fix]
"""By steps, place, and whether it is a name that changes: an argument may be renamed and have another value too."""


def apply_fixes(plan: Plan, findings: Iterable[Finding]) -> Plan:
    """Return the plan with every fix of the findings done; those without a fix stay as they are.

    >>> from portico.plans.plan import Step
    >>> plan = Plan("Shout", (Step("s1", "Tone.shout"),))
    >>> finding = Finding("it is written 'Tone-shout'", "s1", fix=Fix(("s1",), ("function",), "Tone-shout"))
    >>> apply_fixes(plan, [finding]).steps[0].function
    'Tone-shout'

    The findings are those of a check of this very plan: a place that is not there is passed over.
    """
    fixes = {
        (fix.within, fix.place, isinstance(fix.new, str)): fix
        for finding in findings
        if (fix := finding.fix) is not None
    }
    return _plan(plan, fixes, ()) if fixes else plan


def _plan(plan: Plan, fixes: _Fixes, within: tuple[str, ...]) -> Plan:
    result = plan.result
    return replace(
        plan,
        steps=tuple(_step(step, fixes, (*within, step.id)) for step in plan.steps),
        result=None if result is None else _expression(result, fixes, within, ("result",)),
    )


def _step(step: Step, fixes: _Fixes, within: tuple[str, ...]) -> Step:
    if not any(ids[: len(within)] == within for ids, _, _ in fixes):
        return step
    mended: dict[str, Any] = {}
    if isinstance(step.function, Plan):
        mended["function"] = _plan(step.function, fixes, within)
    for name, is_name in (("function", True), ("attempts", False)):
        if (within, (name,), is_name) in fixes:
            mended[name] = fixes[within, (name,), is_name].new
    return replace(
        step,
        arguments={
            _name(name, fixes, within, ("arguments", name)): _expression(each, fixes, within, ("arguments", name))
            for name, each in step.arguments.items()
        },
        after=tuple(_name(earlier, fixes, within, ("after", index)) for index, earlier in enumerate(step.after)),
        **mended,
    )


def _name(name: str, fixes: _Fixes, within: tuple[str, ...], place: _Place) -> str:
    fix = fixes.get((within, place, True))
    return fix.new if fix is not None and isinstance(fix.new, str) else name


def _expression(expression: Any, fixes: _Fixes, within: tuple[str, ...], place: _Place) -> Any:
    fix = fixes.get((within, place, False))
    if fix is not None:
        return fix.new
    match expression:
        case TextOf(parts):
            return TextOf(
                tuple(_expression(part, fixes, within, (*place, "text", index)) for index, part in enumerate(parts))
            )
        case ListOf(items):
            return ListOf(
                tuple(_expression(item, fixes, within, (*place, "list", index)) for index, item in enumerate(items))
            )
        case ObjectOf(members):
            inside = (*place, "object")
            return ObjectOf({
                _name(name, fixes, within, (*inside, name)): _expression(each, fixes, within, (*inside, name))
                for name, each in members.items()
            })  # fmt: skip
    return expression
