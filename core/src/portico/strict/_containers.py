"""Reading what several schemas ask of one array or one object."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from portico.strict._arrays import Array, Fixed
from portico.strict._choice import Choice, one_of
from portico.strict._nodes import Node, Reference, Scalar
from portico.strict._objects import Member, Object
from portico.strict._sources import Sources, unsupported

if TYPE_CHECKING:
    from portico.strict._reading import Reader

__all__ = ["read_array", "read_object"]

_LENGTHS = 8
_REFERENCES = 20
_REST = frozenset({"additionalProperties", "patternProperties", "unevaluatedProperties"})


def read_array(reader: Reader, bases: Sequence[str]) -> Node | None:
    """Read the arrays that all the schemas let in; None where there are none."""
    sources = reader.sources
    parts = [_prefix_and_rest(sources, base) for base in bases]
    low = _most([sources.number(base, "minItems", count=True) for base in bases])
    high = _least([sources.number(base, "maxItems", count=True) for base in bases])
    for base in bases:
        reader.drop(base, {"uniqueItems": high in (0, 1), "contains": None, "unevaluatedItems": True})
    size = max(len(prefix) for prefix, _ in parts)
    if len(parts) == 1 and low == high == size and len({repr(sources.at(place)) for place in parts[0][0]}) == 1:
        item = reader.read([parts[0][0][0]])
        return None if item is None else Array(item, low, high)
    places: list[list[str]] = []
    positions: list[Node] = []
    for index in range(size if high is None else min(size, high)):
        asked = [place for prefix, rest in parts for place in (prefix[index : index + 1] or rest)]
        node = reader.read(asked)
        if node is None:
            high = index
            break
        places.append(asked)
        positions.append(node)
    rest = reader.read([place for _, rest in parts for place in rest])
    if rest is None:
        high = len(positions) if high is None else min(high, len(positions))
    if high is not None and low > high:
        return None
    whole = Array(Scalar("null") if rest is None or high == 0 else rest, low, high)
    return _by_length(reader, bases, places, positions, whole) if positions else whole


def _prefix_and_rest(sources: Sources, base: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the schemas of the first elements and that of the others; up to draft 2019-09 ``items`` held both."""
    schema = sources.at(base)
    if isinstance(schema.get("items"), list):
        rest = (sources.child(base, "additionalItems"),) if "additionalItems" in schema else ()
        return sources.listed(base, "items"), rest
    return sources.listed(base, "prefixItems"), (sources.child(base, "items"),) if "items" in schema else ()


def _by_length(
    reader: Reader, bases: Sequence[str], places: Sequence[list[str]], positions: Sequence[Node], whole: Array
) -> Node | None:
    """Make an alternative for each length, since a property for each place must be there.

    ``whole`` has the bounds of the array and what follows the places.
    """
    size = len(positions)
    rest = [] if whole.high == size else [whole.items]
    if size - whole.low > _LENGTHS:
        for base in bases:
            reader.drop(base, {"prefixItems": []}, f"it would take more than {_LENGTHS} alternatives, one for a length")
        elements = one_of([*positions, *rest], {})
        return None if elements is None else replace(whole, items=elements)
    options: list[Node] = []
    for length in range(whole.low, size):
        # Read again, which gives a reference to what is not plain: it is written once.
        again = (reader.read(asked) for asked in places[:length])
        options.append(Fixed(tuple(node for node in again if node is not None)))
    others = None
    if rest:
        others = Array(whole.items, max(0, whole.low - size), None if whole.high is None else whole.high - size)
    return one_of([*options, Fixed(tuple(positions), others)], {})


@dataclass(slots=True)
class _Asked:
    """What one schema asks of the keys of an object."""

    base: str
    properties: dict[str, str]
    patterns: dict[str, str]
    rest: str | None

    def of(self, name: str) -> list[str]:
        """Return the schemas that the value under a key has to fit."""
        found = [self.properties[name]] if name in self.properties else []
        found += [place for pattern, place in self.patterns.items() if re.search(pattern, name)]
        return found or ([] if self.rest is None else [self.rest])


