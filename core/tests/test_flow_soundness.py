"""The check of flows against an interpreter that marks real values: whatever reaches a function was said before."""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico._flows.check import Around, Flow, flows_of
from portico._flows.labels import FunctionLabels, Gives, Takes
from portico._flows.policy import Policy
from portico._functions.functions import FunctionSpec
from portico._plans.plan import Each, Expression, From, ListOf, ObjectOf, Plan, PlanTemplate, Step, TextOf, Value, When
from portico._schema.paths import EACH, JsonPath, Many, select

NAMES, PARAMETERS = "abc", "xy"
UNTRUSTED, PRIVATE = "untrusted", "private"
NONE: frozenset[str] = frozenset()
ANY = "*"
"""Stands for any place of a step: a function that asks a prompt is judged as a whole."""


@dataclass(frozen=True)
class Marked:
    """A real value: a scalar, a list or an object of such, and the marks of its outside: untrusted, private."""

    value: Any
    marks: frozenset[str] = NONE

    @property
    def anywhere(self) -> frozenset[str]:
        return self.marks.union(*(each.anywhere for each in inside(self)))

    def also(self, marks: frozenset[str]) -> Marked:
        if not marks:
            return self
        value = self.value
        if isinstance(value, list):
            value = [each.also(marks) for each in value]
        elif isinstance(value, dict):
            value = {name: each.also(marks) for name, each in value.items()}
        return Marked(value, self.marks | marks)

    def only(self, marks: Collection[str]) -> Marked:
        value = self.value
        if isinstance(value, list):
            value = [each.only(marks) for each in value]
        elif isinstance(value, dict):
            value = {name: each.only(marks) for name, each in value.items()}
        return Marked(value, self.marks & frozenset(marks))


def inside(marked: Marked) -> Iterable[Marked]:
    value = marked.value
    return value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()


def every_mark(values: Iterable[Marked]) -> frozenset[str]:
    return NONE.union(*(each.anywhere for each in values))


def clean(value: Any) -> Marked:
    if isinstance(value, list):
        value = [clean(each) for each in value]
    elif isinstance(value, dict):
        value = {name: clean(each) for name, each in value.items()}
    return Marked(value)


class Missing(LookupError):
    """There is nothing at a path, which something marked may have decided."""

    def __init__(self, marks: frozenset[str] = NONE) -> None:
        super().__init__()
        self.marks = marks


@dataclass(frozen=True)
class Catalogue:
    """Functions: plain ones, those that run a plan, and those that ask a prompt with a script of calls."""

    specs: dict[str, FunctionSpec]
    policy: Policy
    plans: dict[str, Plan] = field(default_factory=dict)
    prompts: dict[str, str] = field(default_factory=dict)

    def parameters(self, name: str) -> str | tuple[str, ...]:
        plan = self.plans.get(name)
        return PARAMETERS if plan is None or plan.notes == "parameters" else ("input",)

    def around(self) -> Around:
        return Around(self.policy, self.specs, self.plans.get, self.inside, self.called)

    def inside(self, name: str) -> list[str]:
        plan, script = self.plans.get(name), self.prompts.get(name)
        return calls_in(plan.steps) if plan is not None else [] if script is None else calls_of(script)

    def called(self, step: Step) -> list[str]:
        return calls_in([step])


def calls_in(steps: Iterable[Step]) -> list[str]:
    found: list[str] = []
    for step in steps:
        match step.function:
            case str(name):
                found.append(name)
            case Plan(_, inner):
                found += calls_in(inner)
            case PlanTemplate(script):
                found += calls_of(script)
    return found


def calls_of(script: str) -> list[str]:
    """Return what a script, as a template language, tells of its calls."""
    read = json.loads(script)
    return [call["function"] for call in read["calls"]] if read["tells"] else [""]


@dataclass(frozen=True)
class Place:
    """Where a call is: the ids of the steps around it, and, inside a template or a prompt, how that is judged."""

    ids: tuple[str, ...] = ()
    judged: str | None = None
    entered: tuple[str, ...] = ()

    def at(self, step: Step) -> Place:
        return self if self.judged is not None else replace(self, ids=(*self.ids, step.id))


