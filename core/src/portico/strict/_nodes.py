"""The parts of a strict form: each writes its schema and knows how its values go there and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from portico.types.compiled import Fault, Mismatch

__all__ = [
    "Node",
    "Refer",
    "Reference",
    "Run",
    "Scalar",
    "closed",
    "converted",
    "counts",
    "json_key",
    "kind_of",
    "noted",
    "unused_name",
]

Run: TypeAlias = dict[tuple[int, int], bool]
"""What is known of one value while it is encoded: which of its parts fit which nodes, by their identities."""

Refer: TypeAlias = Callable[["Node"], str]
"""Gives the reference to the definition of a node."""


class Node(Protocol):
    """A part of a strict form.

    ``encode`` and ``decode`` raise `Mismatch` for a value that they cannot turn; they do not check the rest.
    ``fits`` does: it tells whether a value is valid under the original, as far as the strict form holds that.
    Where ``changes`` is false, encoding and decoding leave every value as it is.
    """

    changes: bool

    def parts(self) -> Iterable[Node]: ...
    def would_change(self) -> bool: ...
    def fits(self, value: Any, run: Run) -> bool: ...
    def encode(self, value: Any, run: Run) -> Any: ...
    def decode(self, value: Any) -> Any: ...
    def write(self, refer: Refer) -> dict[str, Any]: ...


def kind_of(value: Any) -> str:
    """Return the JSON type of a value; an integer is a number."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    for kind, types in _KINDS:
        if isinstance(value, types):
            return kind
    return type(value).__name__


_KINDS: tuple[tuple[str, type | tuple[type, ...]], ...] = (
    ("string", str),
    ("number", (int, float)),
    ("array", list),
    ("object", dict),
)


def json_key(value: Any) -> tuple[bool, Any]:
    """Make a plain value a key under which 1 and 1.0 are the same and 1 and true are not."""
    return isinstance(value, bool), value


def noted(schema: dict[str, Any], notes: Mapping[str, str]) -> dict[str, Any]:
    """Add title and description."""
    return {**schema, **notes}


def closed(properties: dict[str, Any]) -> dict[str, Any]:
    """Write the one kind of object that strict mode has."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def counts(low: int, high: int | None) -> dict[str, int]:
    """Write the bounds of a number of elements, where there are any."""
    return {**({"minItems": low} if low else {}), **({} if high is None else {"maxItems": high})}


def converted(convert: Callable[[Any], Any], items: Iterable[tuple[str | int, Any]]) -> list[Any]:
    """Convert every element; raise one `Mismatch` with the faults of all."""
    values: list[Any] = []
    faults: list[Fault] = []
    for key, element in items:
        try:
            values.append(convert(element))
        except Mismatch as error:
            faults.extend(error.under(key))
    if faults:
        raise Mismatch(faults)
    return values


def unused_name(name: str, taken: Container[str]) -> str:
    """Return the name, or the first of it with a number from 2 on that is not taken."""
    count = 1
    candidate = name
    while candidate in taken:
        count += 1
        candidate = f"{name}_{count}"
    return candidate


def _is_multiple(value: Any, of: Any) -> bool:
    """Tell whether a number is a multiple, as the reference validator does: with floats where ``of`` is one."""
    if isinstance(value, float) and not math.isfinite(value):
        return False
    if not isinstance(of, float):
        return bool(value % of == 0)
    try:
        quotient = value / of
        return bool(int(quotient) == quotient)
    except OverflowError:
        from fractions import Fraction

        return (Fraction(value) / Fraction(of)).denominator == 1


_BOUNDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "minimum": lambda value, bound: value >= bound,
    "maximum": lambda value, bound: value <= bound,
    "exclusiveMinimum": lambda value, bound: value > bound,
    "exclusiveMaximum": lambda value, bound: value < bound,
    "multipleOf": _is_multiple,
}


@dataclass(slots=True, eq=False)
class Scalar:
    """A string, number, boolean or null: the same in both forms. ``facets`` are its further keywords."""

    kind: str
    facets: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    search: Callable[[str], Any] | None = None
    """Looks for the pattern."""
    changes: bool = False
    values: frozenset[tuple[bool, Any]] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        listed = [self.facets["const"]] if "const" in self.facets else self.facets.get("enum")
        if self.kind == "null":
            listed = [None]
        if listed is not None:
            self.values = frozenset(map(json_key, listed))

    def parts(self) -> Iterable[Node]:
        return ()

    def would_change(self) -> bool:
        return False

    def fits(self, value: Any, run: Run) -> bool:
        kind = kind_of(value)
        if self.kind == "integer":
            if kind != "number" or not (isinstance(value, int) or value.is_integer()):
                return False
        elif kind != self.kind:
            return False
        if self.values is not None and json_key(value) not in self.values:
            return False
        if self.search is not None and not self.search(value):
            return False
        return all(_BOUNDS[word](value, bound) for word, bound in self.facets.items() if word in _BOUNDS)

    def encode(self, value: Any, run: Run) -> Any:
        return value

    def decode(self, value: Any) -> Any:
        return value

    def write(self, refer: Refer) -> dict[str, Any]:
        return noted({"type": self.kind, **self.facets}, self.notes)


@dataclass(slots=True, eq=False)
class Reference:
    """Another node, by its name in a table that may be filled later."""

    table: Mapping[Any, Node | None]
    key: Any
    notes: Mapping[str, str] = field(default_factory=dict)
    changes: bool = False

    @property
    def target(self) -> Node:
        """The node that is meant, behind any number of references."""
        node = self.table[self.key]
        while isinstance(node, Reference):
            node = node.table[node.key]
        assert node is not None, "an impossible definition was refused when the schema was read"  # noqa: S101
        return node

    def parts(self) -> Iterable[Node]:
        return (self.target,)

    def would_change(self) -> bool:
        return self.target.changes

    def fits(self, value: Any, run: Run) -> bool:
        # Each part of a value is tried once on each definition, however many ways lead there.
        key = (id(value), id(self.target))
        if key not in run:
            run[key] = self.target.fits(value, run)
        return run[key]

    def encode(self, value: Any, run: Run) -> Any:
        return self.target.encode(value, run)

    def decode(self, value: Any) -> Any:
        return self.target.decode(value)

    def write(self, refer: Refer) -> dict[str, Any]:
        reference = {"$ref": refer(self.target)}
        # Nothing may stand beside a reference: OpenAI answers "$ref cannot have keywords".
        return noted({"anyOf": [reference]}, self.notes) if self.notes else reference
