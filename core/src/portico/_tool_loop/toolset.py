"""Functions as a model is offered them: tools made once, and the way back from a call to its function."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from portico._chat.messages import Tool, ToolCall
from portico._functions.functions import find_function
from portico._types.compiled import Mismatch
from portico.errors import FunctionNotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from portico._functions.functions import Function
    from portico._schema.strict import StrictForm


_SETS = 64
_TOOLS = 8_192


@dataclass(frozen=True, slots=True)
class _Offered:
    """A function with its entry in a tool list: as it is, or in strict form where that is exact."""

    function: Function
    tool: Tool
    form: StrictForm | None = None


class Toolset:
    """Some functions, as one request offers them.

    ``tools`` is the same tuple each time, so that a service can keep what it made of it.
    """

    def __init__(self, offered: Iterable[_Offered]) -> None:
        self._by_wire = {each.tool.name: each for each in offered}
        self._offered = {each.function.full_name: each for each in self._by_wire.values()}
        self._by_name = {name: each.function for name, each in self._offered.items()}
        self.tools = tuple(each.tool for each in self._by_wire.values())

    @property
    def functions(self) -> Mapping[str, Function]:
        """The functions by full name: a model can call these and no others."""
        return self._by_name

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
        name, arguments = offered.function.full_name, call.arguments
        if offered.form is not None and not offered.form.identity:
            try:
                decoded = offered.form.decode(json.loads(arguments or "{}"))
                arguments = json.dumps(decoded, ensure_ascii=False)
            except (ValueError, RecursionError, Mismatch):
                pass
        if name == call.name and arguments is call.arguments:
            return call
        return ToolCall(call.id, name, arguments)

    def find(self, name: str) -> Function:
        """Find an offered function by name; raises ``FunctionNotFound`` with the nearest ones that are offered."""
        return find_function(name, self._by_name, lenient=True)


class Toolbox:
    """The tools that a kernel has made of its functions, each made once, and the sets of them last used."""

    def __init__(self) -> None:
        self._offered: dict[tuple[Function, bool], _Offered] = {}
        self._sets: dict[tuple[bool, tuple[Function, ...]], Toolset] = {}

    def toolset(self, functions: tuple[Function, ...], *, strict: bool) -> Toolset:
        """Return the tools of these functions; with ``strict`` in strict form, where that is exact."""
        key = (strict, functions)
        found = self._sets.pop(key, None)
        if found is None:
            found = Toolset(self._make(function, strict) for function in functions)
            _make_room(self._sets, _SETS)
        self._sets[key] = found
        return found

    def _make(self, function: Function, strict: bool) -> _Offered:
        key = (function, strict)
        if key not in self._offered:
            _make_room(self._offered, _TOOLS)
            self._offered[key] = _Offered(function, *function.spec.tool_form(strict=strict))
        return self._offered[key]


def _make_room(kept: dict[Any, Any], most: int) -> None:
    """Forget the oldest entries, so that one more is at most ``most``."""
    while len(kept) >= most:
        del kept[next(iter(kept))]