class Interpreter:
    """Runs a plan with real values, and notes each step and argument that a mark reaches."""

    def __init__(self, chance: random.Random, catalogue: Catalogue) -> None:
        self.chance = chance
        self.catalogue = catalogue
        self.reached: set[tuple[tuple[str, ...], str, str]] = set()

    def run(self, plan: Plan, input: Marked, place: Place, control: frozenset[str]) -> Marked:
        results = {"input": input}
        for step in plan.steps:
            try:
                results[step.id] = self.step(step, results, place.at(step), control)
            except LookupError:
                continue  # nothing is there: what refers to it does not run either
        try:
            return clean(None) if plan.result is None else self.value(plan.result, results)
        except LookupError:
            return clean(None)

    def step(self, step: Step, results: dict[str, Marked], place: Place, control: frozenset[str]) -> Marked:
        if step.each is None:
            return self.once(step, results, place, control)
        items = self.value(step.each.items, results)
        if not isinstance(items.value, list):
            raise Missing
        control |= items.marks
        found = [self.once(step, {**results, "item": item}, place, control) for item in items.value]
        decided = control.union(*(self.condition(step, {**results, "item": item}) for item in items.value))
        return Marked(found, decided)

    def condition(self, step: Step, results: dict[str, Marked]) -> frozenset[str]:
        if step.when is None:
            return NONE
        try:
            return every_mark(self.value(each, results) for each in step.when.values)
        except Missing as missing:
            return missing.marks

    def once(self, step: Step, results: dict[str, Marked], place: Place, control: frozenset[str]) -> Marked:
        control |= self.condition(step, results)
        given = {name: self.value(argument, results) for name, argument in step.arguments.items()}
        match step.function:
            case Plan() as plan:
                return self.run(plan, Marked(given), place, control).also(control)
            case PlanTemplate(script):
                # A call in a template is judged with the step.
                inner = place if place.judged is not None else replace(place, judged="")
                return Marked("text", self.render(script, given, inner, control))
            case str(name):
                return self.call(name, given, place, control).also(control)

    def render(self, script: str, given: Mapping[str, Marked], place: Place, control: frozenset[str]) -> frozenset[str]:
        """Make the calls of a script, and return the marks of its text."""
        made: dict[str, Marked] = dict(given)
        for number, call in enumerate(json.loads(script)["calls"]):
            decided = control | (made[call["if"]].anywhere if call["if"] in made else NONE)
            arguments = {name: made.get(source, clean("x")) for name, source in call["arguments"].items()}
            try:
                made[str(number)] = self.call(call["function"], arguments, place, decided).also(decided)
            except LookupError:
                continue
        return control | every_mark(made.values())

    def call(self, name: str, given: dict[str, Marked], place: Place, control: frozenset[str]) -> Marked:
        spec = self.catalogue.specs[name]
        labels = self.catalogue.policy.labels(spec)
        for parameter, argument in given.items():
            if not fits(argument, spec.parameters.get("properties", {}).get(parameter, {})):
                raise Missing
        plan, script = self.catalogue.plans.get(name), self.catalogue.prompts.get(name)
        # What a plan does is judged where it does it, beside what its own labels say.
        sink = labels.reaches_out or (spec.effects and plan is None)
        for parameter, argument in given.items():
            for mark in unwanted(labels, parameter, argument, sink=sink):
                self.reach(place, parameter, mark)
        if sink and UNTRUSTED in control:  # That a step runs tells little of what is private: "how much and when".
            self.reach(place, "", UNTRUSTED)
        if plan is not None:
            if name in place.entered:
                raise Missing
            input = given["input"] if "input" in given else Marked(given)
            made = self.run(plan, input, replace(place, entered=(*place.entered, name)), control)
            return self.labelled(labels, (), Gives(trusted=True), made)
        joined, within = every_mark(given.values()), NONE
        if script is not None:
            inner = place if place.judged is not None else replace(place, judged=ANY)
            # What its labels take is believed to decide nothing, and its reply is untrusted, or labelled so.
            taken = {
                each: argument.only(unwanted(labels, each, argument, sink=True)) for each, argument in given.items()
            }
            within = self.render(script, taken, inner, control) & {PRIVATE}
        marked = {each for each, argument in given.items() if UNTRUSTED in argument.anywhere}
        chosen = any((labels.takes.get((each,)) or Takes()).trusted for each in marked)
        return self.result(labels, (), Gives(), joined, chosen=chosen).also(within | (joined & {PRIVATE}))

    def reach(self, place: Place, parameter: str, mark: str) -> None:
        self.reached.add((place.ids, parameter if place.judged is None else place.judged, mark))

    def labelled(self, labels: FunctionLabels, path: JsonPath, around: Gives, made: Marked) -> Marked:
        """Return what a plan gave with what its function's own labels add."""
        gives = special(labels, path, around)
        marks = made.marks | ({PRIVATE} if gives.readers is not None else NONE)
        marks |= NONE if gives.trusted or gives.as_given else {UNTRUSTED}
        value = made.value
        if isinstance(value, list):
            value = [self.labelled(labels, (*path, index), gives, each) for index, each in enumerate(value)]
        elif isinstance(value, dict):
            value = {name: self.labelled(labels, (*path, name), gives, each) for name, each in value.items()}
        return Marked(value, marks)

    def result(
        self, labels: FunctionLabels, path: JsonPath, around: Gives, joined: frozenset[str], *, chosen: bool
    ) -> Marked:
        """Make a result, each part of it with the label that the most special rule for its place says."""
        gives = special(labels, path, around)
        untrusted = UNTRUSTED in joined if gives.as_given else chosen or not gives.trusted
        marks = frozenset({UNTRUSTED} if untrusted else ()) | ({PRIVATE} if gives.readers is not None else NONE)
        kind = self.chance.choice(["list", "list", "object", "object", "scalar"] if len(path) < 3 else ["scalar"])
        if kind == "list":
            parts = [self.result(labels, (*path, index), gives, joined, chosen=chosen) for index in range(3)]
            return Marked(parts, marks)
        if kind == "object":
            members = {name: self.result(labels, (*path, name), gives, joined, chosen=chosen) for name in NAMES}
            return Marked(members, marks)
        return Marked(self.chance.choice([1, True, "x", None]), marks)

    def value(self, expression: Expression | str, results: Mapping[str, Marked]) -> Marked:
        match expression:
            case str():
                return clean(expression)
            case Value(value):
                return clean(value)
            case From(step, path):
                if step not in results:
                    raise Missing
                return self.follow(results[step], path)
            case TextOf(parts):
                return Marked("text", every_mark(self.value(part, results) for part in parts))
            case ListOf(items):
                return Marked([self.value(item, results) for item in items])
            case ObjectOf(members):
                return Marked({name: self.value(each, results) for name, each in members.items()})

    def follow(self, start: Marked, path: JsonPath) -> Marked:
        values, many, chosen, outer = [start], False, NONE, NONE
        for part in path:
            outer = outer.union(*(each.marks for each in values))
            if isinstance(part, Many):
                many, chosen = True, chosen.union(*(each.marks for each in values))
                values = [
                    found for each in values for selector in part.selectors for found in select(each.value, selector)
                ]
            else:
                values = [found for each in values for found in select(each.value, part)]
            if not many and not values:
                raise Missing(outer)
        return Marked(values, chosen) if many else values[0]


