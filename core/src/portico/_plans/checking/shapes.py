"""Shapes of values: what a step gives, and what a parameter takes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from types import NoneType
from typing import TYPE_CHECKING, Any

from portico._schema.coerce import mend
from portico._schema.compare import UNREADABLE, Either, Piece, Together, meeting, never_meet, pieces
from portico._schema.paths import JsonPath, Many, Selector, is_many, print_path, select
from portico.errors import nearest

if TYPE_CHECKING:
    from portico._functions.functions import FunctionSpec
    from portico._plans.plan import Step
    from portico._ports.schema_validator import SchemaValidator

_LISTED = 10
_OPTIONS = 1_000
_VALUES = 5
_LONGEST_VALUE = 40
_KEPT = 64
_SEPARATORS = re.compile(r"[-_. ]+")
_KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """What is known of the value at a path: its shape, or the ``problem`` that there can be nothing."""

    shape: Together = ()
    problem: str = ""
    nearest: tuple[str, ...] = ()


def whole(schema: Any) -> Together:
    """Return the shape of the values of a schema whose references are to itself."""
    return ((schema, schema),)


NULL = whole({"type": "null"})


def constant(value: Any) -> Together:
    """Return the shape of a value that is known."""
    return (({"const": value}, None),)


def array_of(items: Iterable[Together]) -> Together:
    """Return the shape of an array whose elements have their own shapes."""
    fixed = [Either((item,)) for item in items]
    return (({"type": "array", "prefixItems": fixed, "minItems": len(fixed), "maxItems": len(fixed)}, None),)


def list_of(item: Together) -> Together:
    """Return the shape of an array whose elements have one shape.

    That it may be empty is left out: it would fit any list, and a plan is wrong where it fits only so.
    """
    return (({"type": "array", "items": Either((item,)), "minItems": 1}, None),)


def either(*options: Together) -> Together:
    """Return the shape of the values of any of some shapes."""
    return options[0] if len(options) == 1 else ((Either(options), None),)


def output_of(step: Step, one: Together) -> Together:
    """Return the shape of what a step gives, where one call of it gives ``one``.

    A condition on the item skips items, any other one the whole step.
    """
    by_item = step.decides_by_item
    if step.each is not None:
        one = list_of(either(one, NULL) if by_item or step.each.failed == "skip" else one)
    return one if step.when is None or by_item else either(one, NULL)


def never_equal(one: Together, other: Together) -> bool:
    """Tell whether no value of one shape equals one of the other. Two lists or objects may both be empty."""
    try:
        shared = {piece.kind for piece in pieces(one)} & {piece.kind for piece in pieces(other)}
    except UNREADABLE:
        return False
    return shared.isdisjoint(("array", "object")) and never_meet((*one, *other))


def object_of(members: Mapping[str, Together]) -> Together:
    """Return the shape of an object whose members have their own shapes."""
    schema = {
        "type": "object",
        "properties": {name: Either((member,)) for name, member in members.items()},
        "required": list(members),
        "additionalProperties": False,
    }
    return ((schema, None),)


def at_path(shape: Together, path: JsonPath) -> Place:
    """Return what is known of the value at a path into a value of ``shape``.

    Only what the shape rules out is a problem: an open schema allows every path.
    """
    options: list[Together] = [shape]
    try:
        for depth, part in enumerate(path):
            split = [piece for option in options for piece in pieces(option)]
            selectors = part.selectors if isinstance(part, Many) else (part,)
            inner: list[Together] = []
            for selector in dict.fromkeys(selectors):
                inner += _inside(split, selector)
                if len(inner) > _OPTIONS:
                    raise OverflowError
            if not inner:
                return _nothing(path[: depth + 1], split)
            options = inner
    except UNREADABLE:
        options = [()]
    one = either(*options)
    return Place(list_of(one) if is_many(path) else one)


def meant(name: str, names: Iterable[str], given: Iterable[str] = ()) -> str | None:
    """Return the one of ``names`` that differs from ``name`` in case and separators only.

    None where it may be several, or where another name that is ``given`` means it too.
    """
    wanted = _plain(name)
    found = [each for each in names if _plain(each) == wanted]
    if len(found) != 1 or any(each != name and _plain(each) == wanted for each in given):
        return None
    return found[0]


def itemize(names: Iterable[str]) -> str:
    """List names for a person, the first ten of them."""
    shown = list(names)
    more = f" and {len(shown) - _LISTED} more" if len(shown) > _LISTED else ""
    return ", ".join(shown[:_LISTED]) + more if shown else "none"


def describe(shape: Together) -> str:
    """Say in words what the values of a shape are: the kinds of JSON, or the values where they are few."""
    try:
        return _describe_pieces(list(pieces(shape)))
    except UNREADABLE:
        return "a value"


def _describe_pieces(split: Sequence[Piece]) -> str:
    kinds: set[str] = set()
    values: dict[str, None] = {}
    for piece in split:
        if piece.values is None or piece.kind in ("boolean", "null"):
            kinds.add("integer" if piece.kind == "number" and piece.integer else piece.kind)
        else:
            values |= dict.fromkeys(json.dumps(value, ensure_ascii=False) for value in piece.values)
    shown = list(values)
    if max(map(len, shown), default=0) > _LONGEST_VALUE:
        shown = ["one of certain values"]
    elif len(shown) > _VALUES:
        shown = [*shown[:_VALUES], "…"]
    return " or ".join([*sorted(kinds), *shown]) or "nothing"


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name).lower()


def _inside(split: Iterable[Piece], selector: Selector) -> list[Together]:
    """Return what may be at a part of a path inside the pieces; nothing where nothing can be."""
    found: dict[frozenset[tuple[int, int]], Together] = {}
    constants: list[Together] = []
    for piece in split:
        if piece.values is not None:
            constants += [constant(each) for value in piece.values for each in select(value, selector)]
            continue
        for member in _members(piece, selector) if piece.kind == "object" else _items(piece, selector):
            found.setdefault(frozenset((id(schema), id(root)) for schema, root in member), member)
    return [*(member for member in found.values() if not never_meet(member)), *constants]


def _members(piece: Piece, selector: Selector) -> list[Together]:
    if selector is None:
        return [piece.member(name) for name in (*piece.names(), None)]
    return [piece.member(selector)] if isinstance(selector, str) else []


def _items(piece: Piece, selector: Selector) -> list[Together]:
    if piece.kind != "array" or isinstance(selector, str):
        return []
    most = piece.longest()
    if isinstance(selector, int):
        if selector >= most or -selector > most:
            return []
        if selector >= 0:
            return [piece.item(selector)]
    # From the end, and of a slice, it may be any of them.
    return [piece.item(each) for each in range(piece.positions() + 1) if each < most]


def _nothing(path: JsonPath, split: Sequence[Piece]) -> Place:
    part, problem = path[-1], f"there can be nothing at {print_path(path)}"
    objects = [piece for piece in split if piece.kind == "object"]
    names = {name for piece in objects for name in piece.names()}
    names |= {name for piece in objects for value in piece.values or () for name in value}
    if isinstance(part, str) and names:
        near = tuple(print_path((*path[:-1], name)) for name in nearest(part, sorted(names)))
        return Place(problem=f"{problem}; it has: {itemize(sorted(names))}", nearest=near)
    return Place(problem=f"{problem}; {print_path(path[:-1])} is {_describe_pieces(split)}")


class Output:
    """What a step gives, or a plan is given: its shape, and what is ``at`` a path."""

    def __init__(self, shape: Together) -> None:
        self.shape = shape
        # The same place for the same path: what takes it is known by the place.
        self.at = lru_cache(maxsize=_KEPT)(lambda path: at_path(shape, path))


UNKNOWN = Output(())
"""What may be anything."""


class Taken:
    """One schema that values must be valid under: that of a parameter, or of what is inside one.

    ``never_takes`` tells whether what is at a place of an output surely is not taken; ``single`` returns what holds for
    the values of one kind of JSON, None where there is no or more than one way; ``inside`` what a member or an element
    must be.
    """

    def __init__(self, shape: Together) -> None:
        self.shape = shape
        self.never_takes = lru_cache(maxsize=_KEPT)(self._never_takes)
        self.single = cache(self._single)
        self.inside = lru_cache(maxsize=_KEPT)(self._inside)
        self._validate: tuple[SchemaValidator | None, list[Callable[[Any], list[str]]]] = (None, [])

    def takes_every(self, kind: type) -> bool:
        """Tell whether every JSON value of a Python type is taken, so that none needs a look."""
        return kind in self._kinds

    @cached_property
    def _kinds(self) -> frozenset[type]:
        return frozenset(
            kind
            for kind, name in _KINDS.items()
            if all(meeting({"type": name}, None, schema, root) == "always" for schema, root in self.shape)
        )

    def _never_takes(self, place: Place) -> bool:
        return never_meet((*place.shape, *self.shape))

    def _single(self, kind: str) -> Piece | None:
        try:
            found = [piece for piece in pieces(self.shape) if piece.kind == kind]
        except UNREADABLE:
            return None
        return found[0] if len(found) == 1 and found[0].values is None else None

    def _inside(self, part: str | int) -> Taken:
        piece = self.single("object" if isinstance(part, str) else "array")
        if piece is None:
            return Taken(())
        return Taken(piece.member(part) if isinstance(part, str) else piece.item(part))

    def faults(self, value: Any, validator: SchemaValidator) -> list[str]:
        """Return what a validator finds wrong with a literal; raises ``SchemaUnsupported``."""
        if self._validate[0] is not validator:
            self._validate = (validator, [validator.compile(_with_root(*each)) for each in self.shape])
        return [fault for validate in self._validate[1] for fault in validate(value)]

    def mend_value(self, value: Any, validator: SchemaValidator) -> tuple[Any] | None:
        """Return the value that surely was meant by one with faults, as a tuple of one; None when there is none."""
        candidates = [mend(_with_root(*each), value) for each in self.shape]
        if isinstance(value, str):
            candidates += [other for other in self._texts() if other.lower() == value.lower()]
        fitting = [each for each in candidates if each != value and not self.faults(each, validator)]
        return (fitting[0],) if len({repr(each) for each in fitting}) == 1 else None

    def _texts(self) -> Iterator[str]:
        for piece in pieces(self.shape):
            yield from piece.values or () if piece.kind == "string" else ()


class Known:
    """A function as the check sees it."""

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """Be left out where a spec is copied or sent elsewhere: it is made anew there."""
        return NoneType, ()

    def __init__(self, name: str, parameters: Mapping[str, Any], returns: Any = None) -> None:
        self.name = name
        properties, required = parameters.get("properties"), parameters.get("required")
        self.parameters = {
            each: Taken(((schema, parameters),))
            for each, schema in (properties.items() if isinstance(properties, Mapping) else ())
            if schema is not False
        }
        self.required = tuple(each for each in required if isinstance(each, str)) if isinstance(required, list) else ()
        self.closed = parameters.get("additionalProperties") is False
        self.output = Output(whole(returns))


def known_of(spec: FunctionSpec) -> Known:
    """Return what is known of a function, made when it is first asked for and kept by its spec."""
    known: Known | None = spec.checked
    if known is None:
        known = Known(spec.name, spec.parameters, spec.returns)
        object.__setattr__(spec, "checked", known)
    return known


def _with_root(schema: Any, root: Any) -> Any:
    """Return a schema that a validator reads alone: with the definitions of the schema that it is part of."""
    if schema is root or not isinstance(schema, Mapping) or not isinstance(root, Mapping):
        return schema
    definitions = {key: root[key] for key in ("$defs", "definitions") if key in root}
    return {**schema, **definitions} if definitions else schema
