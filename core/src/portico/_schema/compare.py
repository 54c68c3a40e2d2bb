"""Compares JSON Schemas: whether every, some or no value of one is valid under another, and at which paths.

A schema is taken apart into pieces: what values of one kind of JSON must hold, through references and
alternatives. An answer of "always" or "never" is certain. Where that would take more than looking at the keywords side
by side, as for the bounds of numbers and the lengths of texts, the answer is "maybe", and the value is checked when it
is there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from portico._schema.bounded import Bounded
from portico._schema.definitions import free_name, hoist, with_definitions
from portico._schema.paths import EACH, JsonPath, is_many
from portico._schema.values import ANNOTATIONS, OF_KIND, accepts, is_number, kind_of, resolve, same

Schema: TypeAlias = tuple[Any, Any]
"""A schema, and the one that its references are to."""
Together: TypeAlias = tuple[Schema, ...]
"""Schemas that a value must be valid under, all of them; none allows everything."""

UNREADABLE = (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError)
"""What a schema that is malformed, or too deep, raises on the way."""

_KINDS = ("null", "boolean", "number", "string", "array", "object")
_FEW: Mapping[str, tuple[Any, ...]] = {"null": (None,), "boolean": (True, False)}
_ALTERNATIVES = 256
_QUESTIONS = 5_000
_QUESTIONS_SHARED = 2_000
_INDEXES = 8


@dataclass(frozen=True, slots=True, eq=False)
class Either:
    """Stands for a schema where none can be written, since its parts have their own roots. One option must hold."""

    options: tuple[Together, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """Values of one kind of JSON that hold all ``parts``: those ``values`` at most, where they are known.

    A part is a schema whose references and alternatives are followed already, and the root of its references.
    """

    kind: str
    parts: Sequence[tuple[Mapping[str, Any], Any]]
    values: tuple[Any, ...] | None = None

    @property
    def integer(self) -> bool:
        """Whether the numbers are integers."""
        types = [_names(part["type"]) for part, _ in self.parts if "type" in part]
        return any("integer" in names and "number" not in names for names in types)

    def shortest(self) -> float:
        """Return how many elements an array has at least."""
        return max((part["minItems"] for part, _ in self.parts if is_number(part.get("minItems"))), default=0)

    def longest(self) -> float:
        """Return how many elements an array has at most, by ``maxItems``."""
        return min((part["maxItems"] for part, _ in self.parts if is_number(part.get("maxItems"))), default=math.inf)

    def names(self) -> dict[str, None]:
        """Return the names of all properties that have their own schema."""
        return {name: None for part, _ in self.parts for name in _object(part.get("properties"))}

    def required_names(self) -> dict[str, None]:
        """Return the names of the properties that every object has."""
        lists = [part.get("required") for part, _ in self.parts]
        return {name: None for names in lists if isinstance(names, list) for name in names if isinstance(name, str)}

    def member(self, name: str | None) -> Together:
        """Return what holds for a property; None stands for all that have no schema."""
        found: list[Schema] = []
        for part, root in self.parts:
            properties = _object(part.get("properties"))
            if name is not None and name in properties:
                found.append((properties[name], root))
            elif "additionalProperties" in part and "patternProperties" not in part:
                found.append((part["additionalProperties"], root))
        return _drop_trivial(found)

    def item(self, index: int) -> Together:
        """Return what holds for the element at an index from the start."""
        found: list[Schema] = []
        for part, root in self.parts:
            fixed = part.get("prefixItems")
            if isinstance(fixed, list) and index < len(fixed):
                found.append((fixed[index], root))
            elif "items" in part:
                found.append((part["items"], root))
        return _drop_trivial(found)

    def positions(self) -> int:
        """Return how many elements have their own schema; those that follow share one."""
        lists = [part.get("prefixItems") for part, _ in self.parts]
        return max((len(fixed) for fixed in lists if isinstance(fixed, list)), default=0)


def pieces(together: Together) -> Iterator[Piece]:
    """Split what must hold all at once by alternatives and kinds of JSON; a valid value is of one piece at least.

    A reference that leads nowhere, or around in a circle, and alternatives beyond 256 are left out: the pieces may
    allow more than the schemas do, never less.
    """
    for parts in _follow(list(together), [], frozenset(), [_ALTERNATIVES]):
        yield from _by_kind(parts)


def _follow(
    ahead: list[Schema], parts: list[tuple[Mapping[str, Any], Any]], seen: frozenset[tuple[int, int]], left: list[int]
) -> Iterator[list[tuple[Mapping[str, Any], Any]]]:
    parts = list(parts)
    while ahead:
        schema, root = ahead.pop()
        if schema is False:
            return
        if isinstance(schema, Either):
            if left[0] >= len(schema.options):
                left[0] -= len(schema.options)
                for together in schema.options:
                    yield from _follow([*ahead, *together], parts, seen, left)
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
                yield from _follow([*ahead, (option, root)], parts, seen, left)
            return
    yield parts


def _by_kind(parts: Sequence[tuple[Mapping[str, Any], Any]]) -> Iterator[Piece]:
    for part, _ in parts:
        options = [part["const"]] if "const" in part else part.get("enum")
        if isinstance(options, list):
            fitting = [value for value in options if _may_hold(value, parts)]
            for kind in dict.fromkeys(map(kind_of, fitting)):
                yield Piece(kind, parts, tuple(value for value in fitting if kind_of(value) == kind))
            return
    for kind in _KINDS:
        if not all(_allows(part, kind) for part, _ in parts):
            continue
        if kind not in _FEW:
            yield Piece(kind, parts)
        elif fitting := [value for value in _FEW[kind] if _may_hold(value, parts)]:
            yield Piece(kind, parts, tuple(fitting))


def meeting(given: Any, given_root: Any, wanted: Any, wanted_root: Any) -> Literal["always", "maybe", "never"]:
    """Tell whether a value of the schema ``given`` is valid under ``wanted``.

    >>> meeting({"type": "integer"}, {}, {"type": ["number", "null"]}, {})
    'always'
    >>> meeting({"type": "object"}, {}, {"enum": ["a", "b"]}, {}), meeting({"type": "string"}, {}, {"enum": ["a"]}, {})
    ('never', 'maybe')

    A schema that allows no value at all never meets another. ``given_root`` and ``wanted_root`` are the schemas that
    references such as ``#/$defs/Day`` are to.
    """
    search = _Search()
    try:
        if search.empty(((given, given_root), (wanted, wanted_root))):
            return "never"
        return "always" if search.fits(((given, given_root),), wanted, wanted_root) else "maybe"
    except UNREADABLE:
        return "maybe"


def never_meet(together: Together, known: dict[Any, bool] | None = None) -> bool:
    """Tell whether there surely is no value that is valid under all of several schemas.

    ``known`` has the answers that were given before: the bound of questions holds for all that share it.
    """
    try:
        return _Search(known).empty(together)
    except UNREADABLE:
        return False


def fitting_paths(
    schema: Any, wanted: Any, wanted_root: Any, *, root: Any = None, depth: int = 4, most: int = 32
) -> tuple[JsonPath, ...]:
    """Return the paths inside a value of ``schema`` where there surely is one that always fits ``wanted``.

    >>> day = {"type": "object", "properties": {"date": {"type": "string"}}, "required": ["date"]}
    >>> fitting_paths(day, {"type": "string"}, {})
    (('date',),)

    The shortest come first, in the order of the schema; at most ``most``, of at most ``depth`` parts. ``root`` is the
    schema that the references of ``schema`` are to, itself where none is given. Only required properties and the
    elements that every array has count, of the first eight. Where an array is wanted, a path may select a part of all
    elements: ``$.days[*].date``.
    """
    return paths_that_fit(
        ((schema, schema if root is None else root),), ((wanted, wanted_root),), depth=depth, most=most
    )


def paths_that_fit(given: Together, wanted: Together, *, depth: int = 4, most: int = 32) -> tuple[JsonPath, ...]:
    """Do the same where several schemas hold at once."""
    search = _Search()
    found: list[JsonPath] = []
    level: list[tuple[JsonPath, list[Together]]] = [((), [given])]
    # What is compared is known by its identity, so it must stay.
    arrays: list[Together] = []
    try:
        many = _wants_array(wanted)
        for distance in range(depth + 1):
            below: list[tuple[JsonPath, list[Together]]] = []
            for path, options in level:
                selected = is_many(path)
                if selected:
                    arrays.append((({"type": "array", "items": Either(tuple(options))}, None),))
                looked_at = arrays[-1:] if selected else options
                if path[-1:] != (EACH,) and all(
                    search.fits(together, *each) for together in looked_at for each in wanted
                ):
                    found.append(path)
                    if len(found) == most:
                        return tuple(found)
                if distance < depth:
                    below += [((*path, part), inner) for part, inner in _surely_inside(options)]
                    if many and not selected and (elements := _elements(options)):
                        below.append(((*path, EACH), elements))
            level = below
    except UNREADABLE:
        pass
    return tuple(found)


def _wants_array(wanted: Together) -> bool:
    """Tell whether arrays are taken, and not anything."""
    kinds = {piece.kind for piece in pieces(wanted)}
    return "array" in kinds and len(kinds) < len(_KINDS)


def _elements(options: list[Together]) -> list[Together]:
    """Return what the elements may be where all alternatives are arrays; nothing for others."""
    split = [piece for together in options for piece in pieces(together)]
    if not all(piece.kind == "array" and piece.values is None for piece in split):
        return []
    return [piece.item(index) for piece in split for index in range(piece.positions() + 1)]


def _surely_inside(options: list[Together]) -> Iterator[tuple[str | int, list[Together]]]:
    """Yield what every value of the alternatives has inside, with the alternatives there."""
    split = [piece for together in options for piece in pieces(together)]
    if not split or any(piece.values is not None for piece in split):
        return
    if all(piece.kind == "object" for piece in split):
        rest = [piece.required_names() for piece in split[1:]]
        written = [name for piece in split for name in piece.names()]
        for name in dict.fromkeys([*written, *split[0].required_names()]):
            if name in split[0].required_names() and all(name in required for required in rest):
                yield name, [piece.member(name) for piece in split]
    elif all(piece.kind == "array" for piece in split):
        for index in range(min(_INDEXES, *(int(piece.shortest()) for piece in split))):
            yield index, [piece.item(index) for piece in split]


class _Search:
    """One comparison. What it has no certain answer to, it answers with False.

    A recursive schema that is met again inside of itself gets no answer there, and neither do questions beyond a bound.
    """

    def __init__(self, known: dict[Any, bool] | None = None) -> None:
        self.known = {} if known is None else known
        self.most = _QUESTIONS if known is None else _QUESTIONS_SHARED

    def answer(self, key: Any, decide: Callable[[], bool]) -> bool:
        if key not in self.known and len(self.known) < self.most:
            self.known[key] = False
            self.known[key] = decide()
        return self.known.get(key, False)

    def empty(self, together: Together) -> bool:
        """Tell whether no value is valid under all schemas at once."""
        key = ("empty", frozenset((id(schema), id(root)) for schema, root in together))
        return self.answer(key, lambda: all(map(self.piece_empty, pieces(together))))

    def piece_empty(self, piece: Piece) -> bool:
        if piece.values is not None:
            return False
        if piece.kind == "array":
            return piece.shortest() > self.longest(piece)
        return piece.kind == "object" and any(self.empty(piece.member(name)) for name in piece.required_names())

    def longest(self, piece: Piece) -> float:
        """Return how many elements an array has at most."""
        longest = piece.longest()
        for index in range(piece.positions() + 1):
            if index >= longest:
                break
            if self.empty(piece.item(index)):
                return index
        return longest

    def fits(self, together: Together, wanted: Any, root: Any) -> bool:
        """Tell whether every value that is valid under ``together`` surely is so under ``wanted``."""
        if (
            wanted is True
            or wanted == {}
            or any(_is_the_same((schema, own), (wanted, root)) for schema, own in together)
        ):
            return True
        key = ("fits", frozenset((id(schema), id(own)) for schema, own in together), id(wanted), id(root))
        return self.answer(key, lambda: all(self.piece_fits(piece, wanted, root) for piece in pieces(together)))

    def piece_fits(self, piece: Piece, wanted: Any, root: Any) -> bool:
        if piece.values is not None:
            return all(accepts(value, wanted, root) for value in piece.values)
        if self.piece_empty(piece):
            return True
        if not isinstance(wanted, Mapping) or ("$id" in wanted and wanted is not root):
            return wanted is True
        return all(self.holds(piece, name, argument, wanted, root) for name, argument in wanted.items())

    def holds(self, piece: Piece, name: str, argument: Any, wanted: Mapping[str, Any], root: Any) -> bool:
        """Tell whether every value of a piece surely holds one keyword."""
        if name in ANNOTATIONS or name == "$id" or name.startswith("x-") or OF_KIND.get(name, piece.kind) != piece.kind:
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
            case "properties":
                return all(self.member_fits(piece.member(each), inner, root) for each, inner in argument.items())
            case "additionalProperties":
                others: list[str | None] = [each for each in piece.names() if each not in wanted.get("properties", {})]
                return argument is True or all(
                    self.member_fits(piece.member(each), argument, root) for each in [*others, None]
                )
            case "required":
                return all(each in piece.required_names() for each in argument)
            case "items":
                start = len(wanted.get("prefixItems", ()))
                places = range(start, max(start, piece.positions()) + 1)
                return self.items_fit(piece, dict.fromkeys(places, argument), root)
            case "prefixItems":
                return self.items_fit(piece, dict(enumerate(argument)), root)
            case "minItems":
                return bool(piece.shortest() >= argument)
            case "maxItems":
                return bool(self.longest(piece) <= argument)
        return any(
            name in part and same(part[name], argument) and (own is root or "$ref" not in repr(argument))
            for part, own in piece.parts
        )

    def items_fit(self, piece: Piece, wanted: Mapping[int, Any], root: Any) -> bool:
        longest = self.longest(piece)
        return all(self.member_fits(piece.item(index), each, root) for index, each in wanted.items() if index < longest)

    def again(self, piece: Piece, wanted: Any, root: Any) -> bool:
        if wanted is None:
            return False
        key = ("again", piece.kind, frozenset((id(part), id(own)) for part, own in piece.parts), id(wanted), id(root))
        return self.answer(key, lambda: self.piece_fits(piece, wanted, root))

    def member_fits(self, together: Together, wanted: Any, root: Any) -> bool:
        return self.empty(together) or self.fits(together, wanted, root)


def _is_the_same(one: Schema, other: Schema) -> bool:
    """Tell whether two schemas plainly are one: the same object, or equal references to equal definitions."""
    (schema, root), (wanted, other_root) = one, other
    if schema is wanted and root is other_root:
        return True
    names = [each.get("$ref") if isinstance(each, Mapping) else None for each in (schema, wanted)]
    if names[0] != names[1] or not str(names[0]).startswith("#/$defs/") or len(schema) > 1 or len(wanted) > 1:
        return False
    definitions = _object(root).get("$defs")
    return bool(definitions) and same(definitions, _object(other_root).get("$defs"))


def _may_hold(value: Any, parts: Sequence[tuple[Mapping[str, Any], Any]]) -> bool:
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


def _drop_trivial(schemas: list[Schema]) -> Together:
    return tuple(each for each in schemas if each[0] is not True and each[0] != {})


class JsonSchema:
    """Questions about JSON Schemas, which are plain mappings.

    ``accepts(value, schema, root)`` tells whether a value fits: True, False, or None where that is not known.
    ``meeting(schema, root, other, root)`` says whether values of one fit the other: "always", "maybe" or "never".
    ``fitting_paths`` yields the paths of a value whose parts fit another schema. ``resolve(reference, root)`` follows a
    ``$ref``. ``hoist``, ``attach`` and ``free_name`` move the ``$defs`` of a schema that becomes a part of another one.
    ``ANNOTATIONS`` are the keywords that ask for nothing. ``Bounded`` makes jsonschema fit for schemas of strangers.

    >>> JsonSchema.meeting({"type": "integer"}, {}, {"type": "number"}, {})
    'always'
    """

    ANNOTATIONS = ANNOTATIONS
    Bounded = Bounded
    accepts = staticmethod(accepts)
    meeting = staticmethod(meeting)
    fitting_paths = staticmethod(fitting_paths)
    resolve = staticmethod(resolve)
    hoist = staticmethod(hoist)
    attach = staticmethod(with_definitions)
    free_name = staticmethod(free_name)