def special(labels: FunctionLabels, path: JsonPath, around: Gives) -> Gives:
    matching = [rule for rule in labels.gives if len(rule) == len(path) and all(map(_covers, rule, path))]
    found = max(matching, key=lambda rule: [part != EACH for part in rule], default=None)
    return around if found is None else labels.gives[found]


def unwanted(labels: FunctionLabels, parameter: str, argument: Marked, *, sink: bool) -> set[str]:
    """Return the marks that a real argument has where its function does not take them."""
    rules = {path[1:]: takes for path, takes in labels.takes.items() if path[0] == parameter}
    found: set[str] = set()

    def look(value: Marked, path: JsonPath, *, said: bool = False) -> None:
        for rule, takes in rules.items():
            if len(rule) == len(path) and all(map(_covers, rule, path)):
                closed = takes.private or not (sink or takes.readers is not None)
                found.update(
                    value.anywhere - ({PRIVATE} if closed else NONE) - (NONE if takes.trusted else {UNTRUSTED})
                )
                said = True  # With all that is inside it.
        found.update(value.marks if sink and not said else NONE)
        for name, each in value.value.items() if isinstance(value.value, dict) else enumerate(inside(value)):
            look(each, (*path, name), said=said)

    look(argument, ())
    return found


def fits(value: Marked, schema: Mapping[str, Any]) -> bool:
    """Tell whether a call with a real argument would begin."""
    made, kind = value.value, schema.get("type")
    if (kind == "object" and not isinstance(made, dict)) or (kind == "array" and not isinstance(made, list)):
        return False
    known = schema.get("properties", {})
    if isinstance(made, dict):
        closed = schema.get("additionalProperties") is False
        return not (closed and made.keys() - known.keys()) and all(
            fits(each, known.get(name, {})) for name, each in made.items()
        )
    return not isinstance(made, list) or all(fits(each, schema.get("items", {})) for each in made)


def _covers(rule: Any, part: Any) -> bool:
    return rule in (EACH, part)


