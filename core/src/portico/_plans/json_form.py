"""Plans as JSON, and the schema of that form."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from portico._plans.plan import Expression, From, ListOf, ObjectOf, Plan, PlanTemplate, Step, TextOf, Value
from portico.errors import PlanFormatError

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = 1
MAXIMUM_DEPTH = 50
MAXIMUM_STEPS = 1_000
MAXIMUM_ATTEMPTS = 100
LARGEST_SECONDS = 1_000_000
_DEEPEST_VALUE = 200
_MOST_BITS = 14_000  # of a whole number: Python prints 4,300 digits at most
_KINDS = {dict: "object", list: "array", bool: "boolean", int: "number", float: "number", type(None): "null"}


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """Return the plan as JSON values; empty parts are left out.

    >>> plan_to_json(Plan("Tell", result=From("input", ("city",))))
    {'version': 1, 'goal': 'Tell', 'steps': [], 'result': {'from': 'input', 'path': '$.city'}}

    Values are not copied. Raises ``PlanFormatError`` with the place for a value that JSON does not have, a NaN or a
    tuple for example: it would not come back as it was.
    """
    return _plan_to_json(plan, "$")


def _plan_to_json(plan: Plan, place: str) -> dict[str, Any]:
    document: dict[str, Any] = {"version": VERSION, "goal": plan.goal}
    if plan.input is not None:
        document["input"] = _json(dict(plan.input), f"{place}.input")
    document["steps"] = [_step_to_json(step, f"{place}.steps[{index}]") for index, step in enumerate(plan.steps)]
    if plan.result is not None:
        document["result"] = _to_json(plan.result, f"{place}.result")
    if plan.notes is not None:
        document["notes"] = _json(plan.notes, f"{place}.notes")
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


def _step_to_json(step: Step, place: str) -> dict[str, Any]:
    document: dict[str, Any] = {"id": step.id, "function": _function_to_json(step.function, f"{place}.function")}
    if step.arguments:
        document["arguments"] = {
            name: _to_json(expression, f"{place}.arguments.{name}") for name, expression in step.arguments.items()
        }
    if step.after:
        document["after"] = list(step.after)
    if step.reason:
        document["reason"] = step.reason
    if step.seconds is not None:
        document["seconds"] = step.seconds
    if step.attempts is not None:
        document["attempts"] = step.attempts
    return document


def _function_to_json(function: str | Plan | PlanTemplate, place: str) -> Any:
    match function:
        case str():
            return function
        case PlanTemplate(source, language):
            return {"template": source, "language": language}
        case Plan():
            return _plan_to_json(function, place)


def _to_json(expression: Expression, place: str) -> dict[str, Any]:
    match expression:
        case Value(value):
            return {"value": _json(value, f"{place}.value")}
        case From(step, path):
            return {"from": step, "path": From.print_path(path)} if path else {"from": step}
        case TextOf(parts):
            return {
                "text": [
                    part if isinstance(part, str) else _to_json(part, f"{place}.text[{index}]")
                    for index, part in enumerate(parts)
                ]
            }
        case ListOf(items):
            return {"list": [_to_json(item, f"{place}.list[{index}]") for index, item in enumerate(items)]}
        case ObjectOf(members):
            return {"object": {name: _to_json(member, f"{place}.object.{name}") for name, member in members.items()}}


def _json(value: Any, place: str, depth: int = 0) -> Any:
    """Return a value that JSON has, as it is; refuse any other, which Python's own JSON reads and writes in part."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is int:
        if value.bit_length() > _MOST_BITS:
            raise PlanFormatError(f"{place}: a whole number of more than 4,000 digits is too long.")
    elif kind is float:
        if not math.isfinite(value):
            raise PlanFormatError(f"{place}: JSON has no {value}.")
    elif depth >= _DEEPEST_VALUE:
        raise PlanFormatError(f"{place}: values nest deeper than {_DEEPEST_VALUE} levels.")
    elif kind is list:
        for index, item in enumerate(value):
            _json(item, f"{place}[{index}]", depth + 1)
    elif kind is dict:
        for name, member in value.items():
            if type(name) is not str:
                raise PlanFormatError(f"{place}: the names in a JSON object are strings, not {type(name).__name__}.")
            _json(member, f"{place}.{name}", depth + 1)
    else:
        raise PlanFormatError(f"{place}: expected a JSON value, got a Python {kind.__name__}.")
    return value


