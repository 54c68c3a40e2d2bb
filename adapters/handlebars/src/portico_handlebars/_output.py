"""How the value of a tag is put into the output."""

from __future__ import annotations

from typing import Any

from portico.prompts.prompt import Piece, Trusted
from portico_handlebars._calls import apply
from portico_handlebars._running import Later, Scope
from portico_handlebars._unit import Unit, Write
from portico_handlebars._writing import OfBlock, escape_html
from portico_handlebars.values import MISSING, SafeString, is_callable

__all__ = ["Put", "appending", "putting"]


_NOTHING = Piece("", True)
_SHORT = 10**18


class Put:
    """Writes values: as they are or escaped, and told from the template's own text where that may be markup.

    ``plain`` says that a text may be written as it is.
    """

    __slots__ = ("_node", "_unit", "escapes", "plain")

    def __init__(self, unit: Unit, node: Any, *, escapes: bool) -> None:
        self._unit = unit
        self._node = node
        self.escapes = escapes
        self.plain = not (escapes or unit.markup)

    def write(self, value: Any, scope: Scope, write: Write) -> None:
        """Write a value of any kind; one that comes later leaves a slot."""
        if value is None or value is MISSING:
            if self._unit.markup:
                write(_NOTHING)
            return
        kind = type(value)
        if kind is str:
            self._text(value, write)
        elif kind is int and -_SHORT < value < _SHORT:
            write(Piece(str(value), True) if self._unit.markup else str(value))
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
        if self.escapes:
            text = escape_html(text)
        write(Piece(text, True) if self._unit.markup else text)

    def _special(self, value: str, write: Write) -> None:
        if isinstance(value, OfBlock):
            for piece in value.pieces:
                self._piece(piece, write)
        elif isinstance(value, Trusted):
            self._piece(Piece(str(value), False), write)
        elif isinstance(value, SafeString):
            self._piece(Piece(str(value), True), write)
        else:
            self._text(str(value), write)

    def _piece(self, piece: Piece, write: Write) -> None:
        """Write what a helper made of a block, or what the application trusts: nothing of it is escaped."""
        if self._unit.markup:
            write(piece if piece.is_value else piece.text)
        else:
            # Only markup has to be known from values; a piece costs more in the end than a text.
            write(piece.text if piece.is_value or "<" not in piece.text else piece)

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
