"""What two plans have in common, and the difference of two plans."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

from portico._plans.json_form import (
    each_to_json,
    expression_to_json,
    function_to_json,
    plan_to_json,
    step_to_json,
    when_to_json,
)
from portico._plans.plan import STEP_OPTIONS, Each, Expression, Plan, PlanTemplate, Step, When
from portico._plans.text_form import each_to_text, expression_to_text, printable, when_to_text


def _canonical(step: Step) -> str:
    plain = replace(step, id="", after=tuple(sorted(set(step.after))))
    return json.dumps(step_to_json(plain), sort_keys=True)


def _match(before: Mapping[str, Step], after: Mapping[str, Step]) -> dict[str, str]:
    """Return which id of ``after`` each id of ``before`` became; those without one are not in it.

    Equal steps come first, those of the same id before others, then those of one id whatever else they are. A step is
    compared after those that it refers to, so that their new ids are no change in it.
    """
    waits = {id: step.depends_on() & before.keys() for id, step in before.items()}
    try:
        order = list(TopologicalSorter(waits).static_order())
    except CycleError:
        order = list(before)
    open_after: dict[str, list[str]] = {}
    for id, step in after.items():
        open_after.setdefault(_canonical(step), []).append(id)
    pairs: dict[str, str] = {}
    for other_ids in (False, True):
        for id in order:
            found = open_after.get(_canonical(before[id].rename_references(pairs)), [])
            if id not in pairs and (id in found or (found and other_ids)):
                pairs[id] = id if id in found else found[0]
                found.remove(pairs[id])
    left = {id for ids in open_after.values() for id in ids}
    pairs |= {id: id for id in before if id not in pairs and id in left}
    return {id: pairs[id] for id in before if id in pairs}


@dataclass(frozen=True, slots=True)
class Change:
    """A part of a plan that changed: where, and what was there before and is there after, None for nothing."""

    place: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{printable(self.place)}: {_format_part(self.before)} → {_format_part(self.after)}"

    def to_json(self) -> dict[str, Any]:
        """Return the change as JSON values."""
        return {"place": self.place, "before": _json(self.before), "after": _json(self.after)}


@dataclass(frozen=True, slots=True)
class StepChange:
    """A step that both plans have and that is not the same; ``inner`` says what changed inside its nested plan."""

    step: str
    changes: tuple[Change, ...]
    inner: PlanDifference | None = None


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """How one plan differs from another.

    >>> from portico import Plan, Step, Value
    >>> before = Plan("Shout", (Step("s1", "Tone-shout", {"text": Value("hey")}),))
    >>> after = Plan("Shout", (Step("s1", "Tone-shout", {"text": Value("ho")}),))
    >>> print(plan_difference(before, after))
    ~ s1
        arguments.text: "hey" → "ho"

    ``same`` is True when nothing differs but the order in which steps are written. ``renamed`` are pairs of ids of
    steps that are equal but for them. ``changes`` are those of the plan itself: goal, input, result, notes,
    fingerprints.
    """

    added: tuple[Step, ...] = ()
    removed: tuple[Step, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    changed: tuple[StepChange, ...] = ()
    changes: tuple[Change, ...] = ()

    @property
    def same(self) -> bool:
        """Whether there is no difference."""
        return not (self.added or self.removed or self.renamed or self.changed or self.changes)

    def __str__(self) -> str:
        return "\n".join(_lines(self, "")) or "The plans are the same."

    def to_json(self) -> dict[str, Any]:
        """Return the difference as JSON values; steps in the form that plans have."""
        return {
            "same": self.same,
            "added": [step_to_json(step) for step in self.added],
            "removed": [step_to_json(step) for step in self.removed],
            "renamed": [{"before": before, "after": after} for before, after in self.renamed],
            "changed": [
                {
                    "step": each.step,
                    "changes": [change.to_json() for change in each.changes],
                    **({"plan": each.inner.to_json()} if each.inner is not None else {}),
                }
                for each in self.changed
            ],
            "changes": [change.to_json() for change in self.changes],
        }


def plan_difference(before: Plan, after: Plan) -> PlanDifference:
    """Return what changed from ``before`` to ``after``.

    Steps are the same when they call the same with the same, references followed through renamed steps; the others
    are compared by id. Of steps with one id the last one counts. Literals differ where their JSON does: 1 is not 1.0
    and not true. Raises ``PlanFormatError`` with the place for a value that JSON does not have.
    """
    for plan in (before, after):
        # Before anything is compared, so that the place is the one in the whole plan.
        plan_to_json(plan)
    old_steps, new_steps = ({step.id: step for step in plan.steps} for plan in (before, after))
    pairs = _match(old_steps, new_steps)
    names = {old: new for old, new in pairs.items() if old != new}
    found = set(pairs.values())
    changes = [_step_change(old_steps[old].rename_references(names), new_steps[new]) for old, new in pairs.items()]
    changed = [each for each in changes if each.changes or each.inner is not None]
    different = {each.step for each in changed}
    renamed = [(old, new) for old, new in names.items() if new not in different]
    return PlanDifference(
        added=tuple(step for name, step in new_steps.items() if name not in found),
        removed=tuple(step for name, step in old_steps.items() if name not in pairs),
        renamed=tuple(renamed),
        changed=tuple(changed),
        changes=tuple(_own_changes(before, after, names)),
    )


def _step_change(before: Step, after: Step) -> StepChange:
    changes: list[Change] = []
    inner = None
    if isinstance(before.function, Plan) and isinstance(after.function, Plan):
        inner = plan_difference(before.function, after.function)
    else:
        changes += _change("function", before.function, after.function)
    for name in dict.fromkeys([*before.arguments, *after.arguments]):
        changes += _change(f"arguments.{name}", before.arguments.get(name), after.arguments.get(name))
    changes += _change("after", sorted(set(before.after)), sorted(set(after.after)))
    for place in ("each", "when", "reason", *STEP_OPTIONS):
        changes += _change(place, getattr(before, place), getattr(after, place))
    return StepChange(after.id, tuple(changes), None if inner is None or inner.same else inner)


def _own_changes(before: Plan, after: Plan, names: Mapping[str, str]) -> Iterator[Change]:
    yield from _change("goal", before.goal, after.goal)
    yield from _change("input", before.input, after.input)
    result = before.result
    if result is not None:
        result = Step("", "", {"result": result}).rename_references(names).arguments["result"]
    yield from _change("result", result, after.result)
    yield from _change("notes", before.notes, after.notes)
    for name in dict.fromkeys([*before.fingerprints, *after.fingerprints]):
        yield from _change(f"fingerprints.{name}", before.fingerprints.get(name), after.fingerprints.get(name))


def _change(place: str, before: Any, after: Any) -> list[Change]:
    same = json.dumps(_json(before), sort_keys=True) == json.dumps(_json(after), sort_keys=True)
    return [] if same else [Change(place, before, after)]


def _json(part: Any) -> Any:
    if isinstance(part, Plan | PlanTemplate):
        return function_to_json(part)
    if isinstance(part, Expression):
        return expression_to_json(part)
    if isinstance(part, Each):
        return each_to_json(part)
    if isinstance(part, When):
        return when_to_json(part)
    return dict(part) if isinstance(part, Mapping) else part


def _format_part(part: Any) -> str:
    if part is None:
        return "nothing"
    if isinstance(part, Plan):
        return f"a plan: {printable(part.goal)}"
    if isinstance(part, Expression):
        return expression_to_text(part)
    if isinstance(part, Each | When):
        return each_to_text(part) if isinstance(part, Each) else when_to_text(part)
    return printable(json.dumps(_json(part), ensure_ascii=False))


def _lines(difference: PlanDifference, indent: str) -> Iterator[str]:
    for change in difference.changes:
        yield f"{indent}{change}"
    for step in difference.removed:
        yield f"{indent}- {_call(step)}"
    for step in difference.added:
        yield f"{indent}+ {_call(step)}"
    for before, after in difference.renamed:
        yield f"{indent}= {printable(after)}, which was {printable(before)}"
    for each in difference.changed:
        yield f"{indent}~ {printable(each.step)}"
        for change in each.changes:
            yield f"{indent}    {change}"
        if each.inner is not None:
            yield from _lines(each.inner, f"{indent}    ")


def _call(step: Step) -> str:
    function = step.function if isinstance(step.function, str) else _format_part(step.function)
    given = ", ".join(f"{name}: {expression_to_text(value)}" for name, value in step.arguments.items())
    loop = f" for {each_to_text(step.each)}" if step.each is not None else ""
    when = f" when {when_to_text(step.when)}" if step.when is not None else ""
    return f"{printable(step.id)}: {printable(function)}({printable(given)}){loop}{when}"