def _plan(document: object, place: str, depth: int) -> Plan:
    # Before the keys: those of another version are others.
    if isinstance(document, dict) and "version" in document:
        _refuse_other_version(document["version"], f"{place}.version")
    body = _object(
        document, place, required={"version", "goal", "steps"}, optional={"input", "result", "notes", "fingerprints"}
    )
    steps = _list(body["steps"], f"{place}.steps")
    if len(steps) > MAXIMUM_STEPS:
        raise PlanFormatError(f"{place}.steps: at most {MAXIMUM_STEPS} steps are allowed, not {len(steps)}.")
    fingerprints = body.get("fingerprints", {})
    if not isinstance(fingerprints, dict) or not all(isinstance(text, str) for text in fingerprints.values()):
        raise _error(f"{place}.fingerprints", "an object of strings", fingerprints)
    if not isinstance(body.get("input", {}), dict):
        raise _error(f"{place}.input", "a JSON Schema that is an object", body["input"])
    _json(body.get("input"), f"{place}.input")
    return Plan(
        goal=_text(body["goal"], f"{place}.goal"),
        steps=tuple(_step(step, f"{place}.steps[{index}]", depth) for index, step in enumerate(steps)),
        result=_expression(body["result"], f"{place}.result", depth) if "result" in body else None,
        notes=_json(body.get("notes"), f"{place}.notes"),
        fingerprints=fingerprints,
        input=body.get("input"),
    )


def _step(document: object, place: str, depth: int) -> Step:
    body = _object(
        document, place, required={"id", "function"}, optional={"arguments", "after", "reason", "seconds", "attempts"}
    )
    arguments = body.get("arguments", {})
    if not isinstance(arguments, dict):
        raise _error(f"{place}.arguments", "an object", arguments)
    if depth >= MAXIMUM_DEPTH:
        raise PlanFormatError(f"{place}: plans nest deeper than {MAXIMUM_DEPTH} levels.")
    seconds: Any = body.get("seconds")
    attempts: Any = body.get("attempts")
    if "seconds" in body and (type(seconds) not in (int, float) or not 0 < seconds <= LARGEST_SECONDS):
        raise _error(f"{place}.seconds", f"a number above 0, of at most {LARGEST_SECONDS:,}", seconds)
    if "attempts" in body and (
        type(attempts) not in (int, float) or attempts % 1 or not 1 <= attempts <= MAXIMUM_ATTEMPTS
    ):
        raise _error(f"{place}.attempts", f"a whole number from 1 to {MAXIMUM_ATTEMPTS}", attempts)
    return Step(
        id=_text(body["id"], f"{place}.id"),
        function=_function(body["function"], f"{place}.function", depth),
        arguments={
            name: _expression(expression, f"{place}.arguments.{name}", depth) for name, expression in arguments.items()
        },
        after=tuple(_text(step, f"{place}.after") for step in _list(body.get("after", []), f"{place}.after")),
        reason=_text(body.get("reason", ""), f"{place}.reason"),
        seconds=seconds,
        # JSON Schema takes 2.0 for a whole number, as JSON itself does.
        attempts=None if attempts is None else int(attempts),
    )


def _function(document: object, place: str, depth: int) -> str | Plan | PlanTemplate:
    if isinstance(document, str):
        return document
    if isinstance(document, dict) and "template" in document:
        body = _object(document, place, required={"template", "language"}, optional=set())
        return PlanTemplate(_text(body["template"], f"{place}.template"), _text(body["language"], f"{place}.language"))
    return _plan(document, place, depth + 1)


