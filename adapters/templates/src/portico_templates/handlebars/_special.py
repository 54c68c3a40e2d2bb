"""The helpers of Semantic Kernel that are no values: `set`, `message` and `raw`."""

from __future__ import annotations

from functools import partial
from typing import Any

from portico_templates.handlebars._bodies import Body
from portico_templates.handlebars._calls import compile_arguments
from portico_templates.handlebars._nodes import Block, Mustache
from portico_templates.handlebars._output import appending
from portico_templates.handlebars._running import Later, Scope, drive, settled
from portico_templates.handlebars._unit import Step, Unit, Write
from portico_templates.handlebars._writing import Own
from portico_templates.handlebars.values import MISSING

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
