"""Schemas of a document, OpenAPI 3.0 and 3.1 alike, to JSON Schema 2020-12 that stands for itself."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from portico_openapi._documents import Documents, Target
from portico_openapi._wrong import Twice, Within, Wrong, described, shortened, shown

_LONGEST_TEXT = 2_000
_LONGEST_PATTERN = 1_000
_MOST_DATA = 10_000

_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_COUNTS = frozenset(
    {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"}
)
_TEXTS = frozenset({"title", "description", "format", "contentEncoding", "contentMediaType"})
_FLAGS = frozenset({"uniqueItems", "deprecated"})
ANNOTATIONS = frozenset({"title", "description", "example", "examples", "default", "deprecated", "format"})


def types(value: Any) -> dict[str, Any]:
    """Return the keyword ``type``. Raises `Wrong` for what is no type."""
    if value == "file":
        # What Swagger 2 called a file.
        return {"type": "string", "format": "binary"}
    names = value if type(value) is list else [value]
    for name in names:
        if type(name) is not str or name not in _TYPES:
            raise Wrong(f"{described(name)} is no type of JSON Schema", ("type",))
    return {"type": value} if names else {}


def write_simple(key: str, value: Any, written: dict[str, Any]) -> None:
    """Write a keyword that holds no schema, unless its value makes no sense."""
    is_number = type(value) in (int, float)
    if key in _TEXTS and type(value) is str:
        written[key] = shortened(value, _LONGEST_TEXT)
    elif key in _COUNTS and is_number and value >= 0 and value == int(value):
        written[key] = int(value)
    elif key == "example" and plain_data(value):
        written.setdefault("examples", [value])
    elif (
        (key in _FLAGS and type(value) is bool)
        or (key in _NUMBERS and is_number and (key != "multipleOf" or value > 0))
        or (key in ("enum", "examples") and type(value) is list and value and plain_data(value))
        or (key in ("const", "default") and plain_data(value))
        or (key == "pattern" and type(value) is str and compiled_pattern(value))
        or (key == "dependentRequired" and type(value) is dict and all(map(_are_names, value.values())))
    ):
        written[key] = value


def _are_names(value: Any) -> bool:
    return type(value) is list and all(type(name) is str for name in value)


def mend_bounds(schema: Mapping[str, Any], written: dict[str, Any]) -> None:
    """Turn 3.0's ``exclusiveMinimum: true`` into the bound itself."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if schema.get(exclusive) is True and bound in written:
            written[exclusive] = written.pop(bound)


def nullable(written: Any) -> Any:
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


def with_texts(written: Any, schema: Mapping[str, Any]) -> Any:
    """Add the texts that stand beside an ``allOf``."""
    texts: dict[str, Any] = {}
    for key in ANNOTATIONS & set(schema):
        if schema[key] is not None or key in ("default", "example"):
            write_simple(key, schema[key], texts)
    if not isinstance(written, dict):
        return texts if written is True else written
    return {**written, **dict(sorted(texts.items()))}


def plain_data(value: Any) -> bool:
    """Return whether a value is JSON all through, of a size that a manual can hold."""
    stack = [value]
    count = 0
    while stack:
        part = stack.pop()
        count += 1
        if count > _MOST_DATA or type(part) is Twice:
            return False
        if type(part) is dict:
            stack += part.values()
        elif type(part) is list:
            stack += part
    return True


@lru_cache(maxsize=4096)
def compiled_pattern(pattern: str) -> re.Pattern[str] | None:
    """Compile a pattern of ECMA-262 as Python has it; None where Python has not."""
    if len(pattern) > _LONGEST_PATTERN:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return None


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
        name = self._name(target)
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
        discriminator = schema.get("discriminator")
        if type(discriminator) is dict and type(discriminator.get("propertyName")) is str:
            written["discriminator"] = {"propertyName": discriminator["propertyName"]}
        return written

    def _inside(self, key: str | int, schema: Any, base: str, depth: int, *, at_once: bool) -> Any:
        with Within(key):
            return self.write(schema, base, depth + 1, at_once=at_once)

    def _list(self, key: str, value: Any, base: str, depth: int, *, at_once: bool) -> list[Any]:
        if type(value) is not list:
            raise Wrong(f"expected a list, not {described(value)}", (key,))
        parts = []
        for number, part in enumerate(value):
            with Within(key):
                parts.append(self._inside(number, part, base, depth, at_once=at_once and key in _CHOICES))
        return parts

    def _properties(self, value: Any, base: str, depth: int, unseen: set[str]) -> dict[str, Any]:
        if type(value) is not dict:
            raise Wrong(f"expected an object, not {described(value)}", ("properties",))
        written = {}
        for name, part in value.items():
            if name not in unseen:
                with Within("properties"):
                    written[name] = self._inside(name, part, base, depth, at_once=False)
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


def _single(value: Any) -> bool:
    return type(value) is list and len(value) == 1


Direction: TypeAlias = Literal["request", "response"]

_LONGEST_NAME = 64
_MOST_JOINED = 1_000_000


@dataclass(slots=True)
class _Definition:
    """A schema that references lead to, written once for all that need it."""

    name: str
    target: Target
    schema: Any = None
    problem: Wrong | None = None
    leads_to: dict[str, None] = field(default_factory=dict)
    """The definitions that it names, in order."""
    at_once: set[str] = field(default_factory=set)
    """Those of them that speak of the same value, not of a part of it."""


