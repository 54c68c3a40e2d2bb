"""The published JSON Schema of the JSON form of plans."""

from __future__ import annotations

from typing import Any

from portico.plans.json_form import LARGEST_SECONDS, MAXIMUM_ATTEMPTS, MAXIMUM_STEPS, VERSION

__all__ = ["plan_schema"]

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
    """Return a JSON Schema (2020-12) of what `portico.plans.json_form.plan_from_json` reads.

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
        **_object(
            {
                "version": {"title": "Version", "description": "The version of this form.", "const": VERSION},
                "goal": _text("Goal", "What the plan is for, in the words of who asked."),
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
        "$defs": {"step": _step(), "template": _template(), "expression": _expression()},
    }


def _step() -> dict[str, Any]:
    return {
        "title": "Step",
        "description": "One call of a function, a plan inside the plan, or a template.",
        **_object(
            {
                "id": _text("Id", "How other steps refer to it; unique in a plan, without '/', not 'input'."),
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
                "reason": _text("Reason", "Why the step is there, for people."),
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
        **_object(
            {
                "template": _text("Template", "The source."),
                "language": _text("Language", "The name of the template language."),
            },
            required=["template", "language"],
        ),
    }


def _expression() -> dict[str, Any]:
    inner = {"$ref": "#/$defs/expression"}
    path = {
        **_text("Path", "Where inside of the result: a singular query of RFC 9535. '$' is all of it."),
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
                **_object({"from": _text("From", "The id of the step, or 'input'."), "path": path}, required=["from"]),
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
    return {"title": title, "description": description, **_object(member, required=list(member))}


def _object(properties: dict[str, Any], *, required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _text(title: str, description: str) -> dict[str, Any]:
    return {"title": title, "description": description, "type": "string"}
