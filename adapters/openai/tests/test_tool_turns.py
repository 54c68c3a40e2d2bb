"""Tools against llmock, a fake of OpenAI's service that calls what it is offered."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from portico import ChatReply, ChatRequest, Message, Tool, ToolCall, ToolChoice, ToolResult
from portico_openai.chat import OpenAIChat
from portico_openai.config import OpenAIChatSettings

CLOCK = Tool(
    "Clock-Now",
    "Tells the time in a town.",
    {"type": "object", "properties": {"town": {"type": "string", "enum": ["Oslo", "Rome"]}}, "required": ["town"]},
)
DICE = Tool("Dice-Roll", "Rolls dice.", {"type": "object", "properties": {"sides": {"type": "integer", "minimum": 6}}})
QUESTION = Message.of("user", "Roll the dice, please.")
WAYS = pytest.mark.parametrize("way", ["complete", "stream"])


@pytest.fixture(params=["chat", "responses"])
async def chat(llmock_url: str, request: pytest.FixtureRequest) -> AsyncIterator[OpenAIChat]:
    service = OpenAIChat(OpenAIChatSettings(model="gpt-4o", base_url=llmock_url, api=request.param))
    yield service
    await service.aclose()


async def answered(chat: OpenAIChat, way: str, request: ChatRequest) -> ChatReply:
    if way == "complete":
        return await chat.complete(request)
    deltas = [delta async for delta in chat.stream(request)]
    reply = deltas[-1].reply
    assert reply is not None
    return reply


@WAYS
async def test_the_model_chooses_a_tool_and_answers_after_its_result(chat: OpenAIChat, way: str):
    request = ChatRequest([QUESTION], tools=(CLOCK, DICE))
    reply = await answered(chat, way, request)
    (call,) = reply.tool_calls
    assert (call.name, reply.finish) == ("Dice-Roll", "tool_calls")
    assert json.loads(call.arguments) == {"sides": 6}
    result = Message.of("tool", ToolResult(call.id, call.name, "4"))
    after = await answered(chat, way, ChatRequest([QUESTION, reply.message, result], tools=(CLOCK, DICE)))
    assert (after.tool_calls, after.finish) == ((), "stop")
    assert after.text


@WAYS
async def test_a_call_that_must_be_made_is_made_of_what_is_left(chat: OpenAIChat, way: str):
    answered_once = [
        QUESTION,
        Message.of("assistant", ToolCall("c1", "Dice-Roll")),
        Message.of("tool", ToolResult("c1", "Dice-Roll", "4")),
    ]
    for choice in (ToolChoice("required", include=("Clock-Now",)), ToolChoice("required", exclude=("Dice-Roll",))):
        reply = await answered(chat, way, ChatRequest(answered_once, tools=(CLOCK, DICE), tool_choice=choice))
        assert [call.name for call in reply.tool_calls] == ["Clock-Now"]
        assert json.loads(reply.tool_calls[0].arguments) == {"town": "Oslo"}


@WAYS
async def test_no_call_is_made_where_none_may_be(chat: OpenAIChat, way: str):
    for choice in (ToolChoice("none"), ToolChoice("auto", exclude=("Clock-Now", "Dice-Roll"))):
        reply = await answered(chat, way, ChatRequest([QUESTION], tools=(CLOCK, DICE), tool_choice=choice))
        assert reply.tool_calls == ()
        assert reply.text


@WAYS
async def test_a_reply_follows_its_schema(chat: OpenAIChat, way: str):
    schema = {
        "type": "object",
        "properties": {
            "steps": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"explanation": {"type": "string"}, "output": {"type": "string"}},
                    "required": ["explanation", "output"],
                },
            },
            "final_answer": {"type": "string"},
        },
        "required": ["steps", "final_answer"],
    }
    reply = await answered(chat, way, ChatRequest([QUESTION], response_schema=schema, response_name="MathReasoning"))
    value = json.loads(reply.text)
    assert value.keys() == {"steps", "final_answer"}
    assert [step.keys() for step in value["steps"]] == [{"explanation", "output"}]


@WAYS
async def test_usage_is_reported(chat: OpenAIChat, way: str):
    usage = (await answered(chat, way, ChatRequest([QUESTION]))).usage
    assert usage.input_tokens > 0
    assert usage.output_tokens > 0
