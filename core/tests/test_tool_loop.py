"""A turn: ask, carry out the calls, ask again, until there is an answer or a limit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
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
    Source,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
    Usage,
)
from portico._functions.functions import FunctionPlugin, function
from portico._functions.middleware import Middleware, ToolCallInvocation
from portico._kernel import Kernel
from portico._tool_loop.toolset import Toolbox
from portico._tool_loop.values import ToolFinished, ToolLoopLimits, ToolStarted, Turn
from portico.errors import FunctionNotFound, LimitExceeded, ResponseInvalid
from portico_testkit.fakes.chat_service import Line, ScriptedChat

TOOLS = ChatCapabilities(tools=True)


class Weather:
    """Weather here and there."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    @function
    async def today(self, city: str, days: int = 1) -> str:
        """Tell the weather.

        Args:
            city: Where.
        """
        self.asked.append(city)
        return f"Sun over {city}"

    @function
    async def storms(self) -> int:
        raise RuntimeError("the barometer is broken")


def calling(*calls: ToolCall, text: str = "", usage: Usage | None = None) -> ChatReply:
    parts = (*((Text(text),) if text else ()), *calls)
    return ChatReply(Message("assistant", parts), finish="tool_calls", usage=usage or Usage(10, 5), service="scripted")


def call(name: str, number: int = 1, **arguments: Any) -> ToolCall:
    return ToolCall(f"call-{number}", name, json.dumps(arguments))


@dataclass
class Case:
    kernel: Kernel
    chat: ScriptedChat
    weather: Weather

    async def complete(self, **options: Any) -> Turn[Any]:
        return await self.kernel.complete("How is the weather?", chat=self.chat, **options)

    def results(self, request: int = -1) -> list[ToolResult]:
        return [part for part in self.chat.requests[request].messages[-1].content if isinstance(part, ToolResult)]


def case(
    *script: Line, capabilities: ChatCapabilities = TOOLS, middleware: Middleware | None = None, **how: Any
) -> Case:
    weather = Weather()
    kernel = Kernel(plugins=[FunctionPlugin.of(weather)], middleware=middleware)
    return Case(kernel, ScriptedChat(*script, capabilities=capabilities, **how), weather)


async def test_a_question_without_functions_is_one_request_and_one_reply():
    asked = case("Fine.")
    turn = await asked.complete()
    assert (turn.value, turn.rounds, len(turn.messages)) == ("Fine.", 1, 1)
    assert asked.chat.requests[0].tools == ()


async def test_a_call_is_carried_out_and_its_result_goes_back_with_the_conversation():
    asked = case(calling(call("Weather-today", city="Oslo"), text="Let me look."), "Sun.")
    turn = await asked.complete(functions=["Weather"])
    assert turn.value == "Sun."
    assert turn.usage == Usage(10, 5)
    assert [message.role for message in asked.chat.requests[1].messages] == ["user", "assistant", "tool"]
    assert asked.results() == [ToolResult("call-1", "Weather-today", "Sun over Oslo")]
    assert [message.role for message in turn.messages] == ["assistant", "tool", "assistant"]


async def test_the_tools_offered_are_made_once():
    asked = case("1", "2")
    await asked.complete(functions=["Weather"])
    await asked.complete(functions=["Weather"])
    first, second = asked.chat.requests
    assert first.tools is second.tools
    assert [tool.name for tool in first.tools] == ["Weather-today", "Weather-storms"]
    assert first.tools[0].parameters["required"] == ["city"]


async def test_calls_of_one_reply_run_side_by_side_and_answer_in_order():
    gate = asyncio.Event()
    order: list[str] = []

    @function
    async def slow() -> str:
        await gate.wait()
        order.append("slow")
        return "slow"

    @function
    async def quick() -> str:
        order.append("quick")
        gate.set()
        return "quick"

    asked = case(calling(call("slow", 1), call("quick", 2)), "Done.")
    asked.kernel.add_function(slow)
    asked.kernel.add_function(quick)
    await asyncio.wait_for(asked.complete(functions=["slow", "quick"]), 10)
    assert order == ["quick", "slow"]
    assert [result.content for result in asked.results()] == ["slow", "quick"]


