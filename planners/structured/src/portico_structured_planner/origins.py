"""What a step may refer to: the input, finished steps and those written so far, and where in each something fits."""

from __future__ import annotations

import datetime as dt
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from portico import FunctionSpec
from portico.plugins import JsonSchema
from portico_structured_planner.forms import FunctionForm, ParameterForm

_REMEMBERED = 4_096
_MOST_PATHS = 16
_DEPTH = 5
_ELEMENTS = 200
_KINDS = 8
_MEMBERS = 40


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """One thing that can be referred to: its step id and the schemas that its value has, all of them."""

    id: str
    schemas: tuple[Mapping[str, Any], ...]


class Forms:
    """What was made ready of functions and of what fits where; the latest are kept, so that a step costs little.

    They are known by the identity of the manuals and schemas, which a kernel makes once for each function.
    """

    def __init__(self) -> None:
        self._functions: OrderedDict[int, tuple[FunctionSpec, FunctionForm]] = OrderedDict()
        self._parameters: OrderedDict[str, ParameterForm] = OrderedDict()
        self._paths: OrderedDict[tuple[int, str], tuple[Any, tuple[tuple[str | int, ...], ...]]] = OrderedDict()

    def function(self, spec: FunctionSpec) -> FunctionForm:
        """Return the form of a function; parameters that take the same share theirs."""
        found = self._functions.get(id(spec))
        if found is None:
            form = FunctionForm(spec)
            if not form.problem:
                form.parameters = {name: (self._shared(each), need) for name, (each, need) in form.parameters.items()}
            found = _kept(self._functions, id(spec), (spec, form))
        return found[1]

    def paths(self, origin: Origin, form: ParameterForm) -> tuple[tuple[str | int, ...], ...]:
        """Return the paths in an origin's value that surely lead to something that always fits, the shortest first."""
        found: dict[tuple[str | int, ...], None] = {}
        for schema in origin.schemas:
            key = (id(schema), form.key)
            known = self._paths.get(key)
            if known is None:
                paths = JsonSchema.fitting_paths(schema, form.schema, form.schema, depth=_DEPTH, most=_MOST_PATHS)
                known = _kept(self._paths, key, (schema, paths))
            found |= dict.fromkeys(known[1])
        return tuple(sorted(found, key=len))[:_MOST_PATHS]

    def _shared(self, form: ParameterForm) -> ParameterForm:
        return self._parameters.get(form.key) or _kept(self._parameters, form.key, form)


def _kept(cache: OrderedDict[Any, Any], key: Any, value: Any) -> Any:
    while len(cache) >= _REMEMBERED:
        cache.popitem(last=False)
    cache[key] = value
    return value


def schema_of(value: Any, depth: int = 0) -> dict[str, Any]:
    """Return a JSON Schema of what a value is: its kinds, properties and formats, not its very words.

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
    if depth >= _DEPTH:
        return {"type": "array"}
    kinds: list[dict[str, Any]] = []
    for element in value[:_ELEMENTS]:
        schema = schema_of(element, depth + 1)
        if schema not in kinds:
            kinds.append(schema)
    whole = len(value) <= _ELEMENTS and len(kinds) <= _KINDS
    items = {} if not whole or not kinds else {"items": kinds[0] if len(kinds) == 1 else {"anyOf": kinds}}
    return {"type": "array", **items, "minItems": len(value)} | ({} if value else {"maxItems": 0})


def _format(text: str) -> str | None:
    for format, read in _FORMATS:
        try:
            read(text)
        except ValueError:
            continue
        return format
    return None


def _day(text: str) -> None:
    if len(text) != 10 or text[4] != "-":
        raise ValueError(text)
    dt.date.fromisoformat(text)


def _moment(text: str) -> None:
    if "T" not in text or dt.datetime.fromisoformat(text).tzinfo is None:
        raise ValueError(text)


def _uuid(text: str) -> None:
    if len(text) != 36:
        raise ValueError(text)
    uuid.UUID(text)


_FORMATS: tuple[tuple[str, Callable[[str], object]], ...] = (("date", _day), ("date-time", _moment), ("uuid", _uuid))
