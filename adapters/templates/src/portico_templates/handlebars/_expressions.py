"""Paths, literals and calls, compiled: each to a function that gives its value in a scope."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from portico import Prompt
from portico.errors import ArgumentsInvalid, FunctionNotFound, TemplateError
from portico_templates.handlebars._nodes import Call, Expression, Literal, Path
from portico_templates.handlebars._running import Body, Later, Limits, Scope, await_values
from portico_templates.handlebars.helper_options import Helper, Options
from portico_templates.handlebars.semantic_kernel import BARE, BLOCKS, VALUES
from portico_templates.handlebars.values import MISSING, Values, declared_fields, is_array, is_hidden

_LOG = logging.getLogger("portico_templates.handlebars")
_TYPES_KEPT = 64

BUILT_IN = frozenset({"each", "if", "unless", "with", "log", "lookup"})

HELPER_MISSING = "helperMissing"
"""The application's helper that is called in place of one that is not there, with the name of that one."""

Get = Callable[[Scope], Any]
Bodies = tuple[Body | None, Body | None]


@dataclass(frozen=True, slots=True)
class Setup:
    """What every template of one language shares; ``escapes`` tells whether HTML is escaped."""

    helpers: Mapping[str, Helper]
    escapes: bool
    limits: Limits
    semantic_kernel_helpers: bool
    values: Values

    def helper_kind(self, name: str, *, is_bare: bool = False) -> str | None:
        """Tell whose helper a name is: the application's, of the language, or of Semantic Kernel's.

        ``is_bare`` is for a name without arguments: those of Semantic Kernel's helpers are then variables, as a rule.
        """
        if name in self.helpers and name != HELPER_MISSING:
            return "custom"
        if name in BUILT_IN:
            return "built-in"
        known = BARE if is_bare else {*VALUES, *BLOCKS, "set"}
        return "semantic-kernel" if self.semantic_kernel_helpers and name in known else None


@dataclass(slots=True, eq=False)
class Unit:
    """One source that is compiled: its text and name, for errors, and the block parameters that can be named.

    ``find_partial`` gives the body of a partial of the language. ``in_order`` says that partials may set variables.
    ``inside`` counts the contexts: in the first, a name is a variable's. ``called`` are all calls that may be of a
    function, each with the variable whose value comes first: None for none, "" for one that is not known.
    """

    source: str
    name: str
    setup: Setup
    find_partial: Callable[[str], Body | None]
    in_order: bool
    called: list[tuple[Call, str | None]]
    inside: int = 0
    block_params: list[tuple[str, ...]] = field(default_factory=list)
    needs_data: bool = False

    def fault(self, message: str, node: Expression) -> TemplateError:
        """Return the error of a node."""
        return Prompt.fault(message, self.source, node.at, node.end - node.at, name=self.name)

    def refuse(self, message: str, node: Expression, cause: BaseException | None = None) -> NoReturn:
        """Raise the error of a node."""
        raise self.fault(message, node) from cause

    def block_param(self, name: str) -> tuple[int, int] | None:
        """Find a block parameter: how many blocks out, and which of that block's."""
        for hops, names in enumerate(reversed(self.block_params)):
            if name in names:
                return hops, names.index(name)
        return None

    def helper_kind(self, path: Path, *, is_bare: bool = False) -> str | None:
        """Tell whose helper a path is, if it is one's name."""
        if not path.is_simple or self.block_param(path.parts[0]) is not None:
            return None
        return self.setup.helper_kind(path.parts[0], is_bare=is_bare)


# Paths.


def compile_path(unit: Unit, path: Path) -> Get:
    """Return what finds a path's value; MISSING where there is none."""
    parts = path.parts
    if parts and not path.depth and not path.is_scoped and not path.data:
        place = unit.block_param(parts[0])
        if place is not None:
            return _fields(unit, _block_param(unit, path, *place), parts[1:])
    if parts in {(), ("",)}:
        return _context(path.depth)
    if path.data:
        return _fields(unit, _data(unit, path), parts[1:])
    if len(parts) == 1 and not path.depth:
        return _field(unit, parts[0])
    return _fields(unit, _context(path.depth), parts)


def declares_field(kind: type, name: str, declaring: set[type]) -> bool:
    """Tell whether a class declares a field; ``declaring`` remembers some that do."""
    if name not in declared_fields(kind):
        return False
    if len(declaring) < _TYPES_KEPT:
        declaring.add(kind)
    return True


def _field(unit: Unit, name: str) -> Get:
    read = unit.setup.values.read
    is_number = name.isdecimal()
    declaring: set[type] = set()
    if is_hidden(name):  # A variable may have such a name.
        return lambda scope: scope.run.root.get(name, MISSING) if scope.context is scope.run.root else MISSING

    def get(scope: Scope) -> Any:
        context = scope.context
        kind = type(context)
        if kind is dict and not is_number:
            return context.get(name, MISSING)
        if kind in declaring or declares_field(kind, name, declaring):
            return getattr(context, name, MISSING)
        return read(context, name)

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
    name, up = path.parts[0], path.depth
    if name == "partial-block" and not up:
        return _partial_block
    if name != "root":
        unit.needs_data = True
    if up:
        return lambda scope: scope.data.get(name, up)

    def get(scope: Scope) -> Any:
        values = scope.data.values
        return values[name] if name in values else scope.data.get(name)

    return get


