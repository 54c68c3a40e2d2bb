"""What a parameter takes: a bounded strict form for literals, texts, lists and objects."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from portico import FunctionSpec
from portico.errors import SchemaUnsupported
from portico.plugins import JsonSchema, StrictForm
from portico.ports import SchemaValidator

_PREFIX = "#/$defs/"
_REFERENCE = re.compile(r'"\$ref": "#/\$defs/([^"]+)"')
_DEPTHS = (3, 6, 12)
_SHAPED = frozenset({"enum", "const", "pattern", "format"})
_NOTES = frozenset({"title", "description", "$defs"})
_DECIMAL = r"^-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,12})?$"
_MOST_MEMBERS = 30
_MOST_LEVELS = 60
_ARRAY = frozenset({"type", "items", "minItems", "maxItems"})
_OBJECT = frozenset({"type", "properties", "required", "additionalProperties"})


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most characters of a text (None: no limit), the most elements of a list, and whether recursion must end."""

    text: int | None
    elements: int
    levels: bool


def bound_schema(schema: Mapping[str, Any], bounds: Bounds, key: str = "") -> dict[str, Any]:
    """Return a strict form with bounded texts, lists and nesting.

    Recursive definitions are written out for three levels, or more if no value ends there. ``key`` is the suffix of
    the definitions' names, since one schema has those of several parameters. Titles and descriptions are left out.
    Raises ``SchemaUnsupported`` if no value ends within twelve levels.
    """
    definitions: Mapping[str, Any] = schema.get("$defs", {})
    recursive = _recursive(definitions) if bounds.levels else frozenset()
    for depth in _DEPTHS if recursive else (0,):
        writer = _BoundedWriter(definitions, recursive, bounds, depth, key)
        written = writer.write(schema, depth)
        if written is not None:
            made = {name: body for name, body in writer.written.items() if body is not None}
            return {**written, "$defs": made} if made else written
    raise SchemaUnsupported("No value of the schema ends.")


@dataclass(slots=True)
class _BoundedWriter:
    definitions: Mapping[str, Any]
    recursive: frozenset[str]
    bounds: Bounds
    depth: int
    key: str
    written: dict[str, dict[str, Any] | None] = field(default_factory=dict)

    def write(self, schema: Mapping[str, Any], left: int) -> dict[str, Any] | None:
        """Return the bounded schema; None if no value ends within the levels that are left."""
        if "$ref" in schema:
            return self.reference(str(schema["$ref"]).removeprefix(_PREFIX), left)
        made = {keyword: argument for keyword, argument in schema.items() if keyword not in _NOTES}
        if "anyOf" in schema:
            options = [option for each in schema["anyOf"] if (option := self.write(each, left)) is not None]
            if not options:
                return None
            made["anyOf"] = options
            return options[0] if len(options) == 1 and len(made) == 1 else made
        if "properties" in schema:
            members = {name: self.write(member, left) for name, member in schema["properties"].items()}
            if None in members.values():
                return None
            made["properties"] = members
        if "items" in schema:
            return self.array(made, schema, left)
        free = schema.get("type") in ("string", ["string", "null"]) and not _SHAPED & schema.keys()
        if free and self.bounds.text is not None:
            made["maxLength"] = self.bounds.text
        return made

    def array(self, made: dict[str, Any], schema: Mapping[str, Any], left: int) -> dict[str, Any] | None:
        least = schema.get("minItems", 0)
        items = self.write(schema["items"], left)
        if items is None:
            return None if least else {**made, "items": {"type": "null"}, "maxItems": 0}
        # Shorter on each level, since the number of elements grows exponentially.
        most = max(1, self.bounds.elements >> (self.depth - left), least)
        return {**made, "items": items, "maxItems": min(schema.get("maxItems", most), most)}

    def reference(self, name: str, left: int) -> dict[str, Any] | None:
        own = f"{name}_{self.key}"
        if name in self.recursive:
            left -= 1
            own = f"{name}_{left}_{self.key}"
            if left < 0:
                return None
        if own not in self.written:
            self.written[own] = {}
            self.written[own] = self.write(self.definitions[name], left)
        return None if self.written[own] is None else {"$ref": f"{_PREFIX}{own}"}