class Schemas:
    """Writes schemas of the documents anew. What requests need and what responses need are two families.

    A property that is ``readOnly`` is in no request, one that is ``writeOnly`` in no response.
    """

    def __init__(self, documents: Documents, *, old: bool) -> None:
        self.documents = documents
        self.old = old
        self._families: dict[Direction, _Family] = {
            "request": _Family(documents, "readOnly", old=old),
            "response": _Family(documents, "writeOnly", old=old),
        }

    def compile(self, schema: Any, base: str, direction: Direction) -> dict[str, Any]:
        """Return the schema with the definitions that it needs in ``$defs``, and no others.

        Raises `Wrong` with the place, seen from the schema given.
        """
        return self._families[direction].compile(schema, base)

    def standing_alone(self, part: Any, direction: Direction) -> dict[str, Any]:
        """Return a part of a compiled schema with those definitions that it needs itself."""
        return self._families[direction].standing_alone(part)


class _Family:
    def __init__(self, documents: Documents, hidden: str, *, old: bool) -> None:
        self._documents = documents
        self._hidden = hidden
        self._old = old
        self._definitions: dict[tuple[str, str], _Definition] = {}
        self._by_name: dict[str, _Definition] = {}
        self._waiting: deque[_Definition] = deque()
        self._clear: set[str] = set()
        self._allowance = [_MOST_JOINED]
        self._closures: dict[tuple[str, ...], Mapping[str, Any]] = {}

    def compile(self, schema: Any, base: str) -> dict[str, Any]:
        writing = self._writing()
        written = writing.write(schema, base, 0, at_once=True)
        self._finish()
        leads_to = dict(writing.leads_to)
        # What cannot be used is told before anything is made of it.
        self._closure(tuple(leads_to))
        if written is True:
            return {}
        if written is False:
            return {"not": {}}
        # A name says less than what it stands for: the first level is written out.
        while "$ref" in written:
            definition = self._by_name[written["$ref"].removeprefix("#/$defs/")]
            beside = {key: part for key, part in written.items() if key != "$ref"}
            if not isinstance(definition.schema, dict):
                return beside if definition.schema is True else {"not": {}}
            if set(definition.schema) & set(beside) - {"title", "description", "examples", "default", "deprecated"}:
                break
            written = {**definition.schema, **beside}
            del leads_to[definition.name]
            leads_to |= definition.leads_to
        definitions = self._closure(tuple(leads_to))
        return {**written, "$defs": definitions} if definitions else written

    def standing_alone(self, part: Any) -> dict[str, Any]:
        if not isinstance(part, dict):
            return {} if part else {"not": {}}
        names: dict[str, None] = {}
        stack: list[Any] = [part]
        while stack:
            inner = stack.pop()
            if isinstance(inner, dict):
                reference = inner.get("$ref")
                if isinstance(reference, str) and reference.removeprefix("#/$defs/") in self._by_name:
                    names[reference.removeprefix("#/$defs/")] = None
                stack += inner.values()
            elif isinstance(inner, list):
                stack += inner
        definitions = self._closure(tuple(names))
        return {**part, "$defs": definitions} if definitions else part

    def name(self, target: Target) -> str:
        """Return the name of the definition that a reference leads to; it is written later."""
        key = (target.uri, target.pointer)
        found = self._definitions.get(key)
        if found is None:
            name = stem = _stem(target)
            number = 1
            while name in self._by_name:
                number += 1
                name = f"{stem}_{number}"
            found = self._definitions[key] = self._by_name[name] = _Definition(name, target)
            self._waiting.append(found)
        return found.name

    def _writing(self) -> Writing:
        return Writing(self._documents, self.name, self._hidden, self._allowance, old=self._old)

    def _finish(self) -> None:
        fresh = []
        while self._waiting:
            definition = self._waiting.popleft()
            fresh.append(definition)
            writing = self._writing()
            try:
                definition.schema = writing.write(definition.target.value, definition.target.uri, 0, at_once=True)
            except Wrong as error:
                definition.problem = error
            definition.leads_to = writing.leads_to
            definition.at_once = writing.at_once
        for definition in fresh:
            self._refuse_circles(definition.name)

    def _refuse_circles(self, start: str) -> None:
        """Mark the definitions that lead back to themselves without going deeper into the value."""
        trail: list[str] = [start]
        on_trail = {start}
        stack = [iter(() if start in self._clear else sorted(self._by_name[start].at_once))]
        while stack:
            following = next(stack[-1], None)
            if following is None:
                stack.pop()
                done = trail.pop()
                on_trail.discard(done)
                self._clear.add(done)
            elif following in on_trail:
                for name in trail[trail.index(following) :]:
                    self._by_name[name].problem = Wrong("its references lead back to itself")
            elif following not in self._clear:
                trail.append(following)
                on_trail.add(following)
                stack.append(iter(sorted(self._by_name[following].at_once)))

    def _closure(self, names: tuple[str, ...]) -> Mapping[str, Any]:
        """Return all that these definitions need, themselves included. Raises `Wrong` when one cannot be used."""
        known = self._closures.get(names)
        if known is not None:
            return known
        found: dict[str, Any] = {}
        stack = list(reversed(names))
        while stack:
            definition = self._by_name[stack.pop()]
            if definition.name in found:
                continue
            if definition.problem is not None:
                raise Wrong(f"{shown(definition.target.pointer.lstrip('/') or 'a document')}: {definition.problem}")
            found[definition.name] = definition.schema
            stack.extend(reversed(definition.leads_to))
        self._closures[names] = found
        return found


def _stem(target: Target) -> str:
    """Return a name for a definition: the last word of its pointer, or its document's."""
    word = target.pointer.rpartition("/")[2] or target.uri.rpartition("/")[2].partition(".")[0]
    folded = unicodedata.normalize("NFKD", word.replace("~1", "_").replace("~0", "_"))
    return "_".join(re.findall(r"[0-9A-Za-z_]+", folded[:500]))[:_LONGEST_NAME] or "schema"