class Chance(random.Random):
    """Chance, where each kind of thing happens often in some examples and never in others."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.rates: dict[str, float] = {}

    def happens(self, what: str) -> bool:
        if what not in self.rates:
            self.rates[what] = self.choice([0, 0.2, 0.4, 0.8])
        return self.random() < self.rates[what]


def some_labels(chance: Chance, parameters: Iterable[str] = PARAMETERS) -> FunctionLabels:
    parts: list[Any] = [*NAMES, 0, 1, EACH, EACH]
    gives = {(): some_gives(chance)} if chance.random() < 0.8 else {}
    for _ in range(chance.randint(0, 3)):
        gives[tuple(chance.choices(parts, k=chance.randint(0, 2)))] = some_gives(chance)
    takes = {
        (name, *(chance.choices(parts, k=chance.randint(1, 2)) if chance.happens("part") else ())): Takes(
            not chance.happens("anything"), "y" if chance.happens("readers") else None, private=chance.happens("closed")
        )
        for name in parameters
        for _ in range(chance.choice([0, 1, 1, 2]))
    }
    return FunctionLabels(gives, takes, chance.happens("reaching out"))


def some_gives(chance: Chance) -> Gives:
    gives = Gives(trusted=chance.happens("trusted"))
    gives = Gives(as_given=True) if chance.happens("as given") else gives
    return replace(gives, readers=("a",)) if chance.happens("private") else gives


def some_schema(chance: Chance) -> dict[str, Any]:
    members = {"properties": {name: {} for name in chance.sample(NAMES, k=chance.randint(1, 3))}}
    kinds: list[dict[str, Any]] = [
        members,
        {"type": "object", **members},
        {"type": "object", "properties": {name: {} for name in NAMES}, "additionalProperties": False},
        {"items": {}},
        {"type": "array", "items": {}},
    ]
    return chance.choice(kinds) if chance.happens("schema") else {}


def some_path(chance: Chance) -> JsonPath:
    several = [EACH, EACH, Many(((0, 2, None),)), Many((0, "a")), Many(("a", "b"))]
    parts = [*NAMES, 0, 1, -1]
    return tuple(
        chance.choice(several if chance.happens("many") else parts) for _ in range(chance.choice([0, 0, 0, 0, 1, 1, 2]))
    )


def some_expression(chance: Chance, sources: list[str], depth: int = 0) -> Expression:
    if depth < 2 and chance.happens("made"):
        kind = chance.choice(["text", "list", "object", "object"])
        inner = [some_expression(chance, sources, depth + 1) for _ in range(2)]
        if kind == "object":
            return ObjectOf(dict(zip(NAMES, inner, strict=False)))
        return TextOf(tuple(inner)) if kind == "text" else ListOf(tuple(inner))
    if chance.random() < 0.15:
        return Value(chance.choice([1, "x", [1, 2], {"a": "x"}]))
    source, path = chance.choice([*sources, sources[-1]]), some_path(chance)
    # "parameters" stands for the input of a function whose plan is given its parameters.
    return From("input", (chance.choice(PARAMETERS), *path)) if source == "parameters" else From(source, path)


def some_plan(chance: Chance, catalogue: Catalogue, functions: list[str], depth: int = 0, input: str = "input") -> Plan:
    steps: list[Step] = []
    for number in range(chance.randint(1, 5 if depth == 0 else 3)):
        sources = [input, *(step.id for step in steps)]
        each = Each(some_expression(chance, sources)) if chance.happens("each") else None
        given = sources if each is None else [*sources, "item", "item"]
        when = When("present", (some_expression(chance, given),)) if chance.happens("when") else None
        names: Iterable[str] = NAMES
        called: Any = chance.choice([*functions, *(name for name in functions if name[0] == "f")])
        if depth < 2 and chance.happens("nested"):
            called = some_plan(chance, catalogue, functions, depth + 1)
        elif chance.happens("template"):
            called = PlanTemplate(some_script(chance, catalogue, functions), "script")
        else:
            names = catalogue.parameters(called)
        arguments = {name: some_expression(chance, given) for name in names if name == "input" or chance.random() < 0.8}
        steps.append(Step(f"s{number}", called, arguments, each=each, when=when))
    notes = "parameters" if input == "parameters" else None
    return Plan("g", tuple(steps), some_expression(chance, [input, *(step.id for step in steps)]), notes)


def some_script(chance: Chance, catalogue: Catalogue, functions: list[str], variables: str = NAMES) -> str:
    """Make a template: calls with its variables, the results of calls before, and words."""
    calls = []
    for number in range(chance.randint(1, 3)):
        name, sources = chance.choice(functions), [*variables, *map(str, range(number)), "words"]
        arguments = {each: chance.choice(sources) for each in catalogue.parameters(name)}
        decides = chance.choice(sources) if chance.happens("if") else "words"
        calls.append({"function": name, "arguments": arguments, "if": decides})
    return json.dumps({"calls": calls, "tells": not chance.happens("hidden calls")})


def some_catalogue(chance: Chance) -> Catalogue:
    labels = {f"f{number}": some_labels(chance) for number in range(4)}
    specs = {
        name: FunctionSpec(
            name, "", {"properties": {each: some_schema(chance) for each in PARAMETERS}}, {}, chance.happens("effects")
        )
        for name in labels
    }
    catalogue = Catalogue(specs, Policy("enforce", labels))
    for name in ("p0", "q0", "p1"):
        if name == "q0":
            catalogue.prompts[name] = some_script(chance, catalogue, [*specs], PARAMETERS)
        else:
            input = chance.choice(["input", "parameters"])
            catalogue.plans[name] = Plan("", notes=input)
            functions = [*specs, *([name] if chance.random() < 0.1 else ())]
            catalogue.plans[name] = some_plan(chance, catalogue, functions, 1, input)
        if chance.happens("own labels"):
            labels[name] = some_labels(chance, catalogue.parameters(name))
        if name == "q0":
            labels[name] = replace(labels.get(name, FunctionLabels()), gives={})
        specs[name] = FunctionSpec(name, "", {}, {})
    return catalogue


def said_of(flow: Flow) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yield what a flow names, in the form in which the interpreter notes it."""
    mark = PRIVATE if flow.private else UNTRUSTED
    yield flow.steps, str(flow.place[1]) if flow.place[0] == "arguments" else "", mark
    yield flow.steps, ANY, mark


