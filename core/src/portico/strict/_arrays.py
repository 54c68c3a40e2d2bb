"""Arrays in strict forms: of elements that are all alike, or with a schema for each place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from portico.strict._nodes import Node, Refer, Run, closed, converted, counts, noted
from portico.types.compiled import Fault, Mismatch, refuse

__all__ = ["Array", "Fixed"]


@dataclass(slots=True, eq=False)
class Array:
    """An array of elements that are all alike."""

    items: Node
    low: int = 0
    high: int | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    changes: bool = False

    def parts(self) -> Iterable[Node]:
        return (self.items,)

    def would_change(self) -> bool:
        return self.items.changes

    def fits(self, value: Any, run: Run) -> bool:
        return (
            isinstance(value, list)
            and self.low <= len(value)
            and (self.high is None or len(value) <= self.high)
            and all(self.items.fits(element, run) for element in value)
        )

    def encode(self, value: Any, run: Run) -> Any:
        if not self.changes:
            return value
        if not isinstance(value, list):
            refuse("an array", value)
        return converted(lambda element: self.items.encode(element, run), enumerate(value))

    def decode(self, value: Any) -> Any:
        if not self.changes:
            return value
        if not isinstance(value, list):
            refuse("an array", value)
        return converted(self.items.decode, enumerate(value))

    def write(self, refer: Refer) -> dict[str, Any]:
        schema = {"type": "array", "items": self.items.write(refer), **counts(self.low, self.high)}
        return noted(schema, self.notes)


@dataclass(slots=True, eq=False)
class Fixed:
    """An array with a schema for each place: an object with a property for each, and perhaps one for the rest."""

    positions: tuple[Node, ...]
    rest: Array | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    changes: bool = True
    names: tuple[str, ...] = field(init=False)
    """The properties of the strict form, in order."""

    def __post_init__(self) -> None:
        names = (f"item_{index + 1}" for index in range(len(self.positions)))
        self.names = (*names, *(["rest"] if self.rest else []))

    def parts(self) -> Iterable[Node]:
        return (*self.positions, *([self.rest] if self.rest else []))

    def would_change(self) -> bool:
        return True

    def fits(self, value: Any, run: Run) -> bool:
        size = len(self.positions)
        if not isinstance(value, list) or len(value) < size or (self.rest is None and len(value) > size):
            return False
        return all(node.fits(element, run) for node, element in zip(self.positions, value, strict=False)) and (
            self.rest is None or self.rest.fits(value[size:], run)
        )

    def encode(self, value: Any, run: Run) -> Any:
        size = len(self.positions)
        if not isinstance(value, list):
            refuse("an array", value)
        if len(value) < size or (self.rest is None and len(value) > size):
            refuse(f"an array of {'at least ' if self.rest else ''}{size}", value)
        elements = enumerate(zip(self.positions, value, strict=False))
        encoded = converted(lambda pair: pair[0].encode(pair[1], run), elements)
        if self.rest:
            rest = self.rest.items
            encoded.append(converted(lambda element: rest.encode(element, run), list(enumerate(value))[size:]))
        return dict(zip(self.names, encoded, strict=True))

    def decode(self, value: Any) -> Any:
        if not isinstance(value, dict):
            refuse("an object", value)
        unknown = [name for name in value if name not in self.names]
        if unknown:
            raise Mismatch([Fault((unknown[0],), f"one of {', '.join(self.names)}", "an unknown key")])
        decoded: list[Any] = []
        for name, node in zip(self.names, self.parts(), strict=True):
            if name not in value:
                break
            try:
                element = node.decode(value[name])
            except Mismatch as error:
                raise Mismatch(error.under(name)) from None
            decoded += element if node is self.rest else [element]
        return decoded

    def write(self, refer: Refer) -> dict[str, Any]:
        properties = {name: node.write(refer) for name, node in zip(self.names, self.parts(), strict=True)}
        return noted(closed(properties), self.notes)
