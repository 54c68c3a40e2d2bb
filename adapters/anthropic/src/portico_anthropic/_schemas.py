"""The part of JSON Schema that Claude is held to.

The rules are those of Anthropic's page "Structured outputs", as its SDK applies them: every object is closed, every
schema says what it is, nothing refers to itself, and a handful of keywords are known.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_FORMATS = frozenset(["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"])
_TYPES = frozenset(["object", "array", "string", "integer", "number", "boolean", "null"])
_DEFINITIONS = "#/$defs/"


class _Unheld(Exception):
    """A schema that has no form that Claude is held to."""


def held_form(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a schema that Claude can be held to, each of whose values is one of ``schema`` as far as that goes.

    An object has the properties that it declares and no others. What cannot be held, such as a least number, stands in
    the description. None where there is no such schema: for a map, or one that refers to itself.
    """
    definitions = schema.get("$defs", {})
    try:
        written = _held(schema, definitions, ())
        if definitions:
            written["$defs"] = {name: _held(each, definitions, (name,)) for name, each in definitions.items()}
    except _Unheld:
        return None
    return written


def _held(schema: Any, definitions: Mapping[str, Any], inside: tuple[str, ...]) -> dict[str, Any]:
    """Write a schema; ``inside`` are the definitions through which it was reached."""
    if not isinstance(schema, Mapping):
        raise _Unheld
    rest = {name: value for name, value in schema.items() if name not in {"$defs", "$schema", "$id"}}
    if "$ref" in rest:
        return _held_reference(rest["$ref"], definitions, inside)
    written = {name: rest.pop(name) for name in ("title", "description", "default") if name in rest}
    kind = rest.pop("type", None)
    if isinstance(kind, list):
        return {**written, "anyOf": [_held({**rest, "type": each}, definitions, inside) for each in kind]}
    if "enum" in rest or "const" in rest:
        written |= {name: rest.pop(name) for name in ("enum", "const") if name in rest}
        if any(isinstance(value, dict | list) for value in (*written.get("enum", ()), written.get("const"))):
            raise _Unheld
    elif choices := rest.pop("anyOf", None) or rest.pop("oneOf", None):
        written["anyOf"] = [_held(each, definitions, inside) for each in choices]
    elif kind in _TYPES:
        written["type"] = kind
    else:
        raise _Unheld
    if kind == "object" and "type" in written:
        _add_properties(written, rest, definitions, inside)
    elif kind == "array" and "type" in written:
        if "items" in rest:
            written["items"] = _held(rest.pop("items"), definitions, inside)
        if rest.get("minItems") in (0, 1):
            written["minItems"] = rest.pop("minItems")
    elif rest.get("format") in _FORMATS:
        written["format"] = rest.pop("format")
    if rest:
        told = ", ".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in rest.items())
        written["description"] = f"{written.get('description', '')}\n\n{{{told}}}".lstrip()
    return written


def _add_properties(
    written: dict[str, Any], rest: dict[str, Any], definitions: Mapping[str, Any], inside: tuple[str, ...]
) -> None:
    properties, others = rest.pop("properties", {}), rest.pop("additionalProperties", True)
    if "patternProperties" in rest or (others is not False and not (properties and others is True)):
        raise _Unheld
    written["properties"] = {name: _held(each, definitions, inside) for name, each in properties.items()}
    written["additionalProperties"] = False
    if "required" in rest:
        written["required"] = rest.pop("required")


def _held_reference(place: Any, definitions: Mapping[str, Any], inside: tuple[str, ...]) -> dict[str, Any]:
    name = str(place).removeprefix(_DEFINITIONS)
    if name == place or name not in definitions or name in inside:
        raise _Unheld
    # The definition itself is written once; this looks for a circle.
    _held(definitions[name], definitions, (*inside, name))
    return {"$ref": place}
