"""The JSON form of plans, version 1: what is saved, sent and read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portico.errors import PlanFormatError
from portico.plans.path import parse_path, print_path
from portico.plans.plan import Expression, From, ListOf, ObjectOf, Plan, Step, TextOf, Value

__all__ = ["plan_from_json", "plan_to_json"]

_VERSION = 1
_MAXIMUM_DEPTH = 50
_MAXIMUM_STEPS = 1_000
_KINDS = {dict: "object", list: "array", bool: "boolean", int: "number", float: "number", type(None): "null"}


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """Return the plan as JSON values; empty parts are left out."""
    document: dict[str, Any] = {
        "version": _VERSION,
        "goal": plan.goal,
        "steps": [_step_to_json(step) for step in plan.steps],
    }
    if plan.result is not None:
        document["result"] = _to_json(plan.result)
    if plan.notes is not None:
        document["notes"] = plan.notes
    if plan.fingerprints:
        document["fingerprints"] = dict(plan.fingerprints)
    return document


def plan_from_json(document: object) -> Plan:
    """Read a plan from JSON values.

    >>> plan_from_json({"version": 1, "goal": "g", "steps": [{"id": "s1", "function": "f"}]}).steps[0].function
    'f'

    Raises ``PlanFormatError`` with the place for anything that is not of version 1's form, more than 1,000
    steps or deeper than 50 levels. It does not check the plan against a catalogue.
    """
    return _plan(document, "$", 0)


def _step_to_json(step: Step) -> dict[str, Any]:
    document: dict[str, Any] = {
        "id": step.id,
        "function": step.function if isinstance(step.function, str) else plan_to_json(step.function),
    }
    if step.arguments:
        document["arguments"] = {name: _to_json(expression) for name, expression in step.arguments.items()}
    if step.after:
        document["after"] = list(step.after)
    if step.reason:
        document["reason"] = step.reason
    return document


def _to_json(expression: Expression) -> dict[str, Any]:
    match expression:
        case Value(value):
            return {"value": value}
        case From(step, path):
            return {"from": step, "path": print_path(path)} if path else {"from": step}
        case TextOf(parts):
            return {"text": [part if isinstance(part, str) else _to_json(part) for part in parts]}
        case ListOf(items):
            return {"list": [_to_json(item) for item in items]}
        case ObjectOf(members):
            return {"object": {name: _to_json(member) for name, member in members.items()}}


def _plan(document: object, place: str, depth: int) -> Plan:
    body = _object(
        document,
        place,
        required={"version", "goal", "steps"},
        optional={"result", "notes", "fingerprints"},
    )
    if body["version"] != _VERSION or isinstance(body["version"], bool):
        raise _error(f"{place}.version", f"{_VERSION}", body["version"])
    steps = _list(body["steps"], f"{place}.steps")
    if len(steps) > _MAXIMUM_STEPS:
        raise PlanFormatError(f"{place}.steps: at most {_MAXIMUM_STEPS} steps are allowed, not {len(steps)}.")
    fingerprints = body.get("fingerprints", {})
    if not isinstance(fingerprints, dict) or not all(isinstance(text, str) for text in fingerprints.values()):
        raise _error(f"{place}.fingerprints", "an object of strings", fingerprints)
    return Plan(
        goal=_text(body["goal"], f"{place}.goal"),
        steps=tuple(_step(step, f"{place}.steps[{index}]", depth) for index, step in enumerate(steps)),
        result=_expression(body["result"], f"{place}.result", depth) if "result" in body else None,
        notes=body.get("notes"),
        fingerprints=fingerprints,
    )


def _step(document: object, place: str, depth: int) -> Step:
    body = _object(document, place, required={"id", "function"}, optional={"arguments", "after", "reason"})
    arguments = body.get("arguments", {})
    if not isinstance(arguments, dict):
        raise _error(f"{place}.arguments", "an object", arguments)
    function = body["function"]
    if depth >= _MAXIMUM_DEPTH:
        raise PlanFormatError(f"{place}: plans nest deeper than {_MAXIMUM_DEPTH} levels.")
    return Step(
        id=_text(body["id"], f"{place}.id"),
        function=function if isinstance(function, str) else _plan(function, f"{place}.function", depth + 1),
        arguments={
            name: _expression(expression, f"{place}.arguments.{name}", depth) for name, expression in arguments.items()
        },
        after=tuple(_text(step, f"{place}.after") for step in _list(body.get("after", []), f"{place}.after")),
        reason=_text(body.get("reason", ""), f"{place}.reason"),
    )


def _expression(document: object, place: str, depth: int) -> Expression:
    if depth > _MAXIMUM_DEPTH:
        raise PlanFormatError(f"{place}: expressions nest deeper than {_MAXIMUM_DEPTH} levels.")
    body = _object(document, place, required=set(), optional={"value", "from", "path", "text", "list", "object"})
    tags = [tag for tag in body if tag != "path"]
    if len(tags) != 1 or ("path" in body and tags != ["from"]):
        raise PlanFormatError(
            f'{place}: exactly one of "value", "from" (with "path"), "text", "list" and "object" is needed.'
        )
    content = body[tags[0]]
    match tags[0]:
        case "value":
            return Value(content)
        case "from":
            return From(_text(content, f"{place}.from"), parse_path(_text(body.get("path", "$"), f"{place}.path")))
        case "text":
            return TextOf(
                tuple(
                    part if isinstance(part, str) else _expression(part, f"{place}.text[{index}]", depth + 1)
                    for index, part in enumerate(_list(content, f"{place}.text"))
                )
            )
        case "list":
            return ListOf(
                tuple(
                    _expression(item, f"{place}.list[{index}]", depth + 1)
                    for index, item in enumerate(_list(content, f"{place}.list"))
                )
            )
        case _:
            if not isinstance(content, dict):
                raise _error(f"{place}.object", "an object", content)
            return ObjectOf(
                {name: _expression(member, f"{place}.object.{name}", depth + 1) for name, member in content.items()}
            )


def _object(document: object, place: str, *, required: set[str], optional: set[str]) -> Mapping[str, Any]:
    if not isinstance(document, dict):
        raise _error(place, "an object", document)
    missing = required - document.keys()
    if missing:
        raise PlanFormatError(f"{place}: {', '.join(sorted(missing))} is missing.")
    unknown = document.keys() - required - optional
    if unknown:
        known = ", ".join(sorted(required | optional))
        raise PlanFormatError(f"{place}: unknown key {sorted(map(str, unknown))[0]!r}; known are {known}.")
    return document


def _list(document: object, place: str) -> list[Any]:
    if not isinstance(document, list):
        raise _error(place, "an array", document)
    return document


def _text(document: object, place: str) -> str:
    if not isinstance(document, str):
        raise _error(place, "a string", document)
    return document


def _error(place: str, expected: str, got: object) -> PlanFormatError:
    # Not repr(): what came may be nested too deeply for it, or a number too long to print.
    shown = repr(got[:60]) if isinstance(got, str) else f"a JSON {_KINDS.get(type(got), 'value')}"
    return PlanFormatError(f"{place}: expected {expected}, got {shown}.")