def _partial_block(scope: Scope) -> Any:
    """Return the block that a partial was called with, as a value that is true where there is something in it."""
    block = scope.around.block
    return MISSING if block is None or block.body.is_empty else block


def _fields(unit: Unit, begin: Get, names: tuple[str, ...]) -> Get:
    """Return what reads a value, a field of it, a field of that, and so on."""
    if not names:
        return begin
    read = unit.setup.values.read

    def get(scope: Scope) -> Any:
        found = begin(scope)
        for name in names:
            if found is None or found is MISSING:
                return found
            found = read(found, name)
        return found

    return get


def log_missing(unit: Unit, path: Path, get: Get) -> Get:
    """Return what finds the same value, and logs once for its place that a value has no field of the name.

    Of a mapping only a key in other letters counts: a key that is not there may be optional.
    """
    first = int(path.data or unit.block_param(path.parts[0]) is not None) if path.parts else 0
    owners = [
        (compile_path(unit, replace(path, parts=path.parts[:length])), path.parts[length])
        for length in reversed(range(first, len(path.parts)))
    ]
    read = unit.setup.values.read
    is_logged = False

    def find(scope: Scope) -> Any:
        nonlocal is_logged
        value = get(scope)
        # One look in each rendering: a loop may come here often.
        if value is not MISSING or is_logged or find in scope.run.missed:
            return value
        scope.run.missed.add(find)
        for find_owner, name in owners:
            owner = find_owner(scope)
            if owner is MISSING or read(owner, name) is not MISSING:
                continue
            kind: Any = type(owner)
            is_mapping = isinstance(owner, Mapping)
            fields = [key for key in owner if isinstance(key, str)] if is_mapping else declared_fields(kind)
            alike = [field for field in fields if field.casefold() == name.casefold()]
            if alike or (fields and not is_mapping):
                is_logged = True
                message = (
                    f"There is no field {name!r} here. The value has {repr(alike[0]) if alike else ', '.join(fields)}."
                )
                if is_hidden(name):
                    message = f"Names that begin with '_' are hidden: pass {name!r} under another name."
                _LOG.warning("%s", unit.fault(message, path))
            break
        return value

    return find


# Calls.


def compile_value(unit: Unit, expression: Expression) -> Get:
    """Return what gives a value, or a `Later`; only a call gives one of those."""
    if isinstance(expression, Literal):
        value = MISSING if expression.kind == "UNDEFINED" else expression.value
        return lambda scope: value
    if isinstance(expression, Path):
        return compile_path(unit, expression)
    return compile_call(unit, expression, is_nested=True)


def without_undefined(named: Mapping[str, Expression]) -> dict[str, Expression]:
    """Return the named arguments without those that are written ``undefined``: it is as if they were not there."""
    return {
        name: value for name, value in named.items() if not (isinstance(value, Literal) and value.kind == "UNDEFINED")
    }


def compile_arguments(unit: Unit, call: Call) -> tuple[list[Get], list[str]]:
    """Return what gives the arguments, and the names of the last of them."""
    named = without_undefined(call.hash)
    return [compile_value(unit, value) for value in (*call.params, *named.values())], list(named)


Callee = Callable[[Scope, list[Any], dict[str, Any]], Any]


def compile_call(unit: Unit, call: Call, bodies: Bodies | None = None, *, is_nested: bool = False) -> Get:
    """Return what calls a helper or a function; ``bodies`` are those of the block that it stands before."""
    kind = unit.helper_kind(call.path, is_bare=call.is_bare and not is_nested)
    name = call.path.parts[0] if call.path.parts else call.path.original
    if kind == "custom":
        callee = _custom(unit, call, name, bodies)
    elif kind == "built-in":
        callee = _built_in(unit, call, name)
    elif kind == "semantic-kernel":
        callee = _semantic_kernel(unit, call, name)
    else:
        callee = _function(unit, call)
    getters, names = compile_arguments(unit, call)
    by_place = len(getters) - len(names)

    def now(scope: Scope, values: list[Any]) -> Any:
        return callee(scope, values[:by_place], dict(zip(names, values[by_place:], strict=True)))

    async def later(scope: Scope, values: list[Any]) -> Any:
        result = now(scope, await await_values(values))
        return await result.awaitable if type(result) is Later else result

    def get(scope: Scope) -> Any:
        values = [get(scope) for get in getters]
        if any(type(value) is Later for value in values):
            return scope.run.later(later(scope, values))
        return now(scope, values)

    return get


def _plain(values: Iterable[Any]) -> list[Any]:
    return [None if value is MISSING else value for value in values]


