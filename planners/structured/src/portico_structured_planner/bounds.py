"""Bounds for what a model writes: every text, list and nesting ends before a reply is cut short."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from portico.errors import SchemaUnsupported

_PREFIX = "#/$defs/"
_DEPTHS = (3, 6, 12)
_SHAPED = frozenset({"enum", "const", "pattern", "format"})
_NOTES = frozenset({"title", "description", "$defs"})


@dataclass(frozen=True, slots=True)
class Bounds:
    """Characters of a text (None: not bounded), elements of a list, and whether recursion has an end."""

    text: int | None
    elements: int
    levels: bool


def bounded(schema: Mapping[str, Any], bounds: Bounds) -> dict[str, Any]:
    """Return a strict form that allows less: its texts and lists are short and its nesting ends.

    What is recursive is written out, three levels of it; more where no value ends as soon as that. Notes are left
    out: models read the manual. Raises ``SchemaUnsupported`` for what has no end within twelve levels.
    """
    definitions: Mapping[str, Any] = schema.get("$defs", {})
    recursive = _recursive(definitions)
    if not bounds.levels or not recursive:
        return _Writing(definitions, frozenset(), bounds, 0).root(schema)
    for depth in _DEPTHS:
        try:
            return _Writing(definitions, recursive, bounds, depth).root(schema)
        except SchemaUnsupported:
            continue
    raise SchemaUnsupported(f"No value of the schema ends within {_DEPTHS[-1]} levels.")


class _Writing:
    def __init__(self, definitions: Mapping[str, Any], recursive: frozenset[str], bounds: Bounds, depth: int) -> None:
        self.definitions = definitions
        self.recursive = recursive
        self.bounds = bounds
        self.depth = depth
        self.written: dict[str, dict[str, Any] | None] = {}

    def root(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        written = self.schema(schema, self.depth)
        if written is None:
            raise SchemaUnsupported("The schema allows nothing that ends.")
        definitions = {name: body for name, body in self.written.items() if body is not None}
        return {**written, "$defs": definitions} if definitions else written

    def schema(self, schema: Mapping[str, Any], left: int) -> dict[str, Any] | None:
        """Return the bounded schema; None where nothing ends in what is left of the levels."""
        if "$ref" in schema:
            return self.reference(str(schema["$ref"]).removeprefix(_PREFIX), left)
        made = {keyword: argument for keyword, argument in schema.items() if keyword not in _NOTES}
        if "anyOf" in schema:
            options = [option for each in schema["anyOf"] if (option := self.schema(each, left)) is not None]
            if not options:
                return None
            made["anyOf"] = options
            return options[0] if len(options) == 1 and len(made) == 1 else made
        if "properties" in schema:
            members = {name: self.schema(member, left) for name, member in schema["properties"].items()}
            if None in members.values():
                return None
            made["properties"] = members
        if "items" in schema:
            return self.array(made, schema, left)
        free = schema.get("type") in ("string", ["string", "null"]) and not _SHAPED & schema.keys()
        if free and self.bounds.text is not None:
            made["maxLength"] = self.bounds.text
        return made

    def array(self, made: dict[str, Any], schema: Mapping[str, Any], left: int) -> dict[str, Any] | None:
        least = schema.get("minItems", 0)
        items = self.schema(schema["items"], left)
        if items is None:
            return None if least else {**made, "items": {"type": "null"}, "maxItems": 0}
        # The deeper, the shorter: the number of elements would grow by a power with each level.
        most = max(1, self.bounds.elements >> (self.depth - left), least)
        return {**made, "items": items, "maxItems": min(schema.get("maxItems", most), most)}

    def reference(self, name: str, left: int) -> dict[str, Any] | None:
        if name in self.recursive:
            left -= 1
            if left < 0:
                return None
        own = f"{name}_{left}" if name in self.recursive else name
        if own not in self.written:
            self.written[own] = {}
            self.written[own] = self.schema(self.definitions[name], left)
        return None if self.written[own] is None else {"$ref": f"{_PREFIX}{own}"}


def _recursive(definitions: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the definitions that lead back to themselves."""
    leads = {name: set(_named(body)) for name, body in definitions.items()}
    found: set[str] = set()
    for name in definitions:
        seen: set[str] = set()
        stack = list(leads[name])
        while stack:
            following = stack.pop()
            if following not in seen:
                seen.add(following)
                stack.extend(leads.get(following, ()))
        if name in seen:
            found.add(name)
    return frozenset(found)


def _named(schema: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    stack: list[Mapping[str, Any]] = [schema]
    while stack:
        part = stack.pop()
        if "$ref" in part:
            found.append(str(part["$ref"]).removeprefix(_PREFIX))
        stack.extend(part.get("anyOf", ()))
        stack.extend(part.get("properties", {}).values())
        if "items" in part:
            stack.append(part["items"])
    return found
