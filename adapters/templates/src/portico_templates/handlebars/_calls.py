"""Calls, compiled: helpers of the application, helpers of the language, functions in the data and of the kernel."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from typing import Any, Protocol

from portico.errors import ArgumentsInvalid, FunctionNotFound
from portico_templates.handlebars._bodies import Body
from portico_templates.handlebars._nodes import Expression, Literal, Path, SubExpression
from portico_templates.handlebars._paths import compile_literal, compile_path
from portico_templates.handlebars._running import Later, Scope, settled
from portico_templates.handlebars._unit import Get, Unit
from portico_templates.handlebars.helper_options import Options
from portico_templates.handlebars.semantic_kernel import BARE, BLOCKS, VALUES
from portico_templates.handlebars.values import MISSING, is_array, is_callable

_LOG = logging.getLogger("portico_templates.handlebars")
_LEVELS = {"debug": 10, "info": 20, "warn": 30, "warning": 30, "error": 40, 0: 10, 1: 20, 2: 30, 3: 40}

Bodies = tuple[Body | None, Body | None]


class Callee(Protocol):
    """What is called with a scope, arguments and named arguments."""

    def __call__(self, scope: Scope, arguments: list[Any], named: dict[str, Any], /) -> Any: ...


class _Node(Protocol):
    path: Path
    params: list[Expression]
    hash: dict[str, Expression]

    @property
    def at(self) -> int: ...
    @property
    def end(self) -> int: ...


def compile_value(unit: Unit, expression: Expression) -> tuple[Get, bool]:
    """Return what gives a value, and whether that may come later."""
    if isinstance(expression, Literal):
        return compile_literal(expression), False
    if isinstance(expression, Path):
        return compile_path(unit, expression), False
    return compile_call(unit, expression)


def compile_call(unit: Unit, node: _Node, bodies: Bodies | None = None) -> tuple[Get, bool]:
    """Return what calls a helper or a function; ``bodies`` are those of the block that it stands before."""
    path = node.path
    name = path.parts[0] if path.parts else path.original
    kind = unit.helper_kind(name) if path.is_simple and unit.block_param(name) is None else None
    if kind == "custom":
        return waiting(unit, node, _custom(unit, node, name, bodies), may_wait=True)
    if kind == "built-in":
        return waiting(unit, node, _built_in(unit, node, name), may_wait=False)
    if kind == "semantic-kernel" and (node.params or node.hash or name in BARE or isinstance(node, SubExpression)):
        return waiting(unit, node, _semantic_kernel(unit, node, name), may_wait=False)
    return waiting(unit, node, _found(unit, node), may_wait=True)


def compile_arguments(unit: Unit, node: Any) -> tuple[list[Get], list[str], bool]:
    """Return what gives the arguments, the names of the last of them, and whether one may come later."""
    named = defined(node.hash)
    compiled = [compile_value(unit, value) for value in (*node.params, *named.values())]
    return [get for get, _ in compiled], list(named), any(waits for _, waits in compiled)


def defined(named: Mapping[str, Expression]) -> dict[str, Expression]:
    """Return the named arguments without those that are written ``undefined``: it is as if they were not there."""
    return {
        name: value for name, value in named.items() if not (isinstance(value, Literal) and value.kind == "UNDEFINED")
    }


def waiting(unit: Unit, node: _Node, callee: Callee, *, may_wait: bool) -> tuple[Get, bool]:
    """Return what calls with the node's arguments, when they have come."""
    getters, names, waits = compile_arguments(unit, node)
    by_place = len(getters) - len(names)
    if not waits:
        if not names:
            return (lambda scope: callee(scope, [get(scope) for get in getters], {})), may_wait

        def call_at_once(scope: Scope) -> Any:
            values = [get(scope) for get in getters]
            return callee(scope, values[:by_place], dict(zip(names, values[by_place:], strict=True)))

        return call_at_once, may_wait

    def call(scope: Scope) -> Any:
        values = [get(scope) for get in getters]
        if any(type(value) is Later for value in values):
            return scope.run.later(call_later(scope, values))
        return callee(scope, values[:by_place], dict(zip(names, values[by_place:], strict=True)))

    async def call_later(scope: Scope, values: list[Any]) -> Any:
        await settled(values)
        result = callee(scope, values[:by_place], dict(zip(names, values[by_place:], strict=True)))
        return await result.awaitable if type(result) is Later else result

    return call, True


def _custom(unit: Unit, node: _Node, name: str, bodies: Bodies | None) -> Callee:
    helper = unit.setup.helpers[name]
    unit.needs_data = True
    is_async = inspect.iscoroutinefunction(helper) or inspect.iscoroutinefunction(type(helper).__call__)

    def call(scope: Scope, arguments: list[Any], named: dict[str, Any]) -> Any:
        given = [None if value is MISSING else value for value in arguments]
        by_name = {key: None if value is MISSING else value for key, value in named.items()}
        options = Options(
            name, scope, by_name, bodies, is_async=is_async, fault=lambda message: unit.fault(message, node)
        )
        try:
            result = helper(options, *given, **by_name)
        except TypeError as error:
            misfit = _misfit(helper, given, by_name)
            if misfit is None:
                raise
            unit.refuse(f"The arguments do not fit the helper {name!r}: {misfit}.", node, error)
        return scope.run.later(result) if inspect.isawaitable(result) else result

    return call


def _misfit(helper: Any, arguments: list[Any], named: dict[str, Any]) -> str | None:
    """Say why arguments do not fit a helper; None where they do."""
    try:
        signature = inspect.signature(helper)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(None, *arguments, **named)
    except TypeError as misfit:
        return str(misfit)
    return None


