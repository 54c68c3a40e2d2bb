"""JSON Schema of pydantic and msgspec with the keywords that core uses."""

from __future__ import annotations

from typing import Any

_DROPPED = ("title", "discriminator")
_DATA = ("default", "enum", "examples", "required")


def plain_schema(schema: Any, *, closed: bool = False) -> Any:
    """Return a schema without titles and discriminators, with `enum` for `const` and `anyOf` for `oneOf`.

    A property with one possible value becomes required, so that the members of a union can be told apart.
    ``closed`` allows no other keys than the properties.
    """
    if isinstance(schema, list):
        return [plain_schema(part, closed=closed) for part in schema]
    if not isinstance(schema, dict):
        return schema
    plain: dict[str, Any] = {}
    for keyword, argument in schema.items():
        if keyword in _DATA:
            plain[keyword] = argument
        elif keyword == "const":
            plain["enum"] = [argument]
        elif keyword in ("properties", "$defs"):
            plain[keyword] = {name: plain_schema(part, closed=closed) for name, part in argument.items()}
        elif keyword not in _DROPPED:
            plain["anyOf" if keyword == "oneOf" else keyword] = plain_schema(argument, closed=closed)
    if "properties" in plain:
        _require_tags(plain)
        if closed:
            plain.setdefault("additionalProperties", False)
    return plain


def _require_tags(schema: dict[str, Any]) -> None:
    required = schema.get("required", [])
    names = [
        name
        for name, member in schema["properties"].items()
        if name in required or ("default" in member and member.get("enum") == [member["default"]])
    ]
    if names:
        schema["required"] = names
