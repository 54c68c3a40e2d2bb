"""What the validators of a settings class say in JSON Schema, as far as they say it of themselves."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import cache, reduce
from typing import Any

from portico_host.json_values import is_number, json_members

__all__ = ["limited", "limits_of"]

_BOUNDS = {">=": "minimum", ">": "exclusiveMinimum", "<=": "maximum", "<": "exclusiveMaximum"}
_MOST_OPTIONS = 200
# What Python's regular expressions have and those of JSON Schema (ECMA 262) have not.
_PYTHONS_OWN = re.compile(r"\(\?(?![:=!])|\\[AZ]|[+*?}]\+")


def limits_of(validator: object) -> dict[str, Any]:
    """Return the keywords that a field's validator stands for; none for one that is code and nothing else.

    Understood are attrs' own, by what they show of themselves, and ``portico.settings.ValueForm``. Of those that hold
    others only what asks for all of them is looked into: ``not_`` means the opposite of what is in it.
    """
    if isinstance(validator, list | tuple):
        return reduce(_both, map(limits_of, validator), {})
    optional, every = _of_attrs()
    if isinstance(validator, optional):
        return limits_of(validator.validator)
    if isinstance(validator, every):
        return limits_of(tuple(validator._validators))  # noqa: SLF001 - attrs shows them nowhere else
    if hasattr(validator, "compare_op") and hasattr(validator, "bound"):
        known = validator.compare_op in _BOUNDS and is_number(validator.bound)
        return {_BOUNDS[validator.compare_op]: validator.bound} if known else {}
    if hasattr(validator, "options"):
        return _options(validator.options)
    if hasattr(validator, "min_length"):
        return {"length": (validator.min_length, None)}
    if hasattr(validator, "max_length"):
        return {"length": (None, validator.max_length)}
    pattern = getattr(validator, "pattern", None)
    if isinstance(pattern, str) and not _PYTHONS_OWN.search(pattern):
        return {"pattern": f"^(?:{pattern})$"}
    return {}


def limited(schema: Mapping[str, Any], limits: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with those limits that are about its type and that JSON has."""
    kind = schema.get("type")
    made = dict(schema)
    if "enum" in limits and ("enum" in schema or kind in ("string", "integer", "number")):
        members = json_members(limits["enum"])
        made |= {"enum": members} if members else {}
    if kind in ("integer", "number"):
        made |= {name: value for name, value in limits.items() if name in _BOUNDS.values() and is_number(value)}
    if kind == "string" and isinstance(limits.get("pattern"), str):
        made["pattern"] = limits["pattern"]
    suffix = {"string": "Length", "array": "Items", "object": "Properties"}.get(str(kind))
    if "length" in limits and suffix:
        for word, number in zip(("min", "max"), limits["length"], strict=True):
            if is_number(number):
                made[f"{word}{suffix}"] = number
    return made


@cache
def _of_attrs() -> tuple[type[Any], type[Any]]:
    """Return the classes of attrs' ``optional`` and ``and_``, which it does not name."""
    from attrs import validators

    return type(validators.optional(validators.instance_of(object))), type(validators.and_())


def _both(some: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits of what must keep within both; of two patterns one stands for both."""
    made = {**others, **some}
    for name in some.keys() & others.keys():
        if name in _NARROWER:
            made[name] = _NARROWER[name](some[name], others[name])
    return made


def _lengths(one: tuple[Any, Any], other: tuple[Any, Any]) -> tuple[Any, Any]:
    least = [bounds[0] for bounds in (one, other) if bounds[0] is not None]
    most = [bounds[1] for bounds in (one, other) if bounds[1] is not None]
    return max(least, default=None), min(most, default=None)


_NARROWER: Mapping[str, Callable[[Any, Any], Any]] = {
    "minimum": max,
    "exclusiveMinimum": max,
    "maximum": min,
    "exclusiveMaximum": min,
    "length": _lengths,
    "enum": lambda some, others: [option for option in some if option in others],
}


def _options(options: Any) -> dict[str, Any]:
    if isinstance(options, range) and options.step == 1 and len(options) > 0:
        return {"minimum": options.start, "maximum": options.stop - 1}
    # Whatever is part of a text is "in" it.
    if not isinstance(options, Collection) or isinstance(options, str | bytes | range):
        return {}
    found = [*options] if 0 < len(options) <= _MOST_OPTIONS else []
    plain = all(isinstance(option, str | int | float | bool) for option in found)
    return {"enum": found} if plain and found else {}
