"""Whether every, some or no value of one JSON Schema fits another, and where inside of it one surely does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from portico.plans.checking.accepting import ANNOTATIONS, OF_KIND, accepts, resolve
from portico.plans.checking.limits import LIMITED
from portico.plans.checking.pieces import Piece, Together, pieces, taken_apart
from portico.plans.path import JsonPath

__all__ = ["fitting_paths", "meeting", "never_meet", "paths_that_fit"]

_MOST = 5_000
_INDEXES = 8
_UNREADABLE = (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError)
"""What a schema that is malformed, or too deep, raises on the way."""


def meeting(given: Any, given_root: Any, wanted: Any, wanted_root: Any) -> Literal["always", "maybe", "never"]:
    """Tell whether a value of the schema ``given`` is valid under ``wanted``.

    >>> meeting({"type": "integer"}, {}, {"type": ["number", "null"]}, {})
    'always'
    >>> meeting({"type": "object"}, {}, {"enum": ["a", "b"]}, {}), meeting({"type": "string"}, {}, {"enum": ["a"]}, {})
    ('never', 'maybe')

    "always" and "never" are certain: a keyword that is not known here makes it "maybe" where it could matter. A schema
    that allows no value at all never meets another. ``given_root`` and ``wanted_root`` are the schemas that references
    such as ``#/$defs/Day`` are to. A ``format`` is taken at its word: a text without it may not fit.
    """
    search = _Search()
    try:
        if search.empty(((given, given_root), (wanted, wanted_root))):
            return "never"
        return "always" if search.fits(((given, given_root),), wanted, wanted_root) else "maybe"
    except _UNREADABLE:
        return "maybe"


def fitting_paths(
    schema: Any, wanted: Any, wanted_root: Any, *, root: Any = None, depth: int = 4, most: int = 32
) -> tuple[JsonPath, ...]:
    """Return the paths inside a value of ``schema`` where there surely is one that always fits ``wanted``.

    >>> day = {"type": "object", "properties": {"date": {"type": "string"}}, "required": ["date"]}
    >>> fitting_paths(day, {"type": "string"}, {})
    (('date',),)

    The shortest come first, in the order of the schema; at most ``most``, of at most ``depth`` parts. ``root`` is the
    schema that the references of ``schema`` are to, itself where none is given. Only required properties and the
    elements that every array has count, of the first eight.
    """
    return paths_that_fit(
        ((schema, schema if root is None else root),), ((wanted, wanted_root),), depth=depth, most=most
    )


def paths_that_fit(given: Together, wanted: Together, *, depth: int = 4, most: int = 32) -> tuple[JsonPath, ...]:
    """Do the same where several schemas hold at once."""
    search = _Search()
    found: list[JsonPath] = []
    level: list[tuple[JsonPath, list[Together]]] = [((), [given])]
    try:
        for distance in range(depth + 1):
            below: list[tuple[JsonPath, list[Together]]] = []
            for path, options in level:
                if all(search.fits(together, *each) for together in options for each in wanted):
                    found.append(path)
                    if len(found) == most:
                        return tuple(found)
                if distance < depth:
                    below += [((*path, part), inner) for part, inner in _surely_inside(options)]
            level = below
    except _UNREADABLE:
        pass
    return tuple(found)


def _surely_inside(options: list[Together]) -> Iterator[tuple[str | int, list[Together]]]:
    """Yield what every value of the alternatives has inside, with the alternatives there."""
    split = [piece for together in options for parts in taken_apart(together) for piece in pieces(parts)]
    if not split or any(piece.values is not None for piece in split):
        return
    if all(piece.kind == "object" for piece in split):
        rest = [piece.required() for piece in split[1:]]
        written = [name for piece in split for name in piece.names()]
        for name in dict.fromkeys([*written, *split[0].required()]):
            if name in split[0].required() and all(name in required for required in rest):
                yield name, [piece.member(name) for piece in split]
    elif all(piece.kind == "array" for piece in split):
        for index in range(min(_INDEXES, *(piece.least("minItems") for piece in split))):
            yield index, [piece.item(index) for piece in split]


def never_meet(together: Together) -> bool:
    """Tell whether there surely is no value that is valid under all of several schemas."""
    try:
        return _Search().empty(together)
    except _UNREADABLE:
        return False


class _Search:
    """One comparison: what is known so far, and what is being looked at.

    A recursive schema is met again inside of itself. Since JSON values end, what holds for every value if it holds
    for those inside of it holds; met again without going inside, nothing is concluded.
    """

    def __init__(self) -> None:
        self.known: dict[Any, bool] = {}
        self.open: dict[Any, tuple[int, int]] = {}
        self.level = 0
        self.left = _MOST
        self.lowest: float = math.inf
        """The outermost open question whose answer was taken for granted."""

    def settled(self, key: Any, decide: Callable[[], bool]) -> bool:
        if key in self.known:
            return self.known[key]
        if key in self.open:
            index, level = self.open[key]
            self.lowest = min(self.lowest, index)
            return self.level > level
        self.left -= 1
        if self.left < 0:
            return False
        index = len(self.open)
        before, self.lowest = self.lowest, math.inf
        self.open[key] = (index, self.level)
        answer = decide()
        del self.open[key]
        if not answer or self.lowest >= index:
            self.known[key] = answer
        self.lowest = min(before, self.lowest if self.lowest < index else math.inf)
        return answer

    def inside(self, question: Callable[[], bool]) -> bool:
        self.level += 1
        try:
            return question()
        finally:
            self.level -= 1

    def empty(self, together: Together) -> bool:
        """Tell whether no value is valid under all schemas at once."""
        key = ("empty", frozenset((id(schema), id(root)) for schema, root in together))
        return self.settled(
            key, lambda: all(self.piece_empty(piece) for parts in taken_apart(together) for piece in pieces(parts))
        )

    def nothing(self, together: Together) -> bool:
        """Tell the same of what is inside a value."""
        return bool(together) and self.inside(lambda: self.empty(together))

    def piece_empty(self, piece: Piece) -> bool:
        if piece.values is not None:
            return False
        match piece.kind:
            case "number":
                low, low_out, high, high_out = piece.range()
                return low > high or (low == high and (low_out or high_out))
            case "string":
                return piece.least("minLength") > piece.most("maxLength")
            case "array":
                return piece.least("minItems") > self.longest(piece)
            case _:
                return piece.least("minProperties") > piece.most("maxProperties") or any(
                    self.nothing(piece.member(name)) for name in piece.required()
                )

    def longest(self, piece: Piece) -> float:
        longest = piece.most("maxItems")
        for index in range(piece.positions() + 1):
            if index >= longest:
                break
            if self.nothing(piece.item(index)):
                return index
        return longest

    def fits(self, together: Together, wanted: Any, root: Any) -> bool:
        """Tell whether every value that is valid under ``together`` is so under ``wanted``."""
        if wanted is True or any(schema is wanted and own is root for schema, own in together):
            return True
        if isinstance(wanted, Mapping) and not wanted:
            return True
        key = ("fits", frozenset((id(schema), id(own)) for schema, own in together), id(wanted), id(root))
        return self.settled(
            key,
            lambda: all(
                self.piece_fits(piece, wanted, root) for parts in taken_apart(together) for piece in pieces(parts)
            ),
        )

    def piece_fits(self, piece: Piece, wanted: Any, root: Any) -> bool:
        if piece.values is not None:
            return all(accepts(value, wanted, root) for value in piece.values)
        if self.piece_empty(piece):
            return True
        if not isinstance(wanted, Mapping) or ("$id" in wanted and wanted is not root):
            return wanted is True
        return all(self.holds(piece, name, argument, wanted, root) for name, argument in wanted.items())

    def holds(self, piece: Piece, name: str, argument: Any, wanted: Mapping[str, Any], root: Any) -> bool:
        """Tell whether every value of a piece holds one keyword."""
        if name in ANNOTATIONS or name == "$id" or name.startswith("x-"):
            return True
        match name:
            case "type":
                names = [argument] if isinstance(argument, str) else argument
                return piece.kind in names or (piece.kind == "number" and piece.integer and "integer" in names)
            case "$ref":
                return self.again(piece, resolve(argument, root), root)
            case "allOf":
                return all(self.again(piece, option, root) for option in argument)
            case "anyOf":
                return any(self.again(piece, option, root) for option in argument)
            case "oneOf":
                for index, option in enumerate(argument):
                    if self.again(piece, option, root):
                        others = [*argument[:index], *argument[index + 1 :]]
                        return all(self.empty((*piece.parts, (other, root))) for other in others)
                return False
            case "not":
                return self.empty((*piece.parts, (argument, root)))
        limit = LIMITED.get(name)
        kind = OF_KIND.get(name) if limit is None else limit[0]
        if kind is not None and kind != piece.kind:
            return True
        return limit is not None and limit[1](self, piece, argument, wanted, root)

    def again(self, piece: Piece, wanted: Any, root: Any) -> bool:
        if wanted is None:
            return False
        key = ("again", piece.kind, frozenset((id(part), id(own)) for part, own in piece.parts), id(wanted), id(root))
        return self.settled(key, lambda: self.piece_fits(piece, wanted, root))

    def member_fits(self, together: Together, wanted: Any, root: Any) -> bool:
        return self.nothing(together) or self.inside(lambda: self.fits(together, wanted, root))
