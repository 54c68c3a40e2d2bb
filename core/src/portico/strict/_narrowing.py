"""A narrower schema for replies that a model writes: what is the same by declaration is written in one way."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from typing import Any

from portico.errors import SchemaUnsupported

__all__ = ["require_nullable_defaults"]

_LEVELS = 200
# What stands under `not` or `if` stays as it is: to narrow it would be to widen the whole.
_ONE = frozenset(["items", "additionalItems", "additionalProperties", "then", "else"])
_LISTED = frozenset(["anyOf", "oneOf", "allOf", "prefixItems", "items"])
_NAMED = frozenset(["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"])


def require_nullable_defaults(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Require each property that need not be there, lets null in and declares ``"default": null``.

    By that declaration, absent and null mean the same, so a model that always writes null where it could have left
    the key out loses nothing, and the strict form needs no wrapper to keep the two apart.

    >>> require_nullable_defaults({
    ...     "type": "object",
    ...     "properties": {"note": {"type": ["string", "null"], "default": None}},
    ... })["required"]
    ['note']

    The schema that is given is not changed. Raises ``SchemaUnsupported`` for one deeper than 200 levels.
    """
    return _Narrowing(schema).narrowed(schema, 0)  # type: ignore[no-any-return]


class _Narrowing:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.known: dict[str, bool] = {}
        """Which references lead to schemas that let null in; those being looked at do not count."""

    def narrowed(self, schema: Any, level: int) -> Any:
        """Narrow every schema inside a schema, then the schema itself."""
        if level > _LEVELS:
            raise SchemaUnsupported(f"The schema is deeper than {_LEVELS} levels.")
        if not isinstance(schema, Mapping):
            return schema
        changed: dict[str, Any] = dict(schema)
        for word, part in schema.items():
            if word in _NAMED and isinstance(part, Mapping):
                changed[word] = {name: self.narrowed(member, level + 1) for name, member in part.items()}
            elif word in _LISTED and isinstance(part, list | tuple):
                changed[word] = [self.narrowed(member, level + 1) for member in part]
            elif word in _ONE:
                changed[word] = self.narrowed(part, level + 1)
        properties, required = schema.get("properties"), schema.get("required", [])
        if isinstance(properties, Mapping) and isinstance(required, list | tuple):
            added = [name for name, member in properties.items() if name not in required and self.is_null(member)]
            if added:
                changed["required"] = [*required, *added]
        return changed

    def is_null(self, member: Any) -> bool:
        """Tell whether a property is null where it is missing, and may be."""
        is_default = isinstance(member, Mapping) and "default" in member and member["default"] is None
        return is_default and self.lets_null_in(member)

    def lets_null_in(self, schema: Any) -> bool:
        if not isinstance(schema, Mapping):
            return schema is True
        types = schema.get("type", "null")
        return (
            "null" in ([types] if isinstance(types, str) else types)
            and schema.get("const") is None
            and None in schema.get("enum", [None])
            and not {"not", "if"} & schema.keys()
            and all(map(self.lets_null_in, schema.get("allOf", ())))
            and all(any(map(self.lets_null_in, schema[word])) for word in ("anyOf", "oneOf") if word in schema)
            and ("$ref" not in schema or self.leads_to_null(schema["$ref"]))
        )

    def leads_to_null(self, reference: Any) -> bool:
        if reference not in self.known:
            self.known[reference] = False
            target: Any = self.root
            for token in urllib.parse.unquote(str(reference)).split("/")[1:]:
                name = token.replace("~1", "/").replace("~0", "~")
                target = target.get(name) if isinstance(target, Mapping) else None
            self.known[reference] = str(reference).startswith("#") and self.lets_null_in(target)
        return self.known[reference]
