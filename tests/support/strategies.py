"""Hypothesis strategies for the project's own tests: types with their values, filters, plans."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

from hypothesis import strategies as st

from portico._schema.paths import JsonPath, Many
from portico.plans import (
    INPUT,
    ITEM,
    Each,
    Expression,
    From,
    ListOf,
    ObjectOf,
    Plan,
    PlanTemplate,
    Step,
    TextOf,
    Value,
    When,
)
from portico.search import And, AnyOf, Equal, Filter, Not, Or, Range
from portico_testkit.strategies import json_values

_TEXT = st.text(max_size=8)
_KEYS = st.sampled_from(["a", "b", "c", "date", "max temp", "ключ", ""])
_FIELDS = st.sampled_from(["topic", "year", "open", "tags"])


@dataclass(frozen=True, slots=True)
class TypeCase:
    """A type hint, a strategy for its values, and the kinds of JSON that they are written as."""

    hint: Any
    values: st.SearchStrategy[Any]
    kind: str
    hashable: bool = True


class _Colour(enum.Enum):
    RED = "red"
    GREEN = 2


class _Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class _Point(NamedTuple):
    x: float
    y: float = 0.0


class _Reading(TypedDict):
    at: int
    note: NotRequired[str]


@dataclass(frozen=True, slots=True)
class _Tree:
    name: str
    parts: tuple[_Tree, ...] = ()
    next: _Tree | None = None


def _trees() -> st.SearchStrategy[_Tree]:
    leaves = st.builds(_Tree, _TEXT)
    return st.recursive(
        leaves,
        lambda inner: st.builds(_Tree, _TEXT, st.lists(inner, max_size=2).map(tuple), st.none() | inner),
        max_leaves=5,
    )


_FINITE = st.floats(allow_nan=False, allow_infinity=False)
_PLAIN: Sequence[TypeCase] = (
    TypeCase(str, _TEXT, "string"),
    TypeCase(int, st.integers(), "number"),
    TypeCase(float, _FINITE, "number"),
    TypeCase(bool, st.booleans(), "boolean"),
    TypeCase(None, st.none(), "null"),
    TypeCase(Literal["a", 1, True], st.sampled_from(["a", 1, True]), "several"),
    TypeCase(Literal["north", "south"], st.sampled_from(["north", "south"]), "string"),
    TypeCase(_Colour, st.sampled_from(_Colour), "several"),
    TypeCase(_Level, st.sampled_from(_Level), "number"),
    TypeCase(_Point, st.builds(_Point, _FINITE, _FINITE), "object"),
    TypeCase(
        _Reading, st.fixed_dictionaries({"at": st.integers()}, optional={"note": _TEXT}), "object", hashable=False
    ),
    TypeCase(_Tree, _trees(), "object"),
    TypeCase(int | float, st.integers() | _FINITE, "number"),
)


def _textual() -> Sequence[TypeCase]:
    import datetime as dt
    from decimal import Decimal
    from uuid import UUID

    return (
        TypeCase(dt.datetime, st.datetimes(timezones=st.none() | st.just(dt.UTC)), "string"),
        TypeCase(dt.date, st.dates(), "string"),
        TypeCase(dt.time, st.times(), "string"),
        TypeCase(UUID, st.uuids(), "string"),
        TypeCase(Decimal, st.decimals(allow_nan=False, allow_infinity=False), "string"),
    )


@cache
def _plain(formats: bool) -> st.SearchStrategy[TypeCase]:
    return st.sampled_from([*_PLAIN, *(_textual() if formats else ())])


_SHAPES = st.sampled_from(["plain", "list", "tuple", "fixed", "set", "dict", "union", "noted", "dataclass"])


@st.composite
def type_cases(draw: st.DrawFn, *, formats: bool = True, depth: int = 2) -> TypeCase:
    """Draw a type hint of those that the core compiles, with a strategy for its values.

    ``formats`` are the types written as strings of a format (dates, UUIDs, decimals), which JSON Schema does
    not check. Unions have at most one member for each kind of JSON, so that reading them back is not a guess.
    """
    plain = _plain(formats)
    if depth == 0:
        return draw(plain)
    inner = type_cases(formats=formats, depth=depth - 1)
    shape = draw(_SHAPES)
    case = draw(inner)
    match shape:
        case "list":
            return TypeCase(_of(list, case.hint), st.lists(case.values, max_size=3), "array", hashable=False)
        case "tuple":
            return TypeCase(
                _of(tuple, case.hint, ...),
                st.lists(case.values, max_size=3).map(tuple),
                "array",
                hashable=case.hashable,
            )
        case "fixed":
            other = draw(inner)
            return TypeCase(
                _of(tuple, case.hint, other.hint),
                st.tuples(case.values, other.values),
                "array",
                hashable=case.hashable and other.hashable,
            )
        case "set":
            member = draw(st.sampled_from([case for case in _PLAIN if case.kind in ("string", "boolean")]))
            return TypeCase(_of(frozenset, member.hint), st.frozensets(member.values, max_size=3), "array")
        case "dict":
            values = st.dictionaries(_KEYS, case.values, max_size=3)
            return TypeCase(_of(dict, str, case.hint), values, "object", hashable=False)
        case "union":
            other = draw(inner)
            if "several" in (case.kind, other.kind) or case.kind == other.kind:
                return case
            return TypeCase(case.hint | other.hint, case.values | other.values, "several", hashable=False)
        case "noted":
            return TypeCase(_of(Annotated, case.hint, "What it is."), case.values, case.kind, case.hashable)
        case "dataclass":
            return _dataclass_case(case, draw(inner))
        case _:
            return draw(plain)


def _of(origin: Any, *arguments: Any) -> Any:
    return origin[arguments if len(arguments) > 1 else arguments[0]]


def _dataclass_case(first: TypeCase, second: TypeCase) -> TypeCase:
    made = make_dataclass(
        "Drawn", [("first", first.hint), ("second", second.hint | None if second.hint is not None else None, None)]
    )
    values = st.builds(made, first.values) | st.builds(made, first.values, second.values)
    return TypeCase(made, values, "object", hashable=False)


def records() -> st.SearchStrategy[dict[str, Any]]:
    """Draw metadata such as stores keep, with the fields that `filters` ask for."""
    return st.dictionaries(_FIELDS, _scalars() | st.lists(_scalars(), max_size=3))


def filters() -> st.SearchStrategy[Filter]:
    """Draw a filter of any clauses in any combination, over a few fields and values."""
    bounds = st.none() | st.integers(0, 3) | st.sampled_from(["a", "b"])
    ranges = st.tuples(_FIELDS, bounds, bounds, bounds, bounds).filter(lambda drawn: set(drawn[1:]) != {None})
    return st.recursive(
        st.builds(Equal, _FIELDS, _scalars())
        | st.builds(AnyOf, _FIELDS, st.lists(_scalars(), max_size=3).map(tuple))
        | ranges.map(lambda drawn: Range(*drawn)),
        lambda inner: (
            st.builds(And, st.lists(inner, max_size=3).map(tuple))
            | st.builds(Or, st.lists(inner, max_size=3).map(tuple))
            | st.builds(Not, inner)
        ),
        max_leaves=6,
    )


def _scalars() -> st.SearchStrategy[Any]:
    return st.sampled_from(["a", "b", "1", "", 0, 1, 2, 1.0, 2.5, True, False])


def json_paths() -> st.SearchStrategy[JsonPath]:
    """Draw a path of names, strange ones among them, of indexes, and of parts that select many."""
    return _PATHS


_INDEXES = st.integers(-3, 3) | st.integers(-(2**53) + 1, 2**53 - 1)
_BOUNDS = st.none() | _INDEXES
_NAMES_AND_INDEXES = _KEYS | st.text(st.characters(codec=None, exclude_categories=()), max_size=4) | _INDEXES
_SEVERAL = st.none() | st.tuples(_BOUNDS, _BOUNDS, _BOUNDS)
_MANY = st.tuples(_SEVERAL) | st.lists(_NAMES_AND_INDEXES | _SEVERAL, min_size=2, max_size=3).map(tuple)
_PATHS = st.lists(_NAMES_AND_INDEXES | _MANY.map(Many), max_size=4).map(tuple)
_NAMES = st.lists(_KEYS, max_size=3, unique=True)
_SECONDS = st.none() | st.sampled_from([0.5, 1, 30.0])
_ATTEMPTS = st.none() | st.integers(1, 100)
_NOTES = st.none() | json_values(3)
_PRINTS = st.dictionaries(_TEXT, _TEXT, max_size=2)
_INPUTS = st.none() | st.dictionaries(_KEYS, json_values(3), max_size=2)


@st.composite
def plans(
    draw: st.DrawFn, functions: Mapping[str, Sequence[str]] | None = None, *, max_steps: int = 5, nested: bool = True
) -> Plan:
    """Draw a plan; each step refers to earlier ones only.

    ``functions`` maps the functions that may be called to their parameters, each of which is given, by values and by
    whole results. Without it the plan has everything that a plan may have: names, paths, templates, time-outs and
    the schema of its input are made up, and steps refer to that input. ``nested`` allows plans inside.
    """
    made_up = functions is None
    steps: list[Step] = []
    for number in range(draw(st.integers(0, max_steps))):
        earlier = tuple(step.id for step in steps)
        sources = (INPUT, *earlier) if made_up else earlier
        function: str | Plan | PlanTemplate
        kind = draw(st.integers(0, 5))
        names = draw(_NAMES) if made_up else []
        if nested and kind == 0:
            function = draw(plans(functions, max_steps=2, nested=False))
            if not function.steps and function.result is None:
                function = Plan("nothing", result=Value(None))
        elif made_up and kind == 1:
            function = PlanTemplate(draw(_TEXT), draw(_TEXT))
        elif functions is None:
            function = draw(_TEXT)
        else:
            function = draw(st.sampled_from(sorted(functions)))
            names = list(functions[function])
        each, when = draw(_loops(sources)) if made_up else (None, None)
        given = sources if each is None else (*sources, ITEM)
        arguments = {name: draw(_expressions(given, made_up)) for name in names}
        after = draw(_some_of(earlier)) if earlier else []
        seconds = draw(_SECONDS) if made_up else None
        attempts = draw(_ATTEMPTS) if made_up else None
        steps.append(Step(f"s{number}", function, arguments, tuple(after), draw(_TEXT), seconds, attempts, each, when))
    ids = tuple(step.id for step in steps)
    return Plan(
        goal=draw(_TEXT),
        steps=tuple(draw(st.permutations(steps))),
        result=draw(_results((INPUT, *ids) if made_up else ids, made_up)),
        notes=draw(_NOTES),
        fingerprints=draw(_PRINTS) if made_up else {},
        input=draw(_INPUTS) if made_up else None,
    )


@cache
def _loops(steps: tuple[str, ...]) -> st.SearchStrategy[tuple[Each | None, When | None]]:
    """Draw what a step runs for, and on what condition: mostly neither."""
    values = _expressions(steps, paths=True)
    each = st.builds(Each, values, st.integers(1, 100), st.sampled_from(["stop", "skip"]))
    alone = st.builds(When, st.sampled_from(["true", "present"]), st.tuples(values), st.booleans())
    when = alone | st.builds(When, st.just("equal"), st.tuples(values, values), st.booleans())
    return st.tuples(st.none() | st.none() | each, st.none() | st.none() | when)


@cache
def _some_of(steps: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(steps), max_size=2, unique=True)


@cache
def _results(steps: tuple[str, ...], paths: bool) -> st.SearchStrategy[Expression | None]:
    return st.none() | _expressions(steps, paths)


@cache
def _expressions(steps: tuple[str, ...], paths: bool) -> st.SearchStrategy[Expression]:
    leaves: st.SearchStrategy[Expression] = st.builds(Value, json_values(4))
    if steps:
        leaves |= st.builds(From, st.sampled_from(steps), json_paths() if paths else st.just(()))
    return st.recursive(
        leaves,
        lambda inner: (
            st.builds(ListOf, st.lists(inner, max_size=3).map(tuple))
            | st.builds(ObjectOf, st.dictionaries(_KEYS, inner, max_size=3))
            | st.builds(TextOf, st.lists(_TEXT | inner, max_size=3).map(tuple))
        ),
        max_leaves=4,
    )
