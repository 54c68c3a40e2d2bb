"""aimock, written without knowing of Portico, speaks the form of each service; each adapter understands it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tests.support.aimock import served_by_aimock

from portico import ChatReply, ChatRequest, Message, Reasoning, Tool, ToolResult
from portico.errors import RateLimited
from portico.plugins import Secret
from portico.ports import ChatService
from portico_anthropic.chat import AnthropicChat
from portico_anthropic.config import AnthropicChatSettings
from portico_gemini.chat import GeminiChat
from portico_gemini.config import GeminiChatSettings
from portico_openai.chat import OpenAIChat
from portico_openai.config import OpenAIChatSettings

CLOCK = Tool("Clock-Now", "Tells the time.", {"type": "object", "properties": {"town": {"type": "string"}}})
TOWNS = ("Oslo", "Köln")
THOUGHT = "The user greets me, so I greet back."
FIXTURES: list[dict[str, Any]] = [
    {
        "match": {"userMessage": "Greet me."},
        "response": {
            "content": "Good morning! It is a fine day in Köln.",
            "reasoning": THOUGHT,
            "reasoningSignature": "c2lnbmF0dXJl",
            "usage": {"prompt_tokens": 12, "completion_tokens": 5},
        },
    },
    {
        "match": {"userMessage": "What time is it?", "hasToolResult": False},
        "response": {"toolCalls": [{"name": "Clock-Now", "arguments": {"town": town}} for town in TOWNS]},
    },
    {"match": {"userMessage": "What time is it?", "hasToolResult": True}, "response": {"content": "Noon in both."}},
    {
        "match": {"userMessage": "Fail."},
        "response": {"error": {"message": "Slow down.", "type": "rate_limit_error"}, "status": 429, "retryAfter": 7},
    },
]
WAYS = pytest.mark.parametrize("way", ["complete", "stream"])


@pytest.fixture(scope="module")
def aimock(tmp_path_factory: pytest.TempPathFactory, outer_environment: dict[str, str]) -> Iterator[str]:
    with served_by_aimock(FIXTURES, tmp_path_factory.mktemp("aimock"), outer_environment) as address:
        yield address


def made(service: str, address: str) -> Any:
    common: dict[str, Any] = {"api_key": Secret("k"), "max_retries": 0}
    match service:
        case "anthropic":
            return AnthropicChat(
                AnthropicChatSettings(model="claude-sonnet-4-5", base_url=address, thinking="budget", **common)
            )
        case "gemini":
            return GeminiChat(GeminiChatSettings(model="gemini-2.5-flash", base_url=f"{address}/v1beta", **common))
    api: Any = service
    return OpenAIChat(OpenAIChatSettings(model="gpt-5", base_url=f"{address}/v1", api=api, **common))


@pytest.fixture(params=["chat", "responses", "anthropic", "gemini"])
async def chat(request: pytest.FixtureRequest, aimock: str) -> AsyncIterator[ChatService]:
    service = made(request.param, aimock)
    yield service
    await service.aclose()


async def answer(chat: ChatService, way: str, *messages: Message) -> ChatReply:
    request = ChatRequest(messages, tools=(CLOCK,))
    if way == "complete":
        return await chat.complete(request)
    *_, last = [delta async for delta in chat.stream(request)]
    assert last.reply is not None
    return last.reply


@WAYS
async def test_words_and_the_thinking_before_them(chat: ChatService, way: str) -> None:
    reply = await answer(chat, way, Message.of("user", "Greet me."))
    assert reply.text == "Good morning! It is a fine day in Köln."
    assert [part.summary for part in reply.message.content if isinstance(part, Reasoning)] == [THOUGHT]
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (12, 5)


@WAYS
async def test_calls_and_what_is_said_after_their_results(chat: ChatService, way: str) -> None:
    asked = Message.of("user", "What time is it?")
    reply = await answer(chat, way, asked)
    assert reply.finish == "tool_calls"
    assert [call.arguments.replace(" ", "") for call in reply.tool_calls] == [f'{{"town":"{town}"}}' for town in TOWNS]
    results = [ToolResult(call.id, call.name, "noon") for call in reply.tool_calls]
    assert (await answer(chat, way, asked, reply.message, Message.of("tool", *results))).text == "Noon in both."


@WAYS
async def test_a_failure(chat: ChatService, way: str) -> None:
    with pytest.raises(RateLimited, match="Slow down"):
        await answer(chat, way, Message.of("user", "Fail."))