def _custom(unit: Unit, call: Call, name: str, bodies: Bodies | None, called: str = "") -> Callee:
    helper = unit.setup.helpers[name]
    unit.needs_data = True
    is_async = inspect.iscoroutinefunction(helper) or inspect.iscoroutinefunction(type(helper).__call__)
    try:
        inspect.signature(helper).bind(None, *call.params, **without_undefined(call.hash))
    except TypeError as misfit:
        unit.refuse(f"The arguments do not fit the helper {name!r}: {misfit}.", call, misfit)
    except ValueError:
        pass  # It is written in C, and its signature is not known.

    def callee(scope: Scope, arguments: list[Any], named: dict[str, Any]) -> Any:
        by_name = dict(zip(named, _plain(named.values()), strict=True))
        options = Options(called or name, scope, bodies, is_async, lambda message: unit.fault(message, call))
        result = helper(options, *_plain(arguments), **by_name)
        return scope.run.later(result) if inspect.isawaitable(result) else result

    return callee


def _built_in(unit: Unit, call: Call, name: str) -> Callee:
    if name == "lookup":
        if len(call.params) != 2:
            unit.refuse("lookup takes two arguments: a value, and the name or index of what is wanted of it.", call)
        return _lookup(unit)
    if name != "log":
        unit.refuse(f"{name!r} is for blocks: {{{{#{name} …}}}}…{{{{/{name}}}}}.", call)

    def log(scope: Scope, arguments: list[Any], named: dict[str, Any]) -> Any:
        _LOG.info("%s", " ".join(map(shown, arguments)))
        return MISSING

    def shown(value: Any) -> str:
        try:
            return unit.setup.values.text(value)
        except ValueError:  # It has no text, such as a module.
            return object.__repr__(value)

    return log


def _lookup(unit: Unit) -> Callee:
    values = unit.setup.values

    def lookup(scope: Scope, arguments: list[Any], named: dict[str, Any]) -> Any:
        value, name = arguments
        if not value and not is_array(value) and not isinstance(value, Mapping):
            return value  # What JavaScript takes for false.
        return values.read(value, values.key(name))

    return lookup


def _semantic_kernel(unit: Unit, call: Call, name: str) -> Callee:
    if name == "set":
        unit.refuse("set gives no value: it stands alone, as {{set 'name' value}}.", call)
    if name in BLOCKS:
        unit.refuse(f"{name!r} is for blocks: {{{{#{name}}}}}…{{{{/{name}}}}}.", call)
    value = VALUES[name]
    values = unit.setup.values

    def callee(scope: Scope, arguments: list[Any], named: dict[str, Any]) -> Any:
        try:
            return value(values, scope.run, arguments, named)
        except (ValueError, ArithmeticError) as error:
            unit.refuse(f"{name} {error}", call, error)

    return callee


def _function(unit: Unit, call: Call) -> Callee:
    look = compile_path(unit, call.path)
    name = call.path.original
    unit.called.append((call, None))

    def callee(scope: Scope, arguments: list[Any], named: dict[str, Any]) -> Any:
        given = dict(zip(named, _plain(named.values()), strict=True))
        by_place = [_plain(arguments)] if arguments else []
        try:
            return scope.run.later(scope.run.call(name, given, *by_place))
        except FunctionNotFound as error:
            found = look(scope)
            is_missing = found is None or found is MISSING
            if is_missing and HELPER_MISSING in unit.setup.helpers:
                return _custom(unit, call, HELPER_MISSING, None, name)(scope, arguments, named)
            if unit.setup.escapes and not arguments and is_missing:
                return MISSING  # handlebars.js takes one with named arguments only for a field that is missing.
            if not is_missing:
                message = f"{name!r} is a variable, which takes no arguments."
            else:
                message = f"Missing helper: {name!r}."
            unit.refuse(f"{message} {error}", call, error)
        except ArgumentsInvalid as error:
            unit.refuse(str(error), call, error)

    return callee


def compile_bare(unit: Unit, call: Call) -> Get:
    """Return what finds a variable, or what a function of its name gives without arguments."""
    path, name = call.path, call.path.original
    get = compile_path(unit, path)
    values = unit.setup.values
    first = path.parts[0]
    unit.called.append((call, first if unit.inside == 1 and not is_hidden(first) else ""))

    def find(scope: Scope) -> Any:
        value = get(scope)
        run = scope.run
        if value is not MISSING or name in run.unknown:
            return value
        if len(path.parts) > 1 and values.read(scope.context, first) is not MISSING:
            return value
        try:
            return run.later(run.call(name, {}))
        except FunctionNotFound as error:
            run.unknown.add(name)
            if name.startswith("$") and values.read(scope.context, name[1:]) is not MISSING:
                unit.refuse(f"The variable is written without '$': {name[1:]}.", call, error)
            return MISSING
        except ArgumentsInvalid as error:
            message = f"There is no variable {name!r} here, and the function cannot be called so. {error}"
            unit.refuse(message, call, error)

    def find_or_help(scope: Scope) -> Any:
        value = find(scope)
        if value is None or value is MISSING:
            return _custom(unit, call, HELPER_MISSING, None, name)(scope, [], {})
        return value

    return find_or_help if path.is_simple and HELPER_MISSING in unit.setup.helpers else find
