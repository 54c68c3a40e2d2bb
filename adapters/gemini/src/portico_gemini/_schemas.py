"""JSON Schema as Gemini understands it, for the arguments of tools and for replies.

Gemini takes the keywords of `_TAKEN`. The others are taken out, which loosens a schema and never tightens it: whoever
sends it validates what comes back. The list is that of ``GenerateContentConfig.response_json_schema`` in Google's SDK.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from portico import Tool
from portico_wire.answers import encode_json

_TAKEN = frozenset(
    {
        "$anchor",
        "$defs",
        "$id",
        "$ref",
        "additionalProperties",
        "anyOf",
        "description",
        "enum",
        "format",
        "items",
        "maxItems",
        "maximum",
        "minItems",
        "minimum",
        "oneOf",
        "prefixItems",
        "properties",
        "propertyOrdering",
        "required",
        "title",
        "type",
    }
)
_FORMATS = {"date", "date-time", "duration", "time"}
_MAPS, _LISTS, _SINGLE = {"$defs", "properties"}, {"anyOf", "oneOf", "prefixItems"}, {"items", "additionalProperties"}
_KINDS: dict[type, str] = {bool: "boolean", type(None): "null", list: "array", dict: "object"}
_EXCLUSIVE: dict[str, tuple[str, Callable[[float], int]]] = {
    "exclusiveMinimum": ("minimum", lambda value: math.floor(value) + 1),
    "exclusiveMaximum": ("maximum", lambda value: math.ceil(value) - 1),
}
_DEFINITIONS = "#/$defs/"
_KEPT = 1_024
"""Tools whose declarations are kept."""


def narrowed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema with the keywords that Gemini takes.

    >>> narrowed({"type": "object", "properties": {"n": {"const": "hat", "pattern": "h.t"}}})
    {'type': 'object', 'properties': {'n': {'type': 'string', 'enum': ['hat']}}}
    """
    narrow: dict[str, Any] = _narrow(schema)
    definitions = narrow.get("$defs", {})
    for name, definition in definitions.items():
        if name in _reachable(name, definitions):
            # Gemini takes a circle only where a property may be left out.
            _loosen(definition, {other for other in definitions if name in _reachable(other, definitions)})
    return narrow


class Declarations:
    """The declarations of tools, each written once and sent many times."""

    def __init__(self) -> None:
        self._written: dict[int, tuple[Tool, msgspec.Raw]] = {}

    def of(self, tool: Tool) -> msgspec.Raw:
        """Write a tool; raises ``TypeError`` for a schema that is not JSON."""
        tool_before, written = self._written.get(id(tool), (None, None))
        if written is not None and tool_before is tool:
            return written
        declaration: dict[str, Any] = {"name": tool.name, "description": tool.description}
        parameters = narrowed(tool.parameters)
        if parameters.get("properties") or parameters.keys() - {"type", "properties", "additionalProperties"}:
            declaration["parametersJsonSchema"] = parameters
        written = msgspec.Raw(encode_json(declaration))
        if len(self._written) >= _KEPT:
            self._written.clear()
        self._written[id(tool)] = (tool, written)
        return written


def _narrow(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        # True and False as a schema; anything else is no schema, and Gemini says so.
        return {} if isinstance(schema, bool) else schema
    if "$ref" in schema:
        # Nothing may stand beside it.
        reference = str(schema["$ref"]).replace("#/definitions/", _DEFINITIONS)
        return {"$ref": reference, **_narrow({key: schema[key] for key in ("$defs", "definitions") if key in schema})}
    narrow: dict[str, Any] = {}
    for key, value in schema.items():
        name = "$defs" if key == "definitions" else key
        if name in _MAPS and isinstance(value, Mapping):
            narrow[name] = {each: _narrow(part) for each, part in value.items()}
        elif name in _LISTS and isinstance(value, list | tuple):
            narrow[name] = [_narrow(part) for part in value]
        elif name in _SINGLE and isinstance(value, Mapping):
            narrow[name] = _narrow(value)
        elif key == "const":
            narrow.update(_one_of([value], schema))
        elif key == "enum" and isinstance(value, list | tuple):
            narrow.update(_one_of(value, schema))
        elif key in _EXCLUSIVE and isinstance(value, int | float) and math.isfinite(value):
            name, next_whole = _EXCLUSIVE[key]
            narrow.setdefault(name, next_whole(value) if schema.get("type") == "integer" else value)
        elif name in _TAKEN and (key != "format" or str(value) in _FORMATS):
            narrow[name] = value
    return narrow


def _one_of(values: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Write a choice: Gemini takes choices of texts and of numbers, with their type beside them."""
    texts = [value for value in values if isinstance(value, str)]
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    kinds = {_KINDS[type(value)]: None for value in values if type(value) in _KINDS}
    choices: list[dict[str, Any]] = [{"type": kind} for kind in kinds]
    if texts:
        choices.append({"type": "string", "enum": texts})
    if numbers:
        whole = all(isinstance(number, int) for number in numbers)
        choices.append({"type": "integer" if whole else "number", "enum": numbers})
    if len(choices) == 1:
        return choices[0]
    return {"anyOf": choices} if "anyOf" not in schema else {}


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.startswith(_DEFINITIONS):
            yield reference.removeprefix(_DEFINITIONS)
        for part in node.values():
            yield from _references(part)
    elif isinstance(node, list | tuple):
        for part in node:
            yield from _references(part)


def _reachable(name: str, definitions: Mapping[str, Any]) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for reference in _references(definitions.get(waiting.pop())):
            if reference not in found:
                found.add(reference)
                waiting.append(reference)
    return found


def _loosen(node: Any, circle: set[str]) -> None:
    """Take what leads back into the circle out of ``required``."""
    if isinstance(node, dict):
        required, properties = node.get("required"), node.get("properties")
        if isinstance(required, list | tuple) and isinstance(properties, dict):
            node["required"] = [name for name in required if circle.isdisjoint(_references(properties.get(name)))]
        for part in node.values():
            _loosen(part, circle)
    elif isinstance(node, list):
        for part in node:
            _loosen(part, circle)
