"""How the value of a tag is put into the output."""

from __future__ import annotations

from typing import Any

from portico import Trusted
from portico_templates.handlebars._calls import apply
from portico_templates.handlebars._running import Later, Scope
from portico_templates.handlebars._unit import Unit, Write
from portico_templates.handlebars._writing import OfBlock, Own, escape_html
from portico_templates.handlebars.values import MISSING, SafeString, is_callable

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
    escapes = unit.setup.escapes and node.escaped and not unit.setup.options.no_escape
    return Put(unit, node, escapes=escapes)


def appending(unit: Unit, node: Any) -> Put:
    """Return what writes the value of a block, which is never escaped."""
    return Put(unit, node, escapes=False)
