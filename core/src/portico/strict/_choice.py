"""Alternatives in strict forms: told apart by their shape, or wrapped where they have the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from portico.strict._arrays import Array, Fixed
from portico.strict._nodes import Node, Refer, Reference, Run, Scalar, closed, json_key, kind_of, noted
from portico.strict._objects import Object
from portico.types.compiled import Mismatch, refuse

__all__ = ["Choice", "alternatives", "choose_wrappers", "listed_values", "one_of", "original_kind"]

_Values: TypeAlias = frozenset[tuple[bool, Any]]


class Shape(NamedTuple):
    """What all strict values of an alternative have in common: a kind, an object's keys, some of its values."""

    kind: str
    keys: frozenset[str] = frozenset()
    tags: frozenset[tuple[str, _Values]] = frozenset()

    def holds(self, value: Any, *, so_far: bool = False) -> bool:
        """Tell whether a value has this shape, or may come to have it when more keys follow."""
        if kind_of(value) != self.kind:
            return False
        if self.kind != "object":
            return True
        if value.keys() != self.keys and not (so_far and value.keys() < self.keys):
            return False
        return all(_is_one_of(value[name], values) for name, values in self.tags if name in value)

    def excludes(self, other: Shape) -> bool:
        """Tell whether no value has both shapes."""
        if (self.kind, self.keys) != (other.kind, other.keys):
            return True
        values = dict(other.tags)
        return any(name in values and own.isdisjoint(values[name]) for name, own in self.tags)


def _is_one_of(value: Any, values: _Values) -> bool:
    return not isinstance(value, dict | list) and json_key(value) in values


@dataclass(slots=True, eq=False)
class Choice:
    """A value of any of several nodes.

    Encoding takes the first node that the value fits. Decoding goes by the shape of the strict value: nodes of
    the same shape are wrapped in an object with one key, unless neither changes its values.
    ``from_types`` is for ``"type": ["string", "null"]``, which strict mode knows too.
    """

    options: tuple[Node, ...]
    notes: Mapping[str, str] = field(default_factory=dict)
    from_types: bool = False
    wrappers: dict[int, str] = field(default_factory=dict)
    shapes: Sequence[frozenset[Shape]] = ()
    kinds: Sequence[frozenset[str]] = ()
    """The kinds of value that each node has in the original."""
    changes: bool = False

    def parts(self) -> Iterable[Node]:
        return self.options

    def would_change(self) -> bool:
        return bool(self.wrappers) or any(option.changes for option in self.options)

    def fits(self, value: Any, run: Run) -> bool:
        key = (id(value), id(self))
        if key not in run:
            run[key] = any(option.fits(value, run) for option in self.options)
        return run[key]

    def encode(self, value: Any, run: Run) -> Any:
        if not self.changes:
            return value
        kind = kind_of(value)
        of_kind = [index for index, kinds in enumerate(self.kinds) if kind in kinds]
        for index in of_kind:
            if self.options[index].fits(value, run):
                encoded = self.options[index].encode(value, run)
                return {self.wrappers[index]: encoded} if index in self.wrappers else encoded
        if len(of_kind) == 1:
            # Only one can be meant, and it may know what is wrong.
            self.options[of_kind[0]].encode(value, run)
        return refuse(f"a value of one of {len(self.options)} alternatives", value)

    def decode(self, value: Any) -> Any:
        if not self.changes:
            return value
        index = self._meant(value)
        if index not in self.wrappers:
            return self.options[index].decode(value)
        name = self.wrappers[index]
        try:
            return self.options[index].decode(value[name])
        except Mismatch as error:
            raise Mismatch(error.under(name)) from None

    def _meant(self, value: Any) -> int:
        """Find the alternative by the shape; by what has come of it, where a value is not whole yet."""
        for index, shapes in enumerate(self.shapes):
            if any(shape.holds(value) for shape in shapes):
                return index
        begun = [
            index
            for index, shapes in enumerate(self.shapes)
            if index not in self.wrappers and any(shape.holds(value, so_far=True) for shape in shapes)
        ]
        return begun[0] if len(begun) == 1 else refuse(f"a value of one of {len(self.options)} alternatives", value)

    def write(self, refer: Refer) -> dict[str, Any]:
        written = [
            closed({self.wrappers[index]: option.write(refer)}) if index in self.wrappers else option.write(refer)
            for index, option in enumerate(self.options)
        ]
        joined = _with_null(written) if self.from_types else None
        return noted(joined or {"anyOf": written}, self.notes)


