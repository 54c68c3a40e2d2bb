"""The JSON Schema of the next step: what may be called, with what, and what may be referred to."""

from __future__ import annotations

import datetime as dt
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from portico import FunctionSpec
from portico.plans import ITEM, From
from portico.plugins import JsonSchema
from portico_structured_planner.forms import Bounds, FunctionForm, ParameterForm

_REMEMBERED = 4_096
_MOST_PATHS = 16
_MOST_ITEMS = 32
_DEPTH = 5
_ELEMENTS = 200
_KINDS = 8
_MEMBERS = 40


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """A value that can be referred to: its step id, and all schemas that are known of it."""

    id: str
    schemas: tuple[Mapping[str, Any], ...]


Path = tuple[Any, ...]
Items = Mapping[str, Mapping[Path, Mapping[Path, None]]]
"""Paths in the items of lists: by the step that gives the list, then by the list's path in it."""


class Forms:
    """A cache of the forms of functions and of the paths that fit, for one catalogue.

    Schemas are compared by identity, since a kernel makes them once for each function.
    """

    def __init__(self) -> None:
        self._functions: dict[int, tuple[FunctionSpec, FunctionForm]] = {}
        self._parameters: dict[str, ParameterForm] = {}
        self._paths: dict[tuple[int, str], tuple[Any, tuple[Path, ...]]] = {}

    def function(self, spec: FunctionSpec) -> FunctionForm:
        """Return the form of a function; equal parameters share one form."""
        if id(spec) not in self._functions:
            form = FunctionForm(spec)
            if not form.problem:
                shared = self._parameters.setdefault
                form.parameters = {
                    name: (shared(each.key, each), need) for name, (each, need) in form.parameters.items()
                }
            self._functions[id(spec)] = (spec, form)
        return self._functions[id(spec)][1]

    def items(self, origin: Origin, form: ParameterForm) -> dict[Path, dict[Path, None]]:
        """Return for each list in an origin's value the paths in its items whose value always fits."""
        found: dict[Path, dict[Path, None]] = {}
        for path in self.paths(origin, form.listed, _MOST_ITEMS):
            # A path into all elements, such as $.people[*].name, is one into the item.
            length = next((index for index, part in enumerate(path) if not isinstance(part, str | int)), len(path))
            found.setdefault(path[:length], {})[path[length + 1 :]] = None
        return found

    def paths(self, origin: Origin, form: ParameterForm, most: int = _MOST_PATHS) -> tuple[Path, ...]:
        """Return the paths in an origin's value whose value always fits, the shortest first."""
        found: dict[Path, None] = {}
        for schema in origin.schemas:
            key = (id(schema), form.key)
            if key not in self._paths:
                if len(self._paths) >= _REMEMBERED:
                    self._paths.clear()
                paths = JsonSchema.fitting_paths(schema, form.schema, form.schema, depth=_DEPTH, most=most)
                self._paths[key] = (schema, paths)
            found |= dict.fromkeys(self._paths[key][1])
        return tuple(sorted(found, key=len))[:most]


def schema_of(value: Any, depth: int = 0) -> dict[str, Any]:
    """Return a JSON Schema that describes a value: its types, properties and formats.

    >>> schema_of({"on": "2026-03-01", "places": ["Oslo"]})["properties"]["on"]
    {'type': 'string', 'format': 'date'}
    """
    match value:
        case None:
            return {"type": "null"}
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer"}
        case float():
            return {"type": "number"}
        case str():
            format = _format(value)
            return {"type": "string", "format": format} if format else {"type": "string"}
        case list():
            return _list_schema(value, depth)
        case dict():
            if depth >= _DEPTH:
                return {"type": "object"}
            members = {name: schema_of(value[name], depth + 1) for name in list(value)[:_MEMBERS]}
            whole = len(members) == len(value)
            closed = {"additionalProperties": False} if whole else {}
            return {"type": "object", "properties": members, "required": list(members), **closed}
    return {}


def _list_schema(value: list[Any], depth: int) -> dict[str, Any]:
    if not value:
        return {"type": "array", "maxItems": 0}
    made: dict[str, Any] = {"type": "array", "minItems": len(value)}
    if depth < _DEPTH and len(value) <= _ELEMENTS:
        schemas = [schema_of(element, depth + 1) for element in value]
        kinds = [schema for number, schema in enumerate(schemas) if schema not in schemas[:number]]
        if len(kinds) <= _KINDS:
            made["items"] = {"anyOf": kinds}
    return made


