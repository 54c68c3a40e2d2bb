"""Unions of types, and which of two alternatives a JSON value can be."""

from __future__ import annotations

import threading
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal, NoReturn

from portico._types.classes import QUALIFIERS, required_keys
from portico._types.compiled import Compiled, Fault, Mismatch, agreed, drafting, may_become
from portico._types.overlap import AS_IT_IS, Form, Overlap, json_kinds, overlap
from portico._types.scalars import FORMATS, SCALARS, strict_integer
from portico.errors import SchemaUnsupported

_ANY_RANK, _FLOAT_RANK = 1, 2

_JSON_TYPES: Mapping[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}


_JSON_KINDS = {
    "null": "null",
    "boolean": "true or false",
    "number": "a number",
    "string": "a string",
    "array": "an array",
    "object": "an object",
}
_ADVICE = {
    "array": "Use one kind of array with a union of elements, or {alone} alone.",
    "object": 'Give each a field with its own Literal, such as kind: Literal["a"], or use {alone} alone.',
}
_ADVICE_ON_SCALARS = "Use {alone} alone, or a class for each with its own Literal field."
_PLAIN_KINDS = ("str", "int", "float", "bool")


class Tried(threading.local):
    """What came of trying a union on each part of the value that is being structured.

    Without it, alternatives that fit alike would be tried again on every level of a deep value, each time twice
    as often.
    """

    outcomes: dict[tuple[int, int], Any] | None = None


class UnionOf:
    """A union of types, compiled in two steps: first its members, then, when all they refer to is known, `settle`."""

    def __init__(
        self,
        hints: Sequence[object],
        members: Sequence[Compiled],
        definitions: Mapping[str, Any],
        tried: Tried,
        otherwise: Callable[[Any], Any],
    ) -> None:
        self.hints = [_bare(hint) for hint in hints]
        self.shown = [_shown(hint) for hint in hints]
        self.members = members
        self.definitions = definitions
        self.tried = tried
        self.otherwise = otherwise
        self.tests = [instance_test(hint) for hint in hints]
        self.writers = {
            hint: member.unstructure
            for hint, member in zip(self.hints, members, strict=True)
            if isinstance(hint, type) and hint not in (Any, object) and not typing.is_typeddict(hint)
        }
        self.schemas = [member.schema for member in members]
        self.structures = [member.structure for member in members]
        self.by_type: dict[type, list[Callable[[Any], Any]]] = {}
        self.compiled = Compiled({"anyOf": list(self.schemas)}, self.structure, self.unstructure, self.draft)

    def settle(self, form: Callable[[Mapping[str, Any]], Form | None]) -> None:
        """Put the members in an order in which each value is read by its own; refuse where there is none.

        Of two members, one may have to come first: an integer is also a number, and a value of a class may be
        without the keys that another class can do without. Raises ``SchemaUnsupported`` where both would have to.
        """
        forms = [form(schema) for schema in self.schemas]
        ranks = [_number_rank(known, schema) for known, schema in zip(forms, self.schemas, strict=True)]
        before: list[set[int]] = [set() for _ in self.members]
        for one, other in combinations(range(len(self.members)), 2):
            rank, other_rank = ranks[one], ranks[other]
            if rank is not None and other_rank is not None:
                taken, given = rank < other_rank, other_rank < rank
            else:
                taken, given = (self._overlap(*pair, form) is not None for pair in ((one, other), (other, one)))
                if taken and given:
                    self._refuse(one, other, form)
            if taken:
                before[other].add(one)
            if given:
                before[one].add(other)
        self._arrange(before, ranks)

    def _overlap(
        self, written: int, accepting: int, form: Callable[[Mapping[str, Any]], Form | None]
    ) -> Overlap | None:
        schemas = self.members[written].schema, self.members[accepting].schema
        return overlap(*schemas, self.definitions, form=form, formats=FORMATS)

    def _arrange(self, before: Sequence[set[int]], ranks: Sequence[int | None]) -> None:
        order: list[int] = []
        rest = list(range(len(self.members)))
        while rest:
            following = next((index for index in rest if before[index].isdisjoint(rest)), None)
            if following is None:
                raise SchemaUnsupported(
                    f"A union of {', '.join(self.shown[index] for index in rest)} cannot be read back in any order. "
                    "Give each a field with its own Literal."
                )
            rest.remove(following)
            order.append(following)
        exact = _ANY_RANK in ranks or _FLOAT_RANK in ranks
        self.schemas = [self.members[index].schema for index in order]
        self.structures = [
            strict_integer if exact and ranks[index] == 0 else self.members[index].structure for index in order
        ]
        for schema, structure in zip(self.schemas, self.structures, strict=True):
            for kind in json_kinds(schema, self.definitions):
                for taken in _JSON_TYPES[kind]:
                    if taken is not float or structure is not strict_integer:
                        self.by_type.setdefault(taken, []).append(structure)

    def _refuse(self, one: int, other: int, form: Callable[[Mapping[str, Any]], Form | None]) -> NoReturn:
        found = self._overlap(one, other, form)
        assert found is not None  # noqa: S101 - the caller has found it
        path, kind = found.path, _JSON_KINDS[found.kind]
        inside = f" at {Fault.place(path)}" if path else ""
        outer = found.kind if not path else "array" if isinstance(path[0], int) else "object"
        shown = self.shown[one], self.shown[other]
        alone = next((plain for plain in _PLAIN_KINDS if plain in shown), "one of them")
        advice = _ADVICE.get(outer, _ADVICE_ON_SCALARS).format(alone=alone)
        raise SchemaUnsupported(
            f"A union cannot hold {shown[0]} and {shown[1]}: {kind}{inside} may be of either, and would be read back "
            f"as the wrong one. {advice}"
        )

    def structure(self, value: Any) -> Any:
        """Read a value by the first member that takes it."""
        kind = type(value)
        fitting = self.by_type.get(kind, ())
        if kind is dict or kind is list:
            return fitting[0](value) if len(fitting) == 1 else self._tried_once(value)
        for structure in fitting:
            try:
                return structure(value)
            except Mismatch:
                continue
        return self._first_fitting(value)

    def _tried_once(self, value: Any) -> Any:
        outcomes = self.tried.outcomes
        if outcomes is None:
            return self._first_fitting(value)
        key = (id(value), id(self))
        if key not in outcomes:
            try:
                outcomes[key] = self._first_fitting(value)
            except Mismatch as error:
                outcomes[key] = error
        if isinstance(outcomes[key], Mismatch):
            raise outcomes[key]
        return outcomes[key]

    def _first_fitting(self, value: Any) -> Any:
        faults: dict[Fault, None] = {}
        for index in Compiled.likely(self.schemas, value, self.definitions):
            try:
                return self.structures[index](value)
            except Mismatch as error:
                faults |= dict.fromkeys(error.faults)
        expected = " or ".join(dict.fromkeys(fault.expected for fault in faults if not fault.path))
        if expected and not any(fault.path for fault in faults):
            Mismatch.refuse(expected, value)
        raise Mismatch([fault for fault in faults if fault.path] or list(faults))

    def unstructure(self, value: Any) -> Any:
        """Write a value by the member that it is of."""
        write = self.writers.get(type(value))
        if write is not None:
            return write(value)
        for test, member in zip(self.tests, self.members, strict=True):
            if test(value):
                return member.unstructure(value)
        return self.otherwise(value)

    def draft(self, value: Any) -> Any:
        """Make a draft by the one member that an unfinished value may become."""
        try:
            return self.structure(value)
        except Mismatch:
            possible = [member for member in self.members if may_become(member.schema, value, self.definitions)]
            return agreed(map(drafting, possible), value)