def forgetful(catalogue: Catalogue, forget: str) -> Around:
    """Return what is around the flows of a catalogue's plans, without what is to be forgotten."""
    around, policy = catalogue.around(), catalogue.policy
    match forget:
        case "readers":
            labels = {
                name: replace(each, gives={path: replace(gives, readers=None) for path, gives in each.gives.items()})
                for name, each in policy.functions.items()
            }
            return replace(around, policy=Policy("enforce", labels))
        case "parts":
            labels = {
                name: replace(each, takes={path: takes for path, takes in each.takes.items() if len(path) == 1})
                for name, each in policy.functions.items()
            }
            return replace(around, policy=Policy("enforce", labels))
        case "plans":
            return replace(around, plans=lambda name: None)
        case "templates":
            return replace(around, called=lambda step: ())
        case "prompts":
            return replace(around, inside=lambda name: ())
    return around


def reached_unsaid(seed: int, *, forget: str = "") -> set[tuple[tuple[str, ...], str, str]]:
    """Return the places that marks reached in a run of a random plan, of which the check had said nothing."""
    chance = Chance(seed)
    catalogue = some_catalogue(chance)
    plan = checked = some_plan(chance, catalogue, chance.sample([*catalogue.specs], k=4))
    if forget in ("each", "when"):
        checked = replace(plan, steps=tuple(replace(step, **{forget: None}) for step in plan.steps))
    said = {each for flow in flows_of(checked, forgetful(catalogue, forget)) for each in said_of(flow)}
    interpreter = Interpreter(chance, catalogue)
    interpreter.run(plan, clean({"a": [1, {"b": "x"}], "b": "x"}), Place(), NONE)
    return interpreter.reached - said


@given(st.integers(0, 2**40))
def test_a_mark_reaches_only_what_the_check_has_named(seed: int) -> None:
    assert not reached_unsaid(seed)


@pytest.mark.parametrize("forget", ["each", "when", "readers", "parts", "plans", "templates", "prompts"])
def test_a_check_that_forgets_something_is_caught(forget: str) -> None:
    assert any(reached_unsaid(seed, forget=forget) for seed in range(1_000))


def test_plans_in_plans_are_judged_without_asking_again_at_each_level() -> None:
    plan = Plan("", (Step("s", "f", {"x": From("input", ("a",))}),), From("s"))
    for _ in range(40):
        twice = ListOf((From("input", ("a",)), From("input", ("a",))))
        plan = Plan("", (Step("s", plan, {"a": twice}),), From("s"))
    specs = {"f": FunctionSpec("f", "", {}, {}, effects=True)}
    assert flows_of(plan, Around(Policy("enforce"), specs)) == []
