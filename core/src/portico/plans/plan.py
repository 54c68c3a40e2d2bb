"""The plan: goal, steps, result. Every argument is tagged, so that no literal is mistaken for a reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from portico.plans.path import JsonPath

__all__ = ["Expression", "From", "ListOf", "ObjectOf", "Plan", "Step", "TextOf", "Value", "references"]


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
class Step:
    """One call. ``function`` is a full name or a nested plan; ``after`` are steps to wait for without a value.

    ``reason`` says why, for people.
    """

    id: str
    function: str | Plan
    arguments: Mapping[str, Expression] = field(default_factory=dict)
    after: tuple[str, ...] = ()
    reason: str = ""

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
    of its manual, so that a stale plan can say what changed.
    """

    goal: str
    steps: tuple[Step, ...] = ()
    result: Expression | None = None
    notes: Any = None
    fingerprints: Mapping[str, str] = field(default_factory=dict)


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
