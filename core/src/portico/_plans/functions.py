"""A plan as a function, and the type of its result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from portico._flows.around import Around, never_late
from portico._functions.functions import Function, FunctionSpec, Parameter
from portico._functions.middleware import INNER_PLAN
from portico._plans.plan import INPUT, Expression, From, ListOf, ObjectOf, Plan, PlanTemplate, Step, TextOf, Value
from portico._prompts.functions import PromptInput, enter_function, template_of
from portico._schema.definitions import hoist, with_definitions
from portico._schema.paths import JsonPath, Many, is_many
from portico._schema.values import inside, resolve
from portico.errors import FunctionNotFound, PlanError, PorticoError, SchemaUnsupported

if TYPE_CHECKING:
    from portico._flows.labels import Label
    from portico._flows.policy import Policy
    from portico._kernel_like import KernelLike
    from portico._ports.schema_validator import SchemaValidator
    from portico._ports.template_language import Template


_KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
_DEEPEST = 50


def result_schema(plan: Plan, catalogue: Mapping[str, FunctionSpec]) -> dict[str, Any]:
    """Return a JSON Schema that fits every result of a plan; an empty one if nothing is known.

    >>> result_schema(Plan("Add", result=ObjectOf({"words": TextOf(())})), {})["properties"]
    {'words': {'type': 'string'}}
    """
    if plan.result is None:
        return {"type": "null"}
    definitions: dict[str, Mapping[str, Any]] = {}
    steps = {step.id: step for step in plan.steps}

    @cache
    def whole(step: str) -> Mapping[str, Any]:
        found = steps.get(step)
        if found is None:
            return plan.input or {} if step == INPUT else {}
        return found.result_schema(_called_result(found, catalogue))

    def schema(expression: Expression) -> dict[str, Any]:
        match expression:
            case Value(value):
                return {"type": _KINDS.get(type(value), "null")}
            case TextOf():
                return {"type": "string"}
            case From(step, path):
                return dict(hoist(_at(whole(step), path), definitions))
            case ListOf(items):
                count = {"minItems": len(items), "maxItems": len(items)}
                # JSON Schema has no empty prefixItems.
                return {"type": "array", **count} | ({"prefixItems": [schema(item) for item in items]} if items else {})
            case ObjectOf(members):
                return {
                    "type": "object",
                    "properties": {name: schema(member) for name, member in members.items()},
                    "required": list(members),
                    "additionalProperties": False,
                }

    return dict(with_definitions(schema(plan.result), definitions))


def known_result(step: Step, catalogue: Mapping[str, FunctionSpec]) -> FunctionSpec | Mapping[str, Any] | None:
    """Return what is known of the result of a step that has run, as `check_plan` takes it."""
    if step.each is not None or step.when is not None:
        return step.result_schema(_called_result(step, catalogue))
    return catalogue.get(step.function) if isinstance(step.function, str) else None


def _called_result(step: Step, catalogue: Mapping[str, FunctionSpec]) -> Mapping[str, Any]:
    match step.function:
        case Plan() as plan:
            return result_schema(plan, catalogue)
        case PlanTemplate():
            return {"type": "string"}
        case str(name) if name in catalogue:
            return catalogue[name].returns
    return {}


def _at(schema: Mapping[str, Any], path: JsonPath) -> Mapping[str, Any]:
    """Return the schema of what a path leads to, with the definitions that it needs; empty where it is not said."""
    here: Any = schema
    for part in path:
        for _ in range(_DEEPEST):
            if not isinstance(here, Mapping) or "$ref" not in here:
                break
            here = resolve(here["$ref"], schema)
        if not isinstance(part, Many):
            here = inside(here, part)
        elif isinstance(here, Mapping) and not any(isinstance(each, str) for each in part.selectors):
            here = None if "prefixItems" in here or here.get("type") != "array" else here.get("items")
        else:
            here = None
    if is_many(path):
        here = {"type": "array", **({} if here is None else {"items": here})}
    return with_definitions(here, schema.get("$defs", {})) if isinstance(here, Mapping) else {}


_NAMED = "Functions of plans and prompts"
_ABSENT = object()
_ENTERED: ContextVar[tuple[list[Any], ...]] = ContextVar("portico_plans_entered", default=())
"""The calls that this one is inside of, each a kernel and the name of a plan function; empty when it has ended."""


def plan_function(
    name: str,
    plan: Plan,
    *,
    plugin: str | None = None,
    description: str = "",
    returns: Mapping[str, Any] | None = None,
    effects: bool | None = None,
    tags: Iterable[str] = (),
    siblings: Mapping[str, Plan] | None = None,
    validator: SchemaValidator | None = None,
) -> Function:
    """Make a function of a plan: calling it runs the plan and gives its result.

    >>> from portico import From, Kernel, Plan, Step, TextOf, function
    >>> @function
    ... def shout(text: str) -> str:
    ...     '''Say it louder.'''
    ...     return text.upper()
    >>> person = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    >>> shouting = Step("s1", "shout", {"text": TextOf(("hi ", From("input", ("name",))))})
    >>> greeting = Plan("Greet a person", (shouting,), result=From("s1"), input=person)
    >>> kernel = Kernel()
    >>> _ = kernel.add_function(shout)
    >>> greet = kernel.add_function(plan_function("greet", greeting))
    >>> kernel.run_sync(kernel.invoke(greet, name="Ada"))
    'HI ADA'
    >>> greet.spec.returns, greet.description
    ({'type': 'string'}, 'Greet a person')

    Its parameters are the properties of ``plan.input``; without that schema, the names that the plan reads from its
    input, of any type. A plan whose input is no object, or that takes an input without a schema as a whole, has the
    one parameter ``input``. ``description`` is the goal where none is given. It runs in the kernel that it was added
    to, as `Kernel.run_plan` does: checked, filtered, within the kernel's budget, its own run in the journal.
    As a step of a plan it belongs to that run: its steps are journalled, held and continued as those of a nested
    plan are, and count in that budget.

    Its result's schema and its effects are derived from the kernel's functions when it is added: add them first. A
    function that is missing then counts as one with effects. ``returns`` (a JSON Schema) and ``effects`` set both
    instead. ``siblings`` are plans that are added together with this one, by full name. ``validator`` is for schemas
    with more than core's keywords.

    Functions of plans and of prompts may call each other, 16 deep and 1,000 times inside of one: beyond that is
    ``LimitExceeded``. No plan may be called inside of itself: the second call is a ``PlanError``.

    A call raises ``PlanInvalid``, what the run raises, and ``PlanError`` where the plan is paused for a person or ends
    without its result. Raises ``SchemaUnsupported`` for a schema that is not understood.
    """
    try:
        whole = _taken_as_a_whole(plan)
        parameters = tuple([_whole(plan, validator)] if whole else _parameters(plan, validator))
    except SchemaUnsupported as error:
        raise SchemaUnsupported(f"{f'{plugin}-{name}' if plugin else name}, the input of the plan: {error}") from error
    description = description or " ".join(plan.goal.split())
    made = _PlanFunction(
        name, plugin, plan, whole, parameters, description, returns, effects, frozenset(tags), siblings or {}
    )
    return made.function()


def plan_of(function: Function) -> Plan | None:
    """Return the plan that a function runs; None for any other function.

    >>> from portico._plans.plan import Step
    >>> plan_of(plan_function("wait", Plan("Wait", (Step("s1", "Clock-wait"),)))).goal
    'Wait'
    """
    owner = getattr(function.callable, "__self__", None)
    return owner.plan if isinstance(owner, _PlanFunction) else None


@dataclass(frozen=True, slots=True)
class _PlanFunction:
    """A plan function: in no kernel yet, or in one, where it is known what it returns and whether it has effects."""

    name: str
    plugin: str | None
    plan: Plan
    whole: bool
    parameters: tuple[Parameter, ...]
    description: str
    returns: Mapping[str, Any] | None
    effects: bool | None
    tags: frozenset[str]
    siblings: Mapping[str, Plan]
    kernel: KernelLike | None = None

    @property
    def full_name(self) -> str:
        return f"{self.plugin}-{self.name}" if self.plugin else self.name

    def function(self) -> Function:
        from portico._types.compiled import Compiled

        return Function(
            self.name,
            self.run,
            plugin=self.plugin,
            description=self.description,
            parameters=self.parameters,
            # What comes out is JSON already, and the functions inside answer for their results.
            returns=Compiled(self.returns or {}, lambda value: value, lambda value: value),
            effects=True if self.effects is None else self.effects,
            tags=self.tags,
            bind=self.bind if self.kernel is None else None,
        )

    def bind(self, kernel: KernelLike) -> Function:
        returns, effects = self.returns, self.effects
        if returns is None:
            returns = result_schema(self.plan, kernel.specs)
        if effects is None:
            effects = has_effects(self.plan, kernel, self.siblings, {self.full_name})
        return replace(self, returns=returns, effects=effects, kernel=kernel).function()

    async def run(self, **arguments: Any) -> Any:
        from portico._plans.task import Answer

        kernel, name = self.kernel, self.full_name
        if kernel is None:
            raise RuntimeError(
                f"the plan function {name} is in no kernel: call what Kernel.add_function or add_plugin returned"
            )
        defaults = {parameter.name: parameter.default for parameter in self.parameters if not parameter.required}
        given = {name: value for name, value in {**defaults, **arguments}.items() if value is not _ABSENT}
        value = given[INPUT] if self.whole else given
        inner = INNER_PLAN.get()
        with enter_function(name, kind=_NAMED), _enter_plan(kernel, name):
            if inner is not None and inner.kernel is kernel and inner.function == name:
                # Once: a call of the same function that this one makes is its own run.
                INNER_PLAN.set(None)
                return await inner.run(value)
            run = await kernel.run_plan(self.plan, input=value)
        match run.outcome:
            case Answer(_, _, value):
                return value
            case paused:
                where = f" at step {paused.step}" if paused.step else ""
                raise PlanError(f"{name}: the plan is paused{where}: {paused.reason}. It is the run {run.name}.")


@contextmanager
def _enter_plan(kernel: KernelLike, name: str) -> Iterator[None]:
    """Go into a plan function; raise ``PlanError`` where this task is inside of a call of it."""
    call, around = [kernel, name], tuple(each for each in _ENTERED.get() if each)
    if call in around:
        way = " -> ".join([*(each[1] for each in around[around.index(call) :]), name])
        raise PlanError(f"The plan {name} is called inside of itself: {way}. Take one of these calls away.")
    token = _ENTERED.set((*around, call))
    try:
        yield
    finally:
        # A task that it started and left behind is not inside of it any more.
        call.clear()
        _ENTERED.reset(token)


def _taken_as_a_whole(plan: Plan) -> bool:
    """Tell whether a plan's input is one value, not an object of parameters."""
    if plan.input is not None:
        return plan.input.get("type") != "object" or not isinstance(plan.input.get("properties"), Mapping)
    return any(not path or not isinstance(path[0], str) for path in _read_from_input(plan))


