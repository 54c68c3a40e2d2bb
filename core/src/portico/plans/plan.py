"""The plan: goal, steps, result. Every argument is tagged, so that no literal is mistaken for a reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from portico.plans.path import JsonPath

if TYPE_CHECKING:
    from portico.plans.difference import PlanDifference

__all__ = [
    "INPUT",
    "Expression",
    "From",
    "ListOf",
    "ObjectOf",
    "Plan",
    "PlanTemplate",
    "Step",
    "TextOf",
    "Value",
    "functions_used",
    "references",
]

INPUT = "input"
"""What a plan is given is referred to as a step of this id is; no step may have it."""


@dataclass(frozen=True, slots=True)
class Value:
    """A JSON value as it stands."""

    value: Any


@dataclass(frozen=True, slots=True)
class From:
    """What an earlier step gave, or the one value inside it that ``path`` leads to."""

    step: str
    path: JsonPath = ()


@dataclass(frozen=True, slots=True)
class TextOf:
    """A text put together; a part that is not a string is written as JSON."""

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
class Step:
    """One call. ``function`` is a full name, a nested plan or a template; ``after`` are steps to wait for.

    The arguments of a nested plan are its input, as one object. ``reason`` says why, for people. ``seconds`` bounds
    each attempt and ``attempts`` how often it is tried in all; the pursuit's budget says so where the step does not.
    """

    id: str
    function: str | Plan | PlanTemplate
    arguments: Mapping[str, Expression] = field(default_factory=dict)
    after: tuple[str, ...] = ()
    reason: str = ""
    seconds: float | None = None
    attempts: int | None = None

    def depends_on(self) -> frozenset[str]:
        """Return the ids of all steps that must have run before."""
        return frozenset(self.after) | {
            reference.step for expression in self.arguments.values() for reference in references(expression)
        }


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

    def diff(self, other: Plan) -> PlanDifference:
        """Return what changed from this plan to ``other``: steps, goal, input, result; ``print`` shows it.

        Raises ``PlanFormatError`` for a value in a plan that JSON does not have.
        """
        from portico.plans.difference import plan_difference

        return plan_difference(self, other)


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


def functions_used(plan: Plan) -> set[str]:
    """Return the names of the functions that a plan calls, nested plans included; templates call more."""
    used: set[str] = set()
    for step in plan.steps:
        if isinstance(step.function, str):
            used.add(step.function)
        elif isinstance(step.function, Plan):
            used |= functions_used(step.function)
    return used
