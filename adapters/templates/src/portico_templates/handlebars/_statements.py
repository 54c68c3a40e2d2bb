"""The compiler: a program becomes a body, and each of its statements a step."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from functools import partial
from itertools import islice
from threading import RLock
from typing import Any

from portico import Trusted
from portico.errors import LimitExceeded
from portico_templates.handlebars import _nodes as nodes
from portico_templates.handlebars._expressions import (
    HELPER_MISSING,
    Get,
    Setup,
    Unit,
    compile_arguments,
    compile_bare,
    compile_call,
    compile_path,
    compile_value,
    log_missing,
)
from portico_templates.handlebars._parsing import parse
from portico_templates.handlebars._running import (
    Body,
    Data,
    Entered,
    Indented,
    Inline,
    Later,
    OfBlock,
    Own,
    Scope,
    Step,
    Surroundings,
    Write,
    await_values,
    compound_step,
    escape_html,
)
from portico_templates.handlebars.semantic_kernel import BLOCKS
from portico_templates.handlebars.values import MISSING, SafeString, Values, is_array, is_empty, is_hidden, is_true

_DEEPEST = 64
_SETS = re.compile(r"\bset\b")
_SHORT = 10**18
"""Integers below are written without asking how."""

Put = Callable[[Any, Scope, Write], None]


def compile_template(
    program: nodes.Program, source: str, name: str, setup: Setup, partials: Partials, *, in_order: bool = False
) -> tuple[Body, list[tuple[nodes.Call, str | None]]]:
    """Return the body of a template and its `Unit.called`; ``in_order`` is for a partial where something may be set."""
    in_order = in_order or partials.may_set or (setup.semantic_kernel_helpers and _SETS.search(source) is not None)
    unit = Unit(source, name, setup, partial(partials.find, in_order=in_order), in_order, [])
    return _body(unit, program), unit.called


class Partials:
    """The partials of a language, each compiled when it is first used."""

    def __init__(self, sources: Mapping[str, str], setup: Setup) -> None:
        self._sources = dict(sources)
        self._setup = setup
        self._compiling = RLock()
        self._compiled: dict[tuple[str, bool], Body | None] = {}
        self.may_set = setup.semantic_kernel_helpers and any(map(_SETS.search, self._sources.values()))

    def find(self, name: str, *, in_order: bool) -> Body | None:
        """Return a partial; ``in_order`` is for templates in which something may be set."""
        source = self._sources.get(name)
        key = (name, in_order)
        if source is None or self._compiled.get(key) is not None:
            return self._compiled.get(key)
        with self._compiling:
            if key not in self._compiled:
                self._compiled[key] = None  # One that calls itself is asked for again while it is compiled.
                title = f"partial {name!r}"
                try:
                    program = parse(source, name=title)
                    body, _ = compile_template(program, source, title, self._setup, self, in_order=in_order)
                    self._compiled[key] = body
                except BaseException:
                    del self._compiled[key]
                    raise
            return self._compiled[key]


def _body(unit: Unit, program: nodes.Program, *, same_context: bool = False) -> Body:
    """Return the body of a program; ``same_context`` is for one that is written in the context around it."""
    outside, unit.needs_data = unit.needs_data, False
    unit.inside += not same_context
    body = Body(program.params, same_context=same_context)
    if program.params:
        unit.block_params.append(program.params)
    for statement in program.body:
        _add_statement(unit, body, statement)
    if program.params:
        unit.block_params.pop()
    unit.inside -= not same_context
    body.needs_data = unit.needs_data
    body.close()
    unit.needs_data = unit.needs_data or outside
    return body


def _add_statement(unit: Unit, body: Body, statement: nodes.Statement) -> None:
    if isinstance(statement, nodes.Content):
        body.add_text(statement.value)
        return
    if isinstance(statement, nodes.Comment):
        return
    body.cost += 1
    if isinstance(statement, nodes.Mustache):
        _add_mustache(unit, body, statement)
    elif isinstance(statement, nodes.Decorator):
        if statement.call.path.original != "inline" or statement.program is None:
            unit.refuse(f"The decorator {statement.call.path.original!r} cannot stand here.", statement.call)
        body.inlines.append((_inline_name(unit, statement.call), _body(unit, statement.program)))
    elif isinstance(statement, nodes.Partial):
        block = None if statement.program is None else _body(unit, statement.program)
        body.add(_partial(unit, statement, block), in_order=unit.in_order)
    else:
        _add_block(unit, body, statement)


def _inline_name(unit: Unit, call: nodes.Call) -> str:
    if not call.params or not isinstance(call.params[0], nodes.Literal):
        raise unit.fault("Inline partials are written {{#*inline 'name'}}…{{/inline}}.", call)
    return call.params[0].original


def _add_mustache(unit: Unit, body: Body, node: nodes.Mustache) -> None:
    call, setup = node.call, unit.setup
    path = call.path
    kind = unit.helper_kind(path, is_bare=call.is_bare)
    name = path.parts[0] if path.parts else ""
    if kind == "semantic-kernel" and name == "set":
        body.add(_set(unit, call), in_order=True)
        return
    put = _value_writer(unit, call, escapes=setup.escapes and node.escaped)
    if kind or not call.is_bare:
        body.add(_write_step(compile_call(unit, call), put))
        return
    is_variable = path.is_simple and unit.block_param(name) is None
    is_dotted = len(path.parts) > 1 and "." in path.original and not (path.data or path.depth or path.is_scoped)
    if not (is_variable or is_dotted):
        body.add(_write_step(log_missing(unit, path, compile_path(unit, path)), put))
        return
    is_plain = is_variable and not (
        setup.escapes or name.isdecimal() or is_hidden(name) or HELPER_MISSING in setup.helpers
    )
    find = log_missing(unit, path, compile_bare(unit, call))
    body.add(_write_step(find, put), field=name if is_plain else None)


def _add_block(unit: Unit, around: Body, node: nodes.Block) -> None:
    call = node.call
    name = call.path.parts[0] if call.path.parts else ""
    kind = unit.helper_kind(call.path)
    is_special = kind == "semantic-kernel" and name in BLOCKS
    is_helper = kind == "built-in" and name not in {"lookup", "log"}
    same = is_special or (is_helper and name in {"if", "unless"})
    body = None if node.program is None else _body(unit, node.program, same_context=same)
    unit.inside += kind == "custom"  # such a helper gives both any context
    inverse = None if node.inverse is None else _body(unit, node.inverse, same_context=True)
    unit.inside -= kind == "custom"
    bodies = [each for each in (body, inverse) if each is not None]
    around.cost += sum(each.cost for each in bodies)
    in_order = any(each.in_order for each in bodies)
    if is_special and name == "raw":
        step = compound_step([lambda scope: True], _if(body, None), in_order=in_order)
    elif is_special:
        step = _message(unit, call, body, in_order=in_order)
    elif is_helper:
        step = _built_in(unit, call, body, inverse, in_order=in_order)
    elif kind == "custom":
        step = _write_step(compile_call(unit, call, (body, inverse)), _value_writer(unit, call, escapes=False))
    else:
        if not call.is_bare or unit.helper_kind(call.path, is_bare=True):
            subject = compile_call(unit, call)
        elif call.path.is_simple and unit.block_param(name) is None:
            subject = compile_bare(unit, call)
        else:
            subject = compile_path(unit, call.path)
        step = compound_step([subject], _section(unit.setup.values, body, inverse), in_order=in_order)
    around.add(step, in_order=in_order)


def _built_in(unit: Unit, call: nodes.Call, body: Body | None, inverse: Body | None, *, in_order: bool) -> Step:
    """Return the step of `each`, `if`, `unless` or `with`."""
    (name,) = call.path.parts
    if len(call.params) != 1:
        unit.refuse(f"#{name} takes one argument, not {len(call.params)}.", call)
    getters = [compile_value(unit, call.params[0])]
    if name in {"each", "with"} and inverse is None and isinstance(call.params[0], nodes.Path):
        getters[0] = log_missing(unit, call.params[0], getters[0])
    if name == "each":
        loop = _Loop(unit.setup.values, body, inverse)
        return compound_step(getters, loop.choose_bodies, in_order=in_order, now=loop.write)
    if name == "with":
        return compound_step(getters, _with(body, inverse), in_order=in_order)
    if name == "unless":
        body, inverse = inverse, body
    if "includeZero" in call.hash:
        getters.append(compile_value(unit, call.hash["includeZero"]))
    return compound_step(getters, _if(body, inverse), in_order=in_order, now=_if_now(body, inverse))


def _partial(unit: Unit, node: nodes.Partial, block: Body | None) -> Step:
    """Return the step of a call of a partial: a template of the language, an inline partial, or the block around it."""
    call = node.call
    if len(call.params) > 1:
        unit.refuse(f"A partial takes one argument, its context, not {len(call.params)}.", call)
    unit.needs_data = True
    getters, names = compile_arguments(unit, call)
    written = None if isinstance(node.name, nodes.Call) else node.name.original
    if written is None:
        getters.insert(0, compile_value(unit, node.name))
    else:
        unit.find_partial(written)  # Its mistakes are found now.

    def choose_bodies(scope: Scope, write: Write, *arguments: Any) -> Iterator[Entered]:
        values, run = list(arguments), scope.run
        name = unit.setup.values.text(values.pop(0)) if written is None else written
        context = values.pop(0) if call.params else scope.context
        if call.hash:
            run.count(len(context) if isinstance(context, Sized) else 1)
            context = {**_as_mapping(unit.setup.values, context), **dict(zip(names, values, strict=True))}
        around, data = scope.around, scope.data
        if around.depth >= _DEEPEST:
            message = f"The partials call each other more than {_DEEPEST} deep, at last {name!r}."
            raise LimitExceeded(str(unit.fault(message, call)))
        inner_around = around._replace(depth=around.depth + 1)
        own = None
        if block is not None:
            own = Inline(block, scope, scope.params, around)
            data = Data({}, data)  # handlebars.js adds a level for the block, which `@../` sees.
            inner_around = block.add_inlines(scope, scope, inner_around)._replace(block=own)
        if node.indent:
            indented = Indented(node.indent)
            write(indented)
            write = indented.append
        inline, body, is_block = around.inlines.get(name), None, False
        if name == "@partial-block":
            inline, is_block = around.block, True
        elif inline is None:
            body = unit.find_partial(name)
            if body is None:  # Its block stands in for a partial that is missing.
                inline, is_block = own, True
        parent = params = None
        if inline is not None:
            body, parent, params = inline.body, inline.parent, inline.params
            if parent is not None and context is parent.context:
                parent = parent.parent
            if is_block:
                data = Data({}, data)
                inlines = {**around.inlines, **inline.around.inlines}
                inner_around = Surroundings(inlines, inline.around.block, around.depth + 1)
        if body is None:
            unit.refuse(f"The partial {name!r} could not be found.", call)
        run.count(body.cost)
        yield body, Scope(context, parent, data, params, inner_around, run, scope.jobs), None, write

    return compound_step(getters, choose_bodies, in_order=unit.in_order)


def _as_mapping(values: Values, context: Any) -> Mapping[str, Any]:
    if isinstance(context, Mapping):
        return context
    if is_array(context) or isinstance(context, str):
        return {str(index): item for index, item in enumerate(context)}
    return dict(values.items(context) or ())


def _nothing(scope: Scope, write: Write) -> None:
    pass


def _value_writer(unit: Unit, node: nodes.Expression, *, escapes: bool) -> Put:
    """Return what writes a value of any kind; one that comes later leaves a slot.

    What is no value, since it is trusted or a helper's block wrote it, is written as the template's own text.
    """
    values = unit.setup.values

    def put(value: Any, scope: Scope, write: Write) -> None:
        if type(value) is str:
            write(scope.run.grow(escape_html(value)) if escapes else value)
        elif type(value) is Later:
            scope.defer(write, lambda inner, fill: later(value, inner, fill))
        elif value is None or value is MISSING:
            write("")  # A value too: it parts what is around it.
        elif isinstance(value, OfBlock) and not escapes:
            for text, is_value in value.pieces:
                write(text if is_value else Own(text))
        elif isinstance(value, Trusted):
            write(Own(scope.run.grow(value)))
        elif isinstance(value, SafeString):
            write(str(scope.run.grow(value)))
        else:
            try:
                text = values.text(value)
            except ValueError as error:
                unit.refuse(f"The value cannot be written as text. {error}", node, error)
            write(scope.run.grow(escape_html(text) if escapes else text))

    async def later(value: Later, scope: Scope, write: Write) -> None:
        put(await value.awaitable, scope, write)

    return put


def _write_step(get: Get, put: Put) -> Step:

    def step(scope: Scope, write: Write) -> None:
        value = get(scope)
        if type(value) is int and 0 <= value < _SHORT:
            write(str(value))
        else:
            put(value, scope, write)

    return step


def _set(unit: Unit, call: nodes.Call) -> Step:
    """Return the step of ``{{set "name" value}}`` or ``{{set name="name" value=value}}``."""
    getters, names = compile_arguments(unit, call)
    if names and not call.params and set(names) == {"name", "value"}:
        name_at, value_at = names.index("name"), names.index("value")
    elif not names and len(getters) == 2:
        name_at, value_at = 0, 1
    else:
        unit.refuse("set takes a name and a value: {{set 'name' value}} or {{set name='name' value=value}}.", call)

    async def step(scope: Scope, write: Write) -> None:
        values = await await_values([get(scope) for get in getters])
        name, value = values[name_at], values[value_at]
        if not isinstance(name, str) or not name:
            unit.refuse("The name that set takes is a text.", call)
        if not isinstance(scope.run.root, dict):
            unit.refuse("Only a template that is given variables can set one.", call)
        scope.run.root[name] = None if value is MISSING else value

    return step


def _message(unit: Unit, call: nodes.Call, body: Body | None, *, in_order: bool) -> Step:
    """Return the step of ``{{#message role="user"}}…{{/message}}``: a message of a chat, with its attributes."""
    getters, names = compile_arguments(unit, call)
    if call.params or "role" not in names:
        unit.refuse('A message has a role: {{#message role="user"}}.', call)
    put = _value_writer(unit, call, escapes=False)

    def choose_bodies(scope: Scope, write: Write, *values: Any) -> Iterator[Entered]:
        write(Own("<message"))
        for name, value in zip(names, values, strict=True):
            if name == "role" and (value is None or value is MISSING or value == ""):
                unit.refuse("The message has a role that is empty.", call)
            write(Own(f' {name}="'))
            put(value, scope, write)
            write(Own('"'))
        write(Own(">"))
        if body is not None:
            yield body, scope.copy(), None, write
        write(Own("</message>"))

    return compound_step(getters, choose_bodies, in_order=in_order)


def _if(body: Body | None, inverse: Body | None) -> Callable[..., Iterator[Entered]]:
    def choose_bodies(scope: Scope, write: Write, value: Any, include_zero: Any = False) -> Iterator[Entered]:
        is_zero = isinstance(value, int | float) and not isinstance(value, bool) and value == 0
        chosen = body if is_true(value) or (is_zero and is_true(include_zero)) else inverse
        if chosen is not None:
            yield chosen, scope.copy(), None, write

    return choose_bodies


def _if_now(body: Body | None, inverse: Body | None) -> Callable[[Any, Scope, Write], None]:
    """Return the short way of a condition, whose bodies are written in the scope around them."""

    def enter(chosen: Body | None) -> Callable[[Scope, Write], None]:
        if chosen is None:
            return _nothing
        return (lambda scope, write: chosen.enter(scope.copy(), write)) if chosen.params else chosen.run

    if_true, if_false = enter(body), enter(inverse)

    def now(value: Any, scope: Scope, write: Write) -> None:
        is_plain = type(value) is str or value is True or value is False
        if value if is_plain else is_true(value):
            if_true(scope, write)
        else:
            if_false(scope, write)

    return now


def _with(body: Body | None, inverse: Body | None) -> Callable[..., Iterator[Entered]]:
    def choose_bodies(scope: Scope, write: Write, value: Any) -> Iterator[Entered]:
        if not is_empty(value):
            if body is not None:
                yield body, scope.inner(value), (value,), write
        elif inverse is not None:
            yield inverse, scope.copy(), None, write

    return choose_bodies


def _section(values: Values, body: Body | None, inverse: Body | None) -> Callable[..., Iterator[Entered]]:
    """Return a block over what a name or a function gives: a list is repeated, true and false choose."""
    loop = _Loop(values, body, inverse)

    def choose_bodies(scope: Scope, write: Write, value: Any) -> Iterator[Entered]:
        if is_array(value):
            yield from loop.choose_bodies(scope, write, value)
        elif value is None or value is MISSING or value is False:
            if inverse is not None:
                yield inverse, scope.copy(), None, write
        elif body is not None:
            yield body, scope.copy() if value is True else scope.inner(value), None, write

    return choose_bodies


class _Loop:
    """A block that is repeated for each item of a list, a mapping or an object with fields."""

    def __init__(self, values: Values, body: Body | None, inverse: Body | None) -> None:
        self.values = values
        self.body = body
        self.inverse = inverse
        self.cost = (body.cost if body is not None else 0) + 1
        self.needs_data = body is not None and body.needs_data

    def write(self, value: Any, scope: Scope, write: Write) -> None:
        """Write the block at once."""
        body = self.body
        if type(value) is not list or not value or body is None:
            for chosen, inner, params, _ in self.choose_bodies(scope, write, value):
                chosen.enter(inner, write, params)
            return
        # The usual case; one scope serves until a call is left to do in it.
        scope.run.count(len(value) * self.cost)
        jobs, run, last = scope.jobs, body.run, len(value) - 1
        context, needs_data, has_params = scope.context, self.needs_data, bool(body.params)
        begun = -1
        for index, item in enumerate(value):
            if item is MISSING:
                continue
            if len(jobs) != begun:
                begun = len(jobs)
                inner = Scope(None, scope, scope.data, scope.params, scope.around, scope.run, jobs)
                if needs_data:
                    data: dict[str, Any] = {}
                    inner.data = Data(data, scope.data)
            inner.context = item
            inner.parent = scope.parent if item is context else scope
            if needs_data:
                data["index"] = data["key"] = index
                data["first"] = not index
                data["last"] = index == last
            if has_params:
                inner.params = ((item, index), scope.params)
            run(inner, write)

    def choose_bodies(self, scope: Scope, write: Write, value: Any) -> Iterator[Entered]:
        """Yield the body for each item, or the inverse where there is none."""
        items, keys = self._items(value, scope)
        if not items:
            if self.inverse is not None:
                yield self.inverse, scope.copy(), None, write
            return
        scope.run.count(len(items) * self.cost)
        for index, item in enumerate(items):
            if item is MISSING or self.body is None:
                continue
            key = index if keys is None else keys[index]
            inner = scope.inner(item)
            last = index == len(items) - 1
            inner.data = Data({"index": index, "key": key, "first": not index, "last": last}, scope.data)
            yield self.body, inner, (item, key), write

    def _items(self, value: Any, scope: Scope) -> tuple[Sequence[Any], Sequence[Any] | None]:
        """Return the items of a value, and their keys where they are no indexes."""
        if is_array(value):
            return list(value), None
        pairs = self.values.items(value)
        if pairs is not None:
            return [item for _, item in pairs], [key for key, _ in pairs]
        if isinstance(value, Iterable) and not isinstance(value, str | bytes | bytearray):
            return list(islice(value, scope.run.limits.steps + 1)), None
        return (), None
