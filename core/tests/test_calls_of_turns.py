"""Who carries out a turn's calls, and when: the application, or the turn, at once or one after another."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from portico._agents.agent import ChatAgent
from portico._chat.messages import ChatCapabilities, Message, ToolCall
from portico._functions.functions import FunctionPlugin, function
from portico._kernel import Kernel
from portico._prompts.functions import prompt_function
from portico._tool_loop.values import ToolFinished, ToolStarted, Turn
from portico_testkit.fakes.chat_service import ScriptedChat

ONE_AT_A_TIME = frozenset({"parallel_tool_calls"})
STRICT = ChatCapabilities(tools=True, response_schema=True, strict=True, extras=ONE_AT_A_TIME)
TOOLS = ChatCapabilities(tools=True)


@dataclass
class Report:
    text: str


class Weather:
    def __init__(self) -> None:
        self.log: list[str] = []

    @function
    async def today(self, city: str, days: int = 1) -> str:
        """Tell the weather."""
        self.log.append(f"begin {city}")
        for _ in range(5):
            await asyncio.sleep(0)
        self.log.append(f"end {city}")
        return f"Sun over {city} for {days}"

    @function
    async def erase(self) -> str:
        """Erase everything."""
        raise AssertionError("this was not offered")


@pytest.fixture
def weather() -> Weather:
    return Weather()


@pytest.fixture
def kernel(weather: Weather) -> Kernel:
    return Kernel(plugins=[FunctionPlugin.of(weather)])


def call(number: int, city: str, days: str = "null") -> ToolCall:
    return ToolCall(f"c{number}", "Weather-today", f'{{"city": "{city}", "days": {days}}}')


@pytest.mark.parametrize("streamed", [True, False])
async def test_calls_are_returned_as_the_functions_take_them_and_the_turn_goes_on_with_results(
    kernel: Kernel, weather: Weather, streamed: bool
) -> None:
    chat = ScriptedChat(["Let me see. ", call(1, "Oslo")], "Sunny.", capabilities=STRICT)
    options: dict[str, Any] = {"chat": chat, "functions": ["Weather-today"], "auto_invoke": False}
    asked = [Message.of("user", "How is it?")]
    if streamed:
        events = [event async for event in kernel.stream(asked, **options)]
        assert not any(isinstance(event, ToolStarted | ToolFinished) for event in events)
        turn = events[-1]
        assert isinstance(turn, Turn)
    else:
        turn = await kernel.complete(asked, **options)
    assert weather.log == []
    assert (turn.reply.finish, turn.value) == ("tool_calls", "Let me see. ")
    assert turn.reply.tool_calls == (ToolCall("c1", "Weather-today", '{"city": "Oslo"}'),)
    results = [await kernel.call_tool(each, offered=turn.offered) for each in turn.reply.tool_calls]
    assert [result.content for result in results] == ["Sun over Oslo for 1"]
    turn = await kernel.complete([*asked, *turn.messages, Message("tool", tuple(results))], **options)
    assert (turn.value, turn.reply.tool_calls, turn.offered) == ("Sunny.", (), None)
    assert chat.requests[1].messages[1].content[1] == call(1, "Oslo"), "the service's own words go back to it"


async def test_a_call_of_what_was_not_offered_is_not_carried_out(kernel: Kernel) -> None:
    chat = ScriptedChat([ToolCall("c1", "Weather-erase", "{}")], capabilities=TOOLS)
    turn = await kernel.complete("?", chat=chat, functions=["Weather-today"], auto_invoke=False)
    (refused,) = turn.reply.tool_calls
    assert (await kernel.call_tool(refused, offered=turn.offered)).error


async def test_where_calls_are_not_allowed_the_calls_returned_are_not_carried_out(kernel: Kernel) -> None:
    chat = ScriptedChat([call(1, "Oslo", "1")], capabilities=TOOLS)
    turn = await kernel.complete("?", chat=chat, functions=["Weather"], tool_choice="none", auto_invoke=False)
    (refused,) = turn.reply.tool_calls
    assert (await kernel.call_tool(refused, offered=turn.offered)).error


async def test_a_turn_with_a_type_returns_calls_or_its_value(kernel: Kernel) -> None:
    chat = ScriptedChat([call(1, "Oslo")], '{"text": "Sun"}', capabilities=TOOLS)
    options: dict[str, Any] = {"chat": chat, "functions": ["Weather"], "auto_invoke": False, "returns": Report}
    turn = await kernel.complete("?", **options)
    assert (turn.value, len(turn.reply.tool_calls)) == (None, 1)
    assert (await kernel.complete("?", **options)).value == Report("Sun")


async def test_where_only_a_value_comes_back_calls_cannot_be_returned(kernel: Kernel) -> None:
    with pytest.raises(ValueError, match="auto_invoke"):
        await kernel.invoke_prompt("?", chat=ScriptedChat(), auto_invoke=False)
    with pytest.raises(TypeError, match="auto_invoke"):
        prompt_function("ask", "?", auto_invoke=False)
    chat = ScriptedChat([call(1, "Oslo")], capabilities=TOOLS)
    with pytest.raises(TypeError, match="auto_invoke"):
        await ChatAgent("Ann", kernel=kernel, chat=chat).invoke("?", auto_invoke=False)
    assert chat.requests == [], "no model is asked for a call that is lost"


@pytest.mark.parametrize("capabilities", [TOOLS, STRICT])
@pytest.mark.parametrize("who", ["kernel", "agent", "prompt function"])
async def test_calls_one_at_a_time_are_asked_for_and_held_to(
    kernel: Kernel, weather: Weather, capabilities: ChatCapabilities, who: str
) -> None:
    calls = [call(number, city, "1") for number, city in enumerate(("Oslo", "Bergen", "Tromsø"))]
    chat = ScriptedChat(calls, "Sunny.", capabilities=capabilities)
    options: dict[str, Any] = {"chat": chat, "parallel_tool_calls": False}
    if who == "kernel":
        events = [event async for event in kernel.stream("?", functions=["Weather"], **options)]
        happened = [event for event in events if isinstance(event, ToolStarted | ToolFinished)]
        assert [type(event) for event in happened] == [ToolStarted, ToolFinished] * 3
    elif who == "agent":
        await ChatAgent("Ann", kernel=kernel, **options).invoke("?", functions=["Weather"])
    else:
        ask = kernel.add_function(prompt_function("ask", "?", functions=["Weather"], **options))
        await kernel.invoke(ask)
    assert weather.log == [f"{what} {city}" for city in ("Oslo", "Bergen", "Tromsø") for what in ("begin", "end")]
    extras = {"parallel_tool_calls": False} if capabilities is STRICT else {}
    assert [request.extras for request in chat.requests] == [extras, extras]


async def test_without_the_option_calls_are_carried_out_side_by_side(kernel: Kernel, weather: Weather) -> None:
    chat = ScriptedChat([call(1, "Oslo", "1"), call(2, "Bergen", "1")], "Sunny.", capabilities=STRICT)
    await kernel.complete("?", chat=chat, functions=["Weather"])
    assert weather.log[:2] == ["begin Oslo", "begin Bergen"]
    assert chat.requests[0].extras == {}
