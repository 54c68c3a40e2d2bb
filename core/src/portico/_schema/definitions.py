"""The ``$defs`` of a schema that is put inside another: moved to the root, under names that clash with none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from itertools import count
from typing import Any

_PREFIX = "#/$defs/"
_DATA = frozenset({"const", "default", "enum", "examples", "required"})
"""Keywords whose argument is no schema: what looks like a reference in it is a value."""
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs"})
"""Keywords whose argument is an object of schemas: its keys are no keywords."""


def hoisted(
    schema: Mapping[str, Any],
    definitions: MutableMapping[str, Mapping[str, Any]],
    *,
    taken: Collection[str] = (),
    settled: Callable[[Mapping[str, Any]], bool] = lambda schema: False,
) -> Mapping[str, Any]:
    """Return a schema without its ``$defs``, which move to ``definitions``.

    >>> definitions = {"Node": {"type": "string"}}
    >>> hoisted({"$ref": "#/$defs/Node", "$defs": {"Node": {"type": "object"}}}, definitions)
    {'$ref': '#/$defs/Node2'}
    >>> definitions
    {'Node': {'type': 'string'}, 'Node2': {'type': 'object'}}

    One that is there already, to the same effect, is not repeated; another of a name that is there, or ``taken``,
    gets its own name. Schemas that are ``settled`` refer to ``definitions`` already and stay as they are.
    """
    own: Mapping[str, Mapping[str, Any]] = schema.get("$defs", {})
    if "$defs" not in schema:
        return schema
    clashing = {name for name, body in own.items() if name in taken or definitions.get(name, body) != body}
    referring = {name: set(_references(body, settled)) for name, body in own.items()}
    # What refers to a definition of another meaning has another meaning itself.
    while more := {name for name in own if name not in clashing and referring[name] & clashing}:
        clashing |= more
    rest = {key: value for key, value in schema.items() if key != "$defs"}
    if not clashing:
        definitions.update(own)
        return rest
    for number in count(2):
        names = {name: f"{name}{number}" if name in clashing else name for name in own}
        bodies = {names[name]: _renamed(body, names, settled) for name, body in own.items()}
        if all(
            name not in taken and name not in own and definitions.get(name, bodies[name]) == bodies[name]
            for name in map(names.__getitem__, clashing)
        ):
            break
    definitions.update(bodies)
    renamed: Mapping[str, Any] = _renamed(rest, names, settled)
    return renamed


def with_definitions(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema with definitions at its root; the schema itself where there are none."""
    return {**schema, "$defs": definitions} if definitions else schema


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name, or the first of ``name2``, ``name3`` and so on that is not taken."""
    return next(
        candidate for number in count(1) if (candidate := name if number == 1 else f"{name}{number}") not in taken
    )


def _references(schema: Any, settled: Callable[[Mapping[str, Any]], bool]) -> Iterator[str]:
    """Yield the names of the definitions that a schema refers to."""
    if isinstance(schema, list):
        for part in schema:
            yield from _references(part, settled)
    elif isinstance(schema, Mapping) and not settled(schema):
        for keyword, argument in schema.items():
            if keyword == "$ref":
                yield str(argument).removeprefix(_PREFIX)
            elif keyword in _NAMED and isinstance(argument, Mapping):
                yield from _references(list(argument.values()), settled)
            elif keyword not in _DATA:
                yield from _references(argument, settled)


def _renamed(schema: Any, names: Mapping[str, str], settled: Callable[[Mapping[str, Any]], bool]) -> Any:
    """Change the names of the definitions that a schema refers to."""
    if isinstance(schema, list):
        return [_renamed(part, names, settled) for part in schema]
    if not isinstance(schema, Mapping) or settled(schema):
        return schema
    changed: dict[str, Any] = {}
    for keyword, argument in schema.items():
        if keyword == "$ref" and isinstance(argument, str):
            name = argument.removeprefix(_PREFIX)
            changed[keyword] = f"{_PREFIX}{names.get(name, name)}" if argument.startswith(_PREFIX) else argument
        elif keyword in _NAMED and isinstance(argument, Mapping):
            changed[keyword] = {name: _renamed(part, names, settled) for name, part in argument.items()}
        else:
            changed[keyword] = argument if keyword in _DATA else _renamed(argument, names, settled)
    return changed
