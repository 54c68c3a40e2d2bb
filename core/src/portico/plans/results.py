"""What a plan gives: the JSON Schema of its result, as far as the schemas of its functions say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portico._schema.definitions import hoisted, with_definitions
from portico.functions import FunctionManual
from portico.plans.path import JsonPath
from portico.plans.plan import INPUT, Expression, From, ListOf, ObjectOf, Plan, PlanTemplate, Step, TextOf, Value

__all__ = ["result_schema"]

_KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
_DEEPEST = 50


def result_schema(plan: Plan, catalogue: Mapping[str, FunctionManual]) -> dict[str, Any]:
    """Return a JSON Schema that every result of a plan fits; an empty one, which anything fits, where nothing is known.

    >>> result_schema(Plan("Add", result=ObjectOf({"words": TextOf(())})), {})["properties"]
    {'words': {'type': 'string'}}
    """
    return _plan(plan, catalogue, 0)


def _plan(plan: Plan, catalogue: Mapping[str, FunctionManual], depth: int) -> dict[str, Any]:
    if plan.result is None:
        return {"type": "null"}
    definitions: dict[str, Mapping[str, Any]] = {}
    steps = {step.id: step for step in plan.steps}

    def given_by(reference: From) -> Mapping[str, Any]:
        if reference.step == INPUT:
            return _at(plan.input or {}, reference.path)
        step = steps.get(reference.step)
        return {} if step is None or depth >= _DEEPEST else _at(_step(step, catalogue, depth), reference.path)

    def schema(expression: Expression) -> dict[str, Any]:
        match expression:
            case Value(value):
                kind = _KINDS.get(type(value))
                return {"type": kind or "null"}
            case TextOf():
                return {"type": "string"}
            case From():
                return dict(hoisted(given_by(expression), definitions))
            case ListOf(items):
                count = len(items)
                inner = [schema(item) for item in items]
                if not count:  # JSON Schema has no empty prefixItems
                    return {"type": "array", "maxItems": 0}
                return {"type": "array", "prefixItems": inner, "minItems": count, "maxItems": count}
            case ObjectOf(members):
                return {
                    "type": "object",
                    "properties": {name: schema(member) for name, member in members.items()},
                    "required": list(members),
                    "additionalProperties": False,
                }

    return dict(with_definitions(schema(plan.result), definitions))


def _step(step: Step, catalogue: Mapping[str, FunctionManual], depth: int) -> Mapping[str, Any]:
    match step.function:
        case Plan() as plan:
            return _plan(plan, catalogue, depth + 1)
        case PlanTemplate():
            return {"type": "string"}
        case str(name):
            manual = catalogue.get(name)
            return {} if manual is None else manual.returns


def _at(schema: Mapping[str, Any], path: JsonPath) -> Mapping[str, Any]:
    """Return the schema of what a path leads to, with the definitions that it needs; empty where it is not said."""
    definitions = schema.get("$defs", {})
    here = schema
    for part in path:
        inner = _inside(_followed(here, definitions), part)
        if not isinstance(inner, Mapping):
            return {}
        here = inner
    return with_definitions(here, definitions)


def _followed(schema: Any, definitions: Mapping[str, Any]) -> Any:
    for _ in range(_DEEPEST):
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        if not isinstance(reference, str):
            return schema
        schema = definitions.get(reference.removeprefix("#/$defs/"))
    return None


def _inside(schema: Any, part: str | int) -> Any:
    if not isinstance(schema, Mapping):
        return None
    if isinstance(part, str):
        # Which of the others a pattern speaks of is not looked into.
        others = None if "patternProperties" in schema else schema.get("additionalProperties")
        return schema.get("properties", {}).get(part, others)
    fixed = schema.get("prefixItems", ())
    if 0 <= part < len(fixed):
        return fixed[part]
    return None if fixed else schema.get("items")
