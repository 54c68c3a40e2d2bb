"""The sizes that strict mode takes: what is too deep moves to a definition, what is too much is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from portico.errors import SchemaUnsupported
from portico.strict._nodes import unused_name

__all__ = ["within_limits"]

_DEPTH = 10
_PROPERTIES = 5_000
_ENUM_VALUES = 1_000
_CHARACTERS = 120_000
_LONG_ENUM = 250
_LONG_ENUM_CHARACTERS = 15_000


def within_limits(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema with its deepest parts moved to definitions; raise ``SchemaUnsupported`` for one too large.

    The limits are those of OpenAI's guide "Structured model outputs", section "Supported schemas" (2026). How
    they are counted follows the validator in OpenAI's own Java client, which is the more careful reading: the
    root is at depth 0, a definition at 1, and everything inside a schema is one deeper, alternatives too.
    References are not followed, so a definition starts anew.
    """
    definitions: dict[str, Any] = {}
    placed = _placed({word: part for word, part in schema.items() if word != "$defs"}, 0, definitions, schema)
    for name, definition in schema.get("$defs", {}).items():
        definitions[name] = _placed(definition, 1, definitions, schema)
    if definitions:
        placed["$defs"] = {**{name: definitions[name] for name in schema.get("$defs", {})}, **definitions}
    _refuse_excess(placed)
    return placed


def _placed(schema: dict[str, Any], depth: int, definitions: dict[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    if depth == _DEPTH and any(True for _ in _parts(schema)):
        name = unused_name("part", {*root.get("$defs", {}), *definitions})
        definitions[name] = {}
        definitions[name] = _placed(schema, 1, definitions, root)
        return {"$ref": f"#/$defs/{name}"}
    placed = dict(schema)
    if "properties" in schema:
        placed["properties"] = {
            name: _placed(part, depth + 1, definitions, root) for name, part in schema["properties"].items()
        }
    if "items" in schema:
        placed["items"] = _placed(schema["items"], depth + 1, definitions, root)
    if "anyOf" in schema:
        placed["anyOf"] = [_placed(part, depth + 1, definitions, root) for part in schema["anyOf"]]
    return placed


def _parts(schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the schemas directly inside one."""
    yield from schema.get("$defs", {}).values()
    yield from schema.get("properties", {}).values()
    yield from schema.get("anyOf", ())
    if "items" in schema:
        yield schema["items"]


def _refuse_excess(root: Mapping[str, Any]) -> None:
    properties = values = 0
    characters = sum(map(len, root.get("$defs", {})))
    stack: list[Mapping[str, Any]] = [root]
    while stack:
        schema = stack.pop()
        stack.extend(_parts(schema))
        names = schema.get("properties", {})
        properties += len(names)
        enum = schema.get("enum", ())
        values += len(enum)
        listed = [*enum, *([schema["const"]] if "const" in schema else [])]
        length = sum(len(str(value)) for value in listed)
        characters += length + sum(map(len, names))
        if len(enum) > _LONG_ENUM and length > _LONG_ENUM_CHARACTERS:
            _refuse(f"an enumeration of {len(enum)} values", length, _LONG_ENUM_CHARACTERS, "characters")
    _refuse("the strict form", properties, _PROPERTIES, "properties")
    _refuse("the strict form", values, _ENUM_VALUES, "values in enumerations")
    _refuse("the strict form", characters, _CHARACTERS, "characters in names and listed values")


def _refuse(what: str, count: int, limit: int, of: str) -> None:
    if count > limit:
        raise SchemaUnsupported(
            f"The schema has no strict form: {what} has {count:,} {of}, and strict mode takes {limit:,}. "
            "Ask for less at a time, or turn strict mode off."
        )