def read_object(reader: Reader, bases: Sequence[str]) -> Node | None:
    """Read the objects that all the schemas let in; None where there are none."""
    sources = reader.sources
    parts = [_asked(sources, base) for base in bases]
    for base in bases:
        reader.drop(base, {"dependentRequired": {}, "dependentSchemas": {}, "dependencies": {}})
        reader.drop(base, {"patternProperties": {}, "unevaluatedProperties": True})
    required = dict.fromkeys(name for base in bases for name in sources.words(base, "required"))
    names = dict.fromkeys((*(name for part in parts for name in part.properties), *required))
    key = _key(reader, [base for base in bases if "propertyNames" in sources.at(base)])
    asked = _by_name(parts, names)
    members: dict[str, Member] = {}
    for name in names:
        node = reader.read(asked[name]) if key and key.fits(name, {}) else None
        if node is not None:
            members[name] = Member(node, name in required)
        elif name in required:
            return None
    absent = frozenset(names.keys() - members.keys())
    silent = not any(_REST & sources.at(base).keys() for base in bases) and any(part.properties for part in parts)
    rest = None if key is None or (reader.close and silent) else _rest(reader, parts)
    return _counted(reader, bases, Object(members, rest, key or Scalar("string"), absent=absent))


def _by_name(parts: Sequence[_Asked], names: Iterable[str]) -> dict[str, list[str]]:
    """Return the schemas that the value under each key has to fit; most parts only speak of their own keys."""
    asked: dict[str, list[str]] = {name: [] for name in names}
    for part in parts:
        everywhere = part.patterns or part.rest is not None
        for name in asked if everywhere else part.properties:
            asked[name] += part.of(name)
    return asked


def _asked(sources: Sources, base: str) -> _Asked:
    patterns = sources.named(base, "patternProperties")
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            unsupported(f"{base}/patternProperties", f"{pattern!r} is no regular expression here: {error}")
    rest = sources.child(base, "additionalProperties") if "additionalProperties" in sources.at(base) else None
    return _Asked(base, sources.named(base, "properties"), patterns, rest)


def _rest(reader: Reader, parts: Sequence[_Asked]) -> Node | None:
    """Read what the keys without a schema of their own hold; None where there may be none.

    With patterns it is the value of any of them, since the keys of entries cannot choose their schemas.
    """
    places = [part.rest for part in parts if part.rest is not None and not part.patterns]
    groups = {
        f"{part.base}/patternProperties": (*part.patterns.values(), part.rest)
        for part in parts
        if part.patterns and part.rest is not None
    }
    return reader.node(reader.sources.gather(places, (), groups))


def _key(reader: Reader, bases: Sequence[str]) -> Scalar | None:
    """Read what all keys have to fit: a plain string where that cannot be sent; None where no key does."""
    sources = reader.sources
    found = sources.gather([sources.child(base, "propertyNames") for base in bases])
    for _ in range(_REFERENCES):
        if not found.references:
            break
        found = sources.gather(list(found.references))
    node = reader.node(found) if found.bases or found.groups or found.impossible else Scalar("string")
    nodes = node.options if isinstance(node, Choice) else [] if node is None else [node]
    strings = [option for option in nodes if isinstance(option, Scalar) and option.kind == "string"]
    if len(strings) > 1 or any(isinstance(option, Reference | Choice) for option in nodes):
        for base in bases:
            sources.loosen(f"{base}/propertyNames", "it is no single schema of strings")
        return Scalar("string")
    return strings[0] if strings else None


def _counted(reader: Reader, bases: Sequence[str], node: Object) -> Node | None:
    """Bound the number of entries by the number of keys; where properties may be missing, that says nothing."""
    low = _most([reader.sources.number(base, "minProperties", count=True) for base in bases])
    high = _least([reader.sources.number(base, "maxProperties", count=True) for base in bases])
    needed = sum(member.required for member in node.members.values())
    declared = len(node.members)
    if (high is not None and high < needed) or (node.rest is None and low > declared):
        return None
    if needed == declared:
        if node.rest is not None:
            node.low, node.high = max(0, low - needed), None if high is None else high - needed
        return node
    reason = "properties that may be missing are not counted"
    for base in bases:
        if low > needed:
            reader.drop(base, {"minProperties": 0}, reason)
        if high is not None and (node.rest is not None or high < declared):
            reader.drop(base, {"maxProperties": None}, reason)
    return node


def _most(bounds: Sequence[int | None]) -> int:
    return max((bound for bound in bounds if bound is not None), default=0)


def _least(bounds: Sequence[int | None]) -> int | None:
    return min((bound for bound in bounds if bound is not None), default=None)
