"""The compiler: a program becomes a body, and each of its statements a step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from portico import Trusted
from portico_templates.handlebars._blocks import each, if_, over, section, when, with_
from portico_templates.handlebars._bodies import Body
from portico_templates.handlebars._calls import (
    apply,
    block_missing,
    compile_arguments,
    compile_call,
    compile_value,
    find_bare,
)
from portico_templates.handlebars._nodes import (
    Block,
    Comment,
    Content,
    Decorator,
    Mustache,
    Partial,
    Program,
    Statement,
)
from portico_templates.handlebars._partials import compile_partial
from portico_templates.handlebars._paths import compile_path, field_step
from portico_templates.handlebars._running import Later, Scope, drive, settled
from portico_templates.handlebars._unit import Get, Step, Unit, Write
from portico_templates.handlebars._writing import OfBlock, Own, escape_html
from portico_templates.handlebars.semantic_kernel import BARE, BLOCKS
from portico_templates.handlebars.values import MISSING, SafeString, is_callable, is_true

SHORT = 10**18
"""Integers below are written without asking how."""


class Put:
    """Writes values: as they are or escaped.

    What is no value, since it is trusted or a helper's block wrote it, is written as the template's own text.
    ``plain`` says that a text may be written as it is.
    """

    __slots__ = ("_node", "_unit", "escapes", "plain")

    def __init__(self, unit: Unit, node: Any, *, escapes: bool) -> None:
        self._unit = unit
        self._node = node
        self.escapes = escapes
        self.plain = not escapes

    def write(self, value: Any, scope: Scope, write: Write) -> None:
        """Write a value of any kind; one that comes later leaves a slot."""
        if value is None or value is MISSING:
            write("")  # A value too: it parts what is around it.
            return
        kind = type(value)
        if kind is str:
            self._text(value, write)
        elif kind is int and -SHORT < value < SHORT:
            write(str(value))
        elif kind is Later:
            self._leave(value, scope, write)
        elif isinstance(value, str):
            self._special(value, write)
        elif is_callable(value):
            self.write(apply(scope, value, [], {}), scope, write)
        else:
            try:
                text = self._unit.setup.texts.text(value)
            except ValueError as error:
                self._unit.refuse(f"The value cannot be written as text. {error}", self._node, error)
            self._text(text, write)

    def _text(self, text: str, write: Write) -> None:
        write(escape_html(text) if self.escapes else text)

    def _special(self, value: str, write: Write) -> None:
        if isinstance(value, OfBlock) and not self.escapes:
            for text, is_value in value.pieces:
                write(text if is_value else Own(text))
        elif isinstance(value, Trusted):
            write(Own(value))
        elif isinstance(value, SafeString):
            write(str(value))
        else:
            self._text(str(value), write)

    def _leave(self, later: Later, scope: Scope, write: Write) -> None:
        slot: list[Any] = []
        write(slot)
        scope.run.add(self._fill(later, scope.copy(), slot))

    async def _fill(self, later: Later, scope: Scope, slot: list[Any]) -> None:
        value = await later.awaitable
        if type(value) is str and self.plain:
            slot.append(value)
        else:
            jobs = scope.run.jobs
            scope.run.jobs = []
            try:
                self.write(value, scope, slot.append)
                more = scope.run.jobs
            finally:
                scope.run.jobs = jobs
            for job in more:
                await job


def putting(unit: Unit, node: Any) -> Put:
    """Return what writes the value of a mustache."""
    escapes = unit.setup.escapes and node.escaped
    return Put(unit, node, escapes=escapes)


def appending(unit: Unit, node: Any) -> Put:
    """Return what writes the value of a block, which is never escaped."""
    return Put(unit, node, escapes=False)


_QUOTE, _END, _CLOSING = Own('"'), Own(">"), Own("</message>")


def compile_set(unit: Unit, node: Mustache) -> Step:
    """Return the step of ``{{set "name" value}}`` or ``{{set name="name" value=value}}``."""
    getters, names, _ = compile_arguments(unit, node)
    if names and not node.params and set(names) == {"name", "value"}:
        name_at, value_at = names.index("name"), names.index("value")
    elif not names and len(getters) == 2:
        name_at, value_at = 0, 1
    else:
        unit.refuse("set takes a name and a value: {{set 'name' value}} or {{set name='name' value=value}}.", node)

    def step(scope: Scope, write: Write) -> None:
        values = [get(scope) for get in getters]
        if any(type(value) is Later for value in values):
            scope.run.add(later(scope, values))
        else:
            assign(scope, values)

    async def later(scope: Scope, values: list[Any]) -> None:
        assign(scope, await settled(values))

    def assign(scope: Scope, values: list[Any]) -> None:
        name, value = values[name_at], values[value_at]
        if not isinstance(name, str) or not name:
            unit.refuse("The name that set takes is a text.", node)
        if not isinstance(scope.run.root, dict):
            unit.refuse("Only a template that is given variables can set one.", node)
        scope.run.root[name] = None if value is MISSING else value

    return step


def compile_message(unit: Unit, node: Block, body: Body | None, *, in_order: bool) -> Step:
    """Return the step of ``{{#message role="user"}}…{{/message}}``: a message of a chat, with its attributes."""
    getters, names, _ = compile_arguments(unit, node)
    if node.params or "role" not in names:
        unit.refuse('A message has a role: {{#message role="user"}}.', node)
    put = appending(unit, node)
    openings = [Own(f'{" " if index else "<message "}{name}="') for index, name in enumerate(names)]

    def opening(scope: Scope, write: Write, values: list[Any]) -> None:
        for text, value in zip(openings, values, strict=True):
            if text.startswith("<") and (value is None or value is MISSING or value == ""):
                unit.refuse("The message has a role that is empty.", node)
            write(text)
            put.write(value, scope, write)
            write(_QUOTE)
        write(_END)

    def step(scope: Scope, write: Write) -> None:
        values = [get(scope) for get in getters]
        if in_order or any(type(value) is Later for value in values):
            slot: list[Any] = []
            write(slot)
            scope.run.add(later(scope.copy(), values, slot))
            return
        opening(scope, write, values)
        inside(scope, write)

    def inside(scope: Scope, write: Write) -> None:
        if body is not None:
            body.enter_shared(scope, write)
        write(_CLOSING)

    async def later(scope: Scope, values: list[Any], slot: list[Any]) -> None:
        opening(scope, slot.append, await settled(values))
        await drive(scope.run, partial(inside, scope, slot.append))

    return step


def compile_raw(body: Body | None) -> Step:
    """Return the step of a raw block: its text, as it is."""
    return body.enter_shared if body is not None else lambda scope, write: None


def compile_body(unit: Unit, program: Program, *, same_context: bool = False) -> Body:
    """Return the body of a program; ``same_context`` is for one that is written in the context around it."""
    return _BodyCompiler(unit, same_context).body(program)


class _BodyCompiler:
    def __init__(self, unit: Unit, same_context: bool) -> None:
        self.unit = unit
        self.same_context = same_context
        self.steps: list[tuple[str, Step]] = []
        self.exclusive: list[int] = []
        self.inlines: list[tuple[Callable[[Scope], str], Body]] = []
        self._texts: list[str] = []
        self.cost = 1

    def body(self, program: Program) -> Body:
        unit = self.unit
        outside = unit.needs_data
        unit.needs_data = False
        if program.params:
            unit.block_params.append(program.params)
        for statement in program.body:
            self._statement(statement)
        if program.params:
            unit.block_params.pop()
        tail = self._take_text()
        body = Body(
            self.steps,
            tail,
            exclusive=self.exclusive,
            inlines=self.inlines,
            params=program.params,
            same_context=self.same_context,
            needs_data=unit.needs_data,
            cost=self.cost,
        )
        unit.needs_data = unit.needs_data or outside
        return body

    def _statement(self, statement: Statement) -> None:
        unit = self.unit
        if isinstance(statement, Content):
            self._texts.append(statement.value)
            return
        if isinstance(statement, Comment):
            return
        self.cost += 1
        if isinstance(statement, Mustache):
            self._mustache(statement)
        elif isinstance(statement, Decorator):
            self._decorator(statement)
        elif isinstance(statement, Partial):
            self._partial(statement)
        else:
            self._add(*_BlockCompiler(unit, statement).step(self))

    def _take_text(self) -> str:
        """Return the text since the last tag."""
        text = "".join(self._texts)
        self._texts.clear()
        return text

    def _add(self, step: Step, in_order: bool = False) -> None:
        text = self._take_text()
        if in_order:
            self.exclusive.append(len(self.steps))
        self.steps.append((text, step))

    def _mustache(self, node: Mustache) -> None:
        unit = self.unit
        path = node.path
        name = path.parts[0] if path.parts else ""
        kind = unit.helper_kind(name) if path.is_simple and unit.block_param(name) is None else None
        if kind == "semantic-kernel" and name == "set" and (node.params or node.hash):
            self._add(compile_set(unit, node), in_order=True)
            return
        put = putting(unit, node)
        if node.params or node.hash or kind in {"custom", "built-in"} or (kind and name in BARE):
            get, _ = compile_call(unit, node)
            self._add(_written(get, put))
            return
        if not path.is_simple or unit.block_param(name) is not None:
            get = compile_path(unit, path)
            if not path.data and len(path.parts) > 1 and not path.is_scoped and not path.depth and "." in path.original:
                get = _or_function(unit, node, get, path.original)
            self._add(_written(get, put))
            return
        get = compile_path(unit, path)
        step = _written(_or_function(unit, node, get, name), put)
        if not unit.setup.escapes and not name.isdecimal():
            self._add(field_step(unit, name, step))
        else:
            self._add(step)

    def _decorator(self, node: Decorator) -> None:
        unit = self.unit
        if node.path.original != "inline" or node.program is None:
            written = "inline partials are written {{#*inline 'name'}}…{{/inline}}"
            unit.refuse(f"The decorator {node.path.original!r} cannot stand here; {written}.", node)
        self.inlines.append((_name_of_inline(unit, node), compile_body(unit, node.program)))

    def _partial(self, node: Partial) -> None:
        unit = self.unit
        block = None if node.program is None else compile_body(unit, node.program)
        in_order = unit.may_set
        self._add(compile_partial(unit, node, block, in_order=in_order), in_order)


class _BlockCompiler:
    def __init__(self, unit: Unit, node: Block) -> None:
        self.unit = unit
        self.node = node
        self.kind = None
        path = node.path
        self.name = path.parts[0] if path.parts else ""
        if path.is_simple and unit.block_param(self.name) is None:
            self.kind = unit.helper_kind(self.name)

    def _bodies(self, *, same: bool) -> tuple[Body | None, Body | None]:
        node = self.node
        body = None if node.program is None else compile_body(self.unit, node.program, same_context=same)
        inverse = None if node.inverse is None else compile_body(self.unit, node.inverse, same_context=True)
        return body, inverse

    def step(self, within: _BodyCompiler) -> tuple[Step, bool]:
        """Return the step of the block, and whether something is set in it."""
        unit, node = self.unit, self.node
        is_helper = self.kind == "built-in" and self.name not in {"lookup", "log"}
        special = self.kind == "semantic-kernel" and self.name in BLOCKS
        same = (is_helper and self.name in {"if", "unless"}) or special
        body, inverse = self._bodies(same=same)
        within.cost += sum(each_body.cost for each_body in (body, inverse) if each_body is not None)
        in_order = any(each_body.may_set for each_body in (body, inverse) if each_body is not None)
        if special and self.name == "raw":
            return compile_raw(body), in_order
        if special:
            return compile_message(unit, node, body, in_order=in_order), in_order
        if is_helper:
            return self._built_in(body, inverse, in_order), in_order
        if self.kind == "custom":
            get, _ = compile_call(unit, node, (body, inverse))
            return _written(get, appending(unit, node)), in_order
        return self._section(body, inverse, in_order), in_order

    def _built_in(self, body: Body | None, inverse: Body | None, in_order: bool) -> Step:
        unit, node, name = self.unit, self.node, self.name
        if len(node.params) != 1:
            given = "none was given" if not node.params else f"{len(node.params)} were given"
            what = "Must pass iterator to #each." if name == "each" else f"#{name} requires exactly one argument."
            unit.refuse(f"{what} {given[0].upper()}{given[1:]}.", node)
        subject, waits = compile_value(unit, node.params[0])
        if name == "each":
            emit, choose = each(unit, body, inverse)
        elif name == "with":
            emit, choose = with_(body, inverse)
        else:
            if name == "unless":
                body, inverse = inverse, body
            test = is_true
            if "includeZero" in node.hash:
                subject, waits, test = _including_zero(unit, node, subject, waits)
            if not waits and not in_order and test is is_true:
                return if_(subject, body, inverse)
            emit, choose = when(body, inverse, test)
        return over(subject, emit, choose, waits=waits, in_order=in_order)

    def _section(self, body: Body | None, inverse: Body | None, in_order: bool) -> Step:
        unit, node = self.unit, self.node
        path = node.path
        emit, choose = section(unit, body, inverse)
        waits = True
        missing = unit.setup.helpers.get("blockHelperMissing")
        if node.params or node.hash or (self.kind and (self.name in BARE or self.kind == "built-in")):
            subject, waits = compile_call(unit, node)
        elif not path.is_simple or unit.block_param(self.name) is not None:
            subject = compile_path(unit, path)
        else:
            get = compile_path(unit, path)
            subject = _or_function(unit, node, get, self.name)
        if missing is not None:
            return _written(block_missing(unit, node, subject, (body, inverse)), appending(unit, node))
        return over(subject, emit, choose, waits=waits, in_order=in_order)


def _written(get: Get, put: Put) -> Step:
    """Return the step that writes a value."""
    write_other = put.write
    if put.plain:

        def step(scope: Scope, write: Write) -> None:
            value = get(scope)
            kind = type(value)
            if kind is str:
                write(value)
            elif kind is int and 0 <= value < SHORT:
                write(str(value))
            else:
                write_other(value, scope, write)

        return step
    return lambda scope, write: write_other(get(scope), scope, write)


def _or_function(unit: Unit, node: Any, get: Get, name: str) -> Get:
    """Return what finds a variable, or what a function of its name gives."""
    first = node.path.parts[0]
    several = len(node.path.parts) > 1
    read = unit.setup.fields.read

    def find(scope: Scope) -> Any:
        value = get(scope)
        if value is not MISSING or (several and read(scope.context, first) is not MISSING):
            return value
        return find_bare(unit, node, scope, name)

    return find


def _name_of_inline(unit: Unit, node: Decorator) -> Callable[[Scope], str]:
    """Return what gives the name of an inline partial.

    In handlebars.js it has no context yet: a variable is undefined, as a name that is not there.
    """
    if not node.params:
        return lambda scope: "undefined"
    get, _ = compile_value(unit, node.params[0])
    key = unit.setup.texts.key

    def name(scope: Scope) -> str:
        outside = scope.copy()
        outside.context, outside.parent = MISSING, None
        value = get(outside)
        if type(value) is Later:
            unit.refuse("The name of an inline partial is a text, not what a function gives.", node)
        return key(value)

    return name


def _including_zero(unit: Unit, node: Block, subject: Get, waits: bool) -> Any:
    option, option_waits = compile_value(unit, node.hash["includeZero"])
    if option_waits:
        unit.refuse("includeZero is true, false or a variable.", node)

    def test(value: Any) -> bool:
        return is_true(value)

    def get(scope: Scope) -> Any:
        value = subject(scope)
        is_zero = isinstance(value, int | float) and not isinstance(value, bool) and value == 0
        return True if is_zero and is_true(option(scope)) else value

    return get, waits, test
