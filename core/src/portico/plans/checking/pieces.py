"""JSON Schemas taken apart: what a value must hold, all at once, through references and alternatives."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from portico.plans.checking.accepting import accepts, bound, count, kind_of, resolve

__all__ = ["Either", "Part", "Piece", "Schema", "Together", "pieces", "taken_apart"]

_KINDS = ("null", "boolean", "number", "string", "array", "object")

Schema: TypeAlias = tuple[Any, Any]
"""A schema, and the one that its references are to."""
Together: TypeAlias = tuple[Schema, ...]
"""Schemas that a value must be valid under, all of them; none allows everything."""
Part: TypeAlias = tuple[Mapping[str, Any], Any]
"""A schema whose references and alternatives are followed already: only its other keywords count."""


@dataclass(frozen=True, slots=True, eq=False)
class Either:
    """Stands for a schema where none can be written: what it refers to has roots of its own. One option must hold."""

    options: tuple[Together, ...]


_MOST = 256
_FEW: Mapping[str, tuple[Any, ...]] = {"null": (None,), "boolean": (True, False)}


def taken_apart(together: Together) -> Iterator[list[Part]]:
    """Yield alternatives, of which a value that is valid holds one at least, each a list of parts that hold at once.

    A reference that leads nowhere, or around in a circle, and alternatives beyond 256 are left out of a list: it may
    allow more than the schema does, never less.
    """
    yield from _followed(list(together), [], frozenset(), [_MOST])


def _followed(
    ahead: list[Schema], parts: list[Part], seen: frozenset[tuple[int, int]], left: list[int]
) -> Iterator[list[Part]]:
    parts = list(parts)
    while ahead:
        schema, root = ahead.pop()
        if schema is False:
            return
        if isinstance(schema, Either):
            if left[0] >= len(schema.options):
                left[0] -= len(schema.options)
                for together in schema.options:
                    yield from _followed([*ahead, *together], parts, seen, left)
                return
            continue
        key = (id(schema), id(root))
        if not isinstance(schema, Mapping) or key in seen or ("$id" in schema and schema is not root):
            continue
        seen |= {key}
        parts.append((schema, root))
        if "$ref" in schema:
            ahead.append((resolve(schema["$ref"], root), root))
        if isinstance(schema.get("allOf"), list):
            ahead.extend((each, root) for each in schema["allOf"])
        # Two sets of alternatives in one schema are rare: the second may be left out, as anything may.
        options = next((schema[name] for name in ("anyOf", "oneOf") if isinstance(schema.get(name), list)), None)
        if options is not None and left[0] >= len(options):
            left[0] -= len(options)
            for option in options:
                yield from _followed([*ahead, (option, root)], parts, seen, left)
            return
    yield parts


@dataclass(frozen=True, slots=True)
class Piece:
    """Values of one kind of JSON that hold all ``parts``: those ``values`` at most, where they are known."""

    kind: str
    parts: Sequence[Part]
    values: tuple[Any, ...] | None = None

    @property
    def integer(self) -> bool:
        """Whether the numbers are integers."""
        return any(
            "type" in part and "number" not in _names(part["type"]) and "integer" in _names(part["type"])
            for part, _ in self.parts
        )

    def range(self) -> tuple[float, bool, float, bool]:
        """Return the least number and whether it is left out itself, and the same of the greatest."""
        low, low_out, high, high_out = -math.inf, False, math.inf, False
        for part, _ in self.parts:
            for name in ("minimum", "exclusiveMinimum"):
                number = bound(part.get(name))
                if number is not None:
                    low, low_out = max((low, low_out), (number, name != "minimum"))
            for name in ("maximum", "exclusiveMaximum"):
                number = bound(part.get(name))
                if number is not None:
                    smaller, kept = min((high, not high_out), (number, name == "maximum"))
                    high, high_out = smaller, not kept
        if self.integer:
            if low > -math.inf:
                low, low_out = (math.floor(low) + 1 if low_out else math.ceil(low)), False
            if high < math.inf:
                high, high_out = (math.ceil(high) - 1 if high_out else math.floor(high)), False
        return low, low_out, high, high_out

    def least(self, keyword: str) -> int:
        """Return the length that all have at least, by a keyword such as ``minItems``."""
        return max((count(part.get(keyword)) or 0 for part, _ in self.parts), default=0)

    def most(self, keyword: str) -> float:
        """Return the length that all have at most, by a keyword such as ``maxItems``."""
        found = [count(part.get(keyword)) for part, _ in self.parts]
        return min((number for number in found if number is not None), default=math.inf)

    def names(self) -> dict[str, None]:
        """Return the names of all properties that have a schema of their own."""
        return {name: None for part, _ in self.parts for name in _object(part.get("properties"))}

    def required(self) -> dict[str, None]:
        """Return the names of the properties that every object has."""
        lists = [part.get("required") for part, _ in self.parts]
        return {name: None for names in lists if isinstance(names, list) for name in names if isinstance(name, str)}

    def member(self, name: str | None) -> Together:
        """Return what holds for a property; None stands for all that have no schema of their own."""
        found: list[Schema] = []
        for part, root in self.parts:
            properties = _object(part.get("properties"))
            if name is not None and name in properties:
                found.append((properties[name], root))
            elif "additionalProperties" in part and "patternProperties" not in part:
                found.append((part["additionalProperties"], root))
        return _needed(found)

    def item(self, index: int) -> Together:
        """Return what holds for the element at an index from the start."""
        found: list[Schema] = []
        for part, root in self.parts:
            fixed = part.get("prefixItems")
            if isinstance(fixed, list) and index < len(fixed):
                found.append((fixed[index], root))
            elif "items" in part:
                found.append((part["items"], root))
        return _needed(found)

    def positions(self) -> int:
        """Return how many elements have a schema of their own; those that follow share one."""
        lists = [part.get("prefixItems") for part, _ in self.parts]
        return max((len(fixed) for fixed in lists if isinstance(fixed, list)), default=0)


def pieces(parts: Sequence[Part]) -> list[Piece]:
    """Split what must hold all at once by kinds of JSON; values that surely hold not all are left out."""
    for part, _ in parts:
        options = [part["const"]] if "const" in part else part.get("enum")
        if isinstance(options, list):
            fitting = [value for value in options if _may_hold(value, parts)]
            kinds = dict.fromkeys(map(kind_of, fitting))
            return [Piece(kind, parts, tuple(value for value in fitting if kind_of(value) == kind)) for kind in kinds]
    found: list[Piece] = []
    for kind in _KINDS:
        if not all(_allows(part, kind) for part, _ in parts):
            continue
        if kind not in _FEW:
            found.append(Piece(kind, parts))
        elif fitting := [value for value in _FEW[kind] if _may_hold(value, parts)]:
            found.append(Piece(kind, parts, tuple(fitting)))
    return found


def _may_hold(value: Any, parts: Sequence[Part]) -> bool:
    return all(
        (value is None and part.get("nullable") is True) or accepts(value, part, root) is not False
        for part, root in parts
    )


def _allows(part: Mapping[str, Any], kind: str) -> bool:
    if "type" not in part or (kind == "null" and part.get("nullable") is True):
        return True
    return any(name == kind or (name == "integer" and kind == "number") for name in _names(part["type"]))


def _names(kinds: Any) -> Sequence[Any]:
    if isinstance(kinds, str):
        return (kinds,)
    return kinds if isinstance(kinds, list) else _KINDS


def _object(members: Any) -> Mapping[str, Any]:
    return members if isinstance(members, Mapping) else {}


def _needed(schemas: list[Schema]) -> Together:
    """Leave out the schemas that allow everything."""
    return tuple(each for each in schemas if each[0] is not True and each[0] != {})
