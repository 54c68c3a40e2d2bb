"""Reading the text of an attribute as the JSON value that its parameter takes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["read_literal"]

_SHORT = 18
_KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


def read_literal(text: str, schema: Any, root: Mapping[str, Any]) -> Any:
    """Return the value that ``text`` is for a parameter; the text itself where that is not certain.

    >>> read_literal("3", {"type": "integer"}, {}), read_literal("03", {"type": "integer"}, {})
    (3, '03')

    A text that is exactly how JSON writes a value of a kind that the schema takes is that value, unless the schema
    takes a text too. Arrays and objects may be spaced in any way. ``root`` holds the ``$defs``.
    """
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if kind == "string":
        return text
    if (
        kind == "integer"
        and len(text) <= _SHORT
        and text.isdecimal()
        and text.isascii()
        and (text[0] != "0" or text == "0")
    ):
        return int(text)
    kinds = {kind} if isinstance(kind, str) else set(_kinds(schema, root, frozenset()))
    if not kinds or kinds & {"string", "any"}:
        return text
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return text
    kind = _KINDS.get(type(value), "null")
    if kind in ("array", "object"):
        return value if kind in kinds else text
    fits = kind in kinds or (kind == "integer" and "number" in kinds)
    return value if fits and json.dumps(value) == text else text


def _kinds(schema: Any, root: Mapping[str, Any], seen: frozenset[str]) -> Iterator[str]:
    """Yield the kinds of JSON value that a schema takes; "any" where it does not say."""
    if not isinstance(schema, Mapping):
        yield "any"
        return
    reference = schema.get("$ref")
    options = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(reference, str):
        if reference not in seen:
            definitions = root.get("$defs")
            name = reference.removeprefix("#/$defs/")
            target = definitions.get(name) if isinstance(definitions, Mapping) else None
            yield from _kinds(target, root, seen | {reference})
    elif "type" in schema:
        names = schema["type"]
        listed = [names] if isinstance(names, str) else names
        yield from (each for each in listed if isinstance(each, str)) if isinstance(listed, list) else ("any",)
    elif isinstance(options, list):
        for option in options:
            yield from _kinds(option, root, seen)
    elif "const" in schema or isinstance(schema.get("enum"), list):
        for value in schema.get("enum", [schema.get("const")]):
            yield _KINDS.get(type(value), "null")
    else:
        yield "any"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key twice")
    return made


def _refused(constant: str) -> Any:
    raise ValueError(constant)


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refused)
