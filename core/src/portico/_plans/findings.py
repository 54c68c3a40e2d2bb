"""What is wrong with a plan, and what can be mended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from portico._plans.plan import Expression, ListOf, ObjectOf, Plan, Step, TextOf


@dataclass(frozen=True, slots=True)
class Fix:
    """One place of a plan, and what belongs there.

    ``within`` are the ids of the steps from the outermost to the one that is mended; a place in the result of a plan
    has those of the plans around it only. ``place`` leads on as the JSON form does: ``("function",)``,
    ``("arguments", "day", "object", "date")``, ``("result", "list", 0)``, ``("after", 0)``, ``("attempts",)``.
    ``new`` is an expression that replaces the one there; a string is another name, of the function, of the argument or
    member that stands there, or of the step that is waited for; None takes away what stands there.
    """

    within: tuple[str, ...]
    place: tuple[str | int, ...]
    new: Expression | str | None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a check found: in which step, where inside it, and how bad it is.

    ``severity`` is "error" or "warning". ``nearest`` are the names or paths that may be meant, the likeliest first.
    ``fix`` is there where only one thing can be meant; `portico._plans.findings.apply_fixes` does it. ``hint`` is
    advice that not every form of plans can follow, such as a path that would do; `words` is the message with it.
    ``unknown_function`` is the name of a function that the catalogue does not have.

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

    @property
    def words(self) -> str:
        """The message with the hint, without step and place."""
        return f"{self.message}; {self.hint}" if self.hint else self.message

    def __str__(self) -> str:
        where = " ".join(part for part in (self.step, self.place) if part)
        return f"{where}: {self.words}" if where else self.words

    @staticmethod
    def fix_plan(plan: Plan, findings: Iterable[Finding]) -> Plan:
        """Return the plan with every fix of the findings done; those without a fix stay as they are.

        >>> from portico._plans.plan import Step
        >>> plan = Plan("Shout", (Step("s1", "Tone.shout"),))
        >>> finding = Finding("it is written 'Tone-shout'", "s1", fix=Fix(("s1",), ("function",), "Tone-shout"))
        >>> Finding.fix_plan(plan, [finding]).steps[0].function
        'Tone-shout'

        The findings are those of a check of this very plan: a place that is not there is passed over.
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
