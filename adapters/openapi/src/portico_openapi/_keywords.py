"""Keywords of a schema that hold no schema: which values make sense, and what 3.0 meant by its own."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from portico_openapi._wrong import Twice, Wrong, described, shortened

_LONGEST_TEXT = 2_000
_LONGEST_PATTERN = 1_000
_MOST_DATA = 10_000

_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_COUNTS = frozenset(
    {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"}
)
_TEXTS = frozenset({"title", "description", "format", "contentEncoding", "contentMediaType"})
_FLAGS = frozenset({"uniqueItems", "deprecated"})
ANNOTATIONS = frozenset({"title", "description", "example", "examples", "default", "deprecated", "format"})


def types(value: Any) -> dict[str, Any]:
    """Return the keyword ``type``. Raises `Wrong` for what is no type."""
    if value == "file":
        # What Swagger 2 called a file.
        return {"type": "string", "format": "binary"}
    names = value if type(value) is list else [value]
    for name in names:
        if type(name) is not str or name not in _TYPES:
            raise Wrong(f"{described(name)} is no type of JSON Schema", ("type",))
    return {"type": value} if names else {}


def write_simple(key: str, value: Any, written: dict[str, Any]) -> None:
    """Write a keyword that holds no schema, unless its value makes no sense."""
    if key in _TEXTS:
        if type(value) is str:
            written[key] = shortened(value, _LONGEST_TEXT)
    elif key in _FLAGS:
        if type(value) is bool:
            written[key] = value
    elif key in _COUNTS:
        if type(value) in (int, float) and value >= 0 and value == int(value):
            written[key] = int(value)
    elif key in _NUMBERS:
        if type(value) in (int, float) and (key != "multipleOf" or value > 0):
            written[key] = value
    elif key == "enum":
        if type(value) is list and value and plain_data(value):
            written[key] = value
    elif key in ("const", "default"):
        if plain_data(value):
            written[key] = value
    elif key == "example":
        if plain_data(value):
            written.setdefault("examples", [value])
    elif key == "examples":
        if type(value) is list and value and plain_data(value):
            written[key] = value
    elif key == "pattern":
        if type(value) is str and compiled_pattern(value):
            written[key] = value
    elif key == "dependentRequired" and type(value) is dict and all(map(_are_names, value.values())):
        written[key] = value


def _are_names(value: Any) -> bool:
    return type(value) is list and all(type(name) is str for name in value)


def mend_bounds(schema: Mapping[str, Any], written: dict[str, Any]) -> None:
    """Turn 3.0's ``exclusiveMinimum: true`` into the bound itself."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if schema.get(exclusive) is True and bound in written:
            written[exclusive] = written.pop(bound)


def nullable(written: Any) -> Any:
    """Let null be a value too, as 3.0's ``nullable`` means it."""
    if not isinstance(written, dict) or not written:
        return written
    kind = written.get("type")
    simple = not any(key in written for key in ("$ref", "allOf", "anyOf", "oneOf", "not", "if", "const"))
    if simple and kind is not None:
        names = [kind] if isinstance(kind, str) else kind
        written["type"] = names if "null" in names else [*names, "null"]
        if "enum" in written and None not in written["enum"]:
            written["enum"] = [*written["enum"], None]
        return written
    if simple and "enum" not in written:
        return written
    outside = {key: written.pop(key) for key in ("title", "description", "deprecated") if key in written}
    return {**outside, "anyOf": [written, {"type": "null"}]}


def with_texts(written: Any, schema: Mapping[str, Any]) -> Any:
    """Add the texts that stand beside an ``allOf``."""
    texts: dict[str, Any] = {}
    for key in ANNOTATIONS & set(schema):
        if schema[key] is not None or key in ("default", "example"):
            write_simple(key, schema[key], texts)
    if not isinstance(written, dict):
        return texts if written is True else written
    return {**written, **dict(sorted(texts.items()))}


def plain_data(value: Any) -> bool:
    """Return whether a value is JSON all through, of a size that a manual can hold."""
    stack = [value]
    count = 0
    while stack:
        part = stack.pop()
        count += 1
        if count > _MOST_DATA or type(part) is Twice:
            return False
        if type(part) is dict:
            stack += part.values()
        elif type(part) is list:
            stack += part
    return True


@lru_cache(maxsize=4096)
def compiled_pattern(pattern: str) -> re.Pattern[str] | None:
    """Compile a pattern of ECMA-262 as Python has it; None where Python has not."""
    if len(pattern) > _LONGEST_PATTERN:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return None
