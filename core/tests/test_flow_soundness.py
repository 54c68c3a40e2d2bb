"""The check of flows against an interpreter that taints real values: whatever reaches a function was said before."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico._flows.check import Around, flows_of
from portico._flows.labels import FunctionLabels, Gives, Takes
from portico._flows.policy import Policy
from portico._functions.functions import FunctionSpec
from portico._plans.plan import Each, Expression, From, ListOf, ObjectOf, Plan, Step, TextOf, Value, When
from portico._schema.paths import EACH, JsonPath, Many, select

NAMES = "abc"


@dataclass(frozen=True)
class Tainted:
    """A real value: a scalar, a list or an object of such, and whether its outside is tainted."""

    value: Any
    taint: bool

    @property
    def anywhere(self) -> bool:
        return self.taint or any(each.anywhere for each in inside(self))

    def also(self, taint: bool) -> Tainted:
        if not taint:
            return self
        value = self.value
        if isinstance(value, list):
            value = [each.also(taint) for each in value]
        elif isinstance(value, dict):
            value = {name: each.also(taint) for name, each in value.items()}
        return Tainted(value, taint=True)


def inside(tainted: Tainted) -> Iterator[Tainted]:
    value = tainted.value
    if isinstance(value, list | dict):
        yield from value if isinstance(value, list) else value.values()


def clean(value: Any) -> Tainted:
    if isinstance(value, list):
        value = [clean(each) for each in value]
    elif isinstance(value, dict):
        value = {name: clean(each) for name, each in value.items()}
    return Tainted(value, taint=False)


class Missing(LookupError):
    """There is nothing at a path, which something tainted may have decided."""

    def __init__(self, *, taint: bool) -> None:
        super().__init__()
        self.taint = taint


class Interpreter:
    """Runs a plan with real values, and notes each step and argument that taint reaches."""

    def __init__(self, chance: random.Random, specs: Mapping[str, FunctionSpec], policy: Policy) -> None:
        self.chance = chance
        self.specs = specs
        self.policy = policy
        self.reached: set[tuple[tuple[str, ...], str]] = set()

    def run(self, plan: Plan, input: Tainted, within: tuple[str, ...], control: bool) -> Tainted:
        results = {"input": input}
        for step in plan.steps:
            try:
                results[step.id] = self.step(step, results, within, control)
            except LookupError:
                continue  # nothing is there: what refers to it does not run either
        try:
            return clean(None) if plan.result is None else self.value(plan.result, results)
        except LookupError:
            return clean(None)

    def step(self, step: Step, results: dict[str, Tainted], within: tuple[str, ...], control: bool) -> Tainted:
        if step.each is None:
            return self.once(step, results, within, control)
        items = self.value(step.each.items, results)
        if not isinstance(items.value, list):
            raise Missing(taint=False)
        control = control or items.taint
        found = [self.once(step, {**results, "item": item}, within, control) for item in items.value]
        decided = control or any(self.condition(step, {**results, "item": item}) for item in items.value)
        return Tainted(found, decided)

    def condition(self, step: Step, results: dict[str, Tainted]) -> bool:
        if step.when is None:
            return False
        try:
            return any(self.value(each, results).anywhere for each in step.when.values)
        except Missing as missing:
            return missing.taint

    def once(self, step: Step, results: dict[str, Tainted], within: tuple[str, ...], control: bool) -> Tainted:
        control = control or self.condition(step, results)
        given = {name: self.value(argument, results) for name, argument in step.arguments.items()}
        ids = (*within, step.id)
        if isinstance(step.function, Plan):
            return self.run(step.function, Tainted(given, taint=False), ids, control).also(control)
        spec = self.specs[str(step.function)]
        labels = self.policy.labels(spec)
        for name, argument in given.items():
            takes = labels.takes.get((name,))
            wants = takes.trusted if takes is not None else spec.effects or labels.reaches_out
            if wants and argument.anywhere:
                self.reached.add((ids, name))
        if control and (spec.effects or labels.reaches_out):
            self.reached.add((ids, ""))
        tainted = {name for name, argument in given.items() if argument.anywhere}
        chosen = any((labels.takes.get((name,)) or Takes()).trusted for name in tainted)
        return self.result(labels, (), Gives(), joined=bool(tainted), chosen=chosen).also(control)

    def result(self, labels: FunctionLabels, path: JsonPath, around: Gives, *, joined: bool, chosen: bool) -> Tainted:
        """Make a result, each part of it with the label that the most special rule for its place says."""
        matching = [rule for rule in labels.gives if len(rule) == len(path) and all(map(_covers, rule, path))]
        special = max(matching, key=lambda rule: [part != EACH for part in rule], default=None)
        gives = around if special is None else labels.gives[special]
        taint = joined if gives.as_given else chosen or not gives.trusted
        kind = self.chance.choice(["list", "object", "scalar"] if len(path) < 3 else ["scalar"])
        if kind == "list":
            parts = [self.result(labels, (*path, index), gives, joined=joined, chosen=chosen) for index in range(3)]
            return Tainted(parts, taint)
        if kind == "object":
            return Tainted(
                {name: self.result(labels, (*path, name), gives, joined=joined, chosen=chosen) for name in NAMES}, taint
            )
        return Tainted(self.chance.choice([1, True, "x", None]), taint)

    def value(self, expression: Expression | str, results: Mapping[str, Tainted]) -> Tainted:
        match expression:
            case str():
                return clean(expression)
            case Value(value):
                return clean(value)
            case From(step, path):
                if step not in results:
                    raise Missing(taint=False)
                return self.follow(results[step], path)
            case TextOf(parts):
                return Tainted("text", any(self.value(part, results).anywhere for part in parts))
            case ListOf(items):
                return Tainted([self.value(item, results) for item in items], taint=False)
            case ObjectOf(members):
                return Tainted({name: self.value(each, results) for name, each in members.items()}, taint=False)

    def follow(self, start: Tainted, path: JsonPath) -> Tainted:
        values, many, chosen, outer = [start], False, False, False
        for part in path:
            outer = outer or any(each.taint for each in values)
            if isinstance(part, Many):
                many, chosen = True, chosen or any(each.taint for each in values)
                values = [
                    found for each in values for selector in part.selectors for found in select(each.value, selector)
                ]
            else:
                values = [found for each in values for found in select(each.value, part)]
            if not many and not values:
                raise Missing(taint=outer)
        return Tainted(values, chosen) if many else values[0]


def _covers(rule: Any, part: Any) -> bool:
    return rule in (EACH, part)


def some_labels(chance: random.Random) -> FunctionLabels:
    parts: list[Any] = [*NAMES, 0, 1, EACH, EACH]
    gives = {
        tuple(chance.choices(parts, k=chance.randint(0, 3))): chance.choice(
            [Gives(), Gives(trusted=True), Gives(trusted=True), Gives(as_given=True)]
        )
        for _ in range(chance.randint(0, 4))
    }
    takes = {(name,): Takes(trusted=chance.random() < 0.5) for name in "xy" if chance.random() < 0.5}
    return FunctionLabels(gives, takes, chance.random() < 0.2)


def some_path(chance: random.Random) -> JsonPath:
    several = [EACH, Many(((0, 2, None),)), Many((0, "a")), Many(("a", "b"))]
    return tuple(chance.choices([*NAMES, 0, 1, -1, *several], k=chance.randint(0, 3)))


def some_expression(chance: random.Random, sources: list[str], depth: int = 0) -> Expression:
    kind = chance.choice(["value", "from", "from", "from", "text", "list", "object"][: None if depth < 2 else 4])
    inner = [some_expression(chance, sources, depth + 1) for _ in range(2 if kind in ("text", "list", "object") else 0)]
    match kind:
        case "value":
            return Value(chance.choice([1, "x", [1, 2], {"a": "x"}]))
        case "from":
            return From(chance.choice(sources), some_path(chance))
        case "text":
            return TextOf(tuple(inner))
        case "list":
            return ListOf(tuple(inner))
    return ObjectOf(dict(zip(NAMES, inner, strict=False)))


def some_plan(chance: random.Random, functions: list[str], depth: int = 0) -> Plan:
    steps: list[Step] = []
    for number in range(chance.randint(1, 5 if depth == 0 else 3)):
        sources = ["input", *(step.id for step in steps)]
        each = Each(some_expression(chance, sources)) if chance.random() < 0.3 else None
        given = sources if each is None else [*sources, "item", "item"]
        when = When("present", (some_expression(chance, given),)) if chance.random() < 0.25 else None
        nested = depth < 2 and chance.random() < 0.25
        called: Any = some_plan(chance, functions, depth + 1) if nested else chance.choice(functions)
        names = NAMES if nested else "xy"
        arguments = {name: some_expression(chance, given) for name in names if chance.random() < 0.8}
        steps.append(Step(f"s{number}", called, arguments, each=each, when=when))
    return Plan("g", tuple(steps), some_expression(chance, ["input", *(step.id for step in steps)]))


def reached_unsaid(seed: int, *, forget: str = "") -> set[tuple[tuple[str, ...], str]]:
    """Return the places that taint reached in a run of a random plan, of which the check had said nothing."""
    chance = random.Random(seed)
    labels = {f"f{number}": some_labels(chance) for number in range(4)}
    specs = {name: FunctionSpec(name, "", {}, {}, effects=chance.random() < 0.5) for name in labels}
    policy = Policy("enforce", labels)
    plan = some_plan(chance, list(specs))
    checked = replace(plan, steps=tuple(replace(step, **{forget: None}) for step in plan.steps)) if forget else plan
    flows = flows_of(checked, Around(policy, specs))
    said = {(flow.steps, str(flow.place[1]) if flow.place[0] == "arguments" else "") for flow in flows}
    interpreter = Interpreter(chance, specs, policy)
    interpreter.run(plan, clean({"a": [1, {"b": "x"}], "b": "x"}), (), control=False)
    return interpreter.reached - said


@given(st.integers(0, 2**40))
def test_taint_reaches_only_what_the_check_has_named(seed: int) -> None:
    assert not reached_unsaid(seed)


@pytest.mark.parametrize("forget", ["each", "when"])
def test_a_check_that_forgets_what_decides_is_caught(forget: str) -> None:
    assert any(reached_unsaid(seed, forget=forget) for seed in range(400))
