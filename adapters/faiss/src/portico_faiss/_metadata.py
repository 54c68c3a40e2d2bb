"""Metadata on its way into a store and out of it, and what SQLite can rule out before `matches` decides."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from portico.errors import StoreError
from portico.search import And, AnyOf, Equal, Filter, Not, Or, Range, Scalar

_LONGEST_CONDITION = 200
"""Terms in a prefilter. SQLite refuses expressions deeper than 1,000 and a longer one gains little."""


def encoded(metadata: dict[str, Any]) -> str:
    """Return metadata as JSON in ASCII, of one form: the prefilter looks for parts of this text."""
    return json.dumps(metadata, separators=(",", ":"))


def decoded(text: str) -> dict[str, Any]:
    """Return the metadata that `encoded` wrote. Raises ``StoreError`` for anything else."""
    try:
        metadata = json.loads(text)
        return {field: tuple(value) if isinstance(value, list) else value for field, value in metadata.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise StoreError(f"The metadata {str(text)[:80]!r} in a vector store is damaged: {error}.") from error


def prefilter(filter: Filter) -> tuple[str, list[str]]:
    """Return a condition on the column ``metadata`` that everything ``filter`` keeps fulfils, and its parameters.

    It only looks for the encoded names and strings in the text, so it keeps too much (a name may stand in a
    value) but never too little; `matches` has the last word. Values are bound, never part of the SQL.
    """
    parameters: list[str] = []
    condition = _condition(filter, parameters)
    return (condition, parameters) if len(parameters) <= _LONGEST_CONDITION else ("1", [])


def _condition(filter: Filter, parameters: list[str]) -> str:
    match filter:
        case Equal(field, value):
            return _either(field, (value,), parameters)
        case AnyOf(field, values):
            return _either(field, values, parameters)
        case Range(field):
            return _holds(json.dumps(field) + ":", parameters)
        case And(parts):
            return _joined(" AND ", [_condition(part, parameters) for part in parts], "1")
        case Or(parts):
            return _joined(" OR ", [_condition(part, parameters) for part in parts], "0")
        case Not():
            return "1"


def _either(field: str, values: Sequence[Scalar], parameters: list[str]) -> str:
    named = _holds(json.dumps(field) + ":", parameters)
    # Equal numbers may be written differently (1 and 1.0), so only strings are looked for.
    if len(values) > _LONGEST_CONDITION or not all(isinstance(value, str) for value in values):
        return named
    return f"({named} AND {_joined(' OR ', [_holds(json.dumps(value), parameters) for value in values], '0')})"


def _holds(part: str, parameters: list[str]) -> str:
    parameters.append(part)
    return "instr(metadata, ?)"


def _joined(word: str, conditions: list[str], none: str) -> str:
    return f"({word.join(conditions)})" if conditions else none
