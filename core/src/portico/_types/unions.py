"""Unions of types, and which of two members a JSON value is of."""

from __future__ import annotations

import threading
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

from portico._schema.compare import Piece, Together, never_meet, pieces
from portico._schema.values import accepts
from portico._types.classes import QUALIFIERS
from portico._types.compiled import Compiled, Fault, Mismatch, agreed, drafting, may_become
from portico._types.scalars import FORMATS, strict_integer
from portico.errors import SchemaUnsupported

AS_IT_IS: Any = "as it is"
"""The kind of what reads every JSON value as the plain Python value that it is."""

_ANY_RANK, _FLOAT_RANK = 1, 2
_PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}
_CONTAINERS = (list, tuple, set, frozenset, dict)
_PLAIN_TYPES = (str, int, float)
_PLAIN = (AS_IT_IS, str, bool, types.NoneType)


@dataclass(frozen=True, slots=True)
class Form:
    """What Python has of the values of a schema: its type, or `AS_IT_IS`.

    Schemas of one kind make the same of the same value, but for what is in it where the kind is a list, a tuple,
    a set or a dict. ``whole`` values are written with every property, also those that may be left out.
    """

    kind: object
    whole: bool = False


FormOf: TypeAlias = Callable[[Mapping[str, Any]], Form | None]
"""Tells how the values of a schema are read; None for "in its own way"."""


class _Overlap:
    """Finds a value that is written under one schema and that another takes for something else.

    What it does not know makes it find too much, never too little.
    """

    def __init__(self, form: FormOf) -> None:
        self.form_of = form
        self.compared: set[Any] = set()

    def exists(self, written: Together, accepting: Together) -> bool:
        key = tuple(tuple(id(schema) for schema, _ in together) for together in (written, accepting))
        if key in self.compared:
            return False
        self.compared.add(key)
        for one in pieces(written):
            others = [other for other in pieces(accepting) if other.kind == one.kind]
            exact = [other for other in others if one.kind == "number" and self.alike(one, other)]
            if any(self.meet(one, other) and self.mistaken(one, other) for other in exact or others):
                return True
        return False

    def meet(self, one: Piece, other: Piece) -> bool:
        """Tell whether a value that is written as ``one`` may be taken as ``other``."""
        for values, piece in ((one.values, other), (other.values, one)):
            if values is not None:
                format = FORMATS.get(str(_format(piece)))
                return any(
                    all(accepts(value, part, root) is not False for part, root in piece.parts)
                    and (format is None or not isinstance(value, str) or format.fits(value))
                    for value in values
                )
        name, other_name = str(_format(one)), str(_format(other))
        if one.kind == "string" and name != other_name and name in FORMATS and other_name in FORMATS:
            return other_name in FORMATS[name].taken_by
        form = self.form(one)
        whole = {"required": list(one.names())} if form is not None and form.whole else {}
        return not never_meet((*one.parts, *other.parts, (whole, None)))

    def mistaken(self, one: Piece, other: Piece) -> bool:
        """Tell whether some value that both have in common comes back as something else."""
        form = self.form(one)
        if not self.alike(one, other):
            return True
        if form is None or form.kind not in (AS_IT_IS, *_CONTAINERS):
            return False
        if one.kind == "array":
            for index in range(1 + max(one.positions(), other.positions())):
                if never_meet((*one.item(index), *other.item(index))):
                    break  # no longer array is of both
                if self.exists(one.item(index), other.item(index)):
                    return True
        elif one.kind == "object":
            names = [*{**one.names(), **other.names()}, None]
            return any(self.exists(one.member(name), other.member(name)) for name in names)
        return False

    def alike(self, one: Piece, other: Piece) -> bool:
        """Tell whether a value in common comes back as it was, but for what is in it."""
        form, other_form = self.form(one), self.form(other)
        if form is None or other_form is None:
            return False
        kind, other_kind = form.kind, other_form.kind
        if one.kind == "number":
            # An integer type reads 1.0 as 1, a float type 1 as 1.0: equal, but not what it was.
            if other_kind is AS_IT_IS and other.values is None:
                return kind in (AS_IT_IS, int, float)
            return _number_type(one, kind) == _number_type(other, other_kind) is not None
        plain = {"array": list, "object": dict}.get(one.kind)
        if plain is None:
            return kind == other_kind or (kind in _PLAIN and other_kind in _PLAIN)
        return (plain if kind is AS_IT_IS else kind) == (plain if other_kind is AS_IT_IS else other_kind)

    def form(self, piece: Piece) -> Form | None:
        """Return how the values of a piece are read; where nothing is said of them, as they are."""
        if not piece.parts:
            return Form(AS_IT_IS)
        found = (self.form_of(part) for part, _ in reversed(piece.parts))
        return next((form for form in found if form is not None), None)


