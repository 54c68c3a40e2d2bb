"""Functions as a model is offered them: tools made once, and the way back from a call to its function."""

from __future__ import annotations

import json
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from portico._chat.messages import Tool, ToolCall
from portico._functions.functions import FunctionSpec
from portico._schema.values import read_json
from portico._types.compiled import Mismatch
from portico.errors import FunctionNotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from portico._chat.messages import ChatReply, Part
    from portico._functions.functions import Function
    from portico._schema.strict import StrictForm


_SETS = 64
_TOOLS = 8_192
_PACKED = "multi_tool_use"


@dataclass(frozen=True, slots=True)
class _Offered:
    """A function with its entry in a tool list: as it is, or in strict form where that is exact."""

    function: Function
    tool: Tool
    form: StrictForm | None = None


class Toolset:
    """Some functions, as one request offers them.

    ``tools`` is the same tuple each time, so that a service can keep what it made of it. ``functions`` are those that
    a model can call, by full name. ``guard`` is the `CallGuard` of the turn whose calls the application carries out.
    """

    guard: Any = None

    def __init__(self, offered: Iterable[_Offered]) -> None:
        self._by_wire = {each.tool.name: each for each in offered}
        self._offered = {each.function.full_name: each for each in self._by_wire.values()}
        self.functions: Mapping[str, Function] = {name: each.function for name, each in self._offered.items()}
        self.tools = tuple(each.tool for each in self._by_wire.values())

    def plain(self, call: ToolCall) -> ToolCall:
        """Return a call with the function's full name and its arguments as the function's schema has them.

        Another spelling of a name is understood where it means one function only. What cannot be read stays as
        the model wrote it: carrying it out says what is wrong.
        """
        offered = self._by_wire.get(call.name)
        if offered is None:
            try:
                offered = self._offered[self.find(call.name).full_name]
            except FunctionNotFound:
                return call
        name, arguments = offered.function.full_name, as_json(call.arguments)
        if offered.form is not None and not offered.form.identity:
            try:
                decoded = offered.form.decode(json.loads(arguments or "{}"))
                arguments = json.dumps(decoded, ensure_ascii=False)
            except (ValueError, RecursionError, Mismatch):
                pass
        if name == call.name and arguments is call.arguments:
            return call
        return ToolCall(call.id, name, arguments)

    def guarded(self, guard: Any) -> Toolset:
        """Return the same tools with the guard of a turn."""
        if guard is None:
            return self
        made = copy(self)
        made.guard = guard
        return made

    def find(self, name: str) -> Function:
        """Find an offered function by name; raises ``FunctionNotFound`` with the nearest ones that are offered."""
        return self.functions[FunctionSpec.find_name(name, self.functions, lenient=True)]


def as_json(text: str) -> str:
    """Return the arguments of a call as JSON where `read_json` can read them, else unchanged."""
    try:
        json.loads(text or "{}")
    except (ValueError, RecursionError):
        with suppress(ValueError, RecursionError):
            return json.dumps(read_json(text), ensure_ascii=False)
    return text


def expand_calls(reply: ChatReply) -> ChatReply:
    """Return a reply with the calls that a model packed into one, ``multi_tool_use.parallel``, as OpenAI's do at times.

    They stand in its place, also in the message, so that each is answered.
    """
    if not any(call.name.startswith(_PACKED) for call in reply.tool_calls):
        return reply
    parts = tuple(each for part in reply.message.content for each in _calls_inside(part))
    return replace(reply, message=replace(reply.message, content=parts))


def _calls_inside(part: Part) -> tuple[Part, ...]:
    if not isinstance(part, ToolCall) or not part.name.startswith(_PACKED):
        return (part,)
    try:
        uses = json.loads(as_json(part.arguments))["tool_uses"]
        names = [use["recipient_name"].removeprefix("functions.") for use in uses]  # no dot may go back
        given = [json.dumps(use["parameters"], ensure_ascii=False) for use in uses]
        calls = tuple(ToolCall(f"{part.id}_{n}", *call) for n, call in enumerate(zip(names, given, strict=True), 1))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        calls = ()
    return calls or (part,)


class Toolbox:
    """The tools that a kernel has made of its functions, each made once, and the sets of them last used."""

    def __init__(self) -> None:
        self._offer = lru_cache(_TOOLS)(_offer)
        self._toolset = lru_cache(_SETS)(self._make)

    def toolset(self, functions: tuple[Function, ...], *, strict: bool) -> Toolset:
        """Return the tools of these functions; with ``strict`` in strict form, where that is exact."""
        return self._toolset(functions, strict)

    def _make(self, functions: tuple[Function, ...], strict: bool) -> Toolset:
        return Toolset(self._offer(function, strict) for function in functions)


def _offer(function: Function, strict: bool) -> _Offered:
    return _Offered(function, *function.spec.tool_form(strict=strict))
