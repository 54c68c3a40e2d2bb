"""Functions in few words: what each takes and gives, as a line that models know from code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from portico._schema.values import resolve
from portico.functions import FunctionManual

__all__ = ["shape", "signatures"]

_DEPTH = 4
_LISTED = 12
_LONGEST = 600


def signatures(manuals: Iterable[FunctionManual]) -> str:
    """Write functions as signatures, with their descriptions and those of their parameters.

    >>> from portico import Function
    >>> def forecast(city: str, days: int = 1) -> list[str]:
    ...     '''Tell the weather.'''
    >>> print(signatures([Function.of(forecast, plugin="Weather").manual]))
    Weather-forecast(city: string, days: integer = 1) -> string[]
      Tell the weather.
    """
    return "\n".join("\n".join(_lines(manual)) for manual in manuals)


def _lines(manual: FunctionManual) -> Iterator[str]:
    root = manual.parameters
    properties: Mapping[str, Any] = root.get("properties", {}) if isinstance(root.get("properties"), Mapping) else {}
    required = root.get("required", ())
    inputs = ", ".join(_input(name, schema, name in required, root) for name, schema in properties.items())
    yield f"{manual.name}({inputs}) -> {shape(manual.returns)}"
    if manual.description.strip():
        yield f"  {_one_line(manual.description)}"
    for name, schema in properties.items():
        described = _one_line(str(schema.get("description", ""))) if isinstance(schema, Mapping) else ""
        if described:
            yield f"  - {name}: {described}"


def _input(name: str, schema: Any, required: bool, root: Any) -> str:
    if required:
        return f"{name}: {shape(schema, root)}"
    if isinstance(schema, Mapping) and "default" in schema:
        return f"{name}: {shape(schema, root)} = {_short(json.dumps(schema['default'], ensure_ascii=False), 40)}"
    return f"{name}?: {shape(schema, root)}"


def shape(schema: Any, root: Any = None) -> str:
    """Write in few words what a value of a JSON Schema is.

    >>> shape({"type": "object", "properties": {"on": {"type": "string", "format": "date"}}, "required": ["on"]})
    '{on: date}'
    """
    return _short(_shape(schema, schema if root is None else root, _DEPTH), _LONGEST)


def _shape(schema: Any, root: Any, depth: int) -> str:
    if not isinstance(schema, Mapping) or depth < 0:
        return "any"
    if "$ref" in schema:
        return _shape(resolve(schema["$ref"], root), root, depth - 1)
    if "const" in schema or isinstance(schema.get("enum"), list):
        values = [schema["const"]] if "const" in schema else schema["enum"]
        shown = [json.dumps(value, ensure_ascii=False) for value in values[:_LISTED]]
        return " | ".join([*shown, *(["…"] if len(values) > _LISTED else [])])
    for word in ("anyOf", "oneOf"):
        if isinstance(schema.get(word), list):
            return " | ".join(dict.fromkeys(_shape(option, root, depth - 1) for option in schema[word]))
    kinds = schema.get("type", "any")
    return " | ".join(_of_kind(kind, schema, root, depth) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _of_kind(kind: str, schema: Mapping[str, Any], root: Any, depth: int) -> str:
    match kind:
        case "string":
            return str(schema.get("format", "string"))
        case "array":
            if isinstance(schema.get("prefixItems"), list):
                return f"[{', '.join(_shape(each, root, depth - 1) for each in schema['prefixItems'])}]"
            inner = _shape(schema.get("items", {}), root, depth - 1)
            return f"({inner})[]" if " | " in inner else f"{inner}[]"
        case "object":
            return _object(schema, root, depth)
        case _:
            return kind


def _object(schema: Mapping[str, Any], root: Any, depth: int) -> str:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return f"{{[name]: {_shape(schema.get('additionalProperties', {}), root, depth - 1)}}}"
    required = schema.get("required", ())
    members = (
        f"{name}{'' if name in required else '?'}: {_shape(each, root, depth - 1)}" for name, each in properties.items()
    )
    return f"{{{', '.join(members)}}}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
