"""Plans: steps, their arguments, and paths into results."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from portico._schema.definitions import with_definitions
from portico._schema.paths import JsonPath, is_many, parse_path, print_path, read_path
from portico._schema.values import kind_of, same
from portico.errors import LimitExceeded, PlanError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

MAXIMUM_STEPS = 1_000
MAXIMUM_DEPTH = 50
"""How deep plans may nest in plans, and expressions in expressions."""
_MAXIMUM_SIZE = 4_000_000
INPUT = "input"
"""References to a step of this id are to the input of the plan; no step may have it."""
ITEM = "item"
"""References of a step with ``each`` to this id are to the item at hand."""


@dataclass(frozen=True, slots=True)
class Value:
    """A literal JSON value."""

    value: Any


@dataclass(frozen=True, slots=True)
class From:
    """The result of an earlier step, or the value at ``path`` inside it.

    ``From("input")`` is the input of the plan, ``From("item")`` the item of a step that has ``each``.
    """

    step: str
    path: JsonPath = ()

    @staticmethod
    def parse_path(text: str) -> JsonPath:
        r"""Parse a query of RFC 9535 without filters and descent.

        >>> From.parse_path("$.days[0]['max temp']")
        ('days', 0, 'max temp')

        Wildcards, slices and unions select many: ``$.days[*].date``, ``$.days[:3]``, ``$['a', 'b']``. What such a path
        gives is a list. Raises ``PlanFormatError`` with the position for anything else.
        """
        return parse_path(text)

    @staticmethod
    def print_path(path: JsonPath) -> str:
        """Write a path in its shortest form.

        >>> From.print_path(("days", 0, "max temp"))
        '$.days[0]["max temp"]'
        """
        return print_path(path)


@dataclass(frozen=True, slots=True)
class TextOf:
    """A text made of parts; the value of a part that is not a string is written as JSON."""

    parts: tuple[str | Expression, ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    """An array of expressions."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class ObjectOf:
    """An object of expressions."""

    members: Mapping[str, Expression]


Expression: TypeAlias = Value | From | TextOf | ListOf | ObjectOf


@dataclass(frozen=True, slots=True)
class PlanTemplate:
    """A template as a step: each function that it calls runs as a child of the step, ``s1/1``, ``s1/2`` and so on.

    ``language`` is the template language by its name. The step's arguments are the template's variables, its result
    is the rendered text.
    """

    source: str
    language: str


@dataclass(frozen=True, slots=True)
class Each:
    """What a step runs for: each item of a list, in order, ``at_once`` at a time at most.

    A reference to ``item`` in the step's arguments and in its condition is to the item. The step's result is the list
    of results, with null for an item on which its condition does not hold. If one fails, no further one begins and the
    step fails; with ``failed="skip"`` its result is null, and the answer has a warning.
    """

    items: Expression
    at_once: int = 1
    failed: Literal["stop", "skip"] = "stop"


@dataclass(frozen=True, slots=True)
class When:
    """A condition; a step on which it does not hold is skipped, and its result is null.

    The ``test`` is "true" of one value, which must be true or false, "equal" of two as JSON has it, or "present" of one
    reference: it leads to something that is neither null nor an empty list. ``negated`` turns it round.
    """

    test: Literal["true", "equal", "present"]
    values: tuple[Expression, ...]
    negated: bool = False

    def placed(self) -> Iterator[tuple[tuple[str | int, ...], Expression]]:
        """Yield the expressions with their places in the condition's JSON form."""
        for index, value in enumerate(self.values):
            place = (self.test, index) if self.test == "equal" else (self.test,)
            yield ("not", *place) if self.negated else place, value


@dataclass(frozen=True, slots=True)
class StepOption:
    """A number that says how a step runs, in the step's field of that name; None if the step does not set it.

    ``expected`` describes the numbers that ``fits`` accepts. ``print`` writes the number for the text of a plan.
    """

    expected: str
    fits: Callable[[float], bool]
    print: Callable[[Any], str]
    whole: bool = False