def _number_rank(form: Form | None, schema: Mapping[str, Any]) -> int | None:
    """Return which of int, Any and float is to read a number first, so that 1 stays 1 and 1.0 stays 1.0."""
    if form is None or "enum" in schema:
        return None
    return next((rank for rank, kind in enumerate((int, AS_IT_IS, float)) if form.kind is kind), None)


def _bare(hint: Any) -> Any:
    """Return a hint without what does not make it another type."""
    while True:
        origin = typing.get_origin(hint)
        if origin is typing.Annotated or origin in QUALIFIERS:
            hint = typing.get_args(hint)[0]
        elif hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        else:
            return types.NoneType if hint is None else hint


def _shown(hint: Any) -> str:
    if hint is type(None):
        return "None"
    return (
        hint.__qualname__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint).replace("typing.", "")
    )


def instance_test(hint: Any) -> Callable[[Any], bool]:
    """Tell values of a union's members apart: enough to choose how to unstructure."""
    hint = _bare(hint)
    if hasattr(hint, "__value__"):
        # An alias may contain itself, a value cannot.
        return lambda value: instance_test(hint.__value__)(value)  # noqa: PLW0108
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return lambda value: any(type(value) is type(option) and value == option for option in arguments)
    if origin is typing.Union or origin is types.UnionType:
        options = [instance_test(argument) for argument in arguments]
        return lambda value: any(test(value) for test in options)
    kind = origin or hint
    if typing.is_typeddict(kind):
        members = typing.get_type_hints(kind, include_extras=True)
        required = required_keys(kind, members)
        return lambda value: isinstance(value, dict) and required <= value.keys() <= members.keys()
    if not isinstance(kind, type) or kind in (Any, object):
        return lambda value: True
    if f"{kind.__module__}.{kind.__qualname__}" in SCALARS:
        return lambda value: type(value) is kind
    if not arguments or kind.__module__ not in ("builtins", "collections", "collections.abc"):
        # What stands in the brackets of a class of another kind says nothing of what it holds.
        return lambda value: isinstance(value, kind)
    tests = [instance_test(argument) for argument in arguments if argument is not Ellipsis]
    if issubclass(kind, Mapping):
        return lambda value: isinstance(value, kind) and all(map(tests[1], value.values()))
    if issubclass(kind, tuple) and Ellipsis not in arguments:
        return lambda value: (
            isinstance(value, kind)
            and len(value) == len(tests)
            and all(test(element) for test, element in zip(tests, value, strict=True))
        )

    def holds(value: Any) -> bool:
        elements: Iterable[Any] = value
        # A str is a Sequence of itself.
        return isinstance(value, kind) and not isinstance(value, str) and all(map(tests[0], elements))

    return holds
