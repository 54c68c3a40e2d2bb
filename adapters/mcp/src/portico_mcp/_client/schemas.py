"""The schemas of a server, brought to JSON Schema 2020-12 that stands for itself."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from portico_mcp._client.words import clean

_LARGEST = 200_000
_DEEPEST = 60
_PARTS = 5_000
_OLD = ("draft-03", "draft-04", "draft-05", "draft-06", "draft-07", "2019-09")
DATA = frozenset({"const", "default", "enum", "examples", "required"})
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions", "dependencies"})
_WORDS = frozenset({"description", "title", "$comment"})
_LEFT_OUT = frozenset({"$schema", "$id", "id", "$comment"})
_SCHEMA_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_KINDS: Mapping[str, Any] = {
    **dict.fromkeys(_NAMED, Mapping),
    **dict.fromkeys((*_SCHEMA_LISTS, "required", "enum"), list),
    **dict.fromkeys(("additionalItems", "additionalProperties", "not", "if", "then", "else"), Mapping | bool),
    **dict.fromkeys(("contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties"), Mapping | bool),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), int | float),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), int | float),
    **dict.fromkeys(("description", "title", "pattern", "format"), str),
    "items": Mapping | bool | list,
    "type": str | list,
}


class SchemaUnusable(ValueError):
    """A schema that cannot be used; the message says why."""


def read_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema as JSON Schema 2020-12, its texts cleaned.

    >>> old = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"$ref": "#/definitions/Id"}]}
    >>> read_schema({**old, "definitions": {"Id": {"type": "string"}}})
    {'$defs': {'Id': {'type': 'string'}}, 'prefixItems': [{'$ref': '#/$defs/Id'}]}

    A keyword with a value that means nothing is left out. Raises `SchemaUnusable` for a schema that is too large or too
    deep, and for references to other documents.
    """
    try:
        size = len(json.dumps(schema))
    except (RecursionError, ValueError) as error:
        raise SchemaUnusable("its schema nests too deeply") from error
    if size > _LARGEST:
        raise SchemaUnusable(f"its schema has {size:,} characters, more than {_LARGEST:,}")
    dialect = str(schema.get("$schema", ""))
    old = any(name in dialect for name in _OLD) or ("$schema" not in schema and "definitions" in schema)
    return dict(_Reading(schema, old).read(schema, _DEEPEST, ()))


class _Reading:
    """Reads one schema: what it refers to outside of its definitions is put in the place of the reference."""

    def __init__(self, root: Mapping[str, Any], old: bool) -> None:
        self._root, self._old, self._left = root, old, _PARTS

    def read(self, schema: Any, depth: int, inside: tuple[str, ...]) -> Any:
        """Return a part of the schema; ``inside`` are the references on the way to it."""
        if isinstance(schema, list):
            return [self.read(part, depth, inside) for part in schema]
        if not isinstance(schema, Mapping):
            return schema
        self._left -= 1
        if not depth or not self._left:
            raise SchemaUnusable(f"its schema has more than {_DEEPEST} levels or {_PARTS:,} parts")
        made: dict[str, Any] = {}
        for key, value in schema.items():
            if not isinstance(value, _KINDS.get(key, object)):
                continue
            if key in _WORDS and isinstance(value, str):
                made[key] = clean(value, 1_000)
            elif key == "$ref":
                made |= self._follow(value, depth, inside)
            elif key in _NAMED:
                known = Mapping | bool | list if key == "dependencies" else Mapping | bool
                parts = {name: part for name, part in value.items() if isinstance(part, known)}
                made[key] = {name: self.read(part, depth - 1, inside) for name, part in parts.items()}
            elif key in _SCHEMA_LISTS:
                if members := [part for part in value if isinstance(part, Mapping | bool)]:
                    made[key] = self.read(members, depth - 1, inside)
            elif key not in _LEFT_OUT:
                made[key] = value if key in DATA else self.read(value, depth - 1, inside)
        if "definitions" in made:
            made["$defs"] = {**made.pop("definitions"), **made.get("$defs", {})}
        for bound, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            # Draft 4 says it so.
            if isinstance(made.get(bound), bool) and made.pop(bound) and limit in made:
                made[bound] = made.pop(limit)
        if self._old:
            _mend(made)
        return made

    def _follow(self, reference: Any, depth: int, inside: tuple[str, ...]) -> Mapping[str, Any]:
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise SchemaUnusable(f"its schema refers to another document, {clean(str(reference), 80)!r}")
        name = re.fullmatch(r"#/(?:definitions|\$defs)/([^/]+)", reference)
        if name is not None:
            return {"$ref": f"#/$defs/{name[1]}"}
        if reference in inside:
            return {}  # It contains itself: what is further inside is not described.
        if reference[1:2] not in ("", "/"):
            raise SchemaUnusable(f"its schema refers to an anchor, {clean(reference, 80)!r}")
        target: Any = self._root
        for written in reference[1:].split("/")[1:]:
            step = unquote(written).replace("~1", "/").replace("~0", "~")
            if isinstance(target, list) and step.isascii() and step.isdigit():
                target = dict(enumerate(target)).get(int(step[:9]))
            else:
                target = target.get(step) if isinstance(target, Mapping) else None
        if not isinstance(target, Mapping):
            raise SchemaUnusable(f"its schema refers to what it has not, {clean(reference, 80)!r}")
        found = {key: part for key, part in target.items() if key not in ("$defs", "definitions")}
        return dict(self.read(found, depth - 1, (*inside, reference)))


def _mend(schema: dict[str, Any]) -> None:
    """Write what older drafts say with the keywords of today."""
    if isinstance(schema.get("items"), list):
        schema["prefixItems"] = schema.pop("items")
        if "additionalItems" in schema:
            schema["items"] = schema.pop("additionalItems")
    for name, value in schema.pop("dependencies", {}).items():
        schema.setdefault("dependentRequired" if isinstance(value, list) else "dependentSchemas", {})[name] = value
