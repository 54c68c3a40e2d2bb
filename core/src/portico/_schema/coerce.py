"""Values that are right and written in another kind: "5" for 5, JSON inside of a string."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from portico._schema.values import inside, kind_of, read_json
from portico._types.compiled import Compiled, Mismatch

_BITS = 4096
"""Python writes no number of more than 4,300 digits; a longer one is never meant as text."""
_MISSING: Any = object()
_NUMBERLIKE = frozenset({None, "decimal"})
"""The formats of strings that may be any text, or digits; digits alone are never meant as a date."""


def structure_leniently(compiled: Compiled, value: Any) -> Any:
    """Structure a JSON value that a model wrote, mending what is wrong only in how it was written.

    >>> from portico._types.compiling import compile_type
    >>> structure_leniently(compile_type(dict[str, int | list[int]]), {"a": "5", "b": "[1, 2]"})
    {'a': 5, 'b': [1, 2]}

    A string that is exactly how JSON, or Python, writes a value of a kind expected in its place becomes that value;
    an integer where a string is expected becomes its digits. Nothing is lost: "05", "5.0" for an integer and "1e3" stay
    strings. Raises the `Mismatch` of the value as it came when it still does not fit.
    """
    try:
        return compiled.structure(value)
    except Mismatch as error:
        try:
            return compiled.structure(mend(compiled.schema, value))
        except Mismatch:
            raise error from None


def mend(schema: Mapping[str, Any], value: Any) -> Any:
    """Mend a JSON value that a model wrote where only its JSON Schema is at hand, as `structure_leniently` does.

    >>> mend({"type": "object", "properties": {"days": {"type": "integer"}}}, {"days": "3", "city": "Oslo"})
    {'days': 3, 'city': 'Oslo'}

    A value that cannot be mended stays unchanged; the check then says what is wrong.
    """
    definitions = schema.get("$defs", {})

    def walk(value: Any, path: tuple[str | int, ...]) -> Any:
        expected = list(_at(schema, path, definitions))
        if not any(kind == "any" or (_is_of(value, kind) and format in _NUMBERLIKE) for kind, format in expected):
            found = _rewrite(value, expected)
            value = value if found is _MISSING else found
        if isinstance(value, dict):
            return {name: walk(inner, (*path, name)) for name, inner in value.items()}
        if isinstance(value, list):
            return [walk(inner, (*path, place)) for place, inner in enumerate(value)]
        return value

    try:
        return walk(value, ())
    except RecursionError:
        return value


def _is_of(value: Any, kind: str) -> bool:
    return (type(value) is int and kind == "integer") or kind_of(value) == kind


def _rewrite(value: Any, expected: list[tuple[str, str | None]]) -> Any:
    """Return the value in a kind that is expected, where nothing is lost by it; `_MISSING` otherwise."""
    if isinstance(value, str):
        return _read(value, {kind for kind, _ in expected})
    if type(value) is not int or value.bit_length() > _BITS:
        return _MISSING
    textual = any(format in _NUMBERLIKE for kind, format in expected if kind == "string")
    return str(value) if textual else _MISSING


def _read(text: str, kinds: set[str]) -> Any:
    """Return the value of a kind expected whose JSON text this is."""
    try:
        value = read_json(text)
    except (ValueError, RecursionError):
        return _MISSING
    if isinstance(value, dict | list):
        return value if kind_of(value) in kinds else _MISSING
    exact = text == repr(value) or text == json.dumps(value)
    return value if exact and any(_is_of(value, kind) for kind in kinds) else _MISSING


def read_literal(text: str, schema: Any, root: Mapping[str, Any]) -> Any:
    """Return the value that ``text`` is for a parameter; the text itself where that is not certain.

    >>> read_literal("3", {"type": "integer"}, {}), read_literal("03", {"type": "integer"}, {})
    (3, '03')

    A text that is exactly how JSON, or Python, writes a value of a kind that the schema takes is that value, unless the
    schema takes a text too. Arrays and objects may be spaced in any way. ``root`` holds the ``$defs``.
    """
    definitions = root.get("$defs")
    kinds = {kind for kind, _ in _at(schema, (), definitions if isinstance(definitions, Mapping) else {})}
    if not kinds or kinds & {"string", "any"}:
        return text
    value = _read(text, kinds)
    return text if value is _MISSING else value


def _at(
    schema: Any, path: tuple[str | int, ...], definitions: Mapping[str, Any], seen: frozenset[str] = frozenset()
) -> Iterator[tuple[str, str | None]]:
    """Yield the kinds of JSON, with the formats of strings, that a schema may have at ``path``."""
    if not isinstance(schema, Mapping):
        yield "any", None
        return
    reference = schema.get("$ref")
    options = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    listed = [schema["const"]] if "const" in schema else schema.get("enum")
    if "type" in schema and not path and not options:
        names = schema["type"]
        for name in [names] if isinstance(names, str) else names if isinstance(names, list) else ["any"]:
            yield name, schema.get("format")
    elif isinstance(reference, str):
        if reference not in seen:
            target = definitions.get(reference.removeprefix("#/$defs/"))
            yield from _at(target, path, definitions, seen | {reference})
    elif options:
        for option in options:
            yield from _at(option, path, definitions, seen)
    elif path:
        kinds = schema.get("type", ("object", "array"))
        if ("object" if isinstance(path[0], str) else "array") in kinds:
            yield from _at(inside(schema, path[0]), path[1:], definitions)
    elif isinstance(listed, list):
        for value in listed:
            yield ("integer" if type(value) is int else kind_of(value)), None
    else:
        yield "any", None
