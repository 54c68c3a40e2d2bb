"""What a parameter takes, made ready once: a literal's strict form, texts, and what is inside lists and objects."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

from portico import FunctionSpec
from portico.errors import SchemaUnsupported
from portico.plugins import JsonSchema, StrictForm
from portico.ports import SchemaValidator
from portico_structured_planner.bounds import Bounds, bounded

_PREFIX = "#/$defs/"
_DECIMAL = r"^-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,12})?$"
_MOST_MEMBERS = 30
_MOST_LEVELS = 60
_ARRAY = frozenset({"type", "items", "minItems", "maxItems"})
_OBJECT = frozenset({"type", "properties", "required", "additionalProperties"})


class ParameterForm:
    """What fits one parameter: ``schema`` stands alone, its references lead to its own ``$defs``.

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
        """The same for parameters that take the same: what is said of the schema to people does not count."""
        text = json.dumps(_plain(self.schema), sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    @cached_property
    def problem(self) -> str:
        """Why no literal can be written, empty where one can."""
        return self._strict if isinstance(self._strict, str) else ""

    @cached_property
    def _strict(self) -> StrictForm | str:
        if not isinstance(self.schema, Mapping | bool):
            return "it is no JSON Schema"
        wrapped: dict[str, Any] = {
            "type": "object",
            "properties": {"value": _decimals_as_patterns(self.schema)},
            "required": ["value"],
            "additionalProperties": False,
        }
        if isinstance(self.schema, Mapping) and "$defs" in self.schema:
            wrapped["properties"]["value"] = {
                key: part for key, part in wrapped["properties"]["value"].items() if key != "$defs"
            }
            wrapped["$defs"] = self.schema["$defs"]
        try:
            return StrictForm.of(wrapped)
        except SchemaUnsupported as error:
            return str(error)
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
            return f"its schema is malformed: {error}"

    def literal(self, bounds: Bounds) -> Mapping[str, Any] | None:
        """Return the schema of ``{"value": …}`` within bounds, None for none; definitions have their own names."""
        if bounds not in self._bounded:
            made: Mapping[str, Any] | None = None
            if not isinstance(self._strict, str):
                try:
                    made = _named_apart(bounded(self._strict.schema, bounds), self.key)
                except SchemaUnsupported:
                    made = None
            self._bounded[bounds] = made
        return self._bounded[bounds]

    def decode(self, value: Any) -> Any:
        """Return the value behind what was written in the strict form. Raises `Mismatch`."""
        if isinstance(self._strict, str):
            return value
        return self._strict.decode({"value": value})["value"]

    def faults(self, value: Any, validator: SchemaValidator) -> list[str]:
        """Return what is wrong with a value: services do not honour every keyword, and some honour none."""
        if self._validate is None:
            self._validate = self._validating(validator)
        return [*_unwritable(value, "$"), *self._validate(value)]

    def _validating(self, validator: SchemaValidator) -> Callable[[Any], list[str]]:
        if self.schema is True:
            return lambda value: []
        try:
            return validator.compile(self.schema)
        except SchemaUnsupported:
            shown = json.dumps(_plain(self.schema), default=str)[:200]
            return lambda value: (
                [f"$: it is not valid under {shown}"]
                if JsonSchema.accepts(value, self.schema, self.schema) is False
                else []
            )

    @cached_property
    def takes_text(self) -> bool:
        """Whether every string fits."""
        return JsonSchema.meeting({"type": "string"}, {}, self.schema, self.schema) == "always"

    @cached_property
    def items(self) -> ParameterForm | None:
        """What the elements of a list may be, where nothing else is asked of the list than their number."""
        schema = self.list_schema
        return None if schema is None else ParameterForm(schema.get("items", True), self._definitions)

    @cached_property
    def list_schema(self) -> Mapping[str, Any] | None:
        """The one alternative that is a plain array."""
        return next((each for each in self._alternatives() if _is_plain(each, "array", _ARRAY)), None)

    @cached_property
    def members(self) -> Mapping[str, tuple[ParameterForm, bool]] | None:
        """What the properties of an object take and whether they are needed, where nothing else is asked of it."""
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
        """Yield the schemas of which a value needs to fit one only."""
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
    """The parameters of a function, each with its form and whether it must be given.

    ``problem`` says why it cannot be called at all, where its schema is not one of an object's properties.
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
        except (TypeError, AttributeError, ValueError) as error:
            self.problem = f"its parameters are malformed: {error}"
        except RecursionError:
            self.problem = "its parameters are nested too deeply"
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
    """Leave out what a schema says to people; ``named`` is for an object whose keys are names and no keywords."""
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


def _decimals_as_patterns(schema: Any) -> Any:
    """Say of a decimal at the top in a pattern what strict mode has no format for."""
    if isinstance(schema, Mapping) and schema.get("format") == "decimal" and "pattern" not in schema:
        return {**schema, "pattern": _DECIMAL}
    return schema


def _named_apart(schema: dict[str, Any], key: str) -> dict[str, Any]:
    """Give the definitions names that no other parameter's have, since all will stand in one schema."""
    definitions = schema.get("$defs", {})
    if not definitions:
        return schema
    names = {name: f"{name}_{key}" for name in definitions}
    body = {keyword: part for keyword, part in schema.items() if keyword != "$defs"}
    renamed = {names[name]: _renamed(part, names) for name, part in definitions.items()}
    return {**_renamed(body, names), "$defs": renamed}


def _renamed(schema: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    if "$ref" in schema:
        return {"$ref": _PREFIX + names[str(schema["$ref"]).removeprefix(_PREFIX)]}
    made = dict(schema)
    if "anyOf" in made:
        made["anyOf"] = [_renamed(each, names) for each in made["anyOf"]]
    if "properties" in made:
        made["properties"] = {name: _renamed(each, names) for name, each in made["properties"].items()}
    if "items" in made:
        made["items"] = _renamed(made["items"], names)
    return made


def _unwritable(value: Any, place: str) -> Iterator[str]:
    """Yield what JSON read in Python may hold and a journal cannot: infinities, halves of surrogate pairs."""
    if isinstance(value, str):
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            yield f"{place}: half a surrogate pair is no text"
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{place}: the number is too large"
    elif isinstance(value, list):
        for index, element in enumerate(value):
            yield from _unwritable(element, f"{place}[{index}]")
    elif isinstance(value, dict):
        for name, element in value.items():
            yield from _unwritable(name, place)
            yield from _unwritable(element, f"{place}.{name}")