def _format(text: str) -> str | None:
    for format, shape, read in _FORMATS:
        if shape.fullmatch(text):
            try:
                read(text)
            except ValueError:
                continue
            return format
    return None


_FORMATS: tuple[tuple[str, re.Pattern[str], Callable[[str], object]], ...] = (
    ("date", re.compile(r"\d{4}-\d\d-\d\d"), dt.date.fromisoformat),
    ("date-time", re.compile(r"\d{4}-\d\d-\d\dT.*(?:Z|[+-]\d\d:\d\d)", re.ASCII), dt.datetime.fromisoformat),
    ("uuid", re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"), uuid.UUID),
)


ANYTHING = ParameterForm(True)
"""What the result of a plan, and a part of a text, may be."""

TRUTH = ParameterForm({"type": "boolean"})
COMPARED = (ParameterForm({"type": ["string", "null"]}), ParameterForm({"type": ["number", "null"]}))
"""What a condition may compare: texts with texts, and numbers with numbers."""

_REASON = 200
_MISSING = 8
_PARTS = 6
_PREFIX = "#/$defs/"


@dataclass(frozen=True, slots=True)
class Rules:
    """What the next step may be, and its bounds."""

    bounds: Bounds
    calls: bool = True
    ends: bool = True
    give_up: bool = True
    force_references: bool = False
    loops: bool = True
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Functions that are not offered, with the reasons."""


@dataclass(slots=True)
class StepForm:
    """The schema of the next reply, and what `portico_structured_planner.reading` needs to read it."""

    schema: Mapping[str, Any]
    functions: Mapping[str, FunctionForm]
    rules: Rules
    finish: str
    """The name that ends a plan; ``give_up`` is the name that says it is infeasible."""
    give_up: str
    can_finish: bool
    can_give_up: bool
    left_out: Mapping[str, str]
    """Functions that cannot be called in this step, with the reasons."""
    allowed: Mapping[str, Mapping[str, Mapping[Path, None]]]
    """What may be referred to: by the key of a parameter's form, then by step id, the paths."""
    items: Mapping[str, Items]
    """The same for the items of lists, by the key of a parameter's form. All lists are those of `ANYTHING`."""
    origins: Sequence[Origin]
    strict: bool = False

    @property
    def names(self) -> list[str]:
        """The names that the next step may have."""
        ends = {self.finish: self.can_finish, self.give_up: self.can_give_up}
        return [*self.functions, *(name for name, possible in ends.items() if possible)]


def step_form(functions: Sequence[FunctionSpec], origins: Sequence[Origin], forms: Forms, rules: Rules) -> StepForm:
    """Make the form of the next step.

    The root is an object with the one property ``next``, whose alternatives each begin with a constant: the name
    of a function, ``finish`` or ``infeasible`` (with underscores behind where a function is called so).
    """
    return _StepWriter(origins, forms, rules).form(functions)


@dataclass(slots=True)
class _StepWriter:
    origins: Sequence[Origin]
    forms: Forms
    rules: Rules
    definitions: dict[str, Any] = field(default_factory=dict)
    written: dict[tuple[str, bool], str | None] = field(default_factory=dict)
    referable: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    shared: dict[tuple[str, tuple[Path, ...]], str] = field(default_factory=dict)
    allowed: dict[str, dict[str, dict[Path, None]]] = field(default_factory=dict)
    items: dict[str, dict[str, dict[Path, dict[Path, None]]]] = field(default_factory=dict)
    control: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The schemas of ``each`` and ``when``, where a step may have them."""
    listing: Sequence[Origin] = ()
    """The origins that surely have a list, the latest first; none where no step runs for its items."""

    def form(self, functions: Sequence[FunctionSpec]) -> StepForm:
        taken = {spec.name for spec in functions}
        options: list[dict[str, Any]] = []
        offered: dict[str, FunctionForm] = {}
        left_out = dict(self.rules.left_out)
        if self.rules.loops and self.rules.calls and all(origin.id != ITEM for origin in self.origins):
            self.listing = [origin for origin in reversed(self.origins) if self.forms.items(origin, ANYTHING)]
            self.controls()
        for spec in functions if self.rules.calls else ():
            if spec.name in left_out:
                continue
            form = self.forms.function(spec)
            option = self.call(form)
            if isinstance(option, str):
                left_out[spec.name] = option
            else:
                offered[spec.name] = form
                options.append(option)
        finish, give_up = _find_unused("finish", taken), _find_unused("infeasible", taken)
        can_give_up = self.rules.ends and self.rules.give_up
        references = self.references(ANYTHING) if self.rules.ends else None
        if references is not None:
            options.append(_close({"function": _constant(finish), "result": self.result(references)}))
        if can_give_up:
            missing = {"type": "array", "items": self.text(_REASON), "maxItems": _MISSING}
            options.append(_close({"function": _constant(give_up), "reason": self.text(_REASON), "missing": missing}))
        schema = _close({"next": _any(options)})
        if self.definitions:
            schema["$defs"] = self.definitions
        return StepForm(
            schema,
            offered,
            self.rules,
            finish,
            give_up,
            can_finish=references is not None,
            can_give_up=can_give_up,
            left_out=left_out,
            allowed=self.allowed,
            items=self.items,
            origins=self.origins,
        )

    def call(self, form: FunctionForm) -> dict[str, Any] | str:
        """Return the alternative that calls a function, or the reason why there is none."""
        if form.problem:
            return form.problem
        arguments: dict[str, Any] = {}
        for name, (parameter, required) in form.parameters.items():
            expression = self.expression(parameter)
            if expression is None and required:
                problem = parameter.problem or "no value of it ends"
                return f"its parameter {name!r} takes nothing that can be written here: {problem}"
            arguments[name] = _optional(expression) if not required else expression
        call = {"function": _constant(form.name), "reason": self.text(_REASON)}
        return _close({**call, **self.control, "arguments": _close(arguments)})

    def controls(self) -> None:
        """Find what a step may have before its arguments: what it runs for, and when."""
        if lists := [self.places(each.id, (*self.forms.items(each, ANYTHING),)) for each in self.listing]:
            self.control["each"] = self.define("each", _optional(_close({"items": _any(lists)})))
        tests = [_close({"true": _any(places)})] if (places := self.referring(TRUTH)) else []
        for form in COMPARED:
            if places := self.referring(form):
                sides = _any([*places, dict(form.literal(self.rules.bounds) or {})])
                tests.append(_close({"equal": {"type": "array", "items": sides, "minItems": 2, "maxItems": 2}}))
        if places := self.referring(ANYTHING):
            tests.append(_close({"present": _any(places)}))
            test = self.define("condition", _any(tests))
            self.control["when"] = self.define("when", {"anyOf": [test, _close({"not": test}), {"type": "null"}]})

    def referring(self, form: ParameterForm) -> list[dict[str, Any]]:
        """Return the alternatives that refer to something: to a result, or to the item of a list."""
        return [found for found in (self.references(form), self.item(form)) if found is not None]

    def item(self, form: ParameterForm) -> dict[str, Any] | None:
        """Return the alternative that refers to the item of a list; what is taken of this depends on the list."""
        if not self.listing:
            return None
        if form.key not in self.items:
            fitting = {origin.id: self.forms.items(origin, form) for origin in self.listing}
            self.items[form.key] = {id: lists for id, lists in fitting.items() if lists}
        paths = dict.fromkeys(path for lists in self.items[form.key].values() for one in lists.values() for path in one)
        return self.places(ITEM, tuple(paths)[:_MOST_ITEMS]) if paths else None

    def define(self, name: str, schema: dict[str, Any]) -> dict[str, Any]:
        """Write a definition; return a reference to it."""
        self.definitions[name] = schema
        return {"$ref": _PREFIX + name}

    def expression(self, form: ParameterForm, *, inner: bool = False) -> dict[str, Any] | None:
        """Return a reference to the schema of an argument, or None; ``inner`` if it is inside a list or an object."""
        key = (form.key, inner)
        if key not in self.written:
            options = self.options(form, inner=inner)
            if not options:
                self.written[key] = None
            else:
                name = f"argument_{len(self.written) + 1}"
                self.written[key] = name
                self.definitions[name] = _any(options)
        found = self.written[key]
        return None if found is None else {"$ref": _PREFIX + found}

    def options(self, form: ParameterForm, *, inner: bool) -> list[dict[str, Any]]:
        references = self.references(form)
        options: list[dict[str, Any]] = []
        if references is None or not self.rules.force_references:
            literal = form.literal(self.rules.bounds)
            if literal is not None:
                self.definitions |= literal.get("$defs", {})
                options.append({word: part for word, part in literal.items() if word != "$defs"})
        options += self.referring(form)
        free = references is None or not self.rules.force_references
        if free and form.takes_text and (parts := self.parts()) is not None:
            options.append(parts)
        if not inner:
            options += [made for made in (self.list_of(form), self.object_of(form)) if made is not None]
        return options

    def references(self, form: ParameterForm) -> dict[str, Any] | None:
        """Return a reference to the alternatives, each with one origin and the paths that fit."""
        if form.key not in self.referable:
            options = []
            for origin in self.origins:
                paths = self.forms.paths(origin, form)
                if paths:
                    self.allowed.setdefault(form.key, {})[origin.id] = dict.fromkeys(paths)
                    options.append(self.places(origin.id, paths))
            self.referable[form.key] = options[0] if options else None
            if len(options) > 1:
                self.referable[form.key] = self.define(f"reference_{len(self.referable)}", {"anyOf": options})
        return self.referable[form.key]

    def places(self, id: str, paths: tuple[Path, ...]) -> dict[str, Any]:
        """Return one alternative; equal ones of several parameters are written once."""
        key = (id, paths)
        if key not in self.shared:
            # By number: a step's id may have characters that a definition's name may not have.
            self.shared[key] = f"place_{len(self.shared) + 1}"
            listed = [From.print_path(path) for path in paths]
            where = {"type": "string", "enum": listed} if len(listed) > 1 else _constant(listed[0])
            self.definitions[self.shared[key]] = _close({"from": _constant(id), "path": where})
        return {"$ref": _PREFIX + self.shared[key]}

    def parts(self) -> dict[str, Any] | None:
        """Return the alternative of a text made of strings and references."""
        references = self.references(ANYTHING)
        if references is None:
            return None
        if "text" not in self.definitions:
            parts = _any([*self.referring(ANYTHING), self.text(self.rules.bounds.text)])
            self.definitions["text"] = _close(
                {"text": {"type": "array", "items": parts, "minItems": 1, "maxItems": _PARTS}}
            )
        return {"$ref": _PREFIX + "text"}

    def list_of(self, form: ParameterForm) -> dict[str, Any] | None:
        """Return the alternative of a list whose elements may be references, where any fits."""
        schema = form.list_schema
        if schema is None or form.items is None or not self.referring(form.items):
            return None
        element = self.expression(form.items, inner=True)
        least, most = schema.get("minItems", 0), schema.get("maxItems", self.rules.bounds.elements)
        most = max(min(most, self.rules.bounds.elements), least)
        if element is None or most < 1:
            return None
        return _close({"list": {"type": "array", "items": element, "minItems": max(least, 1), "maxItems": most}})

    def object_of(self, form: ParameterForm) -> dict[str, Any] | None:
        """Return the alternative of an object whose properties may be references, where any fits."""
        members = form.members
        if members is None or not any(self.referring(member) for member, _ in members.values()):
            return None
        made: dict[str, Any] = {}
        for name, (member, required) in members.items():
            expression = self.expression(member, inner=True)
            if expression is None and required:
                return None
            made[name] = expression if required else _optional(expression)
        return _close({"object": _close(made)})

    def result(self, references: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of the result: one reference, or several whose texts are joined."""
        several = _close({"text": {"type": "array", "items": references, "minItems": 2, "maxItems": _PARTS}})
        return {"anyOf": [references, several]}

    def text(self, most: int | None) -> dict[str, Any]:
        bound = self.rules.bounds.text
        return (
            {"type": "string"} if bound is None or most is None else {"type": "string", "maxLength": min(most, bound)}
        )


def _any(options: list[dict[str, Any]]) -> dict[str, Any]:
    return options[0] if len(options) == 1 else {"anyOf": options}


def _optional(expression: dict[str, Any] | None) -> dict[str, Any]:
    return {"type": "null"} if expression is None else {"anyOf": [expression, {"type": "null"}]}


def _constant(text: str) -> dict[str, Any]:
    return {"type": "string", "const": text}


def _close(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _find_unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
