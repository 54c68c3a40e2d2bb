"""Arguments as a model writes them, and as a plan has them: values, and references to what earlier steps gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portico.errors import PlanFormatError
from portico.plans import Expression, From, ReplyProblem, Value

REFERENCE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "from": {"type": "string", "maxLength": 100, "description": "The id of an earlier step."},
        "path": {"type": "string", "maxLength": 500, "description": 'Where in its result: "$" is the whole.'},
    },
    "required": ["from", "path"],
    "additionalProperties": False,
}
"""The JSON Schema of a reference. It names no steps: the same schema is sent again, and services keep what they made.

The check knows which steps there are.
"""

_REFERENCE = ({"from"}, {"from", "path"})


def read_arguments(arguments: Mapping[str, Any], *, quoted: bool) -> dict[str, Expression]:
    """Tell references from values.

    >>> read_arguments({"text": {"from": "s1"}, "to": {"value": {"from": "Oslo"}}}, quoted=True)
    {'text': From(step='s1', path=()), 'to': Value(value={'from': 'Oslo'})}

    An argument that is exactly ``{"from": TEXT}`` or ``{"from": TEXT, "path": TEXT}`` is a reference, whatever the
    function takes; inside of an argument nothing is. With ``quoted`` a value of the same look is written as
    ``{"value": …}``, and so is one that looks like that. Raises `ReplyProblem` for a path that is none.
    """
    return {name: _read(name, value, quoted=quoted) for name, value in arguments.items()}


def written_argument(expression: Expression) -> Any:
    """Write a reference, or a value, so that `read_arguments` reads it with ``quoted``."""
    match expression:
        case From(step, path):
            return {"from": step, "path": From.print_path(path)}
        case Value(value):
            return {"value": value} if _needs_quotes(value) else value
    raise TypeError(f"{expression!r} is no argument of this planner")


def _read(name: str, value: Any, *, quoted: bool) -> Expression:
    if _is_reference(value):
        try:
            return From(value["from"], From.parse_path(value.get("path", "$")))
        except PlanFormatError as error:
            raise ReplyProblem(f"the argument {name!r} refers to no place in a result: {error}") from error
    if quoted and _needs_quotes(value) and value.keys() == {"value"}:
        return Value(value["value"])
    return Value(value)


def _is_reference(value: Any) -> bool:
    return (
        isinstance(value, dict) and value.keys() in _REFERENCE and all(isinstance(each, str) for each in value.values())
    )


def _needs_quotes(value: Any) -> bool:
    """Tell whether a value looks like a reference, or like the quotes around one."""
    while isinstance(value, dict) and value.keys() == {"value"}:
        value = value["value"]
    return _is_reference(value)
