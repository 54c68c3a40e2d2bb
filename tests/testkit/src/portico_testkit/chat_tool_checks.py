"""What the ChatService kit asks of services that declare tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from portico.chat import ChatReply, ChatRequest, Message, Tool, ToolChoice, ToolResult
from portico_testkit.chat_checks import WAYS, Caller, Pieces, check_json, check_reply
from portico_testkit.chat_requests import CLOCK, DICE, LAMP, ODD_TOOL, STRICT, ask, histories

__all__ = [
    "check_histories",
    "check_must_call",
    "check_must_not_call",
    "check_offers",
    "check_own_calls_go_back",
    "check_several_calls",
    "check_streams_in_turn",
    "check_strict_tools",
]

_TOOLS = (CLOCK, DICE, LAMP, ODD_TOOL)
_FEW = (CLOCK, LAMP)
"""Enough where the number of tools is not the point: a small model reads each of them anew every time."""
_TIME = "What time is it in Oslo? Ask the clock."


async def check_offers(caller: Caller) -> None:
    """Offer tools of any shape, all or some: they are called or not, and never one that was not offered."""
    choices = (
        ToolChoice(),
        ToolChoice(include=(CLOCK.name, "Not-There")),
        ToolChoice(exclude=(CLOCK.name, "Not-There")),
        ToolChoice(include=(CLOCK.name, DICE.name), exclude=(CLOCK.name,)),
        ToolChoice(include=()),
    )
    for number, choice in enumerate(choices):
        for way in (WAYS[number % 2],) if number else WAYS:
            await caller.answer(way, ask(_TIME, tools=_TOOLS, tool_choice=choice))


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


async def check_several_calls(caller: Caller) -> None:
    """Ask for two things of one tool: two calls come, in the order asked for."""
    for way in WAYS:
        question = "What time is it in Oslo, and what time is it in Lima? Ask the clock for Oslo first, then for Lima."
        request = ask(question, tools=(CLOCK,), tool_choice=ToolChoice("required"))
        reply = await caller.answer(way, request, share=4)
        assert reply.finish != "length", f"{way}: cut short after {reply.tool_calls}; try a larger max_output"
        towns = [json.loads(call.arguments).get("town") for call in reply.tool_calls]
        assert towns == ["Oslo", "Lima"], f"{way}: asked for Oslo, then Lima, it calls for {towns}"


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


async def check_strict_tools(caller: Caller, *, called: bool) -> None:
    """Offer a strict tool; where the model calls, the arguments satisfy the schema exactly."""
    strict = Tool("Box-Pack", "Pack a box.", STRICT, strict=True)
    for way in WAYS:
        await caller.answer(way, ask("Pack a small box named “Köln”.", tools=(strict, CLOCK)), share=4)
        if called:
            reply = await _called(caller, way, tools=(strict, CLOCK), include=(strict.name,))
            for call in reply.tool_calls if reply.finish != "length" else ():
                check_json(call.arguments, STRICT, f"{way}: the arguments of a strict tool")


async def check_streams_in_turn(caller: Caller, requests: Sequence[ChatRequest]) -> None:
    """Read streams by turns, a delta of each at a time: each has its own pieces and its own reply."""
    streams = [caller.service.stream(request) for request in requests]
    gathered = [Pieces() for _ in streams]
    open_ones = set(range(len(streams)))
    while open_ones:
        for number in sorted(open_ones):
            delta = await anext(streams[number], None)
            if delta is None:
                open_ones.discard(number)
            else:
                gathered[number].take(delta)
    for pieces, request in zip(gathered, requests, strict=True):
        check_reply(pieces.whole(), caller.service, request)
