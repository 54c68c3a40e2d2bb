"""Keywords that limit one kind of JSON: whether every value that is known in part holds one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from portico.plans.checking.accepting import bound, count
from portico.plans.checking.pieces import Piece, Together

__all__ = ["LIMITED", "Search"]


class Search(Protocol):
    """The comparison that a rule is part of."""

    def nothing(self, together: Together) -> bool:
        """Tell whether there surely is no value inside another that is valid under all of several schemas."""
        ...

    def longest(self, piece: Piece) -> float:
        """Return how many elements an array has at most."""
        ...

    def member_fits(self, together: Together, wanted: Any, root: Any) -> bool:
        """Tell whether every value inside another that is valid under ``together`` is so under ``wanted``."""
        ...


Rule: TypeAlias = Callable[[Search, Piece, Any, Mapping[str, Any], Any], bool]
"""Takes what the keyword says, and the schema that it is in with that schema's root."""


def _properties(search: Search, piece: Piece, argument: Any, wanted: Mapping[str, Any], root: Any) -> bool:
    return all(search.member_fits(piece.member(name), inner, root) for name, inner in argument.items())


def _additional(search: Search, piece: Piece, argument: Any, wanted: Mapping[str, Any], root: Any) -> bool:
    if argument is True:
        return True
    known = wanted.get("properties", {})
    names: list[str | None] = [name for name in piece.names() if name not in known]
    return all(search.member_fits(piece.member(name), argument, root) for name in [*names, None])


def _required(search: Search, piece: Piece, argument: Any, wanted: Mapping[str, Any], root: Any) -> bool:
    return all(name in piece.required() for name in argument)


def _closed(search: Search, piece: Piece) -> float:
    """Return how many properties an object can have."""
    fewest = piece.most("maxProperties")
    return min(fewest, len(piece.names())) if search.nothing(piece.member(None)) else fewest


def _items(search: Search, piece: Piece, argument: Any, wanted: Mapping[str, Any], root: Any) -> bool:
    start, longest = len(wanted.get("prefixItems", ())), search.longest(piece)
    positions = range(start, max(start, piece.positions()) + 1)
    return all(search.member_fits(piece.item(index), argument, root) for index in positions if index < longest)


def _prefix(search: Search, piece: Piece, argument: Any, wanted: Mapping[str, Any], root: Any) -> bool:
    longest = search.longest(piece)
    return all(
        search.member_fits(piece.item(index), inner, root) for index, inner in enumerate(argument) if index < longest
    )


def _unique(search: Search, piece: Piece, argument: Any, wanted: Mapping[str, Any], root: Any) -> bool:
    return (
        argument is False
        or search.longest(piece) <= 1
        or any(part.get("uniqueItems") is True for part, _ in piece.parts)
    )


def _alike(name: str) -> Rule:
    """Make the rule of a keyword that holds only where it is said in the same words."""

    def holds(search: Search, piece: Piece, argument: Any, wanted: Mapping[str, Any], root: Any) -> bool:
        return any(name in part and part[name] == argument for part, _ in piece.parts)

    return holds


def _least(name: str) -> Rule:
    def holds(search: Search, piece: Piece, argument: Any, wanted: Mapping[str, Any], root: Any) -> bool:
        number = count(argument)
        least = max(piece.least(name), len(piece.required()) if piece.kind == "object" else 0)
        return number is not None and least >= number

    return holds


def _most(name: str) -> Rule:
    def holds(search: Search, piece: Piece, argument: Any, wanted: Mapping[str, Any], root: Any) -> bool:
        number = count(argument)
        if piece.kind == "string":
            most = piece.most(name)
        else:
            most = search.longest(piece) if piece.kind == "array" else _closed(search, piece)
        return number is not None and most <= number

    return holds


def _number(name: str) -> Rule:
    def holds(search: Search, piece: Piece, argument: Any, wanted: Mapping[str, Any], root: Any) -> bool:
        number = bound(argument)
        low, low_out, high, high_out = piece.range()
        if number is None:
            return False
        if name.lower().endswith("minimum"):
            return low > number or (low == number and (low_out or name == "minimum"))
        return high < number or (high == number and (high_out or name == "maximum"))

    return holds


def _multiple(search: Search, piece: Piece, argument: Any, wanted: Mapping[str, Any], root: Any) -> bool:
    if piece.integer and argument == 1:
        return True
    steps = [part.get("multipleOf") for part, _ in piece.parts]
    whole = type(argument) is int and argument > 0
    return any(step == argument or (whole and type(step) is int and step % argument == 0) for step in steps)


LIMITED: Mapping[str, tuple[str, Rule]] = {
    "properties": ("object", _properties),
    "additionalProperties": ("object", _additional),
    "required": ("object", _required),
    "items": ("array", _items),
    "prefixItems": ("array", _prefix),
    "uniqueItems": ("array", _unique),
    "pattern": ("string", _alike("pattern")),
    "format": ("string", _alike("format")),
    "contentEncoding": ("string", _alike("contentEncoding")),
    "multipleOf": ("number", _multiple),
    "minLength": ("string", _least("minLength")),
    "maxLength": ("string", _most("maxLength")),
    "minItems": ("array", _least("minItems")),
    "maxItems": ("array", _most("maxItems")),
    "minProperties": ("object", _least("minProperties")),
    "maxProperties": ("object", _most("maxProperties")),
    **{name: ("number", _number(name)) for name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")},
}
"""By the keyword: the kind of JSON that it speaks of, and its rule."""
