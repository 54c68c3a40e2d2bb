"""JSON values as faults speak of them, and as they are compared."""

from __future__ import annotations

from typing import Any

_SHOWN = 60
_KINDS = {str: "string", bool: "boolean", int: "integer", list: "array", dict: "object", type(None): "null"}


def kind(value: Any) -> str:
    """Return the kind of a JSON value; a number without a fraction is an integer."""
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    return _KINDS.get(type(value), type(value).__name__)


def shown(value: Any) -> str:
    """Return a value for a sentence, in a line at most."""
    if isinstance(value, int) and abs(value) >= 10**_SHOWN:
        return f"a number of more than {_SHOWN} digits"
    text = repr(value[: _SHOWN + 1] if isinstance(value, str) else value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def frozen(value: Any) -> Any:
    """Make a value hashable, so that 1 and 1.0 are equal and 1 and true are not, as JSON Schema has it."""
    if isinstance(value, list):
        return ("array", tuple(map(frozen, value)))
    if isinstance(value, dict):
        return ("object", frozenset((key, frozen(element)) for key, element in value.items()))
    return (isinstance(value, bool), value)
