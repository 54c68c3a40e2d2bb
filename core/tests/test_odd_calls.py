"""Tool calls that models write oddly are understood at once, without asking again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from portico._chat.messages import ChatCapabilities, ChatReply, Message, ToolCall, ToolResult
from portico._functions.functions import Function
from portico._kernel import Kernel
from portico._tool_loop.values import ToolStarted
from portico_testkit.fakes.chat_service import ScriptedChat

TOOLS = ChatCapabilities(tools=True)
STRICT = ChatCapabilities(tools=True, strict=True)


def forecast(city: str, hourly: bool = False) -> str:
    return f"{city}: {'hours' if hourly else 'days'}"


async def answers(*calls: ToolCall, capabilities: ChatCapabilities = TOOLS) -> tuple[ScriptedChat, list[Any]]:
    kernel = Kernel()
    name = kernel.add_function(Function.of(forecast, plugin="Weather")).full_name
    chat = ScriptedChat(ChatReply(Message("assistant", calls), finish="tool_calls"), "Done.", capabilities=capabilities)
    events = [event async for event in kernel.stream("Go", chat=chat, functions=[name])]
    return chat, events


@pytest.mark.parametrize("capabilities", [TOOLS, STRICT], ids=["as it is", "strict"])
@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        ("{'city': 'Oslo', 'hourly': True}", "Oslo: hours"),
        ('{"city": "Oslo", "hourly": False,}', "Oslo: days"),
        ('{"city": "Oslo,\nNorway", "hourly": null}', "Oslo,\nNorway: days"),
        ('{"city": "Oslo", "hourly": "True"}', "Oslo: hours"),
    ],
)
async def test_arguments_as_python_writes_them_and_with_line_breaks_are_read(
    arguments: str, result: str, capabilities: ChatCapabilities
) -> None:
    if "null" in arguments and not capabilities.strict:
        arguments = arguments.replace("null", "false")
    chat, events = await answers(ToolCall("1", "Weather-forecast", arguments), capabilities=capabilities)
    (answer,) = chat.requests[1].messages[-1].content
    assert answer == ToolResult("1", "Weather-forecast", result)
    started = next(event for event in events if isinstance(event, ToolStarted))
    assert json.loads(started.call.arguments)["city"] == result.partition(":")[0]


async def test_calls_packed_into_multi_tool_use_parallel_are_each_called_and_answered() -> None:
    uses = [
        {"recipient_name": "functions.Weather-forecast", "parameters": {"city": "Oslo"}},
        {"recipient_name": "functions.Weather_forecast", "parameters": {"city": "Bergen", "hourly": True}},
    ]
    packed = ToolCall("c", "multi_tool_use.parallel", json.dumps({"tool_uses": uses}))
    chat, _ = await answers(packed, ToolCall("d", "functions.forecast", '{"city": "Voss"}'))
    *_, said, answered = chat.requests[1].messages
    calls = [part for part in said.content if isinstance(part, ToolCall)]
    results = [part for part in answered.content if isinstance(part, ToolResult)]
    assert [call.id for call in calls] == [result.id for result in results] == ["c_1", "c_2", "d"]
    assert [result.content for result in results] == ["Oslo: days", "Bergen: hours", "Voss: days"]
    assert [call.name for call in calls[:2]] == ["Weather-forecast", "Weather_forecast"], "no service takes a dot back"


ODD_NAME = '{"recipient_name": 5, "parameters": {}}'


@pytest.mark.parametrize(
    "arguments", ["", "{}", *(f'{{"tool_uses": {uses}}}' for uses in ("[]", "[1]", '{"a": 1}', f"[{ODD_NAME}]"))]
)
async def test_a_packed_call_of_another_form_is_answered_as_an_unknown_function(arguments: str) -> None:
    chat, _ = await answers(ToolCall("c", "multi_tool_use.parallel", arguments))
    (answer,) = chat.requests[1].messages[-1].content
    assert isinstance(answer, ToolResult)
    assert answer.error
    assert answer.id == "c"