STEP_OPTIONS = {
    "seconds": StepOption(
        "a number above 0, of at most 1,000,000",
        lambda seconds: 0 < seconds <= 1_000_000,
        lambda seconds: f"at most {seconds:g} s for each attempt",
    ),
    "attempts": StepOption(
        "a whole number from 1 to 100",
        lambda attempts: attempts % 1 == 0 and 1 <= attempts <= 100,
        lambda attempts: f"{attempts} attempt{'s' if attempts != 1 else ''} at most",
        whole=True,
    ),
}
"""The options of a step. Every form of plans, the check and the difference go by this table."""
TESTS = {"true": 1, "equal": 2, "present": 1}
"""The tests of a condition, and how many values each has."""
AT_ONCE = StepOption(
    "a whole number from 1 to 100",
    lambda at_once: at_once % 1 == 0 and 1 <= at_once <= 100,
    lambda at_once: f"{at_once} at a time",
    whole=True,
)
"""How many items of `Each` run at a time."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call. ``function`` is a full name, a nested plan or a template; ``after`` are steps to wait for.

    The arguments of a nested plan are its input, as one object. With ``each`` the step runs for every item of a list,
    with ``when`` only if a condition holds. ``reason`` says for people why the step is there. ``seconds`` bounds each
    attempt, ``attempts`` the number of attempts; a step without them has those of the run's budget. `STEP_OPTIONS`
    describes both.
    """

    id: str
    function: str | Plan | PlanTemplate
    arguments: Mapping[str, Expression] = field(default_factory=dict)
    after: tuple[str, ...] = ()
    reason: str = ""
    seconds: float | None = None
    attempts: int | None = None
    each: Each | None = None
    when: When | None = None

    def options(self) -> dict[str, Any]:
        """Return the options of `STEP_OPTIONS` that this step has, by name."""
        return {name: value for name in STEP_OPTIONS if (value := getattr(self, name)) is not None}

    def expressions(self) -> Iterator[Expression]:
        """Yield the expressions of the step: of its list and its condition, then its arguments."""
        if self.each is not None:
            yield self.each.items
        if self.when is not None:
            yield from self.when.values
        yield from self.arguments.values()

    @property
    def own(self) -> bool:
        """Whether the step, as one of a run, is one of the plan, and does not run inside of another step."""
        return not around(self.id)

    @property
    def decides_by_item(self) -> bool:
        """Whether the step runs for each of a list, and its condition is one on the item."""
        if self.each is None or self.when is None:
            return False
        return any(each.step == ITEM for value in self.when.values for each in references(value))

    def result_schema(self, returned: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the JSON Schema of what the step gives, where what it calls returns ``returned``."""
        if self.each is None and self.when is None:
            return returned
        made: dict[str, Any] = {key: value for key, value in returned.items() if key != "$defs"}
        null = {"type": "null"}
        if self.each is not None:
            skips = self.decides_by_item or self.each.failed == "skip"
            made = {"type": "array", "items": {"anyOf": [made, null]} if skips else made}
        if self.when is not None and not self.decides_by_item:
            made = {"anyOf": [made, null]}
        return with_definitions(made, returned.get("$defs", {}))

    @property
    def repeated(self) -> bool:
        """Whether the step, as one of a run, is a call for an item of a list, or runs inside of one."""
        return "[" in self.id

    def depends_on(self) -> frozenset[str]:
        """Return the ids of all steps that must have run before."""
        needed: set[str] = set()
        plain = self.each is None and self.when is None
        for expression in self.arguments.values() if plain else self.expressions():
            # The two that most arguments are come first: this runs for every step before a plan does.
            if type(expression) is From:
                needed.add(expression.step)
            elif type(expression) is not Value:
                needed |= {reference.step for reference in references(expression)}
        if self.each is not None:
            needed.discard(ITEM)
        needed.update(self.after)
        return frozenset(needed)

    def rename_references(self, names: Mapping[str, str]) -> Step:
        """Return a step that refers to other steps by their new names; a nested plan has its own steps."""
        if not names or not self.depends_on() & names.keys():
            return self
        if self.each is not None:
            names = {old: new for old, new in names.items() if old != ITEM}
        return replace(
            self.map_expressions(lambda expression, place: _rename(expression, names)),
            after=tuple(names.get(earlier, earlier) for earlier in self.after),
        )

    def map_expressions(self, change: Callable[[Expression, tuple[str | int, ...]], Expression]) -> Step:
        """Return a step with its expressions changed; each comes with its place in the step's JSON form."""
        each, when = self.each, self.when
        if each is not None:
            each = replace(each, items=change(each.items, ("each", "items")))
        if when is not None:
            when = replace(when, values=tuple(change(value, ("when", *place)) for place, value in when.placed()))
        arguments = {name: change(value, ("arguments", name)) for name, value in self.arguments.items()}
        return replace(self, arguments=arguments, each=each, when=when)


def outermost(step_id: str) -> str:
    """Return the id of the plan's step that one runs inside of, or its own.

    >>> outermost("s3[7]/a"), outermost("s3")
    ('s3', 's3')
    """
    return step_id.partition("/")[0].partition("[")[0]


def around(step_id: str) -> str:
    """Return the id of the step that one runs inside of, "" for a step of the plan itself.

    >>> around("s3[7]/a"), around("s3[7]"), around("s3")
    ('s3[7]', 's3', '')
    """
    return step_id.rpartition("[" if step_id.endswith("]") else "/")[0]


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps towards a goal, in the order of writing; dependencies decide the order of running.

    >>> plan = Plan("Shout", (Step("s1", "Tone-shout", {"text": Value("hey")}),), result=From("s1"))
    >>> plan.steps[0].depends_on()
    frozenset()

    With a ``result`` the plan answers the goal; without one it is a move, and the planner is asked again.
    ``notes`` is opaque JSON for the planner that wrote it. ``fingerprints`` maps each function used to a hash
    of its manual, so that a stale plan can say what changed. ``input`` is the JSON Schema of what the plan is given,
    None when it takes nothing or anything: ``From("input", ("city",))`` refers to it.
    """

    goal: str
    steps: tuple[Step, ...] = ()
    result: Expression | None = None
    notes: Any = None
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    input: Mapping[str, Any] | None = None

    @property
    def functions_used(self) -> set[str]:
        """Return the names of the functions that the plan calls, nested plans included; templates call more."""
        used: set[str] = set()
        for step in self.steps:
            if isinstance(step.function, str):
                used.add(step.function)
            elif isinstance(step.function, Plan):
                used |= step.function.functions_used
        return used

    def references(self) -> Iterator[From]:
        """Yield every reference of the steps and of the result; nested plans have their own."""
        for step in self.steps:
            for expression in step.expressions():
                for reference in references(expression):
                    if reference.step != ITEM or step.each is None:
                        yield reference
        if self.result is not None:
            yield from references(self.result)


def _rename(expression: Expression, names: Mapping[str, str]) -> Expression:
    match expression:
        case From(step, path):
            return From(names.get(step, step), path)
        case TextOf(parts):
            return TextOf(tuple(part if isinstance(part, str) else _rename(part, names) for part in parts))
        case ListOf(items):
            return ListOf(tuple(_rename(item, names) for item in items))
        case ObjectOf(members):
            return ObjectOf({name: _rename(member, names) for name, member in members.items()})
        case Value():
            return expression


def references(expression: Expression | str) -> Iterator[From]:
    """Yield every reference inside an expression."""
    match expression:
        case From():
            yield expression
        case TextOf(parts):
            for part in parts:
                yield from references(part)
        case ListOf(items):
            for item in items:
                yield from references(item)
        case ObjectOf(members):
            for member in members.values():
                yield from references(member)


def evaluate(expression: Expression, results: Mapping[str, Any]) -> Any:
    """Return the JSON value of an expression, given the results of the steps it refers to.

    Raises ``LookupError`` when a reference leads to nothing, and ``LimitExceeded`` where more than 4,000,000 bytes are
    put together.
    """
    return put_together(expression, results)[0]


def evaluate_arguments(
    step: Step, results: Mapping[str, Any], evaluate: Callable[[Expression, Mapping[str, Any]], Any] = evaluate
) -> dict[str, Any]:
    """Return a step's arguments as JSON; raises what `evaluate` raises."""
    return {name: evaluate(argument, results) for name, argument in step.arguments.items()}


def put_together(expression: Expression, results: Mapping[str, Any]) -> tuple[Any, int]:
    """Return what `evaluate` does, and about how many bytes were put together for it.

    A result counts where it becomes part of a text or stands beside a larger one. The largest part of a list or object
    does not count: a chain of steps makes it no larger.
    """
    # The two that most arguments are come first: this runs for every argument of every step.
    if type(expression) is Value:
        return expression.value, 0
    if type(expression) is From:
        step, path = expression.step, expression.path
        if step not in results:
            raise LookupError("no input was given" if step == INPUT else f"the step {step} has no result")
        if not path:
            return results[step], 0
        try:
            found = read_path(results[step], path)
        except LookupError as error:
            skipped = ", which was skipped or gave null" if results[step] is None else ""
            raise LookupError(f"{error} in {step}{skipped}") from None
        # A union may select one value often.
        return found, check_size(size_of(found)) if is_many(path) else 0
    value: Any
    match expression:
        case TextOf(parts):
            texts, size = [], 0
            for part in parts:
                texts.append(part if isinstance(part, str) else _as_text(evaluate(part, results)))
                size = check_size(size + size_of(texts[-1]))
            return "".join(texts), size
        case ListOf(items):
            made = [put_together(item, results) for item in items]
            value = [part for part, _ in made]
        case ObjectOf(members):
            made = [put_together(member, results) for member in members.values()]
            value = dict(zip(members, (part for part, _ in made), strict=True))
        case _:
            raise TypeError(f"{expression!r} is no expression")
    sizes = [size_of(part) for part, _ in made] if len(made) > 1 else [0]
    return value, check_size(max(sum(sizes) - max(sizes), sum(size for _, size in made)))


def holds(
    when: When, results: Mapping[str, Any], evaluate: Callable[[Expression, Mapping[str, Any]], Any] = evaluate
) -> bool:
    """Tell whether a condition holds, given the results of the steps that it refers to.

    Raises ``PlanError`` where a value that must be true or false is neither, and what `evaluate` raises.
    """
    if when.test == "present":
        try:
            found = evaluate(when.values[0], results) not in (None, [])
        except LookupError:
            found = False
    elif when.test == "true":
        found = evaluate(when.values[0], results)
        if not isinstance(found, bool):
            raise PlanError(f"the condition must be true or false, and is {kind_of(found)}")
    else:
        found = same(*(evaluate(value, results) for value in when.values))
    return found != when.negated


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    check_size(size_of(value))
    return json.dumps(value, ensure_ascii=False)


def size_of(value: Any, most: int = _MAXIMUM_SIZE) -> int:
    """Return about how many bytes a value takes, shared parts each time; or one that is larger than ``most``."""
    size, waiting = 0, [value]
    while waiting and size <= most:
        one = waiting.pop()
        if isinstance(one, str):
            size += len(one) if one.isascii() else len(one.encode("utf-8", "surrogatepass"))
        elif isinstance(one, list | dict):
            size += 20 + len(one) * (20 if isinstance(one, dict) else 2)
            waiting += one
            waiting += one.values() if isinstance(one, dict) else ()
    return size


def check_size(size: int) -> int:
    """Return the size of a value that a plan puts together; raises ``LimitExceeded``."""
    if size > _MAXIMUM_SIZE:
        raise LimitExceeded(f"A value that a plan puts together has at most {_MAXIMUM_SIZE:,} bytes.")
    return size