def _whole(plan: Plan, validator: SchemaValidator | None) -> Parameter:
    schema = plan.input or {}
    compiled = PromptInput.compile(schema, validator=validator)
    return Parameter(INPUT, str(schema.get("description", "")), compiled, True)


def _parameters(plan: Plan, validator: SchemaValidator | None) -> Iterator[Parameter]:
    if plan.input is None:
        for name in dict.fromkeys(str(path[0]) for path in _read_from_input(plan)):
            yield Parameter(name, "", PromptInput.compile({}, validator=validator), True)
        return
    properties: Mapping[str, Any] = plan.input["properties"]
    required = plan.input.get("required", ())
    definitions = plan.input.get("$defs", {})
    # Those that must be given come first, as in Python: a call by place means them.
    for name in sorted(properties, key=lambda name: name not in required):
        member = properties[name] if isinstance(properties[name], Mapping) else {}
        compiled = PromptInput.compile(with_definitions(member, definitions), validator=validator)
        described = str(member.get("description", ""))
        yield Parameter(name, described, compiled, name in required, member.get("default", _ABSENT))


def _read_from_input(plan: Plan) -> Iterator[JsonPath]:
    return (reference.path for reference in plan.references() if reference.step == INPUT)


def calls_of(steps: Iterable[Step], kernel: KernelLike, siblings: Mapping[str, Plan] = {}) -> Iterator[str]:
    """Yield the names of the functions that steps may call, and "" for a template that does not tell its calls."""
    for step in steps:
        match step.function:
            case str(name):
                yield name
            case Plan() as inner:
                yield from calls_of(inner.steps, kernel, siblings)
            case PlanTemplate(source, language):
                template = None
                with suppress(PorticoError):
                    template = kernel.template(source, language=language)
                yield from _calls_in(template, step.arguments, {*kernel.functions, *siblings})


