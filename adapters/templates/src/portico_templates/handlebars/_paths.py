"""Paths and literals, compiled: each to a function that finds its value in a scope."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from portico_templates.handlebars._nodes import Literal, Path
from portico_templates.handlebars._running import Round, Scope
from portico_templates.handlebars._unit import Get, Step, Unit, Write
from portico_templates.handlebars.values import MISSING

_TYPES_KEPT = 64


def compile_literal(literal: Literal) -> Get:
    """Return what gives a literal's value."""
    value = MISSING if literal.kind == "UNDEFINED" else literal.value
    return lambda scope: value


def compile_path(unit: Unit, path: Path) -> Get:
    """Return what finds a path's value; MISSING where there is none."""
    if not path.depth and not path.is_scoped and not path.data and path.parts:
        place = unit.block_param(path.parts[0])
        if place is not None:
            return _rest(unit, path, _block_param(unit, path, *place), path.parts[1:])
    if path.parts in {(), ("",)}:
        return _context(path.depth)
    if path.data:
        return _data(unit, path)
    if not path.depth:
        if len(path.parts) == 1:
            return _field(unit, path.parts[0])
        if len(path.parts) == 2:
            return _field_of_field(unit, *path.parts)
    return _rest(unit, path, _context(path.depth), path.parts)


def _field(unit: Unit, name: str) -> Get:
    fields = unit.setup.fields
    read = fields.read
    is_number = name.isdecimal()
    # Types of which it is known that they declare the name; the short way to their values.
    declaring: set[type] = set()

    def get(scope: Scope) -> Any:
        context = scope.context
        kind = type(context)
        if kind is dict:
            found = context.get(name, MISSING)
            return found if found is not MISSING or not is_number else read(context, name)
        if kind in declaring:
            return getattr(context, name, MISSING)
        if fields.declares(kind, name) and len(declaring) < _TYPES_KEPT:
            declaring.add(kind)
        return read(context, name)

    return get


def field_step(unit: Unit, name: str, otherwise: Step) -> Step:
    """Return the step that writes a field of the context which is a text; ``otherwise`` writes any other value."""
    declares = unit.setup.fields.declares
    declaring: set[type] = set()

    def step(scope: Scope, write: Write) -> None:
        context = scope.context
        kind = type(context)
        if kind is dict:
            value = context.get(name)
        elif kind in declaring:
            value = getattr(context, name, None)
        else:
            if len(declaring) < _TYPES_KEPT and declares(kind, name):
                declaring.add(kind)
            value = None
        if type(value) is str:
            write(value)
        else:
            otherwise(scope, write)

    return step


def _field_of_field(unit: Unit, first: str, second: str) -> Get:
    read = unit.setup.fields.read

    def get(scope: Scope) -> Any:
        found = read(scope.context, first)
        return found if found is None or found is MISSING else read(found, second)

    return get


def _context(depth: int) -> Get:
    if not depth:
        return lambda scope: scope.context

    def get(scope: Scope) -> Any:
        outer: Scope | None = scope
        for _ in range(depth):
            outer = outer.parent if outer is not None else None
        return MISSING if outer is None else outer.context

    return get


def _block_param(unit: Unit, path: Path, hops: int, index: int) -> Get:
    def get(scope: Scope) -> Any:
        params = scope.params
        for _ in range(hops):
            params = params[1]
        values = params[0]
        if values is None:
            unit.refuse(f"The block gives no block parameter {path.parts[0]!r}.", path)
        return values[index] if index < len(values) else MISSING

    return get


def _data(unit: Unit, path: Path) -> Get:
    up = path.depth
    first = path.parts[0]
    if first == "partial-block" and not up:
        return _partial_block
    if first != "root":
        unit.needs_data = True

    get = _of_round(first) if first in {"index", "key", "first", "last"} and not up else _of_data(first, up)
    return _rest(unit, path, get, path.parts[1:])


def _partial_block(scope: Scope) -> Any:
    """Return the block that a partial was called with, as a value that is true where there is something in it."""
    block = scope.around.block
    return MISSING if block is None or block.body.is_empty else block


def _of_data(name: str, up: int) -> Get:
    return lambda scope: scope.data.get(name, up)


def _of_round(name: str) -> Get:
    of_round = attrgetter(name)

    def get(scope: Scope) -> Any:
        data = scope.data
        return of_round(data) if type(data) is Round else data.get(name)

    return get


def _rest(unit: Unit, path: Path, begin: Get, names: tuple[str, ...]) -> Get:
    """Go on from a value by further names."""
    if not names:
        return begin
    read = unit.setup.fields.read

    def get(scope: Scope) -> Any:
        found = begin(scope)
        for name in names:
            if found is None or found is MISSING:
                return found
            found = read(found, name)
        return found

    return get
