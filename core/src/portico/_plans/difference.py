"""What two plans have in common, and the difference of two plans."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from portico._plans.json_form import plan_to_json
from portico._plans.plan import Expression, Plan, PlanTemplate, Step
from portico._plans.text_form import expression_to_text, printable


def canonical(step: Step) -> str:
    """Return a text that is equal for steps that are the same but for their ids.

    What a step waits for by name, it waits for in any order; so may the steps of a nested plan be written. Raises
    ``PlanFormatError`` for a value that JSON does not have.
    """
    plain = replace(step, id="", after=tuple(sorted(set(step.after))))
    if not isinstance(step.function, Plan):
        return json.dumps(plan_to_json(Plan("", (plain,)))["steps"][0], sort_keys=True)
    inner = sorted((each.id, canonical(each)) for each in step.function.steps)
    nested = plan_to_json(replace(step.function, steps=()))
    outer = plan_to_json(Plan("", (replace(plain, function=""),)))["steps"][0]
    return json.dumps([outer, nested, inner], sort_keys=True)


def keyed(steps: Sequence[Step]) -> dict[str, Step]:
    """Return steps by their ids; in a plan that uses one id twice, later ones by keys that are no ids."""
    found: dict[str, Step] = {}
    for step in steps:
        key = step.id
        while key in found:
            key += "\0"
        found[key] = step
    return found


def matched(before: Mapping[str, Step], after: Mapping[str, Step]) -> dict[str, str]:
    """Return which key of ``after`` each key of ``before`` became; those without one are not in it.

    A step is compared once all that it rests on has been matched, so that a new name is no change in the steps that
    refer to it. Equal steps of one id come first, then equal ones of another id, then those of one id whatever else
    they are.
    """
    matching = _Matching(before, after)
    while matching.by_content(same_id=True) or matching.by_content(same_id=False) or matching.by_id():
        pass
    return matching.pairs


class _Matching:
    def __init__(self, before: Mapping[str, Step], after: Mapping[str, Step]) -> None:
        self.before = before
        self.after = after
        self.needs = {name: step.depends_on() & before.keys() for name, step in before.items()}
        self.pairs: dict[str, str] = {}
        self.open_after: dict[str, None] = dict.fromkeys(self.after)
        self.contents = {name: canonical(step) for name, step in self.after.items()}
        self.by_canonical: dict[str, list[str]] = {}
        for name, content in self.contents.items():
            self.by_canonical.setdefault(content, []).append(name)
        self.waiting: dict[str, None] = dict.fromkeys(self.before)
        self.ready: dict[str, str] = {}
        """The content, under the new names, of the steps that can be compared and are not matched yet."""
        self.advance()

    def advance(self) -> None:
        """Find out which more steps can be compared."""
        for name in [name for name in self.waiting if self.needs[name] <= self.pairs.keys()]:
            del self.waiting[name]
            self.ready[name] = canonical(self.before[name].rename_references(self.pairs))

    def by_content(self, *, same_id: bool) -> bool:
        """Match equal steps; say whether there were any. Of those with another id only the first: more may follow."""
        found = False
        for name, content in list(self.ready.items()):
            if same_id:
                chosen = name if name in self.open_after and self.contents[name] == content else None
            else:
                chosen = next((each for each in self.by_canonical.get(content, ()) if each in self.open_after), None)
            if chosen is None:
                continue
            self.pair(name, chosen)
            found = True
            if not same_id:
                break
        if found:
            self.advance()
        return found

    def by_id(self) -> bool:
        """Match the first step that is left to the one of its id, of those that can be compared if there is one."""
        for name in (*self.ready, *self.waiting):
            if name in self.open_after:
                self.pair(name, name)
                self.advance()
                return True
        return False

    def pair(self, name: str, chosen: str) -> None:
        self.pairs[name] = chosen
        self.ready.pop(name, None)
        self.waiting.pop(name, None)
        del self.open_after[chosen]


@dataclass(frozen=True, slots=True)
class Change:
    """Something that is another now: where, and its JSON form before and after, None for what was or is not there.

    ``shown`` are the two in the words of the text form.
    """

    place: str
    before: Any
    after: Any
    shown: tuple[str, str]

    def __str__(self) -> str:
        return f"{printable(self.place)}: {self.shown[0]} → {self.shown[1]}"

    def to_json(self) -> dict[str, Any]:
        """Return the change as JSON values."""
        return {"place": self.place, "before": self.before, "after": self.after}


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
            "added": [_step_json(step) for step in self.added],
            "removed": [_step_json(step) for step in self.removed],
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
    are compared by id. Literals differ where their JSON does: 1 is not 1.0 and not true. Raises ``PlanFormatError``
    with the place for a value that JSON does not have.
    """
    for plan in (before, after):
        # Before anything is compared, so that the place is the one in the whole plan.
        plan_to_json(plan)
    old_steps, new_steps = keyed(before.steps), keyed(after.steps)
    pairs = matched(old_steps, new_steps)
    names = {old_steps[old].id: new_steps[new].id for old, new in pairs.items() if old != new}
    found = set(pairs.values())
    changed = []
    renamed = []
    for old, new in pairs.items():
        step, now = old_steps[old].rename_references(names), new_steps[new]
        if canonical(step) != canonical(now):
            changed.append(_step_change(step, now))
        elif step.id != now.id:
            renamed.append((step.id, now.id))
    return PlanDifference(
        added=tuple(step for name, step in new_steps.items() if name not in found),
        removed=tuple(step for name, step in old_steps.items() if name not in pairs),
        renamed=tuple(renamed),
        changed=tuple(changed),
        changes=tuple(_own_changes(before, after, names)),
    )


def _step_change(before: Step, after: Step) -> StepChange:
    changes = []
    inner = None
    if isinstance(before.function, Plan) and isinstance(after.function, Plan):
        inner = plan_difference(before.function, after.function)
    else:
        changes += _change("function", before.function, after.function)
    for name in dict.fromkeys([*before.arguments, *after.arguments]):
        changes += _change(f"arguments.{name}", before.arguments.get(name), after.arguments.get(name))
    changes += _change("after", sorted(set(before.after)), sorted(set(after.after)))
    changes += _change("reason", before.reason, after.reason)
    changes += _change("seconds", before.seconds, after.seconds)
    changes += _change("attempts", before.attempts, after.attempts)
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
    old, new = _json(before), _json(after)
    if json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True):
        return []
    return [Change(place, old, new, (_shown(before), _shown(after)))]


def _json(part: Any) -> Any:
    """Return the JSON form of a part of a plan."""
    if isinstance(part, Plan):
        return plan_to_json(part)
    if isinstance(part, PlanTemplate):
        return {"template": part.source, "language": part.language}
    if isinstance(part, Expression):
        return plan_to_json(Plan("", result=part))["result"]
    return dict(part) if isinstance(part, Mapping) else part


def _shown(part: Any) -> str:
    if part is None:
        return "nothing"
    if isinstance(part, Plan):
        return f"a plan: {printable(part.goal)}"
    if isinstance(part, Expression):
        return expression_to_text(part)
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
    function = step.function if isinstance(step.function, str) else _shown(step.function)
    given = ", ".join(f"{name}: {expression_to_text(value)}" for name, value in step.arguments.items())
    return f"{printable(step.id)}: {printable(function)}({printable(given)})"


def _step_json(step: Step) -> dict[str, Any]:
    written: dict[str, Any] = plan_to_json(replace(_EMPTY, steps=(step,)))["steps"][0]
    return written


_EMPTY = Plan("")