@pytest.mark.parametrize("name", ["Weather-todya", "Weather-now", "Clock-today", ""])
async def test_an_unknown_name_is_answered_with_the_nearest_that_were_offered(name):
    asked = case(calling(call(name, city="Oslo")), "Sorry.")
    turn = await asked.complete(functions=["Weather-today"])
    (result,) = asked.results()
    assert result.error
    assert "no function" in result.content
    if name == "Weather-todya":
        assert "Nearest: Weather-today" in result.content
    assert isinstance(result.cause, FunctionNotFound)
    assert turn.value == "Sorry."


@pytest.mark.parametrize(
    "name", ["Weather.today", "Weather_today", "today", "weather-today", "functions.Weather_today"]
)
async def test_another_spelling_of_an_offered_name_is_understood(name):
    asked = case(calling(call(name, city="Oslo")), "Sun.")
    await asked.complete(functions=["Weather"])
    assert asked.weather.asked == ["Oslo"]
    assert asked.results()[0].name == name, "the service knows the call by the name that the model wrote"


async def test_what_was_not_offered_cannot_be_called():
    asked = case(calling(call("Weather-today", city="Oslo")), "Sorry.")
    await asked.complete(functions=["Weather-storms"])
    assert asked.weather.asked == []
    assert asked.results()[0].error


async def test_bad_arguments_are_answered_with_every_fault():
    asked = case(calling(call("Weather-today", city=["Oslo"], days="many", town="x")), "Sorry.")
    await asked.complete(functions=["Weather"])
    (result,) = asked.results()
    assert result.error
    for fault in ("city: expected a string, got an array", "days: expected an integer, got 'many'", "town: unknown"):
        assert fault in result.content


@pytest.mark.parametrize("arguments", ["{", "[1]", "nothing", '{"city": NaN}'])
async def test_arguments_that_are_no_json_object_are_answered(arguments):
    asked = case(calling(ToolCall("call-1", "Weather-today", arguments)), "Sorry.")
    await asked.complete(functions=["Weather"])
    assert asked.results()[0].error


async def test_arguments_of_another_kind_are_taken_where_nothing_is_lost():
    asked = case(calling(call("Weather-today", city="Oslo", days="3")), "Sun.")
    await asked.complete(functions=["Weather"])
    assert not asked.results()[0].error


async def test_a_function_that_raises_is_a_message_and_its_cause_is_kept():
    asked = case(calling(call("Weather-storms")), "The barometer is broken.")
    turn = await asked.complete(functions=["Weather"])
    (result,) = asked.results()
    assert result.error
    assert "the barometer is broken" in result.content
    assert isinstance(result.cause, RuntimeError)
    assert result.cause.__traceback__ is not None
    assert turn.value == "The barometer is broken."


async def test_a_result_is_cut_where_the_model_is_shown_no_more():
    asked = case(calling(call("Weather-today", city="x" * 500)), "Long.")
    await asked.complete(functions=["Weather"], limits=ToolLoopLimits(result_characters=100))
    content = asked.results()[0].content
    assert content.startswith("Sun over xxx")
    assert "[cut here: the result has 509 characters, 100 are shown]" in content


@pytest.mark.parametrize(
    ("limits", "named", "replies"),
    [
        (ToolLoopLimits(rounds=2), "2 rounds", 2),
        (ToolLoopLimits(calls=2), "2 tool calls", 3),
        (ToolLoopLimits(tokens=20), "20 tokens", 2),
    ],
)
async def test_a_turn_without_an_end_reaches_its_limit_and_loses_nothing(limits, named, replies):
    asked = case(calling(call("Weather-today", city="Oslo")), repeat=True)
    with pytest.raises(LimitExceeded, match=named) as caught:
        await asked.complete(functions=["Weather"], limits=limits)
    assert len(asked.chat.requests) == replies
    assert caught.value.usage == Usage(10 * replies, 5 * replies)
    assert [message.role for message in caught.value.messages][:2] == ["assistant", "tool"]


