"""Checks a plan before it runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, TypeAlias

from portico._functions.functions import FunctionSpec
from portico._plans.checking.expressions import Expressions, FunctionNames, Notes, unlike
from portico._plans.checking.shapes import (
    NULL,
    UNKNOWN,
    Known,
    Output,
    Taken,
    at_path,
    describe,
    itemize,
    known_of,
    meant,
    never_equal,
    object_of,
    output_of,
    whole,
)
from portico._plans.findings import Finding
from portico._plans.plan import (
    AT_ONCE,
    INPUT,
    ITEM,
    MAXIMUM_DEPTH,
    MAXIMUM_STEPS,
    STEP_OPTIONS,
    TESTS,
    Each,
    Plan,
    PlanTemplate,
    Step,
    Value,
    When,
)
from portico._ports.template_language import Template
from portico._schema.compare import Together, never_meet
from portico._schema.paths import EACH
from portico._schema.validate import PlainSchemaValidator
from portico.errors import PorticoError, TemplateError, nearest

if TYPE_CHECKING:
    from portico._ports.schema_validator import SchemaValidator
    from portico._prompts.calling import FunctionCall
    from portico._schema.paths import JsonPath

Templates: TypeAlias = Callable[[str, str], Template]
"""Compiles a template from its source, in the language of a name, as `Kernel.template` does."""

_VALIDATOR = PlainSchemaValidator()
_TEXT = Output(whole({"type": "string"}))
_LIST, _TRUTH = Taken(whole({"type": "array"})), Taken(whole({"type": "boolean"}))


def check_plan(
    plan: Plan,
    catalogue: Mapping[str, FunctionSpec],
    *,
    finished: Mapping[str, FunctionSpec | Mapping[str, Any] | None] | None = None,
    taken: Collection[str] = (),
    validator: SchemaValidator | None = None,
    input: Mapping[str, Any] | None = None,
    templates: Templates | None = None,
) -> list[Finding]:
    """Return the findings on a plan, in the order of its steps.

    >>> from portico import From, Plan, Step
    >>> for finding in check_plan(Plan("g", (Step("s1", "shout", {"text": From("s2")}),)), {}):
    ...     print(finding)
    s1 function: there is no function 'shout'
    s1 arguments.text: there is no step 's2'; the steps are: s1

    ``finished`` are steps that have run in the same run, by id, with the spec of the function or the JSON Schema of
    the result (None: not known); new steps may refer to them. No new step may have an id in ``taken``. ``input`` is the
    JSON Schema of the plan's input, such as ``{"const": value}`` for a known value; without it, ``plan.input`` counts.
    ``templates`` compiles the templates among the steps; without it they are not checked.

    A finding with a `Fix` has one certain remedy, and the rest is checked as if it were applied: the plan that
    `Finding.fix_plan` makes has the other findings and no new ones. If steps wait for each other in circles, one circle
    is named.
    """
    found: list[Finding] = []
    around = _Around(FunctionNames(catalogue), validator or _VALIDATOR, templates, found)
    known = {step: _output_of(gave) for step, gave in finished.items()} if finished else {}
    given = None if input is None else whole(input)
    try:
        _PlanCheck(around, plan, (), given, finished=known, taken=taken).check()
    except RecursionError:
        found.append(Finding("the plan is nested too deeply to be checked"))
    return found


def path_problem(schema: Mapping[str, Any], path: JsonPath) -> str | None:
    """Say why a value of ``schema`` has nothing at ``path``; None if it may have something there.

    An open schema allows every path.
    """
    return at_path(whole(schema), path).problem or None


def _output_of(gave: FunctionSpec | Mapping[str, Any] | None) -> Output:
    if gave is None:
        return UNKNOWN
    return known_of(gave).output if isinstance(gave, FunctionSpec) else Output(whole(gave))


@dataclass(slots=True)
class _Around:
    """What all plans of one check share."""

    functions: FunctionNames
    validator: SchemaValidator
    templates: Templates | None
    found: list[Finding]


class _PlanCheck:
    """One plan, inside the steps ``within``, that is given a value of the shape ``given`` (None: nothing)."""

    def __init__(
        self,
        around: _Around,
        plan: Plan,
        within: tuple[str, ...],
        given: Together | None,
        *,
        finished: Mapping[str, Output] | None = None,
        taken: Collection[str] = (),
        fixes: bool = True,
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
        for step in plan.steps:
            self.by_id.setdefault(step.id, step)
        self.item: Output | None = None
        """What the step at hand runs for, where it has ``each``."""
        self.inner: dict[int, _PlanCheck] = {}
        self.passed: set[str] = set()
        self.forward = False
        self.notes = Notes(around.found, within, fixes=fixes and len(self.by_id) == len(plan.steps))
        self.expressions = self._expressions(self.notes)

    def _expressions(self, notes: Notes) -> Expressions:
        depth = len(self.within)
        return Expressions(
            self._output, self._known_steps, notes, self.around.validator, depth, skippable=self._skippable
        )

    def _skippable(self, id: str) -> bool:
        """Tell whether a step may be skipped as a whole, and the one at hand not by a condition itself."""
        step, at_hand = self.by_id.get(id), self.by_id.get(self.notes.step or "")
        conditional = step is not None and step.when is not None and not step.decides_by_item
        return conditional and (at_hand is None or at_hand.when is None)

    def check(self) -> None:
        plan, notes = self.plan, self.notes
        if len(self.within) > MAXIMUM_DEPTH:
            notes.add(f"plans nest deeper than {MAXIMUM_DEPTH} levels")
            return
        if len(plan.steps) > MAXIMUM_STEPS:
            notes.add(f"a plan has at most {MAXIMUM_STEPS:,} steps, not {len(plan.steps):,}")
        if not plan.steps and plan.result is None:
            notes.add("the plan has neither steps nor a result")
        # The arguments of a nested plan are checked one by one.
        taken = None if plan.input is None or self.within else whole(plan.input)
        if self.given is not None and taken is not None and never_meet((*self.given, *taken)):
            notes.add(unlike(self.given, "the plan", taken), ("input",))
            self.outputs[INPUT] = Output(taken)
        for step in plan.steps:
            notes.step = step.id
            self._step(step)
            self.passed.add(step.id)
        notes.step = None
        if plan.result is not None:
            self.expressions.shape(plan.result, ("result",))
        if self.forward:
            waits = {id: sorted(step.depends_on() & self.by_id.keys()) for id, step in self.by_id.items()}
            try:
                TopologicalSorter(waits).prepare()
            except CycleError as error:
                circle = error.args[1][::-1]
                notes.step = circle[0]
                notes.add(f"waits for itself: {' → '.join(circle)}")

    def _step(self, step: Step) -> None:
        id, notes, function = step.id, self.notes, step.function
        if not id or "/" in id or "[" in id or "]" in id:
            notes.add(f"{id!r} is not an id; it is a word without '/', '[' and ']'", ("id",))
        elif id == INPUT:
            notes.add(f"{INPUT!r} is what the plan is given; no step may have that id", ("id",))
        elif id == ITEM and any(each.each for each in self.plan.steps):
            notes.add(f"{ITEM!r} is the item of a step with 'each'; no step of this plan may have that id", ("id",))
        elif id in self.passed or id in self.finished or id in self.taken:
            notes.add(f"the id {id!r} is taken; ids are unique in a run")
        for earlier in step.after:
            if earlier in self.by_id:
                self.forward = self.forward or earlier not in self.passed
            elif earlier == ITEM and step.each is not None:
                notes.add(f"{ITEM!r} is the item at hand, and no step to wait for", ("after",))
            elif earlier not in self.finished:
                self.expressions.unknown_step(earlier, [*self.finished, *self.by_id], ("after",))
        if step.each is not None:
            self.item = self._each(step.each)
        if step.when is not None:
            self._when(step.when)
        if isinstance(function, str):
            spec = self.around.functions.catalogue.get(function) or self._function(function)
            if spec is not None:
                self._arguments(step, known_of(spec))
            else:
                self._anything(step)
        elif isinstance(function, Plan):
            if function.input is None:
                self._anything(step)
            else:
                self._arguments(step, Known("the plan", function.input))
            self._nested_check(step, function).check()
        else:
            self._anything(step)
            self._template(step, function)
        if step.seconds is not None or step.attempts is not None:
            for name, number in step.options().items():
                if not STEP_OPTIONS[name].fits(number):
                    notes.add(f"expected {STEP_OPTIONS[name].expected}, not {number!r}", (name,))
            if not isinstance(function, PlanTemplate):
                self._attempts(step, sorted(function.functions_used) if isinstance(function, Plan) else [function])
        self.item = None

    def _each(self, each: Each) -> Output:
        if type(each.at_once) is not int or not AT_ONCE.fits(each.at_once):
            self.notes.add(f"expected {AT_ONCE.expected}, not {each.at_once!r}", ("each", "at_once"))
        if each.failed not in ("stop", "skip"):
            self.notes.add(f"expected 'stop' or 'skip', not {each.failed!r}", ("each", "failed"))
        return self._item_of(each, self.expressions)

    def _when(self, when: When) -> None:
        expressions, notes = self.expressions, self.notes
        if TESTS.get(when.test) != len(when.values):
            notes.add(f"{len(when.values)} values and the test {when.test!r} are no condition", ("when",))
            return
        placed = [(("when", *place), value) for place, value in when.placed()]
        if when.test == "true":
            expressions.argument(placed[0][1], _TRUTH, "'when'", placed[0][0])
            return
        shapes = [expressions.shape(value, place) for place, value in placed]
        if when.test == "equal" and never_equal(shapes[0], shapes[1]):
            words = " and ".join(map(describe, shapes))
            notes.add(f"{words} are never equal", placed[0][0][:-1])

    def _item_of(self, each: Each, expressions: Expressions) -> Output:
        items = expressions.argument(each.items, _LIST, "'each'", ("each", "items"))
        found = at_path((*items, *_LIST.shape), (EACH,))
        return UNKNOWN if found.problem else Output(at_path(found.shape, (0,)).shape)

    def _attempts(self, step: Step, functions: Iterable[str]) -> None:
        if step.attempts is None or step.attempts < 2:
            return
        for name in functions:
            spec = self.around.functions.spec(name)
            if spec is not None and spec.effects:
                message = f"{spec.name} has effects: it must not happen twice, and is tried once only"
                self.notes.add(message, ("attempts",), new=None)
                return

    def _function(self, name: str) -> FunctionSpec | None:
        functions = self.around.functions
        found = functions.find(name)
        if found is None:
            near, hint = functions.nearest(name)
            message = f"there is no function {name!r}{hint}"
            self.notes.add(message, ("function",), nearest=near, unknown_function=name)
            return None
        if found != name:
            message = f"there is no function {name!r}; it is written {found!r}"
            self.notes.add(message, ("function",), nearest=(found,), new=found)
        return functions.spec(found)

    def _arguments(self, step: Step, known: Known) -> None:
        given, parameters = step.arguments, known.parameters
        argument = self.expressions.argument
        renamed: set[str] = set()
        for name, expression in given.items():
            place = ("arguments", name)
            taken = parameters.get(name)
            if taken is not None:
                # The usual case: a literal of a type whose every value is taken.
                if type(expression) is not Value or not taken.takes_every(type(expression.value)):
                    argument(expression, taken, known.name, place)
                continue
            other = meant(name, parameters, given) if known.closed else None
            if other is not None:
                renamed.add(other)
                message = f"{known.name} has no parameter {name!r}; it is written {other!r}"
                self.notes.add(message, place, nearest=(other,), new=other)
                argument(expression, parameters[other], known.name, place)
                continue
            if known.closed:
                message = f"{known.name} has no parameter {name!r}; it has: {itemize(parameters)}"
                self.notes.add(message, place, nearest=nearest(name, list(parameters)))
            self.expressions.shape(expression, place)
        for name in known.required:
            if name not in given and name not in renamed:
                wanted = describe(parameters[name].shape) if name in parameters else "a value"
                self.notes.add(f"{known.name} needs the argument {name!r}: {wanted}", ("arguments",))

    def _anything(self, step: Step) -> None:
        for name, expression in step.arguments.items():
            self.expressions.shape(expression, ("arguments", name))

    def _nested_check(self, step: Step, plan: Plan) -> _PlanCheck:
        inner = self.inner.get(id(step))
        if inner is None:
            # What is wrong with the arguments is noted when it is the step's turn.
            silent, at_hand = self._expressions(Notes([])), self.item
            self.item = None if step.each is None else self._item_of(step.each, silent)
            shapes = {name: silent.shape(each, ("arguments", name)) for name, each in step.arguments.items()}
            self.item = at_hand
            if plan.input is not None:
                shapes |= {name: () for name in Known("", plan.input).required if name not in shapes}
            given = object_of(shapes) if shapes or plan.input is not None else None
            within = (*self.within, step.id)
            inner = self.inner[id(step)] = _PlanCheck(self.around, plan, within, given, fixes=self.notes.fixes)
        return inner

    def _template(self, step: Step, template: PlanTemplate) -> None:
        around, notes, place = self.around, self.notes, ("function",)
        if around.templates is None:
            return
        try:
            compiled = around.templates(template.source, template.language)
        except TemplateError as error:
            message, where = str(error), f"line {error.line}, column {error.column}"
            notes.add(message if error.line is None or where in message else f"{where}: {message}", place)
            return
        except PorticoError as error:
            notes.add(str(error), place)
            return
        for name in getattr(compiled, "variables", ()):
            if name not in step.arguments:
                notes.add(f"the template needs the argument {name!r}", ("arguments",))
        every, given = getattr(compiled, "calls", None) or (), step.arguments
        calls = [call for call in every if not (call.variable and call.variable in given)]
        for call in (each for each in calls if each.certain):
            where = f"line {call.line}, column {call.column}"
            # A template that writes a name in another case, or with another separator, is understood.
            spec = around.functions.spec(call.function)
            if spec is None:
                near, hint = around.functions.nearest(call.function)
                message = f"{where}: there is no function {call.function!r}{hint}"
                notes.add(message, place, nearest=near, unknown_function=call.function)
                continue
            for problem in _call_problems(call, known_of(spec), template, step.arguments):
                notes.add(f"{where}: {problem}", place)
        self._attempts(step, [call.function for call in calls])

    def _known_steps(self) -> list[str]:
        given = [INPUT] if INPUT in self.outputs and INPUT not in self.finished else []
        return [*self.finished, *self.by_id, *given]

    def _output(self, id: str) -> Output | None:
        """Return what a step gives, made once; None where there is no such step."""
        if id == ITEM and self.item is not None:
            return self.item
        step = self.by_id.get(id)
        if step is not None and id not in self.passed:
            self.forward = True
        found = self.outputs.get(id)
        if found is None and step is not None:
            found = self._output_of_one(step)
            if step.each is not None or step.when is not None:
                found = Output(output_of(step, found.shape))
            self.outputs[id] = found
        return found

    def _output_of_one(self, step: Step) -> Output:
        function = step.function
        if isinstance(function, str):
            spec = self.around.functions.spec(function)
            return UNKNOWN if spec is None else known_of(spec).output
        if isinstance(function, PlanTemplate):
            return _TEXT
        # While it is being found out: the plan may wait for itself.
        self.outputs[step.id] = UNKNOWN
        return Output(self._nested_check(step, function).result())

    def result(self) -> Together:
        if len(self.within) > MAXIMUM_DEPTH:
            return ()
        if self.plan.result is None:
            return NULL
        return self._expressions(Notes([])).shape(self.plan.result, ("result",))


def _call_problems(
    call: FunctionCall, known: Known, template: PlanTemplate, variables: Collection[str]
) -> Iterator[str]:
    """Yield what surely fails when the template is rendered with ``variables``, by `portico._prompts.calling`.

    A parameter is missing for sure only if the template does not even contain its name: it may set a variable.
    """
    parameters = list(known.parameters)
    if call.positional > len(parameters):
        yield f"{known.name} takes {len(parameters)} arguments, not {call.positional} without a name"
    given = {name.casefold() for name in (*parameters[: call.positional], *call.named)}
    by_case = {name.casefold() for name in parameters}
    for name in call.named:
        if known.closed and name.casefold() not in by_case:
            yield f"{known.name} has no parameter {name!r}; it has: {itemize(parameters)}"
    bare = not call.positional and not call.named
    for name in known.required:
        if name.casefold() in given or name in variables or name in template.source:
            continue
        if bare and name == parameters[0] and (INPUT in variables or INPUT in template.source):
            continue
        yield f"{known.name} needs the argument {name!r}"
