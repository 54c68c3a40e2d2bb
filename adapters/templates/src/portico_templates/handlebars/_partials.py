"""Partials: templates in templates, by name, in place, and the block that one is called with."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial as bound
from typing import Any

from portico.errors import LimitExceeded, TemplateError
from portico_templates.handlebars._bodies import Body
from portico_templates.handlebars._calls import compile_value, defined
from portico_templates.handlebars._nodes import Partial, SubExpression
from portico_templates.handlebars._running import Data, Inline, Later, Scope, Surroundings, drive, settled
from portico_templates.handlebars._unit import Get, Step, Unit, Write
from portico_templates.handlebars._writing import Indented
from portico_templates.handlebars.values import MISSING, is_array

_LISTED = 8


def compile_partial(unit: Unit, node: Partial, block: Body | None, *, in_order: bool) -> Step:
    """Return the step of a partial; ``block`` is the body that it is called with."""
    return _Call(unit, node, block).step(in_order)


class _Call:
    def __init__(self, unit: Unit, node: Partial, block: Body | None) -> None:
        if len(node.params) > 1:
            unit.refuse(f"A partial takes one argument, its context, not {len(node.params)}.", node)
        unit.needs_data = True
        self.unit = unit
        self.node = node
        self.block = block
        self.indent = node.indent
        self.getters: list[Get] = []
        self.waits = False
        self.named = defined(node.hash)
        self.is_dynamic = isinstance(node.name, SubExpression)
        self.name = "" if isinstance(node.name, SubExpression) else node.name.original
        for expression in ([node.name] if self.is_dynamic else []) + node.params + list(self.named.values()):
            get, waits = compile_value(unit, expression)
            self.getters.append(get)
            self.waits = self.waits or waits
        if not self.is_dynamic and self.name in unit.setup.partials:
            unit.setup.partial(self.name)

    def step(self, in_order: bool) -> Step:
        if in_order:
            return self._in_order
        return self._perhaps_later if self.waits else self._at_once

    def _values(self, scope: Scope) -> list[Any]:
        return [get(scope) for get in self.getters]

    def _at_once(self, scope: Scope, write: Write) -> None:
        self._write(scope, self._values(scope), write)

    def _perhaps_later(self, scope: Scope, write: Write) -> None:
        values = self._values(scope)
        if any(type(value) is Later for value in values):
            self._leave(scope, values, write)
        else:
            self._write(scope, values, write)

    def _in_order(self, scope: Scope, write: Write) -> None:
        self._leave(scope, self._values(scope), write)

    def _leave(self, scope: Scope, values: list[Any], write: Write) -> None:
        slot: list[Any] = []
        write(slot)
        scope.run.add(self._later(scope.copy(), values, slot))

    async def _later(self, scope: Scope, values: list[Any], slot: list[Any]) -> None:
        await settled(values)
        await drive(scope.run, bound(self._write, scope, values, slot.append))

    def _write(self, scope: Scope, values: list[Any], write: Write) -> None:
        name = self._called_name(values.pop(0)) if self.is_dynamic else self.name
        context = self._context(scope, values)
        run = scope.run
        around = scope.around
        if around.depth >= run.limits.partials:
            message = f"The partials call each other more than {run.limits.partials} deep, at last {name!r}."
            raise LimitExceeded(str(self.unit.fault(message, self.node)))
        block = around.block
        inner_around = Surroundings(around.inlines, block, around.depth + 1)
        data = scope.data
        if self.block is not None:
            own = Inline(self.block, scope, scope.params, around)
            data = Data({}, data)  # handlebars.js adds a level for the block, which `@../` sees.
            inner_around = self.block.surroundings(scope, scope, inner_around)
            inner_around.block = own
        if self.indent:
            indented = Indented(self.indent)
            write(indented)
            write = indented.append
        if name == "@partial-block":
            if block is None:
                raise self._missing(name)
            self._write_inline(block, scope, context, data, write, own_around=True)
            return
        inline = around.inlines.get(name)
        if inline is not None:
            self._write_inline(inline, scope, context, data, write, around=inner_around)
            return
        body = self.unit.setup.partial(name)
        if body is not None:
            run.count(body.cost)
            body.enter(Scope(context, None, data, None, inner_around, run), write)
        elif self.block is not None:
            own = Inline(self.block, scope, scope.params, around)
            self._write_inline(own, scope, context, data, write, own_around=True)
        else:
            raise self._missing(name)

    def _write_inline(
        self,
        inline: Inline,
        scope: Scope,
        context: Any,
        data: Data,
        write: Write,
        *,
        around: Surroundings | None = None,
        own_around: bool = False,
    ) -> None:
        """Write a body that stands in a template, in the scope that it stands in, with another context."""
        scope.run.count(inline.body.cost)
        parent = inline.parent
        if parent is not None and context is parent.context:
            parent = parent.parent
        if own_around:
            data = Data({}, data)
            own = inline.around or scope.around
            around = Surroundings(
                {**scope.around.inlines, **own.inlines} if own is not scope.around else own.inlines,
                own.block,
                scope.around.depth + 1,
            )
        inner = Scope(context, parent, data, inline.params, around or scope.around, scope.run)
        inline.body.enter(inner, write)

    def _called_name(self, value: Any) -> str:
        if value is None or value is MISSING:
            self.unit.refuse("The name of the partial is missing.", self.node)
        return value if isinstance(value, str) else self.unit.setup.texts.text(value)

    def _context(self, scope: Scope, values: list[Any]) -> Any:
        context = values.pop(0) if self.node.params else scope.context
        if not self.node.hash:
            return context
        return {**self._as_mapping(context), **dict(zip(self.named, values, strict=True))}

    def _as_mapping(self, context: Any) -> Mapping[str, Any]:
        if isinstance(context, Mapping):
            return context
        if is_array(context) or isinstance(context, str):
            return {str(index): item for index, item in enumerate(context)}
        return dict(self.unit.setup.fields.items(context) or ())

    def _missing(self, name: str) -> TemplateError:
        if name == "@partial-block":
            return self.unit.fault("This partial was called without a block: there is no '@partial-block'.", self.node)
        known = ", ".join(sorted(self.unit.setup.partials)[:_LISTED])
        advice = f"There are: {known}." if known else "The language was given none."
        return self.unit.fault(f"The partial {name!r} could not be found. {advice}", self.node)
