"""Gemini's protocol as aimock speaks it, which was written without knowing of Portico."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.aimock import served_by_aimock

from portico import ChatReply, ChatRequest, Message, Reasoning, Text, Tool, ToolResult, Usage
from portico.errors import RateLimited
from portico_gemini.chat import GeminiChat
from portico_gemini.config import GeminiChatSettings

pytestmark = [pytest.mark.models, pytest.mark.timeout(500)]

CLOCK = Tool("Clock-Now", "Tells the time.", {"type": "object", "properties": {"town": {"type": "string"}}})
FIXTURES: list[dict[str, Any]] = [
    {
        "match": {"userMessage": "capital"},
        "response": {
            "content": "Oslo is the capital of Norway.",
            "reasoning": "The user asks about Norway.",
            "usage": {"prompt_tokens": 12, "completion_tokens": 5},
        },
    },
    {"match": {"toolName": "Clock-Now", "hasToolResult": True}, "response": {"content": "It is noon in both."}},
    {
        "match": {"toolName": "Clock-Now"},
        "response": {
            "toolCalls": [
                {"name": "Clock-Now", "arguments": {"town": "Oslo"}},
                {"name": "Clock-Now", "arguments": {"town": "Rome"}, "id": "call_9"},
            ]
        },
    },
    {
        "match": {"userMessage": "too much"},
        "response": {"error": {"message": "No quota.", "type": "RESOURCE_EXHAUSTED"}, "status": 429, "retryAfter": 7},
    },
]
WAYS = pytest.mark.parametrize("way", ["complete", "stream"])


@pytest.fixture(scope="module")
def aimock_url(tmp_path_factory: pytest.TempPathFactory, outer_environment: dict[str, str]) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("aimock")
    with served_by_aimock(FIXTURES, folder, outer_environment) as url:
        yield f"{url}/v1beta"


@pytest.fixture
async def chat(aimock_url: str) -> AsyncIterator[GeminiChat]:
    service = GeminiChat(GeminiChatSettings(model="gemini-2.5-flash", base_url=aimock_url, max_retries=0))
    yield service
    await service.aclose()


async def answered(chat: GeminiChat, way: str, request: ChatRequest) -> ChatReply:
    if way == "complete":
        return await chat.complete(request)
    deltas = [delta async for delta in chat.stream(request)]
    reply = deltas[-1].reply
    assert reply is not None
    assert "".join(delta.text for delta in deltas) == reply.text
    return reply


@WAYS
async def test_a_thought_and_a_text_are_read(chat: GeminiChat, way: str):
    reply = await answered(chat, way, ChatRequest([Message.of("user", "What is the capital of Norway?")]))
    thought, text = reply.message.content
    assert isinstance(thought, Reasoning)
    assert thought.summary == "The user asks about Norway."
    assert text == Text("Oslo is the capital of Norway.")
    assert (reply.finish, reply.usage.input_tokens, reply.usage.output_tokens) == ("stop", 12, 5)
    assert reply.usage != Usage()


@WAYS
async def test_calls_are_answered_and_the_model_goes_on(chat: GeminiChat, way: str):
    asked = Message.of("user", "What time is it in Oslo and in Rome?")
    reply = await answered(chat, way, ChatRequest([asked], tools=(CLOCK,)))
    assert [json.loads(call.arguments) for call in reply.tool_calls] == [{"town": "Oslo"}, {"town": "Rome"}]
    assert (reply.finish, reply.tool_calls[1].id) == ("tool_calls", "call_9")
    results = Message("tool", tuple(ToolResult(call.id, call.name, "noon") for call in reply.tool_calls))
    after = await answered(chat, way, ChatRequest([asked, reply.message, results], tools=(CLOCK,)))
    assert (after.text, after.tool_calls) == ("It is noon in both.", ())


@WAYS
async def test_a_limit_is_told_with_the_time_to_wait(chat: GeminiChat, way: str):
    with pytest.raises(RateLimited, match=r"No quota\. Try again in 7 s\.") as caught:
        await answered(chat, way, ChatRequest([Message.of("user", "That is too much.")]))
    assert caught.value.retry_after == 7
