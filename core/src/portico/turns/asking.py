"""From what a caller says to a turn: the request, the tools and the form of the answer, made ready once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from portico.chat import ChatRequest, Message, ToolChoice
from portico.errors import nearest
from portico.functions import Function, FunctionPlugin
from portico.naming import find_function
from portico.ports.chat_service import ChatService
from portico.turns import Asked, TurnEvent, TurnOptions
from portico.turns.structured import ResponseFormat
from portico.turns.tool_loop import take_turn
from portico.turns.toolset import Toolbox, Toolset

if TYPE_CHECKING:
    from portico.kernel import Kernel

__all__ = ["Asking"]

_SETTINGS = ("temperature", "top_p", "max_tokens", "stop", "seed", "extras")
_OPTIONS = ("functions", "tool_choice", "chat", "limits", "strict", *_SETTINGS)
_FORMATS = 256
_NO_TOOLS = Toolset(())


class Asking:
    """What one kernel keeps between turns: the tools of its functions and the forms of answers, by type."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._toolbox = Toolbox()
        self._formats: dict[object, ResponseFormat[Any]] = {}

    def turn(
        self, messages: Asked, returns: object, options: TurnOptions, *, streamed: bool
    ) -> AsyncIterator[TurnEvent[Any]]:
        """Return the events of a turn; see `Kernel.complete`."""
        unknown = [name for name in options if name not in _OPTIONS]
        if unknown:
            near = nearest(unknown[0], _OPTIONS)
            raise TypeError(f"{unknown[0]!r} is not an option of a turn" + (f"; {near[0]!r} is" if near else ""))
        request = _request(messages, {name: value for name, value in options.items() if name in _SETTINGS})
        chosen = options.get("chat")
        chat = self._kernel.service(ChatService, chosen) if chosen is None or isinstance(chosen, str) else chosen
        choice = options.get("tool_choice", request.tool_choice)
        if isinstance(choice, str):
            choice = ToolChoice(choice)
        functions = options.get("functions")
        toolset = _NO_TOOLS
        if functions is not None or "tool_choice" in options or choice != ToolChoice():
            toolset = self._toolbox.toolset(
                self._functions(functions, choice),
                strict=chat.capabilities.strict and options.get("strict", True),
            )
        if choice.mode == "required" and not toolset.tools:
            raise ValueError("tool_choice is 'required', and there is no function to call")
        # Names are the kernel's business; the service is told of what is left.
        request = replace(request, tools=toolset.tools, tool_choice=ToolChoice(choice.mode))
        return take_turn(
            self._kernel,
            chat,
            request,
            toolset=toolset,
            format=None if returns is None or returns is str else self.format(returns),
            limits=options.get("limits"),
            streamed=streamed,
        )

    def format(self, returns: object) -> ResponseFormat[Any]:
        """Return the form of answers of a type or a JSON Schema, made once; a `ResponseFormat` is one already."""
        if isinstance(returns, ResponseFormat):
            return returns
        key: object = json.dumps(returns) if isinstance(returns, Mapping) else returns
        try:
            found = self._formats.pop(key, None)
        except TypeError:  # an annotation that cannot be hashed
            return self._make(returns)
        if found is None:
            found = self._make(returns)
            while len(self._formats) >= _FORMATS:
                del self._formats[next(iter(self._formats))]
        self._formats[key] = found
        return found

    def _make(self, returns: object) -> ResponseFormat[Any]:
        kernel = self._kernel
        return ResponseFormat.of(returns, codecs=kernel.type_codecs, validator=kernel.schema_validator)

    def _functions(
        self, functions: Iterable[str | Function | FunctionPlugin] | None, choice: ToolChoice
    ) -> tuple[Function, ...]:
        """Return the functions to offer, in order and each once. Raises ``FunctionNotFound``."""
        if functions is None:
            named = dict(self._kernel.functions)
        else:
            named = {function.full_name: function for each in functions for function in self._named(each)}
        if choice.include is not None:
            included = [find_function(name, named) for name in choice.include]
            named = {function.full_name: function for function in included}
        for name in choice.exclude:
            named.pop(find_function(name, named).full_name)
        return tuple(named.values())

    def _named(self, each: str | Function | FunctionPlugin) -> Iterable[Function]:
        if isinstance(each, Function):
            return (each,)
        if isinstance(each, FunctionPlugin):
            return each
        plugin = self._kernel.plugins.get(each)
        return (self._kernel.function(each),) if plugin is None else plugin


def _request(messages: Asked, settings: Mapping[str, Any]) -> ChatRequest:
    if isinstance(messages, str):
        messages = (Message.of("user", messages),)
    if not isinstance(messages, ChatRequest):
        return ChatRequest(messages, **settings)
    if messages.tools or messages.response_schema is not None:
        raise ValueError("the request has tools or a response schema already: give functions= and returns= instead")
    return replace(messages, **settings) if settings else messages
