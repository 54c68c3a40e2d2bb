"""Filters as conditions of SQL: what comes from outside is bound, field names too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from portico.search import And, AnyOf, Equal, Filter, Not, Or, Range, Scalar
from portico_postgres._metadata import comparable, fields_of
from portico_postgres._texts import stored


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on the column ``fields``, which is never null, and the values of its named parameters."""

    sql: str
    values: dict[str, object] = field(default_factory=dict)


EVERYTHING = Condition("true")

_MANY = 500
"""Values from which on they are hashed and each record is looked at; fewer are looked up in the index one by one."""

_BOUNDS = (("at_least", ">="), ("at_most", "<="), ("above", ">"), ("below", "<"))


def condition_of(filter: Filter | None) -> Condition:
    """Return the condition that keeps what ``filter`` keeps, by `portico.search.matches`."""
    if filter is None:
        return EVERYTHING
    values: dict[str, object] = {}
    return Condition(_condition(filter, values), values)


def _condition(filter: Filter, values: dict[str, object]) -> str:
    match filter:
        case Equal(field, value):
            return _one_of(field, (value,), values)
        case AnyOf(field, allowed):
            return _one_of(field, allowed, values)
        case Range():
            return _within(filter, values)
        case And(parts):
            return _joined(" AND ", [_condition(part, values) for part in parts], "true")
        case Or(parts):
            return _joined(" OR ", [_condition(part, values) for part in parts], "false")
        case Not(part):
            return f"(NOT {_condition(part, values)})"


def _one_of(field: str, allowed: Sequence[Scalar], values: dict[str, object]) -> str:
    # The jsonb of a record has a list for each field; `@>` is answered by the index on it.
    if len(allowed) >= _MANY:
        elements = f"jsonb_array_elements(fields -> {_bound(stored(field), values)}) AS element"
        texts = [text for value in allowed if (text := comparable(value, clipped=True)) is not None]
        return f"EXISTS (SELECT FROM {elements} WHERE element.value = ANY({_bound(texts, values)}::jsonb[]))"
    wanted = [held for value in allowed if (held := fields_of(field, value)) is not None]
    if not wanted:
        return "false"
    if len(wanted) == 1:
        return f"fields @> {_bound(wanted[0], values)}::jsonb"
    return f"fields @> ANY({_bound(wanted, values)}::jsonb[])"


def _within(bounds: Range, values: dict[str, object]) -> str:
    tests: list[str] = []
    variables: list[str] = []
    for name, operator in _BOUNDS:
        bound = getattr(bounds, name)
        if bound is None:
            continue
        text = comparable(bound, clipped=True)
        if text is None or isinstance(bound, bool):
            # A NaN and a bool compare with nothing.
            return "false"
        tests.append(f"@ {operator} ${name}")
        variables.append(f'"{name}":{text}')
    elements = f"fields -> {_bound(stored(bounds.field), values)}"
    limits = _bound("{" + ",".join(variables) + "}", values)
    return f"coalesce(jsonb_path_exists({elements}, '$[*] ? ({' && '.join(tests)})', {limits}::jsonb), false)"


def _joined(word: str, conditions: list[str], none: str) -> str:
    return f"({word.join(conditions)})" if conditions else none


def _bound(value: object, values: dict[str, object]) -> str:
    name = f"f{len(values)}"
    values[name] = value
    return f"%({name})s"