@on_virtual_time
async def test_a_turn_that_takes_too_long_is_stopped_with_its_tools():
    stopped = asyncio.Event()

    @function
    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    for calls in ([call("forever")], [call("forever", 1), call("forever", 2)]):
        stopped.clear()
        asked = case(calling(*calls))
        asked.kernel.add_function(forever)
        with pytest.raises(LimitExceeded, match=r"0\.05 seconds"):
            await asked.complete(functions=["forever"], limits=ToolLoopLimits(seconds=0.05))
        assert stopped.is_set()


async def test_a_cancelled_turn_leaves_no_task_behind():
    @function
    async def forever() -> None:
        await asyncio.Event().wait()

    asked = case(calling(call("forever", 1), call("forever", 2)))
    asked.kernel.add_function(forever)
    before = asyncio.all_tasks()
    turn = asyncio.ensure_future(asked.complete(functions=["forever"]))
    while len(asyncio.all_tasks()) < len(before) + 3:
        await asyncio.sleep(0)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert asyncio.all_tasks() == before


async def test_a_stream_given_up_leaves_no_task_behind():
    @function
    async def forever() -> None:
        await asyncio.Event().wait()

    asked = case(calling(call("forever", 1), call("forever", 2)))
    asked.kernel.add_function(forever)
    before = asyncio.all_tasks()
    events: Any = asked.kernel.stream("Go", functions=["forever"], chat=asked.chat)
    async for event in events:
        if isinstance(event, ToolStarted):
            break
    await events.aclose()
    assert asyncio.all_tasks() == before


async def test_required_holds_until_the_model_has_called():
    asked = case(calling(call("Weather-today", city="Oslo")), "Sun.")
    await asked.complete(tool_choice="required")
    assert [request.tool_choice.mode for request in asked.chat.requests] == ["required", "auto"]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("finish", "advice"), [("stop", "ignores the option"), ("length", "max_tokens")])
async def test_a_service_that_ignores_required_is_an_error_with_its_reply(finish, advice, streamed):
    asked = case(ChatReply(Message.of("assistant", "Sunny, I guess."), finish, Usage(9, 5), service="scripted"))
    with pytest.raises(ResponseInvalid, match=f"calls no function, and tool_choice is 'required'.*{advice}") as caught:
        if streamed:
            async for _ in asked.kernel.stream("How is it?", chat=asked.chat, tool_choice="required"):
                pass
        else:
            await asked.complete(tool_choice="required")
    assert caught.value.text == "Sunny, I guess."
    assert len(asked.chat.requests) == 1


async def test_none_offers_nothing_and_carries_out_nothing():
    asked = case(calling(call("Weather-today", city="Oslo")), "Sun.")
    await asked.complete(tool_choice="none")
    assert asked.chat.requests[0].offered == ()
    assert asked.weather.asked == [], "what a model was not told of, it cannot call"
    assert "no function" in asked.results()[0].content


async def test_functions_are_included_and_excluded_by_name():
    asked = case("1", "2", "3")
    await asked.complete(tool_choice=ToolChoice(include=("Weather.today",)))
    await asked.complete(tool_choice=ToolChoice(exclude=("storms",)))
    await asked.complete(tool_choice="auto")
    names = [[tool.name for tool in request.offered] for request in asked.chat.requests]
    assert names == [["Weather-today"], ["Weather-today"], ["Weather-today", "Weather-storms"]]
    with pytest.raises(FunctionNotFound, match="Nearest: Weather-storms"):
        await asked.complete(tool_choice=ToolChoice(exclude=("Weather-storm",)))


async def test_an_option_that_does_not_exist_is_a_mistake_with_the_nearest():
    with pytest.raises(TypeError, match="'tool_choices' is not an option of a turn; 'tool_choice' is"):
        await case("x").complete(tool_choices="auto")
    with pytest.raises(ValueError, match="no function to call"):
        await case("x").complete(tool_choice="required", functions=[])


async def test_a_whole_request_keeps_its_settings():
    chat = ScriptedChat("x", capabilities=ChatCapabilities(sampling=frozenset({"temperature", "max_tokens"})))
    request = ChatRequest([Message.of("user", "Hi")], temperature=0.5, max_tokens=9)
    await Kernel().complete(request, chat=chat, max_tokens=7)
    assert (chat.requests[0].temperature, chat.requests[0].max_tokens) == (0.5, 7)


