"""Checks the steps of a plan against the functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from portico._plans.checking.expressions import Expressions, call_problems, unlike
from portico._plans.checking.notes import FunctionNames, Notes
from portico._plans.checking.shapes import (
    UNKNOWN,
    Known,
    Output,
    described,
    known_of,
    listed,
    meant_alone,
    object_of,
    whole,
)
from portico._plans.plan import INPUT, Plan, PlanTemplate, Step, Value
from portico._ports.template_language import Template
from portico._schema.compare import Together, never_meet
from portico.errors import PorticoError, TemplateError, nearest

if TYPE_CHECKING:
    from portico._functions.functions import FunctionSpec
    from portico._plans.findings import Finding
    from portico._ports.schema_validator import SchemaValidator


def cycles(waits: Mapping[str, Collection[str]]) -> Iterator[list[str]]:
    """Yield one walk for each circle met, without recursion: a plan may have 1,000 steps.

    >>> list(cycles({"a": ["b"], "b": ["a"], "c": []}))
    [['a', 'b', 'a']]
    """
    done: set[str] = set()
    for start in waits:
        if start in done:
            continue
        trail = [start]
        on_trail = {start}
        stack = [iter(sorted(waits[start]))]
        while stack:
            following = next(stack[-1], None)
            if following is None:
                stack.pop()
                left = trail.pop()
                on_trail.discard(left)
                done.add(left)
            elif following in on_trail:
                yield [*trail[trail.index(following) :], following]
            elif following not in done and following in waits:
                trail.append(following)
                on_trail.add(following)
                stack.append(iter(sorted(waits[following])))


"""How many names of one plan are looked for in the whole catalogue: a thousand in a large one would take minutes."""


"""A place inside a step, as its JSON form has it: ``("arguments", "day", "list", 0)``."""

"""Stands for no fix: None is one."""


Templates: TypeAlias = Callable[[str, str], Template]
"""Compiles a template from its source, in the language of a name, as `Kernel.template` does."""

Plans: TypeAlias = Callable[[str], Plan | None]
"""Tells which plan a function runs, by its full name; None for one that runs none."""


@dataclass(slots=True)
class Around:
    """What all plans of one check share."""

    catalogue: Mapping[str, FunctionSpec]
    validator: SchemaValidator
    templates: Templates | None
    found: list[Finding]
    plans: Plans | None = None
    names: FunctionNames = field(init=False)
    languages: set[str] = field(default_factory=set)
    """Those that are not there: one finding for each is enough."""
    walked: set[str] = field(default_factory=set)
    """The functions whose plans were looked through for circles."""
    circling: set[str] = field(default_factory=set)
    """Those in the circles that were noted."""

    def __post_init__(self) -> None:
        self.names = FunctionNames(self.catalogue)


def check_bounds(step: Step, around: Around, notes: Notes) -> None:
    """Note time-outs and numbers of tries that no step can have."""
    if step.seconds is not None and not step.seconds > 0:
        notes.add(f"a step has more than 0 seconds, not {step.seconds!r}", ("seconds",))
    if step.attempts is not None and step.attempts < 1:
        notes.add(f"a step is tried once at least, not {step.attempts!r} times", ("attempts",))
    elif not isinstance(step.function, PlanTemplate):
        check_attempts(step, _functions(step.function), around, notes)


def check_attempts(step: Step, functions: Sequence[str], around: Around, notes: Notes) -> None:
    """Note a function with effects in a step that is to be tried again."""
    if step.attempts is None or step.attempts < 2:
        return
    for name in functions:
        found = name if name in around.catalogue else around.names.meant(name)
        if found is not None and around.catalogue[found].effects:
            message = f"{found} has effects: it must not happen twice, and is tried once only"
            notes.add(message, ("attempts",), new=None)
            return


def _functions(function: str | Plan | PlanTemplate) -> list[str]:
    if isinstance(function, Plan):
        return [name for step in function.steps for name in _functions(step.function)]
    return [function] if isinstance(function, str) else []


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


_MAXIMUM_DEPTH = 50
_MAXIMUM_STEPS = 1_000
_MAXIMUM_CYCLES = 20
_TEXT = Output(whole({"type": "string"}))
_NULL: Together = whole({"type": "null"})


class PlanCheck:
    """One plan, inside the steps ``within``, that is given a value of the shape ``given`` (None: nothing)."""

    def __init__(
        self,
        around: Around,
        plan: Plan,
        within: tuple[str, ...],
        given: Together | None,
        *,
        finished: Mapping[str, Output] | None = None,
        taken: Collection[str] = (),
    ) -> None:
        self.around = around
        self.plan = plan
        self.within = within
        self.taken = taken
        self.outputs: dict[str, Output] = dict(finished) if finished else {}
        self.finished = frozenset(self.outputs)
        self.given = given
        contract = () if plan.input is None else whole(plan.input)
        if given is not None or contract:
            self.outputs[INPUT] = Output((*contract, *(given or ())))
        self.by_id: dict[str, Step] = {}
        self.inner: dict[int, PlanCheck] = {}
        self.passed: set[str] = set()
        self.forward = False
        twice: set[str] = set()
        for step in plan.steps:
            if step.id in self.by_id:
                twice.add(step.id)
            else:
                self.by_id[step.id] = step
        self.notes = Notes(around.found, within, twice)
        self.expressions = Expressions(self._output, self._known_steps, self.notes, around.validator, len(within))

    def check(self) -> None:
        """Note everything that is wrong with the plan."""
        plan, notes = self.plan, self.notes
        if len(self.within) > _MAXIMUM_DEPTH:
            notes.add(f"plans nest deeper than {_MAXIMUM_DEPTH} levels")
            return
        if len(plan.steps) > _MAXIMUM_STEPS:
            notes.add(f"a plan has at most {_MAXIMUM_STEPS:,} steps, not {len(plan.steps):,}")
        if not plan.steps and plan.result is None:
            notes.add("the plan has neither steps nor a result")
        if plan.input is not None and self.given is not None and not self.within:
            self._whole_input(self.given, whole(plan.input))
        for step in plan.steps:
            notes.step = step.id
            self._step(step)
            self.passed.add(step.id)
        notes.step = None
        if plan.result is not None:
            self.expressions.shape(plan.result, ("result",))
        if self.forward:
            for cycle in islice(self._cycles(), _MAXIMUM_CYCLES):
                notes.step = cycle[0]
                notes.add(f"waits for itself: {' → '.join(cycle)}")

    def _whole_input(self, given: Together, taken: Together) -> None:
        """Check what the run is given; the arguments of a nested plan are checked one by one."""
        if never_meet((*given, *taken)):
            self.notes.add(unlike(given, "the plan", taken), ("input",))
            self.outputs[INPUT] = Output(taken)

    def _cycles(self) -> Iterator[list[str]]:
        renamed = self.expressions.renamed
        return cycles({
            id: {before for each in step.depends_on() if (before := renamed.get(each, each)) in self.by_id}
            for id, step in self.by_id.items()
        })  # fmt: skip

    def _step(self, step: Step) -> None:
        id, notes, function = step.id, self.notes, step.function
        if not id or "/" in id:
            notes.add(f"{id!r} is not an id; it is a word without '/'", ("id",))
        elif id == INPUT:
            notes.add(f"{INPUT!r} is what the plan is given; no step may have that id", ("id",))
        elif id in self.passed or id in self.finished or id in self.taken:
            notes.add(f"the id {id!r} is taken; ids are unique in a run")
        if step.after:
            self._after(step)
        if isinstance(function, str):
            spec = self.around.catalogue.get(function) or self._unknown_function(function)
            if spec is not None:
                self._arguments(step, known_of(spec))
            else:
                self._anything(step)
            if self.around.plans is not None:
                check_circles((function,), self.around, notes)
        elif isinstance(function, Plan):
            self._nested(step, function)
        else:
            self._anything(step)
            self._template(step, function)
        if step.attempts is not None or step.seconds is not None:
            check_bounds(step, self.around, notes)

    def _after(self, step: Step) -> None:
        for index, earlier in enumerate(step.after):
            if earlier in self.by_id:
                self.forward = self.forward or earlier not in self.passed
            elif earlier not in self.finished:
                known = [*self.finished, *self.by_id]
                other = meant_alone(earlier, known, ())
                if other is None:
                    self.expressions.unknown_step(earlier, known, ("after",))
                    continue
                self.expressions.renamed[earlier] = other
                self.forward = True
                message = f"there is no step {earlier!r}; it is written {other!r}"
                self.notes.add(message, ("after", index), nearest=(other,), new=other)

    def _unknown_function(self, name: str) -> FunctionSpec | None:
        """Note that there is no such function; return the manual of the one that is meant."""
        names = self.around.names
        other = names.meant(name)
        if other is not None:
            message = f"there is no function {name!r}; it is written {other!r}"
            self.notes.add(message, ("function",), nearest=(other,), new=other)
            return self.around.catalogue[other]
        near = names.nearest(name)
        hint = names.hint(near)
        self.notes.add(f"there is no function {name!r}{hint}", ("function",), nearest=near, unknown_function=name)
        return None

    def _arguments(self, step: Step, known: Known) -> None:
        given = step.arguments
        parameters = known.parameters
        argument = self.expressions.argument
        renamed: set[str] = set()
        for name, expression in given.items():
            taken = parameters.get(name)
            if taken is not None:
                # The usual case: a literal of a type whose every value is taken.
                if type(expression) is not Value or not taken.takes_every(type(expression.value)):
                    argument(expression, taken, known.name, ("arguments", name))
            elif known.closed:
                place = ("arguments", name)
                other = meant_alone(name, parameters, given)
                if other is None:
                    near = nearest(name, list(parameters))
                    message = f"{known.name} has no parameter {name!r}; it has: {listed(parameters)}"
                    self.notes.add(message, place, nearest=near)
                    self.expressions.shape(expression, place)
                else:
                    renamed.add(other)
                    message = f"{known.name} has no parameter {name!r}; it is written {other!r}"
                    self.notes.add(message, place, nearest=(other,), new=other)
                    argument(expression, parameters[other], known.name, place)
            else:
                self.expressions.shape(expression, ("arguments", name))
        for name in known.required:
            if name not in given and name not in renamed:
                wanted = described(parameters[name].shape) if name in parameters else "a value"
                self.notes.add(f"{known.name} needs the argument {name!r}: {wanted}", ("arguments",))

    def _anything(self, step: Step) -> Together:
        """Check what the arguments refer to, where no one knows what is taken; return the shape of all of them."""
        return object_of({
            name: self.expressions.shape(expression, ("arguments", name))
            for name, expression in step.arguments.items()
        })  # fmt: skip

    def _nested(self, step: Step, plan: Plan) -> None:
        if plan.input is None:
            self._anything(step)
        else:
            self._arguments(step, Known("the plan", plan.input, True))
        self._nested_check(step, plan).check()

    def _nested_check(self, step: Step, plan: Plan) -> PlanCheck:
        inner = self.inner.get(id(step))
        if inner is None:
            # What is wrong with the arguments is noted when it is the step's turn.
            silent = Expressions(
                self._output, self._known_steps, Notes([], (), frozenset()), self.around.validator, len(self.within)
            )
            shapes = {name: silent.shape(each, ("arguments", name)) for name, each in step.arguments.items()}
            if plan.input is not None:
                # That one is missing is noted where it is missing.
                shapes |= {name: () for name in Known("", plan.input, None).required if name not in shapes}
            given = object_of(shapes) if shapes or plan.input is not None else None
            inner = self.inner[id(step)] = PlanCheck(self.around, plan, (*self.within, step.id), given)
            inner.notes.clear = self.notes.clear and step.id not in self.notes.twice
        return inner

    def _template(self, step: Step, template: PlanTemplate) -> None:
        around, place = self.around, ("function",)
        if around.templates is None or template.language in around.languages:
            return
        try:
            compiled = around.templates(template.source, template.language)
        except TemplateError as error:
            message, where = str(error), f"line {error.line}, column {error.column}"
            self.notes.add(message if error.line is None or where in message else f"{where}: {message}", place)
            return
        except PorticoError as error:
            around.languages.add(template.language)
            self.notes.add(str(error), place)
            return
        for name in getattr(compiled, "variables", ()):
            if name not in step.arguments:
                self.notes.add(f"the template needs the argument {name!r}", ("arguments",))
        calls = getattr(compiled, "calls", ())
        for problem in call_problems(template, calls, step.arguments, around.catalogue, around.names):
            self.notes.add(problem.message, place, nearest=problem.nearest)
        called = [call.function for call in calls]
        check_attempts(step, called, around, self.notes)
        check_circles(called, around, self.notes)

    def _known_steps(self) -> list[str]:
        given = [INPUT] if INPUT in self.outputs and INPUT not in self.finished else []
        return [*self.finished, *self.by_id, *given]

    def _output(self, id: str) -> Output | None:
        """Return what a step gives, made once; None where there is no such step."""
        step = self.by_id.get(id)
        if step is not None and id not in self.passed:
            self.forward = True
        found = self.outputs.get(id)
        if found is None and step is not None:
            found = self.outputs[id] = self._made_by(step)
        return found

    def _made_by(self, step: Step) -> Output:
        function = step.function
        if isinstance(function, str):
            catalogue = self.around.catalogue
            spec = catalogue.get(function)
            if spec is None:
                other = self.around.names.meant(function)
                spec = None if other is None else catalogue[other]
            return UNKNOWN if spec is None else known_of(spec).output
        if isinstance(function, PlanTemplate):
            return _TEXT
        # While it is being found out: the plan may wait for itself.
        self.outputs[step.id] = UNKNOWN
        return Output(self._nested_check(step, function).result())

    def result(self) -> Together:
        """Return what the plan gives, with nothing noted."""
        if len(self.within) > _MAXIMUM_DEPTH:
            return ()
        if self.plan.result is None:
            return _NULL
        notes = Notes([], (), frozenset())
        return Expressions(self._output, self._known_steps, notes, self.around.validator, 0).shape(
            self.plan.result, ("result",)
        )
