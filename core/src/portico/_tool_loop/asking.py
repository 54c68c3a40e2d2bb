"""From what a caller says to a turn: the request, the tools and the form of the answer, made ready once."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from portico._chat.messages import ChatRequest, Message, ToolChoice
from portico._functions.functions import Function, FunctionPlugin, FunctionSpec
from portico._ports.chat_service import ChatService
from portico._prompts.prompt import Prompt
from portico._selection.offering import recent_texts, select_functions
from portico._tool_loop.loop import Choose, TurnState, take_turn
from portico._tool_loop.structured import ResponseFormat
from portico._tool_loop.toolset import Toolbox, Toolset
from portico._tool_loop.values import Asked, ChosenFunctions, TurnEvent, TurnOptions, require_known
from portico.errors import SchemaUnsupported, UnsupportedOption

if TYPE_CHECKING:
    from portico._kernel_like import KernelLike
    from portico._selection.selection import Selection


_SETTINGS = ("temperature", "top_p", "max_tokens", "stop", "seed", "extras")
_OPTIONS = frozenset(TurnOptions.__annotations__)
_MODES = ("auto", "required", "none")
_FORMATS = 256
_NO_TOOLS = Toolset(())


class Asking:
    """What one kernel keeps between turns: the tools of its functions and the forms of answers, by type."""

    def __init__(self, kernel: KernelLike) -> None:
        self._kernel = kernel
        self._toolbox = Toolbox()
        self._format_of_type = lru_cache(_FORMATS)(self._make)
        self._format_of_json = lru_cache(_FORMATS)(lambda schema, *how: self._make(json.loads(schema), *how))

    def turn(
        self, messages: Asked, returns: object, options: TurnOptions, *, streamed: bool
    ) -> AsyncGenerator[TurnEvent[Any], None]:
        """Return the events of a turn; see `Kernel.complete`."""
        given = require_known(options, _OPTIONS, "an option of a turn")
        request = _request(messages, {name: value for name, value in given.items() if name in _SETTINGS})
        chosen = given.get("chat")
        chat = self._kernel.service(ChatService, chosen) if chosen is None or isinstance(chosen, str) else chosen
        choice = given.get("tool_choice", request.tool_choice)
        if not isinstance(choice, ToolChoice):
            choice = ToolChoice(choice)
        if choice.mode not in _MODES:
            raise ValueError(f"tool_choice is one of {', '.join(_MODES)}, not {choice.mode!r}")
        functions = given.get("functions")
        if isinstance(functions, str | Function):
            raise TypeError(f"functions= takes several: write functions=[{functions!r}]")
        if functions is not None:
            functions = tuple(functions)
        toolset, choose = _NO_TOOLS, None
        if functions is not None or "tool_choice" in given or choice != ToolChoice():
            strict = chat.capabilities.strict and given.get("strict", True)
            chosen = self._kernel.function_selector or any(getattr(each, "again", None) for each in functions or ())
            if not chosen or choice.include is not None or choice.mode == "none":
                toolset = self._toolbox.toolset(self._functions(functions, choice), strict=strict)
            else:
                choose = self._make_choose(functions, choice, request.messages, strict=strict)
        if choice.mode == "required" and not toolset.tools and choose is None:
            raise ValueError("tool_choice is 'required', and there is no function to call")
        if request.response_schema is not None:
            if returns is not None:
                raise ValueError("the request has a response schema already, and returns= would be a second one")
            returns = request.response_schema
            given = {"response_name": request.response_name, "response_strict": request.response_strict} | given
            request = replace(request, response_schema=None, response_strict=False)
        parallel = given.get("parallel_tool_calls", True)
        if "parallel_tool_calls" in given and "parallel_tool_calls" in chat.capabilities.extras:
            request = replace(request, extras={"parallel_tool_calls": parallel, **request.extras})
        # Names are the kernel's business; the service gets what is left.
        request = replace(request, tools=toolset.tools, tool_choice=ToolChoice(choice.mode))
        return take_turn(
            self._kernel,
            chat,
            request,
            toolset=toolset,
            choose=choose,
            format=None if returns is None or returns is str else self.format(returns, given),
            limits=given.get("limits"),
            auto_invoke=given.get("auto_invoke", True),
            parallel=parallel,
            streamed=streamed,
        )

    def format(self, returns: object, options: Mapping[str, Any] | None = None) -> ResponseFormat[Any]:
        """Return the form of answers of a type or a JSON Schema, made once; a `ResponseFormat` is one already."""
        if isinstance(returns, ResponseFormat):
            return returns
        options = options or {}
        how = options.get("response_name"), options.get("response_strict", True)
        if isinstance(returns, Mapping):
            try:
                schema = json.dumps(returns, default=dict)
            except (TypeError, ValueError, RecursionError) as error:
                raise SchemaUnsupported(f"The schema given as returns= is not JSON: {error}.") from error
            return self._format_of_json(schema, *how)
        try:
            hash(returns)
        except TypeError:  # an annotation that cannot be hashed
            return self._make(returns, *how)
        return self._format_of_type(returns, *how)

    def _make(self, returns: object, name: str | None, may_be_strict: bool) -> ResponseFormat[Any]:
        codecs, validator = self._kernel.type_codecs, self._kernel.schema_validator
        return ResponseFormat.of(returns, codecs=codecs, validator=validator, name=name, may_be_strict=may_be_strict)

    def _make_choose(
        self,
        functions: Iterable[str | Function | FunctionPlugin | ChosenFunctions] | None,
        choice: ToolChoice,
        messages: Sequence[Message],
        *,
        strict: bool,
    ) -> Choose | None:
        """Return what chooses by the conversation which functions are offered; None where there are none."""
        selector = self._kernel.function_selector
        first = self._functions(functions, choice)
        if not first:
            return None
        some: Iterable[Any] = functions or ()
        each_round = getattr(selector, "each_round", False) or any(getattr(each, "again", None) for each in some)

        async def choose(turn: TurnState) -> tuple[Toolset, tuple[Selection, ...], bool]:
            given, found = some, first
            if turn.made and functions is not None:
                made = turn.added, turn.made
                given = [await each.again(*made) if getattr(each, "again", None) else each for each in some]
                found = self._functions(given, choice)
            already = [each for each in given if isinstance(each, ChosenFunctions)]
            selections = tuple(each.selection for each in already if each.selection is not None)
            specs = {function.full_name: function.spec for function in found}
            called = {name: turn.toolset.functions[name] for name, _ in turn.made if name in turn.toolset.functions}
            offered = {function.full_name: function for function in found} | called
            selection = None
            if selector is not None:
                named = [name for name in self._list_lone_names(given) if name in specs]
                kept = [function.full_name for function in self._each(already)]
                about = recent_texts(messages)
                selection = await select_functions(selector, specs, about, named=named, chosen=kept, calls=turn.made)
            if selector is None or selection is None:
                return self._toolbox.toolset(tuple(offered.values()), strict=strict), selections, each_round
            if selection.absent:
                # One that is always offered may be missing here, but not from the kernel: that is an error.
                tuple(FunctionSpec.find_names(selection.absent, {**self._kernel.functions, **specs}))
            names = {*selection.names, *called}
            if turn.request.tool_choice.mode == "required" and not names:
                raise UnsupportedOption(
                    f"tool_choice is 'required', and the function selector {selector.name!r} offers none of the "
                    f"{len(found):,} functions for this conversation. Include one with ToolChoice, or let the "
                    "selector always offer one."
                )
            # In their own order: the same functions are the same tools, whatever order they were chosen in.
            chosen = tuple(function for name, function in offered.items() if name in names)
            return self._toolbox.toolset(chosen, strict=strict), (*selections, selection), each_round

        return choose

    def _list_lone_names(self, functions: Iterable[str | Function | FunctionPlugin | ChosenFunctions]) -> Iterator[str]:
        """Yield the names of functions that were named one by one, not with their plugin."""
        for each in functions:
            if isinstance(each, Function):
                yield each.full_name
            elif isinstance(each, str) and each not in self._kernel.plugins:
                yield self._kernel.function(each).full_name

    def _functions(
        self, functions: Iterable[str | Function | FunctionPlugin | ChosenFunctions] | None, choice: ToolChoice
    ) -> tuple[Function, ...]:
        """Return the functions to offer, in order and each once. Raises ``FunctionNotFound``."""
        if functions is None:
            named = dict(self._kernel.functions)
        else:
            named = {}
            for function in self._each(functions):
                if named.setdefault(function.full_name, function) is not function:
                    raise ValueError(f"two functions are called {function.full_name!r}; a model cannot tell them apart")
        if choice.include is None and not choice.exclude:
            return tuple(named.values())
        among = (each.among for each in functions or () if isinstance(each, ChosenFunctions))
        known = {function.full_name: function for some in among for function in self._each(some)} | named
        if choice.include is not None:
            named = {name: known[name] for name in FunctionSpec.find_names(choice.include, known)}
        left_out = frozenset(FunctionSpec.find_names(choice.exclude, known))
        return tuple(function for name, function in named.items() if name not in left_out)

    def _each(self, functions: Iterable[str | Function | FunctionPlugin | ChosenFunctions]) -> Iterator[Function]:
        for each in functions:
            if isinstance(each, Function):
                yield each.bound(self._kernel)
            elif isinstance(each, FunctionPlugin):
                yield from each.bound(self._kernel)
            elif isinstance(each, ChosenFunctions):
                yield from self._each(each.functions)
            elif isinstance(each, str):
                yield from self._kernel.plugins.get(each) or (self._kernel.function(each),)
            else:
                raise TypeError(
                    f"{each!r} is no function of a kernel: give what Kernel.add_function returns, or a name"
                )


def _request(messages: Asked, settings: Mapping[str, Any]) -> ChatRequest:
    if isinstance(messages, str):
        messages = messages.messages() if isinstance(messages, Prompt) else (Message.of("user", messages),)
    if isinstance(settings.get("stop"), str):
        raise TypeError(f"stop= takes several: write stop=({settings['stop']!r},)")
    if not isinstance(messages, ChatRequest):
        return ChatRequest(tuple(messages), **settings)
    if messages.tools:
        raise ValueError("the request has tools already: give functions= instead")
    return replace(messages, messages=tuple(messages.messages), **settings)
