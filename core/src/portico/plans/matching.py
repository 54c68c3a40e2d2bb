"""Which step of one plan is which of another: equal ones first, whatever their ids are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from portico.plans.json_form import plan_to_json
from portico.plans.plan import Expression, From, ListOf, ObjectOf, Plan, Step, TextOf, Value

__all__ = ["canonical", "keyed", "matched", "with_renamed_references"]


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


def with_renamed_references(step: Step, names: Mapping[str, str]) -> Step:
    """Return a step that refers to other steps by their new names; a nested plan has steps of its own."""
    if not names or not step.depends_on() & names.keys():
        return step
    return replace(
        step,
        arguments={name: _renamed(expression, names) for name, expression in step.arguments.items()},
        after=tuple(names.get(earlier, earlier) for earlier in step.after),
    )


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
            self.ready[name] = canonical(with_renamed_references(self.before[name], self.pairs))

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


def _renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    match expression:
        case From(step, path):
            return From(names.get(step, step), path)
        case TextOf(parts):
            return TextOf(tuple(part if isinstance(part, str) else _renamed(part, names) for part in parts))
        case ListOf(items):
            return ListOf(tuple(_renamed(item, names) for item in items))
        case ObjectOf(members):
            return ObjectOf({name: _renamed(member, names) for name, member in members.items()})
        case Value():
            return expression