async def test_passages_are_written_out_for_a_service_that_takes_none():
    chat = ScriptedChat("x")
    await Kernel().complete([Message.of("user", Source(1, "<b>Noon</b>"), "When?")], chat=chat)
    assert "&lt;b&gt;Noon" in chat.requests[0].messages[0].text


async def test_streaming_delivers_text_calls_and_tools_as_they_come():
    asked = case(calling(call("Weather-today", city="Oslo"), text="Let me look."), "Sun over Oslo.")
    events = [event async for event in asked.kernel.stream("How?", functions=["Weather"], chat=asked.chat)]
    text = "".join(event.text for event in events if isinstance(event, ChatDelta))
    assert text == "Let me look.Sun over Oslo."
    started = next(index for index, event in enumerate(events) if isinstance(event, ToolStarted))
    finished = next(index for index, event in enumerate(events) if isinstance(event, ToolFinished))
    assert started < finished
    assert events[finished].result.content == "Sun over Oslo"
    assert all(isinstance(event, ChatDelta) for event in events[finished + 1 : -1])
    assert isinstance(events[-1], Turn)
    assert events[-1].value == "Sun over Oslo."


async def test_streamed_and_whole_turns_are_equal():
    script = [calling(call("Weather-today", 1, city="Oslo"), call("Weather-storms", 2)), "Sun."]
    whole = await case(*script).complete(functions=["Weather"])
    asked = case(*script)
    last = None
    async for event in asked.kernel.stream("How is the weather?", functions=["Weather"], chat=asked.chat):
        last = event
    assert last == whole


async def test_tool_call_filters_see_the_call_and_may_answer_for_it():
    seen: list[str] = []

    async def guard(context: ToolCallInvocation, proceed: Any) -> ToolResult:
        seen.append(context.call.name)
        if "storms" in context.call.name:
            return ToolResult(context.call.id, context.call.name, "Not today.", error=True)
        return await proceed()

    asked = case(
        calling(call("Weather.today", 1, city="Oslo"), call("Weather-storms", 2)),
        "x",
        middleware=Middleware(tool_call=[guard]),
    )
    await asked.complete(functions=["Weather"])
    assert [result.content for result in asked.results()] == ["Sun over Oslo", "Not today."]
    assert seen == ["Weather-today", "Weather-storms"]


async def test_an_application_stops_a_turn_by_raising_in_a_filter():
    async def stop(context: ToolCallInvocation, proceed: Any) -> ToolResult:
        raise KeyError("stop")

    for calls in ([call("Weather-storms")], [call("Weather-storms", 1), call("Weather-storms", 2)]):
        asked = case(calling(*calls), "x", middleware=Middleware(tool_call=[stop]))
        before = asyncio.all_tasks()
        with pytest.raises(KeyError, match="stop"):
            await asked.complete(functions=["Weather"])
        assert asyncio.all_tasks() == before


async def test_a_stream_that_ends_without_a_reply_is_an_error():
    class Silent(ScriptedChat):
        async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
            yield ChatDelta("Well")

    with pytest.raises(ResponseInvalid, match="without a reply"):
        async for _ in Kernel().stream("Hi", chat=Silent()):
            pass


@on_virtual_time
async def test_three_tools_at_once_take_as_long_as_one():
    @function
    async def wait() -> None:
        await asyncio.sleep(60)

    asked = case(calling(*(call("wait", number) for number in range(3))), "Done.")
    asked.kernel.add_function(wait)
    started = asyncio.get_running_loop().time()
    await asked.complete(functions=["wait"])
    assert asyncio.get_running_loop().time() - started == pytest.approx(60), "they run one after another"


def test_a_name_that_is_too_long_for_a_service_has_a_short_form_of_its_own():
    long = "x" * 70
    names = []
    for ending in ("one", "two"):
        made = FunctionPlugin.of(Weather(), f"{long}_{ending}").functions[0]
        toolset = Toolbox().toolset((made,), strict=False)
        (tool,) = toolset.tools
        assert len(tool.name) == 64
        assert toolset.plain(ToolCall("1", tool.name)).name == made.full_name
        names.append(tool.name)
    assert names[0] != names[1]