def _expression(document: object, place: str, depth: int) -> Expression:
    if depth > MAXIMUM_DEPTH:
        raise PlanFormatError(f"{place}: expressions nest deeper than {MAXIMUM_DEPTH} levels.")
    body = _object(document, place, required=set(), optional={"value", "from", "path", "text", "list", "object"})
    tags = [tag for tag in body if tag != "path"]
    if len(tags) != 1 or ("path" in body and tags != ["from"]):
        raise PlanFormatError(
            f'{place}: exactly one of "value", "from" (with "path"), "text", "list" and "object" is needed.'
        )
    content = body[tags[0]]
    match tags[0]:
        case "value":
            return Value(_json(content, f"{place}.value"))
        case "from":
            return From(_text(content, f"{place}.from"), From.parse_path(_text(body.get("path", "$"), f"{place}.path")))
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


def _refuse_other_version(version: object, place: str) -> None:
    if version == VERSION and not isinstance(version, bool):
        return
    if type(version) is int and VERSION < version < 1_000:
        raise PlanFormatError(
            f"{place}: expected {VERSION}, got {version}. This Portico reads version {VERSION} of the form; a newer "
            "one wrote the plan."
        )
    raise _error(place, f"{VERSION}", version)


def _object(document: object, place: str, *, required: set[str], optional: set[str]) -> Mapping[str, Any]:
    if not isinstance(document, dict):
        raise _error(place, "an object", document)
    missing = required - document.keys()
    if missing:
        raise PlanFormatError(f"{place}: {', '.join(sorted(missing))} {'is' if len(missing) == 1 else 'are'} missing.")
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


_NAME_FIRST = r"[^\u0000-@\[-\^`{-\u007f]"
_NAME = rf"{_NAME_FIRST}[^\u0000-/:-@\[-\^`{{-\u007f]*"
_HEX = "[0-9A-Fa-f]"
_CODE = rf"u(?:[0-9A-CE-Fa-ce-f]{_HEX}{{3}}|[Dd][0-7]{_HEX}{{2}}|[Dd][89ABab]{_HEX}{{2}}\\u[Dd][C-Fc-f]{_HEX}{{2}})"
_IN_SINGLE = rf"'(?:[^'\\\u0000-\u001f]|\\(?:['bfnrt/\\]|{_CODE}))*'"
_IN_DOUBLE = rf'"(?:[^"\\\u0000-\u001f]|\\(?:["bfnrt/\\]|{_CODE}))*"'
_BLANK = r"[ \t\n\r]*"
_INDEX = "0|-?[1-9][0-9]{0,15}"
# No dollar sign alone at the end: in Python it matches before a last line feed too.
_PATH = rf"^\$(?:{_BLANK}(?:\.{_NAME}|\[{_BLANK}(?:{_IN_SINGLE}|{_IN_DOUBLE}|{_INDEX}){_BLANK}\]))*$(?!\n)"


