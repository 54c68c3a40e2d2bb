"""Values of what has come of a JSON value so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from portico.types.compiled import Compiled, Mismatch, refuse

__all__ = ["agreed", "drafting", "drafts", "may_become"]


def drafting(compiled: Compiled) -> Callable[[Any], Any]:
    """Return what makes drafts of a type: its own, or only whole values."""
    return compiled.draft or compiled.structure


def drafts(draft: Callable[[Any], Any], elements: Iterable[Any]) -> list[Any]:
    """Return the drafts of those elements of which there is something to show."""
    shown: list[Any] = []
    for element in elements:
        try:
            shown.append(draft(element))
        except Mismatch:
            continue
    return shown


def agreed(options: Iterable[Callable[[Any], Any]], value: Any) -> Any:
    """Return the one draft that all of the options make, if they can make any.

    Where they differ it is too early to say which is meant: raises `Mismatch`.
    """
    made = [drawn for option in options for drawn in drafts(option, [value])]
    if not made or any(type(other) is not type(made[0]) or other != made[0] for other in made[1:]):
        refuse("more of the value", value)
    return made[0]


def may_become(
    schema: Any, value: Any, definitions: Mapping[str, Any], known: dict[tuple[int, int], bool] | None = None
) -> bool:
    """Tell whether more of an unfinished JSON value may make it valid under a schema.

    Keys and elements may follow, and strings may go on. Formats and keywords that it does not know are not looked
    at. ``known`` holds what was found about parts of the value, so that each is looked at once.

    >>> may_become({"enum": ["north", "south"]}, "no", {})
    True
    """
    if not isinstance(schema, Mapping):
        return schema is not False
    if "$ref" in schema:
        schema = definitions.get(str(schema["$ref"]).removeprefix("#/$defs/"), {})
    known = {} if known is None else known
    key = (id(schema), id(value))
    if key not in known:
        known[key] = False
        known[key] = _may_become(schema, value, definitions, known)
    return known[key]


def _may_become(
    schema: Mapping[str, Any], value: Any, definitions: Mapping[str, Any], known: dict[tuple[int, int], bool]
) -> bool:
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        return any(may_become(option, value, definitions, known) for option in options)
    if "enum" in schema:
        return any(
            value == option or (isinstance(value, str) and isinstance(option, str) and option.startswith(value))
            for option in schema["enum"]
            if isinstance(value, bool) == isinstance(option, bool)
        )
    names = schema.get("type")
    if names is not None and not any(_is_kind(value, name) for name in ([names] if isinstance(names, str) else names)):
        return False
    if isinstance(value, dict):
        properties, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
        return all(may_become(properties.get(name, rest), inner, definitions, known) for name, inner in value.items())
    if isinstance(value, list):
        fixed, rest = schema.get("prefixItems", ()), schema.get("items", True)
        return len(value) <= schema.get("maxItems", len(value)) and all(
            may_become(fixed[index] if index < len(fixed) else rest, element, definitions, known)
            for index, element in enumerate(value)
        )
    return True


def _is_kind(value: Any, name: str) -> bool:
    if isinstance(value, bool) or name == "boolean":
        return isinstance(value, bool) and name == "boolean"
    if isinstance(value, float):
        return name == "number" or (name == "integer" and value.is_integer())
    kinds = {"string": str, "integer": int, "number": int, "null": type(None), "array": list, "object": dict}
    return isinstance(value, kinds.get(name, ()))
