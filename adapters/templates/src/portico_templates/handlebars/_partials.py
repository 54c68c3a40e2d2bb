"""Calls of partials: templates in templates, by name, in place, and the block that one is called with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from portico.errors import LimitExceeded, TemplateError
from portico_templates.handlebars._expressions import Unit, compile_arguments, compile_value, defined
from portico_templates.handlebars._nodes import Call, Literal, Partial
from portico_templates.handlebars._output import Indented
from portico_templates.handlebars._running import Body, Data, Entered, Inline, Scope, Surroundings, Write
from portico_templates.handlebars.values import MISSING, is_array

_LISTED = 8
_DEEPEST = 64

Find = Callable[[str], Body | None]
"""Finds a partial of the language by its name."""


def inline_name(unit: Unit, call: Call) -> str:
    """Return the name of an inline partial, which is written as a text."""
    if not call.params or not isinstance(call.params[0], Literal):
        raise unit.fault("Inline partials are written {{#*inline 'name'}}…{{/inline}}.", call)
    return call.params[0].original


class PartialCall:
    """A call of a partial: a template of the language, an inline partial, or the block of the partial around it."""

    def __init__(self, unit: Unit, node: Partial, block: Body | None, names: Sequence[str], find: Find) -> None:
        call = node.call
        if len(call.params) > 1:
            unit.refuse(f"A partial takes one argument, its context, not {len(call.params)}.", call)
        unit.needs_data = True
        self.unit = unit
        self.call = call
        self.known = names
        self.find = find
        self.block = block
        self.indent = node.indent
        self.names = list(defined(call.hash))
        self.is_dynamic = isinstance(node.name, Call)
        self.name = "" if isinstance(node.name, Call) else node.name.original
        self.getters = compile_arguments(unit, call)[0]
        if isinstance(node.name, Call):
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
        known = ", ".join(sorted(self.known)[:_LISTED])
        advice = f"There are: {known}." if known else "The language was given none."
        return self.unit.fault(f"The partial {name!r} could not be found. {advice}", self.call)
