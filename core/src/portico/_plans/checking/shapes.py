"""Shapes of values: what a step gives, and what a parameter takes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

from portico._plans.plan import From, JsonPath, TextOf
from portico._schema.coerce import mended_for
from portico._schema.compare import Either, Piece, Together, meeting, never_meet, pieces
from portico.errors import nearest

if TYPE_CHECKING:
    from portico._functions.functions import FunctionSpec
    from portico._ports.schema_validator import SchemaValidator

_LISTED = 10
_VALUES = 5
_SEPARATORS = re.compile(r"[-_. ]+")
_UNREADABLE = (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Place:
    """What is known of the value at a path: its shape, or the ``problem`` that there can be nothing.

    ``mended`` is the path that is surely meant where it is another: a name with another case or other separators.
    """

    shape: Together = ()
    problem: str = ""
    nearest: tuple[str, ...] = ()
    mended: JsonPath | None = None
    doubt: str = ""
    """Why there may well be nothing, though there may be something: an open object does not declare the property."""
    certain: JsonPath | None = None
    """The path that is meant where there is a ``doubt``, if there surely is something at it."""


def whole(schema: Any) -> Together:
    """Return the shape of the values of a schema whose references are to itself."""
    return ((schema, schema),)


def constant(value: Any) -> Together:
    """Return the shape of a value that is known."""
    return (({"const": value}, None),)


def text_of(expression: TextOf) -> Together:
    """Return the shape of a text that is put together."""
    least = sum(len(part) for part in expression.parts if isinstance(part, str))
    return (({"type": "string", "minLength": least}, None),)


def array_of(items: Iterable[Together]) -> Together:
    """Return the shape of an array whose elements have their own shapes."""
    fixed = [Either((item,)) for item in items]
    schema = {"type": "array", "prefixItems": fixed, "minItems": len(fixed), "maxItems": len(fixed)}
    return ((schema, None),)


def object_of(members: Mapping[str, Together]) -> Together:
    """Return the shape of an object whose members have their own shapes."""
    schema = {
        "type": "object",
        "properties": {name: Either((member,)) for name, member in members.items()},
        "required": list(members),
        "additionalProperties": False,
    }
    return ((schema, None),)


def at_path(shape: Together, path: JsonPath, *, exact: bool = False) -> Place:
    """Return what is known of the value at a path into a value of ``shape``.

    Only what the shape rules out is a problem: an open schema allows every path. With ``exact`` no other spelling of
    a name is understood.
    """
    options: list[Together] = [shape]
    mended: list[str | int] = []
    doubt: _Doubt | None = None
    try:
        for depth, part in enumerate(path):
            split = [piece for option in options for piece in pieces(option)]
            inner = _inside(split, part)
            names = list(dict.fromkeys(name for piece in split for name in _names(piece)))
            written = meant(part, names) if not inner and isinstance(part, str) and not exact else None
            if written is not None:
                inner = _inside(split, written)
            if not inner:
                return _nothing(path[: depth + 1], names, options)
            if doubt is None and written is None and isinstance(part, str) and part not in names:
                doubt = _doubt(split, path, depth, names)
            mended.append(part if written is None else written)
            options = inner
    except _UNREADABLE:
        return Place()
    found = options[0] if len(options) == 1 else ((Either(tuple(options)), None),)
    place = Place(found, mended=tuple(mended) if tuple(mended) != path else None)
    if doubt is None:
        return place
    certain = doubt.certain if place.mended is None else None
    return replace(place, doubt=doubt.words, nearest=doubt.nearest, certain=certain)


def meant(name: str, names: Iterable[str]) -> str | None:
    """Return the one of the names that differs from ``name`` in case and separators only; None for several."""
    wanted = _plain(name)
    found = [each for each in names if _plain(each) == wanted]
    return found[0] if len(found) == 1 else None


def meant_alone(name: str, names: Iterable[str], given: Iterable[str]) -> str | None:
    """Return the name that is meant by one of those given, unless another one that is given means it too."""
    other = meant(name, names)
    if other is None or any(each != name and _plain(each) == _plain(other) for each in given):
        return None
    return other


def listed(names: Iterable[str]) -> str:
    """List names for a person, the first ten of them."""
    shown = list(names)
    more = f" and {len(shown) - _LISTED} more" if len(shown) > _LISTED else ""
    return ", ".join(shown[:_LISTED]) + more if shown else "none"


def described(shape: Together) -> str:
    """Say in words what the values of a shape are: the kinds of JSON, or the values where they are few."""
    kinds: dict[str, None] = {}
    values: list[str] = []
    try:
        for piece in pieces(shape):
            if piece.values is None or piece.kind in ("boolean", "null"):
                kinds["integer" if piece.kind == "number" and piece.integer else piece.kind] = None
            else:
                values += [json.dumps(value, ensure_ascii=False) for value in piece.values]
    except _UNREADABLE:
        return "a value"
    if len(values) > _VALUES or any(len(value) > 40 for value in values):
        values = [*values[:_VALUES], "…"] if max(map(len, values)) <= 40 else ["one of certain values"]
    return " or ".join([*sorted(kinds), *dict.fromkeys(values)]) or "nothing"


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name).lower()


class _Doubt(NamedTuple):
    words: str
    nearest: tuple[str, ...]
    certain: JsonPath | None


def _doubt(split: Sequence[Piece], path: JsonPath, depth: int, names: list[str]) -> _Doubt | None:
    """Doubt a property that open objects, which declare others, do not."""
    objects = [piece for piece in split if piece.kind == "object"]
    for piece in objects:
        if piece.values is not None or not piece.names():
            return None
        for part, _ in piece.parts:
            more = part.get("additionalProperties", True)
            if "patternProperties" in part or not (isinstance(more, bool) or more == {}):
                return None
    before, name = path[:depth], str(path[depth])
    other = meant(name, names)
    sure = other is not None and all(other in piece.required() for piece in objects)
    near = (*(() if other is None else (other,)), *nearest(name, names))
    return _Doubt(
        f"{name!r} is not declared; there are: {listed(sorted(names))}",
        tuple(From.print_path((*before, each)) for each in dict.fromkeys(near)),
        (*before, other, *path[depth + 1 :]) if sure and other is not None else None,
    )


def _names(piece: Piece) -> list[str]:
    if piece.kind != "object":
        return []
    known = [name for value in piece.values or () for name in value]
    return [*known, *piece.names()]


def _inside(split: Iterable[Piece], part: str | int) -> list[Together]:
    """Return what may be at one part of a path inside the pieces; nothing where nothing can be."""
    found: dict[frozenset[tuple[int, int]], Together] = {}
    constants: list[Together] = []
    for piece in split:
        if piece.kind != ("object" if isinstance(part, str) else "array"):
            continue
        if piece.values is not None:
            constants += [constant(value[part]) for value in piece.values if _has(value, part)]
            continue
        for member in [piece.member(part)] if isinstance(part, str) else _items(piece, part):
            found.setdefault(frozenset((id(schema), id(root)) for schema, root in member), member)
    return [*(member for member in found.values() if not never_meet(member)), *constants]


def _items(piece: Piece, index: int) -> list[Together]:
    most, fixed = piece.most("maxItems"), piece.positions()
    if index >= most or -index > most:
        return []
    if index >= 0:
        return [piece.item(index)]
    # From the end, it may be any of them.
    return [piece.item(each) for each in range(fixed + 1) if each < most]


def _has(value: Any, part: str | int) -> bool:
    return part in value if isinstance(part, str) else -len(value) <= part < len(value)


def _nothing(path: JsonPath, names: list[str], options: list[Together]) -> Place:
    part = path[-1]
    if isinstance(part, str) and names:
        near = tuple(From.print_path((*path[:-1], name)) for name in nearest(part, names))
        return Place(
            problem=f"there can be nothing at {From.print_path(path)}; it has: {listed(sorted(names))}", nearest=near
        )
    around = described(((Either(tuple(options)), None),))
    return Place(problem=f"there can be nothing at {From.print_path(path)}; {From.print_path(path[:-1])} is {around}")


_KEPT = 64
_KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


class Output:
    """What a step gives, or a plan is given: its shape, and what is at the paths that were asked for."""

    __slots__ = ("places", "shape")

    def __init__(self, shape: Together) -> None:
        self.shape = shape
        self.places: dict[JsonPath, Place] = {}

    def at(self, path: JsonPath) -> Place:
        """Return what is known of the value at a path; the same object for the same path, as long as it is kept."""
        place = self.places.get(path)
        if place is None:
            if len(self.places) >= _KEPT:
                self.places.clear()
            place = self.places[path] = at_path(self.shape, path)
        return place


UNKNOWN = Output(())
"""What may be anything."""


class Taken:
    """One schema that values must be valid under: that of a parameter, or of what is inside one."""

    __slots__ = ("_inside", "_meets", "_plain", "_single", "_validate", "shape")

    def __init__(self, shape: Together) -> None:
        self.shape = shape
        self._plain: dict[type, bool] = {}
        self._meets: dict[int, tuple[Place, bool]] = {}
        self._validate: tuple[SchemaValidator | None, list[Callable[[Any], list[str]]]] = (None, [])
        self._single: dict[str, Piece | None] = {}
        self._inside: dict[str | int, Taken] = {}

    def single(self, kind: str) -> Piece | None:
        """Return what holds for the values of one kind of JSON; None where there is no or more than one way."""
        if kind not in self._single:
            try:
                found = [piece for piece in pieces(self.shape) if piece.kind == kind]
            except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
                found = []
            self._single[kind] = found[0] if len(found) == 1 and found[0].values is None else None
        return self._single[kind]

    def inside(self, piece: Piece, part: str | int) -> Taken:
        """Return what a member or an element must be, by the `single` piece of its kind."""
        found = self._inside.get(part)
        if found is None:
            if len(self._inside) >= _KEPT:
                self._inside.clear()
            shape = piece.member(part) if isinstance(part, str) else piece.item(part)
            found = self._inside[part] = Taken(shape)
        return found

    def takes_every(self, kind: type) -> bool:
        """Tell whether every JSON value of a Python type is taken, so that none needs a look."""
        answer = self._plain.get(kind)
        if answer is None:
            name = _KINDS.get(kind)
            answer = self._plain[kind] = name is not None and all(
                meeting({"type": name}, None, schema, root) == "always" for schema, root in self.shape
            )
        return answer

    def takes_anything(self) -> bool:
        """Tell whether every JSON value is taken."""
        return all(meeting(True, None, schema, root) == "always" for schema, root in self.shape)

    def never_takes(self, place: Place) -> bool:
        """Tell whether what is at a place of an output surely is not taken."""
        known = self._meets.get(id(place))
        if known is None:
            if len(self._meets) >= _KEPT:
                self._meets.clear()
            # The place is kept too, so that no other can have its identity.
            known = self._meets[id(place)] = (place, never_meet((*place.shape, *self.shape)))
        return known[1]

    def faults(self, value: Any, validator: SchemaValidator) -> list[str]:
        """Return what a validator finds wrong with a literal; raises ``SchemaUnsupported``."""
        if self._validate[0] is not validator:
            self._validate = (validator, [validator.compile(_with_root(*each)) for each in self.shape])
        return [fault for validate in self._validate[1] for fault in validate(value)]

    def mended(self, value: Any, validator: SchemaValidator) -> tuple[Any] | None:
        """Return the value that surely was meant by one with faults, as a tuple of one; None when there is none."""
        candidates = [mended_for(_with_root(*each), value) for each in self.shape]
        if isinstance(value, str):
            candidates += [other for other in self._values() if other.lower() == value.lower()]
            if value in ("True", "False"):
                candidates.append(value == "True")
        fitting = [each for each in candidates if each != value and not self.faults(each, validator)]
        return (fitting[0],) if len({repr(each) for each in fitting}) == 1 else None

    def _values(self) -> Iterator[str]:
        """Yield the texts that are taken, where only some are."""
        for piece in pieces(self.shape):
            yield from piece.values or () if piece.kind == "string" else ()


class Known:
    """A function as the check sees it."""

    __slots__ = ("__weakref__", "closed", "effects", "name", "output", "parameters", "required")

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """Be left out where a manual is copied or sent elsewhere: it is made anew there."""
        return NoneType, ()

    def __init__(
        self, name: str, parameters: Mapping[str, Any], returns: Any, *, effects: bool = False, closed: bool = False
    ) -> None:
        self.name = name
        self.effects = effects
        properties, required = parameters.get("properties"), parameters.get("required")
        self.parameters = {
            each: Taken(((schema, parameters),))
            for each, schema in (properties.items() if isinstance(properties, Mapping) else ())
            if schema is not False
        }
        self.required = tuple(each for each in required if isinstance(each, str)) if isinstance(required, list) else ()
        self.closed = closed or parameters.get("additionalProperties") is False
        self.output = Output(whole(returns))


def known_of(spec: FunctionSpec) -> Known:
    """Return what is known of a manual, made when it is first asked for and kept by it."""
    known: Known | None = spec.checked
    if known is None:
        known = Known(spec.name, spec.parameters, spec.returns, effects=spec.effects)
        object.__setattr__(spec, "checked", known)
    return known


def _with_root(schema: Any, root: Any) -> Any:
    """Return a schema that a validator reads alone: with the definitions of the schema that it is part of."""
    if schema is root or not isinstance(schema, Mapping) or not isinstance(root, Mapping):
        return schema
    definitions = {key: root[key] for key in ("$defs", "definitions") if key in root}
    return {**schema, **definitions} if definitions else schema
