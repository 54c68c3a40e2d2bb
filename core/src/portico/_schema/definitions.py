"""The ``$defs`` of a schema that is put inside another, moved to its root, or of one that is shortened, written out."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, MutableMapping
from itertools import count
from typing import Any

from portico._schema.values import resolve

_PREFIX = "#/$defs/"
_DATA = frozenset({"const", "default", "enum", "examples", "required"})
"""Keywords whose argument is no schema: what looks like a reference in it is a value."""
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs"})
"""Keywords whose argument is an object of schemas: its keys are no keywords."""


def hoist(
    schema: Mapping[str, Any], definitions: MutableMapping[str, Mapping[str, Any]], *, taken: Collection[str] = ()
) -> Mapping[str, Any]:
    """Return a schema without its ``$defs``, which move to ``definitions``.

    >>> definitions = {"Node": {"type": "string"}}
    >>> hoist({"$ref": "#/$defs/Node", "$defs": {"Node": {"type": "object"}}}, definitions)
    {'$ref': '#/$defs/Node2'}
    >>> definitions
    {'Node': {'type': 'string'}, 'Node2': {'type': 'object'}}

    Those that are there already, to the same effect, are not repeated. Where one of a name is another, or the name is
    ``taken``, all get their own names.
    """
    if "$defs" not in schema:
        return schema
    own: Mapping[str, Mapping[str, Any]] = schema["$defs"]
    rest = {key: value for key, value in schema.items() if key != "$defs"}
    for number in count(1):
        names = {name: name if number == 1 else f"{name}{number}" for name in own}
        bodies = {names[name]: _rename(body, names) for name, body in own.items()}
        if all(name not in taken and definitions.get(name, body) == body for name, body in bodies.items()):
            definitions.update(bodies)
            return dict(_rename(rest, names))
    raise AssertionError("numbers do not end")


_LEFT_OUT = "What is inside is left out here."
_DEEPEST = 20


def shorten(schema: Mapping[str, Any], most: int) -> Mapping[str, Any]:
    """Return a schema, or of one with more than ``most`` characters as JSON as many levels as fit, for reading only.

    >>> shorten({"type": "object", "properties": {"rows": {"type": "array", "items": {"enum": [*range(50)]}}}}, 200)
    {'type': 'object', 'properties': {'rows': {'type': 'array', 'description': 'What is inside is left out here.'}}}

    What is left out has this note in its place, and references are written out.
    """
    if len(json.dumps(schema)) <= most:
        return schema
    shortened: Mapping[str, Any] = _upper(schema, schema, 0, [most])
    for depth in range(1, _DEEPEST):
        try:
            deeper = _upper(schema, schema, depth, [most])
        except OverflowError:
            break
        if deeper == shortened or len(json.dumps(deeper)) > most:
            break
        shortened = deeper
    return shortened


def _upper(schema: Any, root: Mapping[str, Any], depth: int, room: list[int]) -> Any:
    """Return the upper levels of a schema. Raises ``OverflowError`` when the room is full: that bounds the work."""
    room[0] -= 1
    if room[0] < 0:
        raise OverflowError
    if isinstance(schema, list):
        return [_upper(part, root, depth, room) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    for _ in range(_DEEPEST):
        target = resolve(schema.get("$ref"), root)
        if isinstance(target, Mapping):
            schema = {**target, **{key: part for key, part in schema.items() if key != "$ref"}}
    inner = {key for key, part in schema.items() if isinstance(part, Mapping | list) and key not in _DATA | {"type"}}
    if inner and not depth:
        return {key: schema[key] for key in ("type", "title") if key in schema} | {"description": _LEFT_OUT}
    return {
        key: part
        if key not in inner
        else {name: _upper(one, root, depth - 1, room) for name, one in part.items()}
        if key in _NAMED
        else _upper(part, root, depth - 1, room)
        for key, part in schema.items()
        if key not in ("$defs", "$ref")
    }


def with_definitions(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema with definitions at its root; the schema itself where there are none."""
    return {**schema, "$defs": definitions} if definitions else schema


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name, or the first of ``name2``, ``name3`` and so on that is not taken."""
    return next(
        candidate for number in count(1) if (candidate := name if number == 1 else f"{name}{number}") not in taken
    )


def _rename(schema: Any, names: Mapping[str, str]) -> Any:
    """Change the names of the definitions that a schema refers to."""
    if isinstance(schema, list):
        return [_rename(part, names) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    changed: dict[str, Any] = {}
    for keyword, argument in schema.items():
        if keyword == "$ref" and isinstance(argument, str):
            name = argument.removeprefix(_PREFIX)
            changed[keyword] = f"{_PREFIX}{names.get(name, name)}" if argument.startswith(_PREFIX) else argument
        elif keyword in _NAMED and isinstance(argument, Mapping):
            changed[keyword] = {name: _rename(part, names) for name, part in argument.items()}
        else:
            changed[keyword] = argument if keyword in _DATA else _rename(argument, names)
    return changed