def calls_inside(function: Function, kernel: KernelLike) -> Iterator[str]:
    """Yield the names of the functions that a plan or prompt function may call by its plan or its template."""
    plan, template = plan_of(function), template_of(function)
    if plan is not None:
        yield from calls_of(plan.steps, kernel)
    elif template is not None:
        given = [parameter.name for parameter in function.parameters]
        yield from _calls_in(template, given, kernel.functions)


def around_of(
    kernel: KernelLike,
    policy: Policy,
    late: Callable[[Step], Label] = never_late,
    said: Callable[[Any], bool] = lambda value: False,
    more: Mapping[str, Function] = {},
) -> Around:
    """Return what is around the flows of a kernel's plans and calls; ``more`` functions count before its own."""
    functions, specs = kernel.functions, kernel.specs
    if more:
        functions, specs = {**functions, **more}, {**specs, **{name: each.spec for name, each in more.items()}}

    def plans(name: str) -> Plan | None:
        return plan_of(functions[name]) if name in functions else None

    @cache
    def inside(name: str) -> tuple[str, ...]:
        calls = calls_inside(functions[name], kernel) if name in functions else ()
        # What plans and templates name is the kernel's.
        return tuple("" if each in more else each for each in calls)

    return Around(policy, specs, plans, inside, lambda step: tuple(calls_of((step,), kernel)), late, said)


def _calls_in(template: Template | None, given: Collection[str], names: Collection[str]) -> Iterator[str]:
    calls = getattr(template, "calls", None)
    if calls is None:
        yield ""
    for call in calls or ():
        if call.variable and call.variable in given:
            continue
        try:
            yield FunctionSpec.find_name(call.function, names, lenient=True)
        except FunctionNotFound:
            if call.certain:
                yield call.function


def has_effects(plan: Plan, kernel: KernelLike, siblings: Mapping[str, Plan], seen: set[str]) -> bool:
    """Tell whether a plan may have effects; ``siblings`` are plan functions that the kernel may not have yet."""
    known, names = kernel.functions, set(calls_of(plan.steps, kernel, siblings)) - seen
    seen |= names
    return any(
        has_effects(siblings[name], kernel, siblings, seen)
        if name in siblings
        else name not in known or known[name].effects
        for name in names
    )
