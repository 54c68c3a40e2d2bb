"""What an expression of a plan comes to, once the steps that it refers to have run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from portico.plans.path import read_path
from portico.plans.plan import INPUT, Expression, From, ListOf, ObjectOf, TextOf, Value

__all__ = ["evaluate"]


def evaluate(expression: Expression, results: Mapping[str, Any]) -> Any:
    """Return the JSON value of an expression, given the results of the steps it refers to.

    Raises ``LookupError`` when a reference leads to nothing.
    """
    # The two that most arguments are come first: this runs for every argument of every step.
    if type(expression) is Value:
        return expression.value
    if type(expression) is From:
        step, path = expression.step, expression.path
        if step not in results:
            raise LookupError("no input was given" if step == INPUT else f"the step {step} has no result")
        return read_path(results[step], path) if path else results[step]
    match expression:
        case TextOf(parts):
            return "".join(part if isinstance(part, str) else _as_text(evaluate(part, results)) for part in parts)
        case ListOf(items):
            return [evaluate(item, results) for item in items]
        case ObjectOf(members):
            return {name: evaluate(member, results) for name, member in members.items()}
    raise TypeError(f"{expression!r} is no expression")


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
