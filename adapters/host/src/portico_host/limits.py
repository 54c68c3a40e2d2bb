"""What the validators of a settings class say in JSON Schema, as far as they say it of themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["limited", "limits_of"]

_BOUNDS = {">=": "minimum", ">": "exclusiveMinimum", "<=": "maximum", "<": "exclusiveMaximum"}
_MOST_OPTIONS = 200
# What Python's regular expressions have and those of JSON Schema (ECMA 262) have not.
_PYTHONS_OWN = re.compile(r"\(\?(?![:=!])|\\[AZ]|[+*?}]\+")


def limits_of(validator: object) -> dict[str, Any]:
    """Return the keywords that a field's validator stands for; none for one that is code and nothing else.

    Understood are attrs' own, by what they show of themselves, and ``portico.settings.ValueForm``.
    """
    if isinstance(validator, list | tuple):
        found: dict[str, Any] = {}
        for part in validator:
            found |= limits_of(part)
        return found
    inner = getattr(validator, "_validators", None) or getattr(validator, "validator", None)
    if inner is not None:
        return limits_of(inner)
    if hasattr(validator, "compare_op") and hasattr(validator, "bound"):
        return {_BOUNDS[validator.compare_op]: validator.bound} if validator.compare_op in _BOUNDS else {}
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
    """Return a schema with those limits that are about its type."""
    kind = schema.get("type")
    made = dict(schema)
    if "enum" in limits and ("enum" in schema or kind in ("string", "integer", "number")):
        made["enum"] = limits["enum"]
    if kind in ("integer", "number"):
        made |= {name: value for name, value in limits.items() if name in _BOUNDS.values()}
    if kind == "string" and "pattern" in limits:
        made["pattern"] = limits["pattern"]
    suffix = {"string": "Length", "array": "Items", "object": "Properties"}.get(str(kind))
    if "length" in limits and suffix:
        least, most = limits["length"]
        made |= {f"min{suffix}": least} if least is not None else {f"max{suffix}": most}
    return made


def _options(options: Any) -> dict[str, Any]:
    if isinstance(options, range) and options.step == 1 and len(options) > 0:
        return {"minimum": options.start, "maximum": options.stop - 1}
    if not isinstance(options, Iterable):
        return {}
    found = list(options) if not isinstance(options, range) else []
    plain = all(isinstance(option, str | int | float | bool) for option in found)
    return {"enum": found} if plain and 0 < len(found) <= _MOST_OPTIONS else {}
