"""Turns with functions, models and filters that do what nobody expects."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import pytest
from tests.support.virtual_time import on_virtual_time

from portico._chat.messages import (
    ChatCapabilities,
    ChatDelta,
    ChatReply,
    ChatRequest,
    Message,
    Text,
    ToolCall,
    ToolResult,
)
from portico._functions.functions import function
from portico._functions.middleware import Middleware, PromptRender, ToolCallInvocation
from portico._kernel import Kernel
from portico._tool_loop.values import ToolLoopLimits, ToolStarted, Turn
from portico.errors import LimitExceeded, ResponseInvalid
from portico_testkit.fakes.chat_service import ScriptedChat

TOOLS = ChatCapabilities(tools=True)
SIDES = pytest.mark.parametrize("count", [1, 2], ids=["alone", "side by side"])


async def results_of(*calls: ToolCall, finish: Any = "tool_calls", functions: list[Any]) -> list[ToolResult]:
    kernel = Kernel()
    names = [kernel.add_function(each).full_name for each in functions]
    reply = ChatReply(Message("assistant", calls), finish=finish)
    chat = ScriptedChat(reply, "Done.", capabilities=TOOLS)
    turn = await asyncio.wait_for(kernel.complete("Go", chat=chat, functions=names), 10)
    assert turn.value == "Done."
    return [part for part in chat.requests[1].messages[-1].content if isinstance(part, ToolResult)]


@SIDES
async def test_a_function_whose_own_work_was_cancelled_has_failed_and_the_turn_goes_on(count: int):
    @function
    async def waits() -> str:
        work = asyncio.ensure_future(asyncio.sleep(10))
        work.cancel()
        await work
        return "never"

    for result in await results_of(*[ToolCall("1", "waits")] * count, functions=[waits]):
        assert result.error
        assert "waits" in result.content
        assert isinstance(result.cause, asyncio.CancelledError)


@SIDES
async def test_a_function_in_a_thread_that_runs_out_of_elements_does_not_hang(count: int):
    @function(blocking=True)
    def first() -> str:
        return next(iter([]))

    for result in await results_of(*[ToolCall("1", "first")] * count, functions=[first]):
        assert result.error
        assert "StopIteration" in result.content


@dataclass
class Percent:
    share: int

    def __post_init__(self) -> None:
        if self.share > 100:
            raise KeyError(self.share)


async def test_a_class_that_refuses_a_value_in_its_own_way_is_a_fault_of_the_arguments():
    @function
    async def fill(share: Percent) -> str:
        return "filled"

    (result,) = await results_of(ToolCall("1", "fill", '{"share": {"share": 101}}'), functions=[fill])
    assert result.error
    assert "share: expected a valid Percent, got KeyError: 101" in result.content


async def test_a_class_that_refuses_a_value_in_its_own_way_is_a_fault_of_the_reply():
    chat = ScriptedChat('{"share": 101}', '{"share": 10}', capabilities=ChatCapabilities(response_schema=True))
    assert (await Kernel().complete("How much?", chat=chat, returns=Percent)).value == Percent(10)
    assert "a valid Percent" in chat.requests[1].messages[-1].text


@pytest.mark.parametrize("arguments", ["", '{"path": "/tm', '{"path": "/tmp"'])
async def test_a_call_that_was_cut_short_is_not_carried_out(arguments: str):
    wiped: list[Any] = []

    @function
    async def wipe(path: str | None = None) -> None:
        wiped.append(path)

    whole = ToolCall("1", "wipe", '{"path": "/old"}')
    first, last = await results_of(whole, ToolCall("2", "wipe", arguments), finish="length", functions=[wipe])
    assert wiped == ["/old"]
    assert not first.error
    assert last.error
    assert "cut short" in last.content


async def test_a_call_that_is_whole_in_a_reply_that_was_cut_short_is_carried_out():
    @function
    async def double(number: int) -> int:
        return 2 * number

    (result,) = await results_of(ToolCall("1", "double", '{"number": 2}'), finish="length", functions=[double])
    assert result.content == "4"


async def test_a_filter_that_forgets_to_return_is_told_so():
    async def forgets(context: ToolCallInvocation | PromptRender, proceed: Any) -> Any:
        await proceed()

    @function
    async def now() -> str:
        return "noon"

    kernel = Kernel(middleware=Middleware(tool_call=[forgets], prompt=[forgets]))
    kernel.add_function(now)
    chat = ScriptedChat(ToolCall("1", "now"), capabilities=TOOLS)
    with pytest.raises(TypeError, match="tool call filter returned None"):
        await kernel.complete("When?", chat=chat, functions=["now"])
    with pytest.raises(TypeError, match="prompt middleware returned None"):
        await kernel.invoke_prompt("When?", chat=chat)


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_time_out_of_the_service_is_not_taken_for_the_limit_of_the_turn(streamed: bool):
    class Slow(ScriptedChat):
        async def complete(self, request: ChatRequest) -> ChatReply:
            raise TimeoutError("the service's own")

        async def stream(self, request: ChatRequest) -> Any:
            yield ChatDelta("Well")
            raise TimeoutError("the service's own")

    kernel, limits = Kernel(), ToolLoopLimits(seconds=1000)
    with pytest.raises(TimeoutError, match="the service's own"):
        if streamed:
            async for _ in kernel.stream("Hi", chat=Slow(), limits=limits):
                pass
        else:
            await kernel.complete("Hi", chat=Slow(), limits=limits)


@on_virtual_time
async def test_a_stream_whose_reader_takes_too_long_ends_at_the_limit():
    with pytest.raises(LimitExceeded, match=r"0\.01 seconds"):
        async for _ in Kernel().stream("Hi", chat=ScriptedChat("x" * 700), limits=ToolLoopLimits(seconds=0.01)):
            await asyncio.sleep(0.005)


async def test_a_stream_left_in_a_closing_block_leaves_nothing_behind():
    @function
    async def forever() -> None:
        await asyncio.Event().wait()

    kernel = Kernel()
    kernel.add_function(forever)
    chat = ScriptedChat([ToolCall("1", "forever"), ToolCall("2", "forever")], capabilities=TOOLS)
    before = asyncio.all_tasks()
    async with aclosing(kernel.stream("Go", chat=chat, functions=["forever"])) as events:
        async for event in events:
            if isinstance(event, ToolStarted):
                break
    assert asyncio.all_tasks() == before


async def test_a_conversation_that_its_owner_adds_to_meanwhile_stays_as_it_was_asked():
    history = [Message.of("user", "Go")]

    @function
    async def intrude() -> str:
        history.append(Message.of("user", "Stop"))
        return "done"

    kernel = Kernel()
    kernel.add_function(intrude)
    for asked in (history, ChatRequest(history)):
        history[1:] = []
        chat = ScriptedChat(ToolCall("1", "intrude"), "Done.", capabilities=TOOLS)
        await kernel.complete(asked, chat=chat, functions=["intrude"])
        assert [message.role for message in chat.requests[1].messages] == ["user", "assistant", "tool"]


async def test_words_beside_calls_are_no_answer_even_where_they_have_its_form():
    @function
    async def look() -> int:
        return 7

    kernel = Kernel()
    kernel.add_function(look)
    first = [Text(json.dumps({"share": 1})), ToolCall("1", "look")]
    chat = ScriptedChat(first, '{"share": 7}', capabilities=TOOLS)
    last = None
    async for event in kernel.stream("How much?", chat=chat, functions=["look"], returns=Percent):
        last = event
    assert isinstance(last, Turn)
    assert last.value == Percent(7)


async def test_a_structured_reply_that_was_cut_short_says_what_to_do():
    reply = ChatReply(Message.of("assistant", '{"share": 1'), finish="length")
    with pytest.raises(ResponseInvalid, match="max_tokens"):
        await Kernel().complete("How much?", chat=ScriptedChat(reply), returns=Percent)


@pytest.mark.parametrize("limits", [ToolLoopLimits(calls=1), ToolLoopLimits(seconds=0.02)])
@on_virtual_time
async def test_a_conversation_that_met_a_limit_has_no_call_without_an_answer(limits: ToolLoopLimits):
    @function
    async def forever() -> None:
        await asyncio.Event().wait()

    kernel = Kernel()
    kernel.add_function(forever)
    chat = ScriptedChat([ToolCall("1", "forever"), ToolCall("2", "forever")], capabilities=TOOLS)
    with pytest.raises(LimitExceeded) as caught:
        await kernel.complete("Go", chat=chat, functions=["forever"], limits=limits)
    called, answered = caught.value.messages
    assert [part.id for part in called.content] == [part.id for part in answered.content] == ["1", "2"]
    assert all(part.error for part in answered.content)
