"""Schemas of a document, OpenAPI 3.0 and 3.1 alike, to JSON Schema 2020-12 that stands for itself."""

from __future__ import annotations

import json
import re
import warnings
from collections import deque
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal, TypeAlias

from portico_openapi._documents import Documents, Target, read_json
from portico_openapi._errors import Unusable, Within, describe, listing, shorten, show, truth
from portico_openapi._names import word
from portico_openapi._validation import bounded, held

_LONGEST_TEXT = 2_000
_LONGEST_PATTERN = 1_000
_MOST_DATA = 10_000
_DEEPEST = 60
_MOST_JOINED = 1_000_000

_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_COUNTS = frozenset(
    {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"}
)
_TEXTS = frozenset({"title", "description", "format", "contentEncoding", "contentMediaType"})
_FLAGS = frozenset({"uniqueItems", "deprecated"})
_CLOSING = frozenset({"additionalProperties", "unevaluatedProperties"})
_TRUTHS = _FLAGS | _CLOSING | {"nullable", "readOnly", "writeOnly", "exclusiveMinimum", "exclusiveMaximum"}
_MOST_EXAMINED = 1_000
_ANNOTATIONS = frozenset({"title", "description", "example", "examples", "default", "deprecated", "format"})
_CHOICES = frozenset({"allOf", "anyOf", "oneOf"})
_SAME_VALUE = _CHOICES | {"not", "if", "then", "else", "dependentSchemas"}
_ONE_SCHEMA = frozenset(
    {"additionalProperties", "unevaluatedProperties", "unevaluatedItems", "contains", "propertyNames", "items"}
    | {"not", "if", "then", "else"}
)
_NOT_WRITTEN = frozenset({"readOnly", "writeOnly", "xml", "externalDocs", "discriminator", "$comment", "$schema"})
_JOINS = _CHOICES | _CLOSING | {"properties"}
_BESIDE_ONE = _ANNOTATIONS | _NOT_WRITTEN | {"$anchor", "allOf", "nullable"}
_PLAIN_OBJECT = _BESIDE_ONE - {"nullable"} | _CLOSING | {"type", "properties", "required"}
_KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
_DEFINITIONS = "#/$defs/"

_Parts: TypeAlias = list[tuple[Mapping[str, Any], str]]


def behind(schema: Any, definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the references of a compiled schema lead to; an empty object where that is no object."""
    for _ in range(len(definitions) + 1):
        if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
            break
        schema = definitions.get(schema["$ref"].removeprefix(_DEFINITIONS))
    return schema if isinstance(schema, dict) else {}


@lru_cache(maxsize=4096)
def _is_pattern(pattern: str) -> bool:
    """Return whether a text is a pattern of ECMA-262, nearly: one that RE2 or Python has."""
    if len(pattern) > _LONGEST_PATTERN:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return bool(held(pattern) or re.compile(pattern))
    except (re.error, OverflowError, RecursionError):
        return False


@dataclass(slots=True)
class _Definition:
    """A schema that references lead to, written once for all that need it."""

    name: str
    target: Target
    part: bool
    """Whether it stands for a part of an object only, and leaves out what closes the object."""
    schema: Any = None
    problem: Unusable | None = None
    names: list[str] = field(default_factory=list)
    """The definitions that it refers to, in order."""
    met: set[str] = field(default_factory=set)
    """Which it has of ``unevaluatedProperties`` and of ``patternProperties`` with repetitions: not both are checked."""


class Schemas:
    """Write schemas of the documents anew, for requests or for responses.

    ``hidden`` is the keyword of the properties to leave out: ``readOnly`` in requests, ``writeOnly`` in responses.
    ``old`` is true for OpenAPI 3.0.
    """

    def __init__(self, documents: Documents, hidden: Literal["readOnly", "writeOnly"], *, old: bool) -> None:
        self.documents = documents
        self.old = old
        self._hidden = hidden
        self.unchecked: dict[str, None] = {}
        """The patterns that are not checked, since RE2 does not have them."""
        self._met: set[str] = set()
        self._allowance = _MOST_JOINED
        """How many properties may still be joined into objects."""
        self._definitions: dict[tuple[str, str, bool], _Definition] = {}
        self._by_name: dict[str, _Definition] = {}
        self._waiting: deque[_Definition] = deque()
        self._closures: dict[tuple[str, ...], tuple[Mapping[str, Any], set[str]]] = {}

    def compile(self, schema: Any, base: str) -> dict[str, Any]:
        """Return the schema with the definitions that it needs in ``$defs``, and no others.

        Raises `Unusable` with the place, seen from the schema given.
        """
        met = self._met = set()
        written = self._write(schema, base, 0)
        self._write_definitions()
        # Raises for what cannot be used, circles too, before anything is made of it.
        if len(met | self._closure(tuple(self._names_in(written)))[1]) > 1:
            self.unchecked["unevaluatedProperties beside patternProperties with repetitions"] = None
        # A name says less than what it stands for: the first level is written out.
        while isinstance(written, dict) and "$ref" in written:
            definition = self._by_name[written["$ref"].removeprefix(_DEFINITIONS)].schema
            beside = {key: part for key, part in written.items() if key != "$ref"}
            if not isinstance(definition, dict):
                written = beside if definition else False
            elif set(definition) & set(beside) - _ANNOTATIONS:
                break
            else:
                written = {**definition, **beside}
        return self.standing_alone(written)

    def standing_alone(self, written: Any) -> dict[str, Any]:
        """Return a schema that was written here, or a part of it, with the definitions that it needs."""
        if not isinstance(written, dict):
            return {} if written else {"not": {}}
        definitions = self._closure(tuple(self._names_in(written)))[0]
        return {**written, "$defs": definitions} if definitions else written

    def _closure(self, names: tuple[str, ...]) -> tuple[Mapping[str, Any], set[str]]:
        """Return all that these definitions need, and what was met in it. Raises `Unusable` if one cannot be used."""
        if names in self._closures:
            return self._closures[names]
        found: dict[str, Any] = {}
        met: set[str] = set()
        stack = list(reversed(names))
        while stack:
            definition = self._by_name[stack.pop()]
            if definition.name in found:
                continue
            if definition.problem is not None:
                raise Unusable(f"{show(definition.target.pointer.lstrip('/') or 'a document')}: {definition.problem}")
            found[definition.name] = definition.schema
            met |= definition.met
            stack += reversed(definition.names)
        self._closures[names] = found, met
        return found, met

    def _names_in(self, written: Any, *, same_value: bool = False) -> list[str]:
        """Return the definitions that a written schema refers to; data that looks like a reference may count.

        With ``same_value`` only those that describe the same value, not a part of it.
        """
        found: dict[str, None] = {}
        stack = [written]
        while stack:
            part = stack.pop()
            if isinstance(part, list):
                stack += reversed(part)
            if not isinstance(part, dict):
                continue
            reference = part.get("$ref")
            if isinstance(reference, str) and reference.removeprefix(_DEFINITIONS) in self._by_name:
                found[reference.removeprefix(_DEFINITIONS)] = None
            for key in reversed(part):
                if not same_value:
                    stack.append(part[key])
                elif key in _SAME_VALUE:
                    stack += part[key].values() if key == "dependentSchemas" else [part[key]]
        return list(found)

    def _name_of(self, target: Target, part: bool) -> str:
        """Return the name of the definition that a reference leads to; it is written later."""
        part = part and self._is_closed(target.value, target.uri)
        key = (target.uri, target.pointer, part)
        found = self._definitions.get(key)
        if found is None:
            last = target.pointer.rpartition("/")[2] or target.uri.rpartition("/")[2].partition(".")[0]
            name = stem = word(last.replace("~1", "_").replace("~0", "_")) or "schema"
            number = 1
            while name in self._by_name:
                number += 1
                name = f"{stem}_{number}"
            found = self._definitions[key] = self._by_name[name] = _Definition(name, target, part)
            self._waiting.append(found)
        return found.name

    def _write_definitions(self) -> None:
        """Write the definitions that wait, and refuse those that lead back to themselves within one value."""
        fresh = []
        while self._waiting:
            definition = self._waiting.popleft()
            fresh.append(definition)
            self._met = definition.met
            try:
                target = definition.target
                definition.schema = self._write(target.value, target.uri, 0, definition.part)
            except Unusable as error:
                definition.problem = error
            definition.names = self._names_in(definition.schema)
        order = TopologicalSorter({one.name: self._names_in(one.schema, same_value=True) for one in fresh})
        with suppress(CycleError):
            order.prepare()
        ending: set[str] = set()
        while ready := order.get_ready():
            ending.update(ready)
            order.done(*ready)
        for definition in fresh:
            if definition.name not in ending:
                definition.problem = Unusable("its references lead back to itself")

    def _write(self, schema: Any, base: str, depth: int, part: bool = False) -> Any:
        """Write a schema; as a ``part`` of an object it does not close it, as ``additionalProperties: false`` does."""
        if schema is None or schema is True:
            return True
        if schema is False:
            return False
        if type(schema) is not dict:
            raise Unusable(f"expected a schema, not {describe(schema)}")
        if depth > _DEEPEST:
            raise Unusable(f"it nests deeper than {_DEEPEST} schemas")
        schema = {key: truth(value) if key in _TRUTHS else value for key, value in schema.items()}
        if "$ref" in schema:
            # Before 3.1 nothing beside a reference counts; a text does no harm.
            beside = {key: schema[key] for key in schema if key != "$ref" and (not self.old or key == "description")}
            if part or _JOINS.isdisjoint(beside) or not self._is_closed(schema, base):
                return self._reference(schema["$ref"], beside, base, depth, part)
            schema = {**beside, "allOf": [{"$ref": schema["$ref"]}, *listing(beside, "allOf")]}
        parts = schema.get("allOf")
        if type(parts) is list and len(parts) == 1 and all(key in _BESIDE_ONE or key[:2] == "x-" for key in schema):
            # One part with texts beside it: how 3.0 writes a description beside a reference.
            written = _with_texts(self._inside("allOf", parts[0], base, depth, part), schema)
        elif parts and (joined := self._parts_of_object(schema, base, depth)) is not None:
            written = self._write_object(schema, joined, depth, part)
        else:
            written = self._keywords(schema, base, depth, part)
        return _nullable(written) if schema.get("nullable") is True else written

    def _inside(self, key: str | int, schema: Any, base: str, depth: int, part: bool = False) -> Any:
        with Within(key):
            return self._write(schema, base, depth + 1, part)

    def _reference(self, reference: Any, beside: dict[str, Any], base: str, depth: int, part: bool) -> Any:
        # The reference comes first for who reads it.
        first = {"$ref": f"{_DEFINITIONS}{self._name_of(self.documents.resolve(reference, base), part)}"}
        written = self._write(beside, base, depth + 1, part) if beside else True
        return {**first, **written} if isinstance(written, dict) else first

    def _is_closed(self, schema: Any, base: str, through: Collection[str] = _CHOICES) -> bool:
        """Return whether a schema, or another that describes the same value, takes no other properties."""
        stack = [(schema, base)]
        seen: set[int] = set()
        while stack and len(seen) < _MOST_EXAMINED:
            one, uri = stack.pop()
            if type(one) is not dict or id(one) in seen:
                continue
            seen.add(id(one))
            if any(truth(one.get(key)) is False for key in _CLOSING):
                return True
            if "$ref" in one:
                with suppress(Unusable):
                    target = self.documents.resolve(one["$ref"], uri)
                    stack.append((target.value, target.uri))
            stack += [(each, uri) for key in through if type(one.get(key)) is list for each in one[key]]
        return False

    def _keywords(self, schema: Mapping[str, Any], base: str, depth: int, part: bool) -> dict[str, Any]:
        written: dict[str, Any] = {}
        hidden = self._hidden_properties(schema, base)
        # What closes one part of an object would forbid the properties of the others: the whole is closed instead.
        joins = "allOf" in schema or schema.get("properties") or schema.get("additionalProperties") is False
        is_whole = joins and not _CHOICES.isdisjoint(schema) and self._is_closed(schema, base)
        for key, value in schema.items():
            if value is None and key not in ("const", "default", "example"):
                continue
            if key in _CLOSING and value is False and (part or is_whole):
                continue
            if key == "type":
                written |= _types(value)
            elif key == "properties":
                written[key] = self._properties(value, base, depth, hidden)
            elif key == "required":
                if names := _read_required(value, hidden):
                    written[key] = names
            elif key in _CHOICES or key == "prefixItems" or (key == "items" and type(value) is list):
                parts = self._list(key, value, base, depth, key in _CHOICES and (part or is_whole))
                # What fits several alternatives is the service's to judge: many documents say oneOf and mean any.
                named = "anyOf" if key == "oneOf" and "anyOf" not in schema else key
                written |= {"prefixItems" if key == "items" else named: parts} if parts else {}
            elif key in _ONE_SCHEMA:
                written[key] = self._inside(key, value, base, depth)
            elif key in ("dependentSchemas", "patternProperties") and type(value) is dict:
                written[key] = {
                    name: self._inside(name, inner, base, depth)
                    for name, inner in value.items()
                    if key == "dependentSchemas" or _is_pattern(name)
                }
            else:
                _write_simple(key, value, written)
        wholes = [whole for whole in ([schema], schema.get("anyOf"), schema.get("oneOf")) if whole and is_whole]
        if not part and any(all(self._is_closed(one, base, ("allOf",)) for one in whole) for whole in wholes):
            written["unevaluatedProperties"] = False
        # In 3.0 `exclusiveMinimum: true` makes the bound itself exclusive.
        for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            if schema.get(exclusive) is True and bound in written:
                written[exclusive] = written.pop(bound)
        if "type" in written and not written.keys().isdisjoint(("enum", "const", "default")):
            _agree(written, nullable=schema.get("nullable") is True)
        for pattern in [*written.get("patternProperties", ()), *([written["pattern"]] if "pattern" in written else ())]:
            if held(pattern) is None:
                self.unchecked[pattern] = None
        self._met |= {"unevaluatedProperties"} & written.keys()
        if not bounded().is_plain({"patternProperties": dict.fromkeys(written.get("patternProperties", ()))}):
            self._met.add("patternProperties")
        discriminator = schema.get("discriminator")
        if type(discriminator) is dict and type(discriminator.get("propertyName")) is str:
            written["discriminator"] = {"propertyName": discriminator["propertyName"]}
        return written

    def _list(self, key: str, value: Any, base: str, depth: int, part: bool) -> list[Any]:
        with Within(key):
            if type(value) is not list:
                raise Unusable(f"expected a list, not {describe(value)}")
            return [self._inside(number, one, base, depth, part) for number, one in enumerate(value)]

    def _properties(self, value: Any, base: str, depth: int, hidden: set[str]) -> dict[str, Any]:
        with Within("properties"):
            value, base = self._followed(value, base)
            if type(value) is not dict:
                raise Unusable(f"expected an object, not {describe(value)}")
            return {name: self._inside(name, part, base, depth) for name, part in value.items() if name not in hidden}

    def _followed(self, properties: Any, base: str) -> tuple[Any, str]:
        """Return properties that may stand in a file of their own, and their document."""
        is_reference = type(properties) is dict and type(properties.get("$ref")) is str
        return self.documents.follow(properties, base)[:2] if is_reference else (properties, base)

    def _hidden_properties(self, schema: Mapping[str, Any], base: str) -> set[str]:
        """Return the properties that values of this direction do not have, those of the parts of an allOf too."""
        found: set[str] = set()
        stack = [schema]
        while stack:
            part = stack.pop()
            parts = part.get("allOf")
            properties, uri = self._followed(part.get("properties"), base)
            if type(properties) is dict:
                found |= {name for name, inner in properties.items() if self._is_hidden(inner, uri)}
            if type(parts) is list:
                stack += [one for one in parts if type(one) is dict]
        return found

    def _is_hidden(self, schema: Any, base: str) -> bool:
        if type(schema) is not dict:
            return False
        if "$ref" not in schema or (truth(schema.get(self._hidden)) is True and not self.old):
            return truth(schema.get(self._hidden)) is True
        try:
            target = self.documents.follow(schema, base).value
        except Unusable:
            return False
        return type(target) is dict and truth(target.get(self._hidden)) is True

    def _parts_of_object(self, schema: Mapping[str, Any], base: str, depth: int) -> _Parts | None:
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
                if depth or (set(part) - {"$ref", "description"} and not self.old):
                    return None
                target = self.documents.resolve(part["$ref"], uri)
                if (target.uri, target.pointer) not in seen:
                    seen.add((target.uri, target.pointer))
                    stack.append((target.value, target.uri))
                continue
            known = _PLAIN_OBJECT | {"nullable"} if part is schema else _PLAIN_OBJECT
            if any(key not in known and key[:2] != "x-" for key in part):
                return None
            properties, choices = part.get("properties") or {}, part.get("allOf") or []
            if part.get("type", "object") != "object" or type(properties) is not dict or type(choices) is not list:
                return None
            if any(truth(part.get(key)) not in (None, True, False, {}) for key in _CLOSING):
                return None
            if any(names.setdefault(name, (inner, uri)) != (inner, uri) for name, inner in properties.items()):
                return None
            self._allowance -= len(properties)
            if self._allowance < 0:
                return None
            parts.append((part, uri))
            stack += [(choice, uri) for choice in reversed(choices)]
        return parts

    def _write_object(self, schema: Mapping[str, Any], parts: _Parts, depth: int, is_part: bool) -> Any:
        """Write the parts as one object: what they inherit first, then what is the schema's own."""
        hidden = {name for part, uri in parts for name in self._hidden_properties(part, uri)}
        properties: dict[str, Any] = {}
        required: list[str] = []
        for part, uri in [*parts[1:], parts[0]]:
            properties |= self._properties(part.get("properties") or {}, uri, depth, hidden)
            required += _read_required(part.get("required"), hidden)
        written: dict[str, Any] = {"type": "object"} if any("type" in part for part, _ in parts) else {}
        written["properties"] = properties
        if required:
            written["required"] = list(dict.fromkeys(required))
        if not is_part and any(truth(part.get(key)) is False for part, _ in parts for key in _CLOSING):
            written["additionalProperties"] = False
        return _with_texts(written, schema)


def _agree(written: dict[str, Any], *, nullable: bool = False) -> None:
    """Write the values of ``enum``, ``const`` and ``default`` in the type that is said, where they are of another.

    Values that cannot be of the type do not count beside others that can, and texts beside those may mean truth values.
    If none can but null, the type is the mistake; that of a list may be meant for its items.
    """
    names = [written["type"]] if isinstance(written["type"], str) else written["type"]
    for key in (key for key in ("enum", "const", "default") if key in written and "type" in written):
        values = written[key] if key == "enum" else [written[key]]
        meant = [_of_type(value, names) for value in values]
        if key == "default" or (nullable and None in values) or any(_is_of_type(value, names) for value in meant):
            meant = [value if _is_of_type(value, names) else truth(value) for value in meant]
        fitting = list({json.dumps(value): value for value in meant if _is_of_type(value, names)}.values())
        items = written.get("items", {})
        if fitting == values or fitting not in ([], [None]):
            written[key] = fitting if key == "enum" else fitting[0]
        elif "array" in names and isinstance(items, dict) and "enum" not in items and key == "enum":
            written["items"] = {**items, "enum": written.pop("enum")}
            if "type" in items:
                _agree(written["items"])
        elif key != "default":
            written.pop("type", None)


def _of_type(value: Any, names: Collection[str]) -> Any:
    """Return a value as one of a type, where its text is the same; else as it is."""
    if _is_of_type(value, names):
        return value
    if type(value) is not str:
        return json.dumps(value) if "string" in names and type(value) in (bool, int, float) else value
    try:
        return read_json(value)
    except ValueError:
        return value


def _is_of_type(value: Any, names: Collection[str]) -> bool:
    kind = _KINDS.get(type(value), "null")
    if kind == "integer":
        return not {"integer", "number"}.isdisjoint(names)
    return kind in names or (kind == "number" and "integer" in names and value.is_integer())


def _types(value: Any) -> dict[str, Any]:
    if value == "file":
        # What Swagger 2 called a file.
        return {"type": "string", "format": "binary"}
    names = value if type(value) is list else [value]
    for name in names:
        if type(name) is not str or name not in _TYPES:
            raise Unusable(f"{describe(name)} is no type of JSON Schema", ("type",))
    return {"type": value} if names else {}


def _read_required(value: Any, hidden: set[str]) -> list[str]:
    names = [name for name in value if type(name) is str] if type(value) is list else []
    return [name for name in dict.fromkeys(names) if name not in hidden]


def _write_simple(key: str, value: Any, written: dict[str, Any]) -> None:
    """Write a keyword that holds no schema, unless its value makes no sense."""
    is_number = type(value) in (int, float)
    if key in _TEXTS and type(value) is str:
        written[key] = shorten(value, _LONGEST_TEXT)
    elif key in _COUNTS and is_number and value >= 0 and value == int(value):
        written[key] = int(value)
    elif key == "example" and _is_small(value):
        written.setdefault("examples", [value])
    elif (
        (key in _FLAGS and type(value) is bool)
        or (key in _NUMBERS and is_number and (key != "multipleOf" or value > 0))
        or (key in ("enum", "examples") and type(value) is list and value and _is_small(value))
        or (key in ("const", "default") and _is_small(value))
        or (key == "pattern" and type(value) is str and _is_pattern(value))
        or (key == "dependentRequired" and type(value) is dict and all(map(_are_names, value.values())))
    ):
        written[key] = value


def _are_names(value: Any) -> bool:
    return type(value) is list and all(type(name) is str for name in value)


def _is_small(value: Any) -> bool:
    """Return whether a value is of a size that a manual can hold."""
    stack = [value]
    for count, part in enumerate(stack):
        if count > _MOST_DATA:
            return False
        if type(part) is dict:
            stack += part.values()
        elif type(part) is list:
            stack += part
    return True


def _nullable(written: Any) -> Any:
    """Let null be a value too, as 3.0's ``nullable`` means it."""
    if not isinstance(written, dict) or not written:
        return written
    kind = written.get("type")
    simple = not any(key in written for key in ("$ref", "allOf", "anyOf", "oneOf", "not", "if", "const"))
    if simple and kind is not None:
        names = [kind] if isinstance(kind, str) else kind
        written["type"] = names if "null" in names else [*names, "null"]
        if "enum" in written and None not in written["enum"]:
            written["enum"] = [*written["enum"], None]
        return written
    if simple and "enum" not in written:
        return written
    outside = {key: written.pop(key) for key in ("title", "description", "deprecated") if key in written}
    return {**outside, "anyOf": [written, {"type": "null"}]}


def _with_texts(written: Any, schema: Mapping[str, Any]) -> Any:
    """Add the texts that stand beside an ``allOf``."""
    texts: dict[str, Any] = {}
    for key in sorted(_ANNOTATIONS & set(schema)):
        if schema[key] is not None or key in ("default", "example"):
            _write_simple(key, schema[key], texts)
    if isinstance(written, dict):
        return {**written, **texts}
    return texts if written is True else written
