"""The compiler: a program becomes a body, and each of its statements a step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from threading import RLock
from typing import Any

from portico import Trusted
from portico.errors import LimitExceeded, TemplateError
from portico_templates.handlebars import _nodes as nodes
from portico_templates.handlebars._expressions import (
    Get,
    Setup,
    Unit,
    compile_arguments,
    compile_bare,
    compile_call,
    compile_path,
    compile_value,
    defined,
    field_of,
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
    compound,
    escape_html,
    settled,
)
from portico_templates.handlebars.semantic_kernel import BARE, BLOCKS
from portico_templates.handlebars.values import MISSING, SafeString, Values, is_array, is_empty, is_true

_DEEPEST = 64
_SHORT = 10**18
"""Integers below are written without asking how."""

Put = Callable[[Any, Scope, Write], None]


def compile_template(
    program: nodes.Program, source: str, name: str, setup: Setup, partials: Partials, *, in_order: bool
) -> Body:
    """Return the body of a template; ``in_order`` says that partials may set variables."""
    return _Compiler(Unit(source, name, setup), partials, in_order=in_order).body(program)


class Partials:
    """The partials of a language, each compiled when it is first used."""

    def __init__(self, sources: Mapping[str, str], setup: Setup) -> None:
        self._sources = dict(sources)
        self._setup = setup
        self._compiling = RLock()
        self._compiled: dict[tuple[str, bool], Body | None] = {}
        texts = self._sources.values()
        self.have_markup = any("message" in text.lower() for text in texts)
        self.may_set = setup.semantic_kernel_helpers and any("set" in text for text in texts)

    def find(self, name: str, *, in_order: bool) -> Body | None:
        """Return a partial; ``in_order`` is for templates in which something is set."""
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
                    body = compile_template(program, source, title, self._setup, self, in_order=in_order)
                    self._compiled[key] = body
                except BaseException:
                    del self._compiled[key]
                    raise
            return self._compiled[key]


class _Steps:
    """The steps of a body while it is compiled."""

    def __init__(self) -> None:
        self.found: list[tuple[str, Step]] = []
        self.texts: list[str] = []
        self.in_order: list[int] = []
        self.inlines: list[tuple[str, Body]] = []
        self.cost = 1

    def add(self, step: Step, *, in_order: bool = False) -> None:
        if in_order:
            self.in_order.append(len(self.found))
        self.found.append((self.take_text(), step))

    def take_text(self) -> str:
        """Return the text since the last step."""
        text = "".join(self.texts)
        self.texts.clear()
        return text


class _Compiler:
    def __init__(self, unit: Unit, partials: Partials, *, in_order: bool) -> None:
        self.unit = unit
        self.setup = unit.setup
        self.partials = partials
        self.in_order = in_order

    def body(self, program: nodes.Program, *, same_context: bool = False) -> Body:
        """Return the body of a program; ``same_context`` is for one that is written in the context around it."""
        unit = self.unit
        outside, unit.needs_data = unit.needs_data, False
        steps = _Steps()
        if program.params:
            unit.block_params.append(program.params)
        for statement in program.body:
            self._statement(steps, statement)
        if program.params:
            unit.block_params.pop()
        body = Body(
            steps.found,
            steps.take_text(),
            in_order=steps.in_order,
            inlines=steps.inlines,
            params=program.params,
            same_context=same_context,
            needs_data=unit.needs_data,
            cost=steps.cost,
        )
        unit.needs_data = unit.needs_data or outside
        return body

    def _statement(self, steps: _Steps, statement: nodes.Statement) -> None:
        if isinstance(statement, nodes.Content):
            steps.texts.append(statement.value)
            return
        if isinstance(statement, nodes.Comment):
            return
        steps.cost += 1
        if isinstance(statement, nodes.Mustache):
            self._mustache(steps, statement)
        elif isinstance(statement, nodes.Decorator):
            self._decorator(steps, statement)
        elif isinstance(statement, nodes.Partial):
            block = None if statement.program is None else self.body(statement.program)
            find = partial(self.partials.find, in_order=self.in_order)
            call = _PartialCall(self.unit, statement, block, find)
            steps.add(compound(call.getters, call.entered, in_order=self.in_order), in_order=self.in_order)
        else:
            self._block(steps, statement)

    # Tags that write a value.

    def _mustache(self, steps: _Steps, node: nodes.Mustache) -> None:
        unit, call = self.unit, node.call
        path = call.path
        kind = unit.helper_kind(path)
        name = path.parts[0] if path.parts else ""
        if kind == "semantic-kernel" and name == "set" and not call.is_bare:
            steps.add(_set(unit, call), in_order=True)
            return
        put = _putting(unit, call, escapes=self.setup.escapes and node.escaped)
        if not call.is_bare or kind in {"custom", "built-in"} or (kind and name in BARE):
            steps.add(_write(compile_call(unit, call), put))
            return
        is_variable = path.is_simple and unit.block_param(name) is None
        is_dotted = len(path.parts) > 1 and "." in path.original and not (path.data or path.depth or path.is_scoped)
        if not (is_variable or is_dotted):
            steps.add(_write(compile_path(unit, path), put))
            return
        step = _write(compile_bare(unit, call), put)
        if is_variable and not self.setup.escapes and not name.isdecimal():
            step = _write_field(name, step)
        steps.add(step)

    def _decorator(self, steps: _Steps, node: nodes.Decorator) -> None:
        if node.call.path.original != "inline" or node.program is None:
            self.unit.refuse(f"The decorator {node.call.path.original!r} cannot stand here.", node.call)
        steps.inlines.append((_inline_name(self.unit, node.call), self.body(node.program)))

    # Blocks.

    def _block(self, steps: _Steps, node: nodes.Block) -> None:
        unit, call = self.unit, node.call
        name = call.path.parts[0] if call.path.parts else ""
        kind = unit.helper_kind(call.path)
        is_special = kind == "semantic-kernel" and name in BLOCKS
        is_helper = kind == "built-in" and name not in {"lookup", "log"}
        same = is_special or (is_helper and name in {"if", "unless"})
        body = None if node.program is None else self.body(node.program, same_context=same)
        inverse = None if node.inverse is None else self.body(node.inverse, same_context=True)
        bodies = [each for each in (body, inverse) if each is not None]
        steps.cost += sum(each.cost for each in bodies)
        in_order = any(each.in_order for each in bodies)
        if is_special and name == "raw":
            step: Step = body.run if body is not None else _nothing
        elif is_special:
            step = _message(unit, call, body, in_order=in_order)
        elif is_helper:
            step = self._built_in(call, name, body, inverse, in_order)
        elif kind == "custom":
            step = _write(compile_call(unit, call, (body, inverse)), _putting(unit, call, escapes=False))
        else:
            if not call.is_bare or kind == "built-in" or (kind and name in BARE):
                subject = compile_call(unit, call)
            elif call.path.is_simple and unit.block_param(name) is None:
                subject = compile_bare(unit, call)
            else:
                subject = compile_path(unit, call.path)
            step = compound([subject], _section(self.setup.values, body, inverse), in_order=in_order)
        steps.add(step, in_order=in_order)

    def _built_in(self, call: nodes.Call, name: str, body: Body | None, inverse: Body | None, in_order: bool) -> Step:
        unit = self.unit
        if len(call.params) != 1:
            given = "None was given" if not call.params else f"{len(call.params)} were given"
            what = "Must pass iterator to #each." if name == "each" else f"#{name} requires exactly one argument."
            unit.refuse(f"{what} {given}.", call)
        getters = [compile_value(unit, call.params[0])]
        if name == "each":
            loop = _Loop(self.setup.values, body, inverse)
            return compound(getters, loop.entered, in_order=in_order, now=loop.write)
        if name == "with":
            return compound(getters, _with(body, inverse), in_order=in_order)
        if name == "unless":
            body, inverse = inverse, body
        if "includeZero" in call.hash:
            getters.append(compile_value(unit, call.hash["includeZero"]))
        return compound(getters, _if(body, inverse), in_order=in_order, now=_if_now(body, inverse))


Find = Callable[[str], Body | None]
"""Finds a partial of the language by its name."""


def _inline_name(unit: Unit, call: nodes.Call) -> str:
    """Return the name of an inline partial, which is written as a text."""
    if not call.params or not isinstance(call.params[0], nodes.Literal):
        raise unit.fault("Inline partials are written {{#*inline 'name'}}…{{/inline}}.", call)
    return call.params[0].original


class _PartialCall:
    """A call of a partial: a template of the language, an inline partial, or the block of the partial around it."""

    def __init__(self, unit: Unit, node: nodes.Partial, block: Body | None, find: Find) -> None:
        call = node.call
        if len(call.params) > 1:
            unit.refuse(f"A partial takes one argument, its context, not {len(call.params)}.", call)
        unit.needs_data = True
        self.unit = unit
        self.call = call
        self.find = find
        self.block = block
        self.indent = node.indent
        self.names = list(defined(call.hash))
        self.is_dynamic = isinstance(node.name, nodes.Call)
        self.name = "" if isinstance(node.name, nodes.Call) else node.name.original
        self.getters = compile_arguments(unit, call)[0]
        if isinstance(node.name, nodes.Call):
            self.getters.insert(0, compile_value(unit, node.name))
        else:
            find(self.name)

    def entered(self, scope: Scope, write: Write, *arguments: Any) -> Iterator[Entered]:
        """Yield the body that the partial is, in its scope."""
        values = list(arguments)
        name = self._called_name(values.pop(0)) if self.is_dynamic else self.name
        context = self._context(scope, values)
        run, around = scope.run, scope.around
        if around.depth >= _DEEPEST:
            message = f"The partials call each other more than {_DEEPEST} deep, at last {name!r}."
            raise LimitExceeded(str(self.unit.fault(message, self.call)))
        block = around.block
        inner_around = around._replace(depth=around.depth + 1)
        data = scope.data
        own = None
        if self.block is not None:
            own = Inline(self.block, scope, scope.params, around)
            data = Data({}, data)  # handlebars.js adds a level for the block, which `@../` sees.
            inner_around = self.block.surroundings(scope, scope, inner_around)._replace(block=own)
        if self.indent:
            indented = Indented(self.indent)
            write(indented)
            write = indented.append
        inline = around.inlines.get(name)
        body = None
        if name == "@partial-block":
            inline, own = block, block
        elif inline is None:
            body = self.find(name)
            inline = own if body is None else None
        else:
            own = None
        if body is not None:
            run.count(body.cost)
            yield body, Scope(context, None, data, None, inner_around, run, scope.jobs), None, write
        elif inline is None:
            raise self._missing(name)
        else:
            run.count(inline.body.cost)
            inner = self._scope_of(inline, scope, context, data, inner_around, is_block=inline is own)
            yield inline.body, inner, None, write

    def _scope_of(
        self, inline: Inline, scope: Scope, context: Any, data: Data, around: Surroundings, *, is_block: bool
    ) -> Scope:
        """Return the scope of a body that stands in a template, with another context."""
        parent = inline.parent
        if parent is not None and context is parent.context:
            parent = parent.parent
        if is_block:
            data = Data({}, data)
            inlines = {**scope.around.inlines, **inline.around.inlines}
            around = Surroundings(inlines, inline.around.block, scope.around.depth + 1)
        return Scope(context, parent, data, inline.params, around, scope.run, scope.jobs)

    def _called_name(self, value: Any) -> str:
        if value is None or value is MISSING:
            self.unit.refuse("The name of the partial is missing.", self.call)
        return self.unit.setup.values.text(value)

    def _context(self, scope: Scope, values: list[Any]) -> Any:
        context = values.pop(0) if self.call.params else scope.context
        if not self.call.hash:
            return context
        return {**self._as_mapping(context), **dict(zip(self.names, values, strict=True))}

    def _as_mapping(self, context: Any) -> Mapping[str, Any]:
        if isinstance(context, Mapping):
            return context
        if is_array(context) or isinstance(context, str):
            return {str(index): item for index, item in enumerate(context)}
        return dict(self.unit.setup.values.items(context) or ())

    def _missing(self, name: str) -> TemplateError:
        if name == "@partial-block":
            return self.unit.fault("This partial was called without a block: there is no '@partial-block'.", self.call)
        return self.unit.fault(f"The partial {name!r} could not be found.", self.call)


def _nothing(scope: Scope, write: Write) -> None:
    pass


def _putting(unit: Unit, node: nodes.Expression, *, escapes: bool) -> Put:
    """Return what writes a value of any kind; one that comes later leaves a slot.

    What is no value, since it is trusted or a helper's block wrote it, is written as the template's own text.
    """
    values = unit.setup.values

    def put(value: Any, scope: Scope, write: Write) -> None:
        if type(value) is str:
            write(escape_html(value) if escapes else value)
        elif type(value) is Later:
            scope.defer(write, lambda inner, fill: later(value, inner, fill))
        elif value is None or value is MISSING:
            write("")  # A value too: it parts what is around it.
        elif isinstance(value, OfBlock) and not escapes:
            for text, is_value in value.pieces:
                write(text if is_value else Own(text))
        elif isinstance(value, Trusted):
            write(Own(value))
        elif isinstance(value, SafeString):
            write(str(value))
        else:
            try:
                text = values.text(value)
            except ValueError as error:
                unit.refuse(f"The value cannot be written as text. {error}", node, error)
            write(escape_html(text) if escapes else text)

    async def later(value: Later, scope: Scope, write: Write) -> None:
        put(await value.awaitable, scope, write)

    return put


def _write(get: Get, put: Put) -> Step:
    """Return the step that writes a value."""

    def step(scope: Scope, write: Write) -> None:
        value = get(scope)
        if type(value) is int and 0 <= value < _SHORT:
            write(str(value))
        else:
            put(value, scope, write)

    return step


def _write_field(name: str, otherwise: Step) -> Step:
    """Return the step that writes a field of the context which is a text; ``otherwise`` writes any other value."""
    declaring: set[type] = set()

    def step(scope: Scope, write: Write) -> None:
        context = scope.context
        kind = type(context)
        if kind is dict:
            value = context.get(name)
        elif kind in declaring or field_of(kind, name, declaring):
            value = getattr(context, name, None)
        else:
            value = None
        if type(value) is str:
            write(value)
        else:
            otherwise(scope, write)

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
        values = await settled([get(scope) for get in getters])
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
    put = _putting(unit, call, escapes=False)

    def entered(scope: Scope, write: Write, *values: Any) -> Iterator[Entered]:
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

    return compound(getters, entered, in_order=in_order)


def _if(body: Body | None, inverse: Body | None) -> Callable[..., Iterator[Entered]]:
    def entered(scope: Scope, write: Write, value: Any, include_zero: Any = False) -> Iterator[Entered]:
        is_zero = isinstance(value, int | float) and not isinstance(value, bool) and value == 0
        chosen = body if is_true(value) or (is_zero and is_true(include_zero)) else inverse
        if chosen is not None:
            yield chosen, scope.copy(), None, write

    return entered


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
    def entered(scope: Scope, write: Write, value: Any) -> Iterator[Entered]:
        if not is_empty(value):
            if body is not None:
                yield body, scope.inner(value), (value,), write
        elif inverse is not None:
            yield inverse, scope.copy(), None, write

    return entered


def _section(values: Values, body: Body | None, inverse: Body | None) -> Callable[..., Iterator[Entered]]:
    """Return a block over what a name or a function gives: a list is repeated, true and false choose."""
    loop = _Loop(values, body, inverse)

    def entered(scope: Scope, write: Write, value: Any) -> Iterator[Entered]:
        if is_array(value):
            yield from loop.entered(scope, write, value)
        elif value is None or value is MISSING or value is False:
            if inverse is not None:
                yield inverse, scope.copy(), None, write
        elif body is not None:
            yield body, scope.copy() if value is True else scope.inner(value), None, write

    return entered


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
            for chosen, inner, params, _ in self.entered(scope, write, value):
                chosen.enter(inner, write, params)
            return
        # The usual case; one scope serves until a call is left to do in it.
        scope.run.count(len(value) * self.cost)
        jobs, run, last = scope.jobs, body.run, len(value) - 1
        begun = -1
        for index, item in enumerate(value):
            if item is MISSING:
                continue
            if len(jobs) != begun:
                begun = len(jobs)
                inner = Scope(None, scope, scope.data, scope.params, scope.around, scope.run, jobs)
                if self.needs_data:
                    data: dict[str, Any] = {}
                    inner.data = Data(data, scope.data)
            inner.context = item
            inner.parent = scope.parent if item is scope.context else scope
            if self.needs_data:
                data["index"] = data["key"] = index
                data["first"] = not index
                data["last"] = index == last
            if body.params:
                inner.params = ((item, index), scope.params)
            run(inner, write)

    def entered(self, scope: Scope, write: Write, value: Any) -> Iterator[Entered]:
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