def _built_in(unit: Unit, node: _Node, name: str) -> Callee:
    if name == "lookup":
        if len(node.params) != 2:
            unit.refuse("lookup takes two arguments: a value, and the name or index of what is wanted of it.", node)
        return _looking_up(unit)
    if name != "log":
        unit.refuse(f"{name!r} is for blocks: {{{{#{name} …}}}}…{{{{/{name}}}}}.", node)

    def log(scope: Scope, arguments: list[Any], named: dict[str, Any]) -> Any:
        level = named.get("level", scope.data.get("level"))
        level = _LEVELS.get(level if isinstance(level, int) else str(level or "info").lower(), 20)
        _LOG.log(level, "%s", " ".join(unit.setup.texts.text(value) for value in arguments))
        return MISSING

    unit.needs_data = True
    return log


def _looking_up(unit: Unit) -> Callee:
    read = unit.setup.fields.read
    key = unit.setup.texts.key

    def lookup(scope: Scope, arguments: list[Any], named: dict[str, Any]) -> Any:
        value, name = arguments
        if not value and not is_array(value) and not isinstance(value, Mapping):
            return value  # What JavaScript takes for false.
        return read(value, name if type(name) is str else key(name))

    return lookup


def _semantic_kernel(unit: Unit, node: _Node, name: str) -> Callee:
    if name == "set":
        unit.refuse("set gives no value: it stands alone, as {{set 'name' value}}.", node)
    if name in BLOCKS:
        unit.refuse(f"{name!r} is for blocks: {{{{#{name}}}}}…{{{{/{name}}}}}.", node)
    value = VALUES[name]
    setup = unit.setup

    def call(scope: Scope, arguments: list[Any], named: dict[str, Any]) -> Any:
        try:
            return value(setup, scope, arguments, named)
        except (ValueError, ArithmeticError) as error:
            unit.refuse(str(error), node, error)

    return call


def _found(unit: Unit, node: _Node) -> Callee:
    """Return what looks for a function where it is called: in the data first, then in the kernel."""
    path = node.path
    look = compile_path(unit, path)
    missing = unit.setup.helpers.get("helperMissing")
    name = path.original

    def call(scope: Scope, arguments: list[Any], named: dict[str, Any]) -> Any:
        found = look(scope)
        if is_callable(found):
            return apply(scope, found, arguments, named)
        try:
            return _called(scope, name, arguments, named)
        except FunctionNotFound as error:
            if missing is not None:
                return _custom(unit, node, "helperMissing", None)(scope, arguments, named)
            if unit.setup.escapes and not arguments and (found is None or found is MISSING):
                return MISSING  # handlebars.js takes one with named arguments only for a field that is missing.
            _refuse_missing(unit, node, found, error)
        except ArgumentsInvalid as error:
            unit.refuse(str(error), node, error)

    return call


def _refuse_missing(unit: Unit, node: _Node, found: Any, error: FunctionNotFound) -> None:
    name = node.path.original
    if found is not MISSING and found is not None:
        unit.refuse(f"{name!r} is a variable, which takes no arguments. {error}", node, error)
    if name in {"elseif", "elif", "elsif"}:
        unit.refuse(f"{name!r} is written {{{{else if …}}}}.", node, error)
    unit.refuse(f"Missing helper: {name!r}. {error}", node, error)


def _called(scope: Scope, name: str, arguments: list[Any], named: Mapping[str, Any]) -> Any:
    given = {key: None if value is MISSING else value for key, value in named.items()}
    if arguments:
        by_place = [None if value is MISSING else value for value in arguments]
        return scope.run.later(scope.run.call(name, given, by_place))
    return scope.run.later(scope.run.call(name, given))


def find_bare(unit: Unit, node: Any, scope: Scope, name: str) -> Any:
    """Call a function without arguments, for a name that is no variable; MISSING where there is no such function."""
    run = scope.run
    if name in run.unknown:
        return MISSING
    try:
        return run.later(run.call(name, {}))
    except FunctionNotFound as error:
        run.unknown.add(name)
        if name.startswith("$") and unit.setup.fields.has(scope.context, name[1:]):
            unit.refuse(f"The variable is written without '$': {name[1:]}.", node, error)
        missing = unit.setup.helpers.get("helperMissing")
        return MISSING if missing is None else _custom(unit, node, "helperMissing", None)(scope, [], {})
    except ArgumentsInvalid as error:
        unit.refuse(f"There is no variable {name!r} here, and the function cannot be called so. {error}", node, error)


def apply(scope: Scope, function: Any, arguments: list[Any], named: dict[str, Any]) -> Any:
    """Call a function that is in the data; without arguments it is given the context if it takes something."""
    if not arguments and not named:
        try:
            takes = any(
                each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD, each.VAR_POSITIONAL)
                for each in inspect.signature(function).parameters.values()
            )
        except (TypeError, ValueError):
            takes = False
        arguments = [scope.context] if takes else []
    result = function(*(None if value is MISSING else value for value in arguments), **named)
    return scope.run.later(result) if inspect.isawaitable(result) else result


def block_missing(unit: Unit, node: _Node, subject: Get, bodies: Bodies) -> Get:
    """Return what gives the value of a block to the application's own `blockHelperMissing`."""
    callee = _custom(unit, node, "blockHelperMissing", bodies)

    def call(scope: Scope) -> Any:
        value = subject(scope)
        return scope.run.later(call_later(scope, value)) if type(value) is Later else callee(scope, [value], {})

    async def call_later(scope: Scope, later: Later) -> Any:
        result = callee(scope, [await later.awaitable], {})
        return await result.awaitable if type(result) is Later else result

    return call
