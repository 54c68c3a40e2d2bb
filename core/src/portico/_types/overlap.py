"""Whether two JSON Schemas have a value in common, and whether it would be read as something else."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

AS_IT_IS: Any = "as it is"
"""The kind of what reads every JSON value as the plain Python value that it is."""

_KINDS = ("null", "boolean", "number", "string", "array", "object")
_OPEN: Mapping[str, Any] = {}
_NEVER: Mapping[str, Any] = {"enum": []}
_CONTAINERS = (list, tuple, set, frozenset)
_PLAIN = (AS_IT_IS, str, bool, types.NoneType)


@dataclass(frozen=True, slots=True)
class Form:
    """What Python has of the values of a schema: its type, or `AS_IT_IS`.

    Schemas of one kind make the same of the same value, but for what is in it where the kind is a list, a tuple,
    a set or a dict. ``whole`` values are written with every property, also those that may be left out.
    """

    kind: object
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Format:
    """What a string of a format is: ``fits`` tells what its reader takes.

    What is written in the format fits no other known one, but for those that it is ``taken_by``.
    """

    fits: Callable[[str], bool]
    taken_by: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Overlap:
    """Where, inside of a value of both schemas, there is what they do not tell apart, and its kind of JSON.

    An index in the path stands for any, as does the key ``*``.
    """

    path: tuple[str | int, ...]
    kind: str


def overlap(
    written: Mapping[str, Any],
    accepting: Mapping[str, Any],
    definitions: Mapping[str, Any],
    *,
    form: Callable[[Mapping[str, Any]], Form | None] = lambda schema: None,
    formats: Mapping[str, Format] | None = None,
) -> Overlap | None:
    """Find a value written under one schema that another accepts and takes for something else.

    >>> cat = {"type": "object", "properties": {"is": {"enum": ["cat"]}}, "required": ["is"]}
    >>> dog = {"type": "object", "properties": {"is": {"enum": ["dog"]}}, "required": ["is"]}
    >>> overlap(cat, dog, {})
    >>> overlap({"type": "integer"}, {"anyOf": [{"type": "null"}, {"type": "number"}]}, {})
    Overlap(path=(), kind='number')

    ``form`` tells how the values of a schema are read, None for "in its own way"; without it every value in
    common counts. Keywords that it does not know could only make the values fewer: it may then find too much,
    never too little. ``definitions`` are the ``$defs`` that both refer to.
    """
    return _Search(definitions, form, formats or {}).mistaken(written, accepting)


def json_kinds(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> frozenset[str]:
    """Return the kinds of JSON value that a schema may allow; integers are numbers here."""
    return frozenset(piece.kind for piece in _Search(definitions, lambda schema: None, {}).pieces(schema))


@dataclass(frozen=True, slots=True)
class _Piece:
    """The part of a schema for one kind of JSON: those ``values`` only, where they are known."""

    kind: str
    schema: Mapping[str, Any]
    values: tuple[Any, ...] | None = None
    integer: bool = False


class _Search:
    def __init__(
        self,
        definitions: Mapping[str, Any],
        form: Callable[[Mapping[str, Any]], Form | None],
        formats: Mapping[str, Format],
    ) -> None:
        self.definitions = definitions
        self.form = form
        self.formats = formats
        self.met: dict[tuple[int, int], bool] = {}
        self.pairs: dict[tuple[int, int], tuple[Any, Any]] = {}
        self.open: set[tuple[int, int]] = set()
        self.assumed = False
        self.compared: set[tuple[int, int]] = set()

    def pieces(self, schema: Any, seen: frozenset[str] = frozenset()) -> Iterator[_Piece]:
        """Split a schema by kinds of JSON, through its references and alternatives."""
        if not isinstance(schema, Mapping):
            schema = _NEVER if schema is False else _OPEN
        reference = schema.get("$ref")
        options = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf", ())[:1]
        if isinstance(reference, str):
            if reference not in seen:
                target = self.definitions.get(reference.removeprefix("#/$defs/"), _OPEN)
                yield from self.pieces(target, seen | {reference})
        elif options:
            for option in options:
                yield from self.pieces(option, seen)
        elif "enum" in schema or "const" in schema:
            values = schema.get("enum", [schema.get("const")])
            for kind in _KINDS:
                chosen = tuple(value for value in values if _kind(value) == kind)
                if chosen and kind in ("array", "object"):
                    yield _Piece(kind, _OPEN)
                elif chosen:
                    yield _Piece(kind, schema, chosen)
        else:
            names = schema.get("type", _KINDS)
            for name in [names] if isinstance(names, str) else names:
                yield _Piece("number" if name == "integer" else name, schema, integer=name == "integer")

    def settled(self, decide: Callable[[], T]) -> T:
        """Decide by what meets: the least answer that is true of itself.

        A recursive schema is met again inside of itself; nothing is in common there until a value is found.
        """
        found = decide()
        while self.assumed:
            self.assumed = False
            for key, (one, other) in list(self.pairs.items()):
                if not self.met[key] and self._compare(one, other):
                    self.met[key] = self.assumed = True
            found = decide()
        return found

    def _meet(self, written: Any, accepting: Any) -> bool:
        key = (id(written), id(accepting))
        if key in self.open:
            self.assumed = True
        elif key not in self.met:
            self.met[key] = False
            self.pairs[key] = (written, accepting)
            self.open.add(key)
            self.met[key] = self._compare(written, accepting)
            self.open.discard(key)
        return self.met[key]

    def _compare(self, written: Any, accepting: Any) -> bool:
        others = list(self.pieces(accepting))
        return any(self._pieces_meet(piece, other) for piece in self.pieces(written) for other in others)

    def _pieces_meet(self, one: _Piece, other: _Piece) -> bool:
        if one.kind != other.kind:
            return False
        if one.kind == "array":
            return _least(one, other) <= self._length(one, other)
        if one.kind == "object":
            form = self.form(one.schema)
            always = one.schema.get("properties", ()) if form and form.whole else one.schema.get("required", ())
            keys = {*always, *other.schema.get("required", ())}
            return all(self._meet(self._member(one, key), self._member(other, key)) for key in keys)
        if one.values is not None:
            return any(self._admits(other, value) for value in one.values)
        if other.values is not None:
            return any(self._admits(one, value) for value in other.values)
        name, other_name = str(one.schema.get("format")), str(other.schema.get("format"))
        if one.kind == "string" and name != other_name and name in self.formats and other_name in self.formats:
            return other_name in self.formats[name].taken_by
        return True

    def _admits(self, piece: _Piece, value: Any) -> bool:
        if piece.values is not None:
            return value in piece.values
        format = self.formats.get(piece.schema.get("format", "")) if piece.kind == "string" else None
        return (format is None or format.fits(value)) and not (piece.integer and value % 1)

    def _length(self, one: _Piece, other: _Piece) -> float:
        """Return how many elements two arrays can have in common."""
        longest = min(one.schema.get("maxItems", math.inf), other.schema.get("maxItems", math.inf))
        for index in range(_positions(one, other)):
            if index < longest and not self._meet(self._item(one, index), self._item(other, index)):
                return index
        return float(longest)

    def _item(self, piece: _Piece, index: int) -> Any:
        fixed = piece.schema.get("prefixItems", ())
        return _known(fixed[index] if index < len(fixed) else piece.schema.get("items", self._rest(piece)))

    def _member(self, piece: _Piece, key: str) -> Any:
        properties = piece.schema.get("properties", {})
        rest = piece.schema.get("additionalProperties", self._rest(piece))
        return _known(properties.get(key, rest))

    def _rest(self, piece: _Piece) -> Mapping[str, Any]:
        """Return what a schema allows where it says nothing: what reads all as it is does so within, too."""
        form = self.form(piece.schema)
        return piece.schema if form and form.kind is AS_IT_IS else _OPEN

    def mistaken(self, written: Any, accepting: Any) -> Overlap | None:
        """Find the first place where a value of one is taken for another value."""
        key = (id(written), id(accepting))
        if key in self.compared:
            return None
        self.compared.add(key)
        others = list(self.pieces(accepting))
        for piece in self.pieces(written):
            exact = [other for other in others if piece.kind == other.kind == "number" and self._alike(piece, other)]
            for other in exact or others:
                if self.settled(partial(self._pieces_meet, piece, other)):
                    found = self._piece_mistaken(piece, other)
                    if found is not None:
                        return found
        return None

    def _piece_mistaken(self, one: _Piece, other: _Piece) -> Overlap | None:
        if not self._alike(one, other):
            return Overlap((), one.kind)
        form = self.form(one.schema)
        kind = form.kind if form else None
        inside: list[tuple[str | int, Any, Any]] = []
        if one.kind == "array" and kind in (AS_IT_IS, *_CONTAINERS):
            longest = self.settled(partial(self._length, one, other))
            positions = [index for index in range(_positions(one, other)) if index < longest]
            inside = [(index, self._item(one, index), self._item(other, index)) for index in positions]
        elif one.kind == "object" and kind in (AS_IT_IS, dict):
            keys = {**one.schema.get("properties", {}), **other.schema.get("properties", {}), "*": None}
            inside = [(key, self._member(one, key), self._member(other, key)) for key in keys]
        for key, written, accepting in inside:
            found = self.mistaken(written, accepting)
            if found is not None:
                return replace(found, path=(key, *found.path))
        return None

    def _alike(self, one: _Piece, other: _Piece) -> bool:
        """Tell whether a value in common comes back as it was, but for what is in it."""
        form, other_form = self.form(one.schema), self.form(other.schema)
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


def _number_type(piece: _Piece, kind: object) -> object:
    """Return the type that all numbers of a schema have; None for several."""
    if kind is not AS_IT_IS:
        return kind
    found = {type(value) for value in piece.values or (1, 1.0)}
    return found.pop() if len(found) == 1 else None


def _known(schema: Any) -> Any:
    """Return a schema whose identity lasts: true and false are the same each time."""
    return schema if isinstance(schema, Mapping) else _NEVER if schema is False else _OPEN


def _positions(one: _Piece, other: _Piece) -> int:
    """Return how many elements of two arrays have their own schemas, and one more for all that follow."""
    return 1 + max(len(one.schema.get("prefixItems", ())), len(other.schema.get("prefixItems", ())))


def _least(one: _Piece, other: _Piece) -> float:
    return float(max(one.schema.get("minItems", 0), other.schema.get("minItems", 0)))


def _kind(value: object) -> str:
    kinds = {str: "string", bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}
    return kinds.get(type(value), "null")
