"""Writing one schema anew: keyword by keyword, from OpenAPI's dialects to JSON Schema 2020-12.

What only annotates is kept where models can use it. A constraint whose value makes no sense is left out: it could
only narrow what the service takes, and the service decides that itself. What gives a schema its shape must be right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from portico_openapi._documents import Documents, Target
from portico_openapi._keywords import (
    ANNOTATIONS,
    compiled_pattern,
    mend_bounds,
    nullable,
    types,
    with_texts,
    write_simple,
)
from portico_openapi._wrong import Wrong, described

_DEEPEST = 60
_SAME_VALUE = frozenset({"not", "if", "then", "else"})
_PARTS = frozenset(
    {"additionalProperties", "unevaluatedProperties", "unevaluatedItems", "contains", "propertyNames", "items"}
)
_CHOICES = frozenset({"allOf", "anyOf", "oneOf"})
_UNSEEN = frozenset({"readOnly", "writeOnly", "xml", "externalDocs", "discriminator", "$comment", "$schema", "$anchor"})
_BESIDE_ONE = ANNOTATIONS | _UNSEEN | {"allOf", "nullable"}
_PLAIN_OBJECT = frozenset({"type", "properties", "required", "allOf", "additionalProperties"}) | ANNOTATIONS | _UNSEEN

_Parts: TypeAlias = list[tuple[Mapping[str, Any], str]]


class Writing:
    """Writes one schema; ``leads_to`` and ``at_once`` are the definitions that it names.

    ``name`` gives the name of the definition behind a reference, ``hidden`` is the keyword of the properties to leave
    out, and ``allowance`` how many properties may still be joined into objects, shared with the other schemas.
    """

    def __init__(
        self, documents: Documents, name: Callable[[Target], str], hidden: str, allowance: list[int], *, old: bool
    ) -> None:
        self._documents = documents
        self._allowance = allowance
        self._name = name
        self._hidden = hidden
        self._old = old
        self.leads_to: dict[str, None] = {}
        self.at_once: set[str] = set()
        self._named: dict[tuple[str, str], str] = {}

    def write(self, schema: Any, base: str, depth: int, *, at_once: bool) -> Any:
        """Return the schema anew; ``at_once`` while it speaks of the value that the whole speaks of."""
        if schema is None or schema is True:
            return True
        if schema is False:
            return False
        if type(schema) is not dict:
            raise Wrong(f"expected a schema, not {described(schema)}")
        if depth > _DEEPEST:
            raise Wrong(f"it nests deeper than {_DEEPEST} schemas")
        if "$ref" in schema:
            return self._reference(schema, base, depth, at_once=at_once)
        if _single(schema.get("allOf")) and all(key in _BESIDE_ONE or key.startswith("x-") for key in schema):
            # One part with texts beside it: how 3.0 writes a description beside a reference.
            written = with_texts(self._inside("allOf", schema["allOf"][0], base, depth, at_once=at_once), schema)
        elif schema.get("allOf") and (parts := self._one_object(schema, base, depth)) is not None:
            written = self._object(schema, parts, depth)
        else:
            written = self._keywords(schema, base, depth, at_once=at_once)
        return nullable(written) if schema.get("nullable") is True else written

    def _reference(self, schema: Mapping[str, Any], base: str, depth: int, *, at_once: bool) -> Any:
        # Before 3.1 nothing beside a reference counts; a text does no harm.
        reference = schema.get("$ref", schema.get("$dynamicRef"))
        beside = {key: part for key, part in schema.items() if key not in ("$ref", "$dynamicRef")}
        if self._old:
            beside = {key: part for key, part in beside.items() if key == "description"}
        target = self._documents.resolve(reference, base)
        name = self._named[target.uri, target.pointer] = self._name(target)
        self.leads_to[name] = None
        if at_once:
            self.at_once.add(name)
        written = self.write(beside, base, depth + 1, at_once=at_once) if beside else True
        # The reference comes first for who reads it.
        return {"$ref": f"#/$defs/{name}", **written} if isinstance(written, dict) else {"$ref": f"#/$defs/{name}"}

    def _keywords(self, schema: Mapping[str, Any], base: str, depth: int, *, at_once: bool) -> dict[str, Any]:
        written: dict[str, Any] = {}
        unseen = self._unseen(schema, base)
        for key, value in schema.items():
            if value is None and key not in ("const", "default", "example"):
                continue
            if key == "type":
                written |= types(value)
            elif key == "properties":
                written[key] = self._properties(value, base, depth, unseen)
            elif key == "required":
                names = [name for name in value if type(name) is str] if type(value) is list else []
                if left := [name for name in dict.fromkeys(names) if name not in unseen]:
                    written[key] = left
            elif key in _CHOICES or key == "prefixItems" or (key == "items" and type(value) is list):
                parts = self._list(key, value, base, depth, at_once=at_once)
                # What fits several alternatives is the service's to judge: many documents say oneOf and mean any.
                named = "anyOf" if key == "oneOf" and "anyOf" not in schema else key
                written |= {"prefixItems" if key == "items" else named: parts} if parts else {}
            elif key in _SAME_VALUE:
                written[key] = self._inside(key, value, base, depth, at_once=at_once)
            elif key in _PARTS:
                written[key] = self._inside(key, value, base, depth, at_once=False)
            elif key == "dependentSchemas" and type(value) is dict:
                written[key] = {
                    name: self._inside(name, part, base, depth, at_once=at_once) for name, part in value.items()
                }
            elif key == "patternProperties" and type(value) is dict:
                written[key] = {
                    pattern: self._inside(pattern, part, base, depth, at_once=False)
                    for pattern, part in value.items()
                    if compiled_pattern(pattern)
                }
            elif key == "$dynamicRef":
                written |= {"allOf": [self._reference({key: value}, base, depth, at_once=at_once)]}
            else:
                write_simple(key, value, written)
        mend_bounds(schema, written)
        self._discriminate(schema, base, written)
        return written

    def _inside(self, key: str | int, schema: Any, base: str, depth: int, *, at_once: bool) -> Any:
        try:
            return self.write(schema, base, depth + 1, at_once=at_once)
        except Wrong as error:
            raise error.under(key) from None

    def _list(self, key: str, value: Any, base: str, depth: int, *, at_once: bool) -> list[Any]:
        if type(value) is not list:
            raise Wrong(f"expected a list, not {described(value)}", (key,))
        parts = []
        for number, part in enumerate(value):
            try:
                parts.append(self._inside(number, part, base, depth, at_once=at_once and key in _CHOICES))
            except Wrong as error:
                raise error.under(key) from None
        return parts

    def _properties(self, value: Any, base: str, depth: int, unseen: set[str]) -> dict[str, Any]:
        if type(value) is not dict:
            raise Wrong(f"expected an object, not {described(value)}", ("properties",))
        written = {}
        for name, part in value.items():
            if name not in unseen:
                try:
                    written[name] = self._inside(name, part, base, depth, at_once=False)
                except Wrong as error:
                    raise error.under("properties") from None
        return written

    def _unseen(self, schema: Mapping[str, Any], base: str) -> set[str]:
        """Return the properties that values of this direction do not have, those of the parts of an allOf too."""
        found: set[str] = set()
        stack = [schema]
        while stack:
            part = stack.pop()
            properties = part.get("properties")
            if type(properties) is dict:
                found |= {name for name, inner in properties.items() if self._is_hidden(inner, base)}
            inner = part.get("allOf")
            if type(inner) is list:
                stack += [one for one in inner if type(one) is dict]
        return found

    def _is_hidden(self, schema: Any, base: str) -> bool:
        if type(schema) is not dict:
            return False
        if schema.get(self._hidden) is True and not (self._old and "$ref" in schema):
            return True
        if "$ref" not in schema:
            return False
        try:
            behind = self._documents.follow(schema, base, texts=False).value
        except Wrong:
            return False
        return type(behind) is dict and behind.get(self._hidden) is True

    def _one_object(self, schema: Mapping[str, Any], base: str, depth: int) -> _Parts | None:
        """Return the parts of an ``allOf`` that says no more than one object could; None where it says more.

        One object is what models, strict tools and the check of plans understand best. Only a schema as a whole
        takes in what it refers to: inside, that would repeat much, and without end what refers to itself.
        """
        parts: _Parts = []
        seen: set[tuple[str, str]] = set()
        names: dict[str, tuple[Any, str]] = {}
        stack: _Parts = [(schema, base)]
        while stack:
            part, uri = stack.pop()
            if type(part) is not dict:
                return None
            if "$ref" in part:
                if depth or (set(part) - {"$ref", "description"} and not self._old):
                    return None
                target = self._documents.resolve(part["$ref"], uri)
                if (target.uri, target.pointer) not in seen:
                    seen.add((target.uri, target.pointer))
                    stack.append((target.value, target.uri))
                continue
            own = {"nullable"} if part is schema else set()
            if any(key not in _PLAIN_OBJECT | own and not key.startswith("x-") for key in part):
                return None
            properties, choices = part.get("properties") or {}, part.get("allOf") or []
            if part.get("type", "object") != "object" or type(properties) is not dict or type(choices) is not list:
                return None
            if part.get("additionalProperties") not in (None, True, {}):
                return None
            for name, inner in properties.items():
                if names.setdefault(name, (inner, uri)) != (inner, uri):
                    return None
            self._allowance[0] -= len(properties)
            if self._allowance[0] < 0:
                return None
            parts.append((part, uri))
            stack += [(choice, uri) for choice in reversed(choices)]
        return parts

    def _object(self, schema: Mapping[str, Any], parts: _Parts, depth: int) -> dict[str, Any]:
        """Write the parts as one object: what they inherit first, then what is the schema's own."""
        ordered = [*parts[1:], parts[0]]
        unseen = {name for part, uri in parts for name in self._unseen(part, uri)}
        properties: dict[str, Any] = {}
        required: dict[str, None] = {}
        for part, uri in ordered:
            properties |= self._properties(part.get("properties") or {}, uri, depth, unseen)
            names = part.get("required")
            required |= dict.fromkeys(name for name in (names if type(names) is list else ()) if type(name) is str)
        written: dict[str, Any] = {"type": "object"} if any("type" in part for part, _ in parts) else {}
        written["properties"] = properties
        if left := [name for name in required if name not in unseen]:
            written["required"] = left
        whole: dict[str, Any] = with_texts(written, schema)
        return whole

    def _discriminate(self, schema: Mapping[str, Any], base: str, written: dict[str, Any]) -> None:
        """Keep a discriminator for who reads it, with the alternatives that the schema names."""
        discriminator = schema.get("discriminator")
        if type(discriminator) is not dict or type(discriminator.get("propertyName")) is not str:
            return
        written["discriminator"] = {"propertyName": discriminator["propertyName"]}
        values = discriminator.get("mapping")
        found = {}
        for value, reference in values.items() if type(values) is dict else ():
            whole = reference if type(reference) is str and "/" in reference else f"#/components/schemas/{reference}"
            try:
                target = self._documents.resolve(whole, base)
            except Wrong:
                continue
            if (target.uri, target.pointer) in self._named:
                found[value] = f"#/$defs/{self._named[target.uri, target.pointer]}"
        if found:
            written["discriminator"]["mapping"] = found


def _single(value: Any) -> bool:
    return type(value) is list and len(value) == 1