def _format(piece: Piece) -> object:
    return next((part["format"] for part, _ in piece.parts if "format" in part), None)


def _number_type(piece: Piece, kind: object) -> object:
    if kind is not AS_IT_IS:
        return kind
    found = {type(value) for value in piece.values or (1, 1.0)}
    return found.pop() if len(found) == 1 else None


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
        self.root = {"$defs": definitions}
        self.tried = tried
        self.otherwise = otherwise
        kinds = [_python_type(hint) for hint in self.hints]
        self.writers = {
            kind: member.unstructure
            for kind, member in zip(kinds, members, strict=True)
            if kind is not None and kinds.count(kind) == 1
        }
        self.schemas = [member.schema for member in members]
        self.structures = [member.structure for member in members]
        self.by_type: dict[type, list[Callable[[Any], Any]]] = {}
        self.compiled = Compiled({"anyOf": list(self.schemas)}, self.structure, self.unstructure, self.draft)

    def settle(self, form: FormOf) -> None:
        """Put the members in an order in which each value is read by its own; refuse where there is none.

        Of two members, one may have to come first: an integer is also a number, and a value of a class may be
        without the keys that another class can do without. Raises ``SchemaUnsupported`` where both would have to.
        """
        forms = [form(schema) for schema in self.schemas]
        ranks = [_number_rank(known, schema) for known, schema in zip(forms, self.schemas, strict=True)]
        shapes: list[Together] = [((schema, self.root),) for schema in self.schemas]
        before: list[set[int]] = [set() for _ in self.members]
        for one, other in combinations(range(len(self.members)), 2):
            rank, other_rank = ranks[one], ranks[other]
            if rank is not None and other_rank is not None:
                taken, given = rank < other_rank, other_rank < rank
            else:
                taken = _Overlap(form).exists(shapes[one], shapes[other])
                given = _Overlap(form).exists(shapes[other], shapes[one])
                if taken and given:
                    raise SchemaUnsupported(
                        f"A union cannot hold {self.shown[one]} and {self.shown[other]}: some JSON values may be of "
                        "either, and would be read back as the wrong one. Use one of them alone, or give each a class "
                        "with its own Literal field."
                    )
            if taken:
                before[other].add(one)
            if given:
                before[one].add(other)
        self._arrange(before, ranks)

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
            for kind in dict.fromkeys(piece.kind for piece in pieces(((schema, self.root),))):
                for taken in _PYTHON_TYPES[kind]:
                    if taken is not float or structure is not strict_integer:
                        self.by_type.setdefault(taken, []).append(structure)

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
        for member in self.members:
            # A member that cannot write the value, in whatever way it fails, is not the one.
            with suppress(Exception):
                written = member.unstructure(value)
                read = member.structure(written)
                if type(read) is type(value) and read == value:
                    return written
        for kind, write in self.writers.items():
            if isinstance(value, kind) and kind not in _PLAIN_TYPES:
                return write(value)
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
    while True:
        origin = typing.get_origin(hint)
        if origin is typing.Annotated or origin in QUALIFIERS:
            hint = typing.get_args(hint)[0]
        elif hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        else:
            return types.NoneType if hint is None else hint


def _python_type(hint: Any) -> type | None:
    """Return the class that values of a hint have; None where that is not one class."""
    kind = typing.get_origin(hint) or hint
    if typing.is_typeddict(kind):
        return dict
    return kind if isinstance(kind, type) and kind not in (Any, object, types.UnionType) else None


def _shown(hint: Any) -> str:
    if hint is type(None):
        return "None"
    return (
        hint.__qualname__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint).replace("typing.", "")
    )
