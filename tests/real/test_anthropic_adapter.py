"""adapters/anthropic against llama.cpp's own HTTP server: what only a real peer shows."""

from __future__ import annotations

from typing import Any

import pytest

from portico import ChatRequest, Kernel, Message, ToolCall, ToolResult
from portico.errors import AuthenticationFailed, ContextOverflow
from portico.plugins import Secret
from portico_anthropic.chat import AnthropicChat
from portico_anthropic.config import AnthropicChatSettings

CALL = ToolCall("call_1", "Clock-Now", '{"city": "Rome"}')


@pytest.fixture
async def chat(connection: dict[str, Any]) -> Any:
    service = AnthropicChat(AnthropicChatSettings(**connection, response_schema=False, strict=False))
    yield service
    await service.aclose()


async def test_the_answer_to_a_tool_turn_uses_the_result(chat: AnthropicChat) -> None:
    request = ChatRequest(
        [
            Message.of("system", "You are a helpful assistant."),
            Message.of("user", "What time is it in Rome?"),
            Message.of("assistant", CALL),
            Message.of("tool", ToolResult(CALL.id, CALL.name, "12:34")),
        ],
        temperature=0,
        max_tokens=40,
    )
    assert "12:34" in (await chat.complete(request)).text
    assert "12:34" in (await Kernel().complete(request, chat=chat)).value


async def test_a_reply_ends_at_a_stop_sequence_and_at_its_limit(chat: AnthropicChat) -> None:
    story = [Message.of("user", "Tell me a very long story.")]
    for way in ("complete", "stream"):
        for options, finish in (({"stop": (" ",), "max_tokens": 40}, "stop"), ({"max_tokens": 3}, "length")):
            request = ChatRequest(story, temperature=0, **options)
            if way == "complete":
                reply = await chat.complete(request)
            else:
                *_, last = [delta async for delta in chat.stream(request)]
                reply = last.reply
            assert reply.finish == finish
            assert " " not in reply.text or finish == "length"


async def test_a_wrong_key_and_a_conversation_that_is_too_long_are_told(chat, connection: dict[str, Any]) -> None:
    stranger = AnthropicChat(AnthropicChatSettings(**{**connection, "api_key": Secret("wrong")}))
    with pytest.raises(AuthenticationFailed, match="Look at api_key"):
        await stranger.complete(ChatRequest([Message.of("user", "Hello.")]))
    await stranger.aclose()
    long = ChatRequest([Message.of("user", "word " * 3_000)])
    for call in (chat.complete(long), anext(chat.stream(long))):
        with pytest.raises(ContextOverflow):
            await call