def plan_schema() -> dict[str, Any]:
    """Return a JSON Schema (2020-12) of what `portico._plans.json_form.plan_from_json` reads.

    >>> plan_schema()["required"]
    ['version', 'goal', 'steps']

    It says all but three things: how deep plans, expressions and values may nest, that an index in a path is at most
    2**53 - 1, and that a number is finite and no whole number too long to print. ``$id`` names the form; nothing is
    to be fetched there.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:portico:plan:{VERSION}",
        "title": "Plan",
        "description": f"A plan of Portico in version {VERSION} of its JSON form: steps towards a goal.",
        **_object_of_json_schema(
            {
                "version": {"title": "Version", "description": "The version of this form.", "const": VERSION},
                "goal": _text_of_json_schema("Goal", "What the plan is for, in the words of who asked."),
                "input": {
                    "title": "Input",
                    "description": "A JSON Schema of what the plan is given; steps refer to it as to the step 'input'.",
                    "type": "object",
                },
                "steps": {
                    "title": "Steps",
                    "description": "The steps as written; what they refer to decides the order of running.",
                    "type": "array",
                    "items": {"$ref": "#/$defs/step"},
                    "maxItems": MAXIMUM_STEPS,
                },
                "result": {
                    "$ref": "#/$defs/expression",
                    "title": "Result",
                    "description": "What the plan answers. A plan without one is a move: the planner is asked again.",
                },
                "notes": {"title": "Notes", "description": "Anything that the plan's own planner wants to keep."},
                "fingerprints": {
                    "title": "Fingerprints",
                    "description": "For each function used, a hash of its manual when the plan was made.",
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                },
            },
            required=["version", "goal", "steps"],
        ),
        "$defs": {"step": _step_of_json_schema(), "template": _template(), "expression": _expression_of_json_schema()},
    }


def _step_of_json_schema() -> dict[str, Any]:
    return {
        "title": "Step",
        "description": "One call of a function, a plan inside the plan, or a template.",
        **_object_of_json_schema(
            {
                "id": _text_of_json_schema(
                    "Id", "How other steps refer to it; unique in a plan, without '/', not 'input'."
                ),
                "function": {
                    "title": "Function",
                    "description": "The full name of a function, a nested plan, or a template.",
                    "anyOf": [{"type": "string"}, {"$ref": "#"}, {"$ref": "#/$defs/template"}],
                },
                "arguments": {
                    "title": "Arguments",
                    "description": "What the function is given, by the names of its parameters.",
                    "type": "object",
                    "additionalProperties": {"$ref": "#/$defs/expression"},
                },
                "after": {
                    "title": "After",
                    "description": "The ids of steps to wait for without taking anything from them.",
                    "type": "array",
                    "items": {"type": "string"},
                },
                "reason": _text_of_json_schema("Reason", "Why the step is there, for people."),
                "seconds": {
                    "title": "Seconds",
                    "description": "How long each attempt may take.",
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "maximum": LARGEST_SECONDS,
                },
                "attempts": {
                    "title": "Attempts",
                    "description": "How often the step is tried in all.",
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAXIMUM_ATTEMPTS,
                },
            },
            required=["id", "function"],
        ),
    }


def _template() -> dict[str, Any]:
    return {
        "title": "Template",
        "description": "A template as a step: each function that it calls runs as a child of the step.",
        **_object_of_json_schema(
            {
                "template": _text_of_json_schema("Template", "The source."),
                "language": _text_of_json_schema("Language", "The name of the template language."),
            },
            required=["template", "language"],
        ),
    }


def _expression_of_json_schema() -> dict[str, Any]:
    inner = {"$ref": "#/$defs/expression"}
    path = {
        **_text_of_json_schema("Path", "Where inside of the result: a singular query of RFC 9535. '$' is all of it."),
        "pattern": _PATH,
    }
    return {
        "title": "Expression",
        "description": "How a value comes about, tagged, so that no literal is mistaken for a reference.",
        "anyOf": [
            _tagged("Value", "A JSON value as it stands.", value={}),
            {
                "title": "Reference",
                "description": "What a step gave, or the part of it at a path.",
                **_object_of_json_schema(
                    {"from": _text_of_json_schema("From", "The id of the step, or 'input'."), "path": path},
                    required=["from"],
                ),
            },
            _tagged(
                "Text",
                "A text put together; what is no string is written as JSON.",
                text={"type": "array", "items": {"anyOf": [{"type": "string"}, inner]}},
            ),
            _tagged("List", "An array of expressions.", list={"type": "array", "items": inner}),
            _tagged("Object", "An object of expressions.", object={"type": "object", "additionalProperties": inner}),
        ],
    }


def _tagged(title: str, description: str, **member: Any) -> dict[str, Any]:
    return {"title": title, "description": description, **_object_of_json_schema(member, required=list(member))}


def _object_of_json_schema(properties: dict[str, Any], *, required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _text_of_json_schema(title: str, description: str) -> dict[str, Any]:
    return {"title": title, "description": description, "type": "string"}
