"""The check of flows: which values of a plan may reach what, said before anything runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from portico._flows.around import Around, never_late
from portico._flows.labels import TRUSTED, Gives, Label, Shade, Takes, shade_of
from portico._plans.findings import Finding
from portico._plans.plan import (
    INPUT,
    ITEM,
    MAXIMUM_DEPTH,
    Expression,
    From,
    ListOf,
    ObjectOf,
    Plan,
    PlanTemplate,
    Step,
    TextOf,
    Value,
    references,
)
from portico._schema.paths import EACH, JsonPath, Many, is_many, print_path

if TYPE_CHECKING:
    from portico._functions.functions import FunctionSpec

Verdict: TypeAlias = Literal["allow", "ask", "refuse"]
_SHOWN = 3
_UNKNOWN = Label(frozenset(("a step that is not known",)))


@dataclass(frozen=True, slots=True)
class Flow:
    """Where a value of a plan goes, and whether it may: ``ask`` means that a person must agree first.

    ``steps`` are the ids of the steps around the place, the outermost first; ``place`` is a path in the step's JSON
    form, ``("arguments", "to")`` for example. ``sources`` are the places that the value comes from, ``s1[*].body``.
    ``why`` is a sentence.
    """

    steps: tuple[str, ...]
    place: tuple[str | int, ...]
    verdict: Verdict
    sources: tuple[str, ...] = ()
    why: str = ""
    readers: str | None = None
    """The argument whose values must be among the readers of ``private``."""
    private: frozenset[tuple[str, JsonPath]] = frozenset()

    @property
    def step(self) -> str:
        """The id of the step as the run has it, without numbers of items."""
        return "/".join(self.steps)

    def finding(self, *, enforced: bool) -> Finding:
        """Return the flow as a finding of the check: an error if it is refused, else a warning."""
        words = " ".join([*self.steps[1:], ".".join(map(str, self.place))])
        severity = "error" if enforced and self.verdict == "refuse" else "warning"
        return Finding(self.why, self.steps[0], words, severity, verdict=self.verdict)


@dataclass(frozen=True, slots=True)
class FlowReview:
    """A step about to run with values that its function does not take unasked: ``flows`` say which, and why.

    For a step that runs for each of a list, each of the ``arguments`` is the list of its values for all items.
    """

    step: Step
    run: str
    arguments: Mapping[str, Any]
    flows: tuple[Flow, ...]


DecideFlow: TypeAlias = Callable[[FlowReview], Awaitable[bool | str]]
"""True agrees to the values that were shown; False, or the reason in words, pauses."""


def flows_of(plan: Plan, around: Around, finished: Mapping[str, Shade] = {}) -> list[Flow]:
    """Return where the values of a plan go that need a look, in the order of its steps.

    ``finished`` are the labels of what steps have given before. The input is the user's.
    """
    flows = Flows(around, plan, (), finished)
    return list(flows)


@dataclass(frozen=True, slots=True)
class _Scope:
    """What the expressions of a step may refer to beside other steps, and the label of its literals."""

    item: Shade | None = None
    late: Label = TRUSTED


_OUTSIDE = _Scope()


@dataclass(slots=True)
class Flows:
    """The flows in one plan, which runs inside the steps ``within`` and where ``control`` decides."""

    around: Around
    plan: Plan
    within: tuple[str, ...]
    finished: Mapping[str, Shade] = field(default_factory=dict)
    control: Label = TRUSTED
    late: Label = TRUSTED
    shades: dict[str, Shade] = field(default_factory=dict)
    entered: tuple[str, ...] = ()
    """The functions that run plans around this one."""
    _steps: dict[str, Step] = field(init=False)

    def __post_init__(self) -> None:
        self._steps = {step.id: step for step in self.plan.steps}
        self.shades.update(self.finished)
        self.shades.setdefault(INPUT, lambda path, whole: TRUSTED)

    def __iter__(self) -> Iterator[Flow]:
        for step in self.plan.steps:
            yield from self._judge(step)

    def shade(self, id: str) -> Shade:
        """Return the labels of what a step gives."""
        found = self.shades.get(id)
        if found is None:
            # While it is being found out: the plan may wait for itself.
            self.shades[id] = lambda path, whole: _UNKNOWN
            step = self._steps.get(id)
            if step is not None:
                # What is asked once is kept: results are used in many places.
                self.shades[id] = cache(self._gives(step))
            found = self.shades[id]
        return found

    def result(self) -> Shade:
        """Return the labels of what the plan gives."""
        result = self.plan.result
        return (lambda path, whole: TRUSTED) if result is None else self._shade(result)

    def _shade(self, expression: Expression, scope: _Scope = _OUTSIDE) -> Shade:
        return lambda path, whole: self._label(expression, path, scope, whole=whole)

    def _label(
        self, expression: Expression | str, path: JsonPath, scope: _Scope = _OUTSIDE, *, whole: bool = True
    ) -> Label:
        match expression:
            case str():
                return scope.late
            case Value(value):
                return TRUSTED if scope.late is TRUSTED or self.around.said(value) else scope.late
            case From(step, start):
                source = scope.item if step == ITEM and scope.item is not None else self.shade(step)
                if not is_many(start):
                    return source((*start, *path), whole)
                if path:
                    # The first part of a path into a list that was selected is a place in that list.
                    return source((*start, *path[1:]), whole)
                # Which are selected, and how many, is up to the lists that they are in.
                chosen = _join(source(start[:end], False) for end, part in enumerate(start) if isinstance(part, Many))
                return chosen.join(source(start, True)) if whole else chosen
            case TextOf(parts):
                return _join(self._label(part, (), scope) for part in parts)
            case ListOf(items):
                members: dict[str | int, Expression] = dict(enumerate(items))
            case ObjectOf():
                members = dict(expression.members.items())
        if not path:
            return _join(self._label(each, (), scope) for each in members.values()) if whole else TRUSTED
        first, rest = path[0], path[1:]
        if isinstance(first, int) and first < 0:
            first += len(members)
        if isinstance(first, str | int):
            return self._label(members[first], rest, scope, whole=whole) if first in members else TRUSTED
        return _join(self._label(each, rest, scope, whole=whole) for each in members.values())

    def _scope(self, step: Step) -> _Scope:
        late = self.late if self.within else self.around.late(step)
        if step.each is None:
            return _Scope(None, late) if late is not TRUSTED else _OUTSIDE
        items, outside = step.each.items, _Scope(None, late)
        return _Scope(lambda path, whole: self._label(items, (EACH, *path), outside, whole=whole), late)

    def _deciding(self, step: Step) -> Label:
        """Return the label of what decides whether, and how often, a step runs."""
        if step.each is None and step.when is None and self.late is TRUSTED and self.around.late is never_late:
            return self.control
        scope = self._scope(step)
        found = self.control.join(scope.late)
        if step.each is not None:
            found = found.join(self._label(step.each.items, (), _Scope(None, scope.late), whole=False))
        if step.when is not None:
            found = found.join(*(self._label(value, (), scope) for value in step.when.values))
            for value in step.when.values if step.when.test == "present" else ():
                # Whether there is something is up to what it would be in.
                for each in references(value):
                    outer = (From(each.step, each.path[:end]) for end in range(len(each.path)))
                    found = found.join(*(self._label(one, (), scope, whole=False) for one in outer))
        return found

    def _given(self, step: Step) -> dict[str, Shade]:
        scope = self._scope(step)
        return {name: self._shade(argument, scope) for name, argument in step.arguments.items()}

    def _gives(self, step: Step) -> Shade:
        one, deciding = self._gives_once(step), self._deciding(step)
        plain = step.each is None

        def shade(path: JsonPath, whole: bool) -> Label:
            # The first part of a path into the results of a loop is the item's place.
            return one(path if plain else path[1:], whole).join(deciding)

        return one if plain and deciding == TRUSTED else shade

    def _gives_once(self, step: Step) -> Shade:
        given = self._given(step)
        function = step.function
        if isinstance(function, PlanTemplate):
            made = self._template_label(step)
            return lambda path, whole: made
        inner = self._inner(step, given)
        spec = self.around.specs.get(function) if isinstance(function, str) else None
        if spec is None:
            return inner.result() if inner is not None else lambda path, whole: _UNKNOWN
        labels, within = self.around.labels(spec), () if step.each is None else (EACH,)
        if inner is not None:
            result = inner.result()
            if not labels.gives:
                return result
            # What is said of the function holds beside what its plan gives.
            own = replace(labels, gives={(): Gives(as_given=True), **labels.gives})
            said = shade_of(own, self._id(step), {}, within=within)
            return lambda path, whole: result(path, whole).join(said(path, whole))
        arguments = {name: shade((), True) for name, shade in given.items()}
        # A prompt may read what only some may.
        read = Label(private=self._template_label(step).private) if self._called(step) else TRUSTED
        gives = shade_of(labels, self._id(step), arguments, within=within)
        return (lambda path, whole: gives(path, whole).join(read)) if read.private else gives

    def _id(self, step: Step) -> str:
        """Return the id of a step as the run has it, without numbers of items."""
        return "/".join((*self.within, step.id))

    def read(self, step: Step) -> Label:
        """Return the label of all that is read of a step: what it gives, and what the steps inside it give."""
        inner = self._inner(step, self._given(step))
        return self.shade(step.id)((), True).join(*(inner.read(each) for each in inner.plan.steps) if inner else ())

    def _inner(self, step: Step, given: Mapping[str, Shade]) -> Flows | None:
        """Return the flows of the plan that a step runs, if it does."""
        function, entered = step.function, self.entered
        if isinstance(function, str):
            plan = None if function in entered else self.around.plans(function)
            entered = (*entered, function)
        else:
            plan = function if isinstance(function, Plan) else None
        if plan is None or len(self.within) >= MAXIMUM_DEPTH:
            return None

        @cache  # Plans in plans would ask once more for each reference around them.
        def input(path: JsonPath, whole: bool) -> Label:
            first = path[0] if path else None
            every = [given[INPUT](path, whole)] if INPUT in given else []  # A plan that takes one value as a whole.
            if isinstance(first, str) and first in given:
                every.append(given[first](path[1:], whole))
            return _join(every or (shade(path[1:], whole) for shade in given.values()))

        within = (*self.within, step.id)
        late = self._scope(step).late if isinstance(function, Plan) else TRUSTED
        return Flows(self.around, plan, within, {INPUT: input}, self._deciding(step), late, entered=entered)

    def _judge(self, step: Step) -> Iterator[Flow]:
        function, given = step.function, self._given(step)
        if isinstance(function, PlanTemplate):
            yield from self._judge_template(step)
            return
        inner, around = self._inner(step, given), self.around
        spec = around.specs.get(function) if isinstance(function, str) else None
        plain = inner is not None and spec is not None and not around.labels(spec).reaches_out
        if spec is not None:
            for name, shade in given.items():
                # What a plan takes is judged where it goes, beside what is said of it.
                said, argument = around.policy.said_of(spec, name), step.arguments[name]
                for path, takes in (said if plain else around.takes(spec, name, argument)).items():
                    yield from self._judge_argument(step, spec, (name, *path), takes, _inside(shade, path))
        if inner is not None:
            yield from inner
        elif spec is not None and self._called(step):
            yield from self._judge_template(step)
        deciding = self._deciding(step)
        if not plain and spec is not None and deciding.untrusted and around.is_sink(spec):
            what = "when" if step.when is not None else "each" if step.each is not None else "function"
            why = f"{_names(deciding.untrusted)} decides whether {spec.name} is called, and is untrusted"
            yield Flow((*self.within, step.id), (what,), "ask", tuple(sorted(deciding.untrusted)), why)

    def _judge_argument(
        self, step: Step, spec: FunctionSpec, path: JsonPath, takes: Takes, shade: Shade
    ) -> Iterator[Flow]:
        label, where, taker = shade((), not takes.outside), print_path(path)[2:], spec.name
        place = ("arguments", *(part if isinstance(part, str | int) else "*" for part in path))
        verdict: Verdict = "refuse" if takes.refuse else "ask"
        if takes.trusted and label.untrusted:
            why = f"{where} of {taker} comes from {_names(label.untrusted)}, which is untrusted"
            yield Flow((*self.within, step.id), place, verdict, tuple(sorted(label.untrusted)), why)
        readers = takes.readers
        if readers is None and any(each.readers == path[0] for each in self.around.labels(spec).takes.values()):
            readers = str(path[0])  # Those who are named may see who they are.
        closed = takes.private or (readers is None and not self.around.is_sink(spec))
        if label.private and not closed:
            sources = sorted({step for step, _ in label.private})
            why = f"{where} of {taker} has what only the readers of {_names(sources)} may see"
            ids = (*self.within, step.id)
            yield Flow(ids, place, verdict, tuple(sources), why, readers, label.private)

    def _template_label(self, step: Step, without: str = "") -> Label:
        """Return the label of what a template has to do with: its variables, and what the functions give it calls.

        The variables of a prompt are the arguments of its function, which are judged as such.
        """
        around, made = self.around, TRUSTED
        if isinstance(step.function, PlanTemplate):
            made = self._deciding(step).join(*(shade((), True) for shade in self._given(step).values()))
        for name in (each for each in self._called(step) if each != without):
            spec = around.specs.get(name)
            labels = None if spec is None else around.labels(spec)
            made = made.join(
                _UNKNOWN if labels is None else shade_of(labels, f"{self._id(step)}: {name}", {"": made})((), True)
            )
        return made

    def _called(self, step: Step) -> list[str]:
        """Return the functions that the template of a step, or of its function, may call, and those that these may."""
        around, function = self.around, step.function
        called = around.inside(function) if isinstance(function, str) else around.called(step)
        return sorted(around.every(called)) if called else []

    def _judge_template(self, step: Step) -> Iterator[Flow]:
        around, specs, label = self.around, self.around.specs, self._template_label(step)
        if not label.untrusted and not label.private:
            return
        sinks = [name for name in self._called(step) if name in specs and around.restricts(specs[name])]
        if isinstance(step.function, str):
            # What a function that is called once gave does not go back to it.
            calls = Counter(name for each in (step.function, *self._called(step)) for name in around.inside(each))
            sinks = [name for name in sinks if calls[name] > 1 or self._template_label(step, name) != TRUSTED]
        ids, place = (*self.within, step.id), ("function",)
        if sinks and label.untrusted:
            why = f"the template may call {sinks[0]} with what comes from {_names(label.untrusted)}, which is untrusted"
            yield Flow(ids, place, "ask", tuple(sorted(label.untrusted)), why)
        if sinks and label.private:
            sources = sorted({step for step, _ in label.private})
            why = f"the template may call {sinks[0]} with what only the readers of {_names(sources)} may see"
            yield Flow(ids, place, "ask", tuple(sources), why, private=label.private)


def _join(labels: Iterable[Label]) -> Label:
    return reduce(Label.join, labels, TRUSTED)


def _inside(shade: Shade, path: JsonPath) -> Shade:
    return lambda more, whole: shade((*path, *more), whole)


def _names(sources: Collection[str]) -> str:
    shown = sorted(sources)
    return " and ".join(shown[:_SHOWN]) + (f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else "")