def _with_null(written: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Write a kind or null as one schema, if it was."""
    others = [schema for schema in written if schema.get("type") != "null"]
    if len(written) != 2 or len(others) != 1 or not isinstance(others[0].get("type"), str) or "const" in others[0]:
        return None
    joined = {**others[0], "type": [others[0]["type"], "null"]}
    return {**joined, "enum": [*joined["enum"], None]} if "enum" in joined else joined


def one_of(options: Sequence[Node], notes: Mapping[str, str], *, from_types: bool = False) -> Node | None:
    """Make one node of alternatives: those of alternatives among them, the only one itself, None of none."""
    flat: list[Node] = []
    plain: set[str] = set()
    for option in options:
        for part in option.options if isinstance(option, Choice) and not option.notes else (option,):
            shown = repr((part.kind, part.facets, part.notes)) if isinstance(part, Scalar) else ""
            if shown not in plain:
                flat.append(part)
            if shown:
                plain.add(shown)
    if not flat:
        return None
    if len(flat) > 1:
        return Choice(tuple(flat), notes, from_types)
    (only,) = flat
    if not notes or not isinstance(only, Scalar | Array | Fixed | Object | Reference | Choice):
        return only
    return replace(only, notes={**only.notes, **notes})


def choose_wrappers(nodes: Sequence[Node]) -> None:
    """Settle which nodes change their values and which alternatives are wrapped.

    Each depends on the other, through references even on itself; both only ever grow, so repeating ends.
    """
    choices = [node for node in nodes if isinstance(node, Choice)]
    for choice in choices:
        choice.kinds = [frozenset(map(original_kind, alternatives(option))) for option in choice.options]
    while True:
        _spread_changes(nodes)
        known: dict[int, frozenset[Shape]] = {}
        for choice in choices:
            choice.shapes = [_shapes_of_option(choice, index, known) for index in range(len(choice.options))]
        wrapped = False
        for choice in choices:
            for index in _confused(choice):
                if index not in choice.wrappers:
                    choice.wrappers[index] = _wrapper(choice, index)
                    wrapped = True
        if not wrapped:
            return


def _spread_changes(nodes: Sequence[Node]) -> None:
    again = True
    while again:
        again = False
        for node in nodes:
            if not node.changes and node.would_change():
                node.changes = again = True


def _confused(choice: Choice) -> set[int]:
    """Find the alternatives that a decoder could not tell apart."""
    alike: dict[tuple[str, frozenset[str]], list[tuple[int, Shape]]] = {}
    for index, shapes in enumerate(choice.shapes):
        for shape in shapes:
            alike.setdefault((shape.kind, shape.keys), []).append((index, shape))
    found: set[int] = set()
    for group in alike.values():
        for position, (first, shape) in enumerate(group):
            for second, other in group[position + 1 :]:
                plain = not _changed(choice, first) and not _changed(choice, second)
                if first != second and not plain and not shape.excludes(other):
                    # A map stands back for an array: its entries then have a name.
                    maps = {index for index in (first, second) if _is_map(choice, index)}
                    found |= maps if len(maps) == 1 else {first, second}
    return found


def _is_map(choice: Choice, index: int) -> bool:
    option = choice.options[index]
    return isinstance(option, Object) and option.is_map and index not in choice.wrappers


def _changed(choice: Choice, index: int) -> bool:
    return index in choice.wrappers or choice.options[index].changes


def _wrapper(choice: Choice, index: int) -> str:
    """Name the key of a wrapped alternative; the one map among arrays is known by its entries."""
    maps = [position for position, option in enumerate(choice.options) if isinstance(option, Object) and option.is_map]
    return "entries" if maps == [index] else f"option_{index + 1}"


def _shapes_of_option(choice: Choice, index: int, known: dict[int, frozenset[Shape]]) -> frozenset[Shape]:
    if index in choice.wrappers:
        return frozenset({Shape("object", frozenset({choice.wrappers[index]}))})
    return _shapes(choice.options[index], known)


def _shapes(node: Node, known: dict[int, frozenset[Shape]]) -> frozenset[Shape]:
    """Collect the shapes of a node's strict form; those of a definition once, however often it is named."""
    match node:
        case Reference():
            target = node.target
            if id(target) not in known:
                known[id(target)] = _shapes(target, known)
            return known[id(target)]
        case Choice():
            found = (_shapes_of_option(node, index, known) for index in range(len(node.options)))
            return frozenset(shape for shapes in found for shape in shapes)
        case Scalar():
            return frozenset({Shape("number" if node.kind == "integer" else node.kind)})
        case Fixed():
            tags = {name: listed_values(part) for name, part in zip(node.names, node.positions, strict=False)}
            return frozenset({_object(node.names, tags)})
        case Object(is_map=False):
            tags = {name: listed_values(member.node) for name, member in node.members.items() if not member.boxed}
            for name, values in tags.items():
                if values is not None and not node.members[name].required:
                    tags[name] = values | {json_key(None)}
            return frozenset({_object(node.names, tags)})
        case _:
            return frozenset({Shape("array")})


def _object(names: Iterable[str], tags: Mapping[str, _Values | None]) -> Shape:
    known = frozenset((name, values) for name, values in tags.items() if values is not None)
    return Shape("object", frozenset(names), known)


def alternatives(node: Node) -> list[Node]:
    """List the nodes behind references and choices, each once."""
    found: dict[int, Node] = {}
    seen: set[int] = set()
    stack = [node]
    while stack:
        following = stack.pop()
        if id(following) in seen:
            continue
        seen.add(id(following))
        if isinstance(following, Reference | Choice):
            stack.extend(following.parts())
        else:
            found[id(following)] = following
    return list(found.values())


def listed_values(node: Node) -> _Values | None:
    """Return the only values that a node has, where it lists them."""
    found: set[tuple[bool, Any]] = set()
    for alternative in alternatives(node):
        if not isinstance(alternative, Scalar) or alternative.values is None:
            return None
        found |= alternative.values
    return frozenset(found)


def original_kind(node: Node) -> str:
    """Return the kind of value that a node has in the original, where it has only one."""
    if isinstance(node, Scalar):
        return "number" if node.kind == "integer" else node.kind
    return "object" if isinstance(node, Object) else "array"
