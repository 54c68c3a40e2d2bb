"""JSON values and references: the kinds of JSON Schema, equality, and where a reference leads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

__all__ = ["ANNOTATIONS", "frozen", "is_kind", "is_number", "kind_of", "resolve", "same"]

ANNOTATIONS = frozenset({
    "$comment", "$defs", "$schema", "default", "definitions", "deprecated", "description", "discriminator", "example",
    "examples", "externalDocs", "nullable", "readOnly", "title", "writeOnly", "xml",
})  # fmt: skip
"""Keywords that no validator of JSON Schema acts on. Where ``nullable`` counts, it only allows more."""

_KINDS = {str: "string", bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}


def kind_of(value: Any) -> str:
    """Return the kind of a JSON value: null, boolean, number, string, array or object. Integers are numbers."""
    return _KINDS.get(type(value), "null")


def is_kind(value: Any, name: object) -> bool:
    """Tell whether a JSON value is of a type of JSON Schema. 1.0 is an integer."""
    if name == "integer":
        return type(value) is int or (type(value) is float and value.is_integer())
    return kind_of(value) == name


def is_number(argument: object) -> bool:
    """Tell whether the argument of a keyword is a finite number."""
    return type(argument) is int or (type(argument) is float and math.isfinite(argument))


def same(one: Any, other: Any) -> bool:
    """Tell whether two JSON values are equal as in JSON Schema: 1 is 1.0 and not true."""
    if kind_of(one) != kind_of(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    return bool(one == other)


def frozen(value: Any) -> Any:
    """Make a JSON value hashable, so that equal ones, as `same` compares them, are equal."""
    if isinstance(value, list):
        return ("array", tuple(frozen(element) for element in value))
    if isinstance(value, dict):
        return ("object", frozenset((key, frozen(element)) for key, element in value.items()))
    return (isinstance(value, bool), value)


def resolve(reference: object, root: Any) -> Any:
    """Return the schema that a reference inside ``root`` leads to; None for one that leads elsewhere."""
    if not isinstance(reference, str) or not isinstance(root, Mapping):
        return None
    definitions = root.get("$defs")
    name = reference.removeprefix("#/$defs/")
    if isinstance(definitions, Mapping) and name != reference and name in definitions:
        return definitions[name]
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return None
    found: Any = root
    for escaped in unquote(reference[2:]).split("/"):
        part = escaped.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping):
            found = found.get(part)
        elif isinstance(found, list) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            return None
    return found
