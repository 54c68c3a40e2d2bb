"""What the ChatService kit asks of services that declare tools."""

from __future__ import annotations

import asyncio

from portico import ChatReply, ChatRequest, Message, Tool, ToolChoice, ToolResult
from portico_testkit.chat_checks import WAYS, Caller
from portico_testkit.chat_requests import CLOCK, DICE, LAMP, ODD_TOOL, ask, histories

__all__ = ["check_histories", "check_must_call", "check_must_not_call", "check_own_calls_go_back"]

_TOOLS = (CLOCK, DICE, LAMP, ODD_TOOL)
_FEW = (CLOCK, LAMP)
"""Enough where the number of tools is not the point: a small model reads each of them anew every time."""
_TIME = "What time is it in Oslo? Ask the clock."


async def check_must_not_call(caller: Caller) -> None:
    """Forbid calls: the tools are there, in a history too, and words come back."""
    none = ToolChoice("none")
    asked = ChatRequest(histories()["one call and its result"], tools=_FEW, tool_choice=none)
    for way in WAYS:
        for request in (ask(_TIME, tools=_FEW, tool_choice=none), asked):
            reply = await caller.answer(way, request)
            assert reply.message.content, f"{way}: told not to call, it says nothing"


async def check_must_call(caller: Caller) -> None:
    """Demand calls: at least one comes, also of the one tool that is left, also several at once."""
    for way in WAYS:
        await _called(caller, way, tools=(CLOCK, DICE))
        await _called(caller, way, tools=(CLOCK, DICE), exclude=(CLOCK.name,))
    demands = [(WAYS[number % 2], tool) for number, tool in enumerate(_TOOLS)]
    calls = [_called(caller, way, tools=_TOOLS, include=(tool.name,)) for way, tool in demands]
    await asyncio.gather(*calls)


async def _called(
    caller: Caller,
    way: str,
    *,
    tools: tuple[Tool, ...],
    include: tuple[str, ...] | None = None,
    exclude: tuple[str, ...] = (),
) -> ChatReply:
    choice = ToolChoice("required", include, exclude)
    reply = await caller.answer(way, ask(_TIME, tools=tools, tool_choice=choice), share=4)
    assert reply.tool_calls, f"{way}: a call was demanded, and the reply has none (finish {reply.finish!r}): {reply}"
    return reply


async def check_histories(caller: Caller) -> None:
    """Hand over conversations in which tools were called, whether tools are offered again or not."""
    for number, (what, history) in enumerate(histories().items()):
        ways = WAYS if number == 1 else (WAYS[number % 2],)
        for way in ways:
            try:
                await caller.answer(way, ChatRequest(history, tools=_FEW))
                if number % 3 == 1:
                    await caller.answer(way, ChatRequest(history))
            except Exception as error:
                raise AssertionError(f"{way}: a history with {what} was not taken: {error!r}") from error


async def check_own_calls_go_back(caller: Caller) -> None:
    """Send the service's own calls back with their results, as the tool loop does."""
    for way in WAYS:
        called = await _called(caller, way, tools=_FEW)
        results = [ToolResult(call.id, call.name, '"noon"') for call in called.tool_calls]
        history = [Message.of("user", _TIME), called.message, Message.of("tool", *results)]
        reply = await caller.answer(way, ChatRequest(history, tools=_FEW, tool_choice=ToolChoice("none")))
        assert reply.message.content, f"{way}: with the results of its calls, it says nothing"