def _recursive(definitions: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the definitions that refer to themselves."""
    leads = {name: set(_REFERENCE.findall(json.dumps(body, default=str))) for name, body in definitions.items()}
    for _ in definitions:
        for reached in leads.values():
            reached.update(*(leads.get(name, ()) for name in tuple(reached)))
    return frozenset(name for name, reached in leads.items() if name in reached)


class ParameterForm:
    """What one parameter takes. ``schema`` is self-contained: it has its own ``$defs``.

    >>> form = ParameterForm({"type": "array", "items": {"type": "string"}})
    >>> form.takes_text, form.items.takes_text
    (False, True)
    """

    def __init__(self, schema: Any, definitions: Mapping[str, Any] | None = None) -> None:
        self.schema: Any = schema
        if isinstance(schema, Mapping) and definitions and "$defs" not in schema and _refers(schema):
            self.schema = {**schema, "$defs": definitions}
        self._bounded: dict[Bounds, Mapping[str, Any] | None] = {}
        self._validate: Callable[[Any], list[str]] | None = None

    @cached_property
    def key(self) -> str:
        """Equal for parameters that take the same; titles and descriptions do not count."""
        text = json.dumps(_plain(self.schema), sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    @cached_property
    def problem(self) -> str:
        """Why no literal can be written; empty if one can."""
        return self._strict if isinstance(self._strict, str) else ""

    @cached_property
    def _strict(self) -> StrictForm | str:
        if not isinstance(self.schema, Mapping | bool):
            return "it is no JSON Schema"
        schema, definitions = self.schema, self._definitions
        if isinstance(schema, Mapping):
            schema = {word: part for word, part in schema.items() if word != "$defs"}
            if schema.get("format") == "decimal" and "pattern" not in schema:
                schema["pattern"] = _DECIMAL  # strict mode has no such format
        wrapped: dict[str, Any] = {
            "type": "object",
            "properties": {"value": schema},
            "required": ["value"],
            "additionalProperties": False,
            **({"$defs": definitions} if definitions else {}),
        }
        try:
            return StrictForm.of(wrapped)
        except SchemaUnsupported as error:
            return str(error)
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
            return f"its schema is malformed: {error}"

    def literal(self, bounds: Bounds) -> Mapping[str, Any] | None:
        """Return the bounded schema of ``{"value": …}``, or None."""
        if bounds not in self._bounded:
            try:
                strict = self._strict
                self._bounded[bounds] = (
                    None if isinstance(strict, str) else bound_schema(strict.schema, bounds, self.key)
                )
            except SchemaUnsupported:
                self._bounded[bounds] = None
        return self._bounded[bounds]

    def decode(self, value: Any) -> Any:
        """Return the value that was written in strict form. Raises `Mismatch`."""
        if isinstance(self._strict, str):
            return value
        return self._strict.decode({"value": value})["value"]

    def faults(self, value: Any, validator: SchemaValidator) -> list[str]:
        """Return what is wrong with a value: services do not enforce every keyword."""
        try:
            json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            return [f"$: it cannot be written as JSON: {error}"]
        if self._validate is None:
            self._validate = self._compile(validator)
        return self._validate(value)

    def _compile(self, validator: SchemaValidator) -> Callable[[Any], list[str]]:
        if self.schema is True:
            return lambda value: []
        try:
            return validator.compile(self.schema)
        except SchemaUnsupported:
            shown = json.dumps(_plain(self.schema), default=str)[:200]
            accepts = JsonSchema.accepts
            return lambda value: (
                [f"$: it is not valid under {shown}"] if accepts(value, self.schema, self.schema) is False else []
            )

    @cached_property
    def takes_text(self) -> bool:
        """Whether every string fits."""
        return JsonSchema.meeting({"type": "string"}, {}, self.schema, self.schema) == "always"

    @cached_property
    def items(self) -> ParameterForm | None:
        """The form of a list's elements, if the schema only bounds their number."""
        schema = self.list_schema
        return None if schema is None else ParameterForm(schema.get("items", True), self._definitions)

    @cached_property
    def listed(self) -> ParameterForm:
        """The form of a list whose every element fits."""
        schema, definitions = self.schema, self._definitions or {}
        if isinstance(schema, Mapping):
            schema = {word: part for word, part in schema.items() if word != "$defs"}
        return ParameterForm(JsonSchema.attach({"type": "array", "items": schema}, definitions))

    @cached_property
    def list_schema(self) -> Mapping[str, Any] | None:
        """The first alternative that is a plain array."""
        return next((each for each in self._alternatives() if _is_plain(each, "array", _ARRAY)), None)

    @cached_property
    def members(self) -> Mapping[str, tuple[ParameterForm, bool]] | None:
        """The forms of an object's properties, and whether they are required, if the schema asks nothing else."""
        schema = next((each for each in self._alternatives() if _is_plain(each, "object", _OBJECT)), None)
        properties = schema.get("properties") if schema is not None else None
        if not schema or not isinstance(properties, Mapping) or not 0 < len(properties) <= _MOST_MEMBERS:
            return None
        required = schema.get("required", ())
        if not set(required) <= properties.keys():
            return None
        return {name: (ParameterForm(each, self._definitions), name in required) for name, each in properties.items()}

    @property
    def _definitions(self) -> Mapping[str, Any] | None:
        found = self.schema.get("$defs") if isinstance(self.schema, Mapping) else None
        return found if isinstance(found, Mapping) else None

    def _alternatives(self) -> Iterator[Mapping[str, Any]]:
        """Yield the alternatives: a value must fit one of them."""
        stack: list[Any] = [self.schema]
        for _ in range(_MOST_LEVELS):
            if not stack:
                return
            schema = stack.pop()
            if not isinstance(schema, Mapping):
                continue
            words = schema.keys() - JsonSchema.ANNOTATIONS
            if words == {"$ref"}:
                stack.append(JsonSchema.resolve(schema["$ref"], self.schema))
            elif words == {"anyOf"} and isinstance(schema["anyOf"], list):
                stack.extend(reversed(schema["anyOf"]))
            else:
                yield schema


class FunctionForm:
    """The parameters of a function, each with its form and whether it is required.

    ``problem`` says why the function cannot be called, and is empty otherwise.
    """

    def __init__(self, spec: FunctionSpec) -> None:
        self.name = spec.name
        self.parameters: Mapping[str, tuple[ParameterForm, bool]] = {}
        self.problem = ""
        parameters = spec.parameters
        try:
            definitions = parameters.get("$defs")
            required = list(parameters.get("required", ()))
            properties: Mapping[str, Any] = parameters.get("properties", {})
            self.parameters = {
                name: (ParameterForm(schema, definitions), name in required) for name, schema in properties.items()
            }
            for form, _ in self.parameters.values():
                _ = form.key
        except (TypeError, AttributeError, ValueError, RecursionError) as error:
            self.problem = f"its parameters are malformed: {error}"
        else:
            undescribed = [name for name in required if name not in properties]
            if undescribed:
                self.problem = f"its parameter {undescribed[0]!r} is required and not described"


def _is_plain(schema: Mapping[str, Any], kind: str, words: frozenset[str]) -> bool:
    kinds = schema.get("type")
    return (
        kinds == kind or (isinstance(kinds, list) and kind in kinds)
    ) and schema.keys() - JsonSchema.ANNOTATIONS <= words


def _refers(schema: Any) -> bool:
    if isinstance(schema, Mapping):
        return "$ref" in schema or any(map(_refers, schema.values()))
    return isinstance(schema, list) and any(map(_refers, schema))


def _plain(schema: Any, *, named: bool = False) -> Any:
    """Return a schema without titles and descriptions. The keys of a ``named`` object are names, not keywords."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        word: part if word in ("enum", "const") and not named else _plain(part, named=not named and word in _NAMED)
        for word, part in schema.items()
        if named or word not in _FOR_PEOPLE
    }


_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_FOR_PEOPLE = frozenset({"title", "description", "examples", "$comment"})
