"""What the check needs of a function's manual, made once and kept as long as the manual lives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Any

from portico._schema.coerce import mended_for
from portico._schema.compare import Piece, Together, meeting, never_meet, pieces
from portico.functions import FunctionManual
from portico.plans.checking.shapes import Place, at_path, whole
from portico.plans.path import JsonPath
from portico.ports.schema_validator import SchemaValidator, Validate

__all__ = ["UNKNOWN", "Known", "Output", "Taken", "known_of"]

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
        self._validate: tuple[SchemaValidator | None, list[Validate]] = (None, [])
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


def known_of(manual: FunctionManual) -> Known:
    """Return what is known of a manual, made when it is first asked for and kept by it."""
    known: Known | None = manual.checked
    if known is None:
        known = Known(manual.name, manual.parameters, manual.returns, effects=manual.effects)
        object.__setattr__(manual, "checked", known)
    return known


def _with_root(schema: Any, root: Any) -> Any:
    """Return a schema that a validator reads alone: with the definitions of the schema that it is part of."""
    if schema is root or not isinstance(schema, Mapping) or not isinstance(root, Mapping):
        return schema
    definitions = {key: root[key] for key in ("$defs", "definitions") if key in root}
    return {**schema, **definitions} if definitions else schema
