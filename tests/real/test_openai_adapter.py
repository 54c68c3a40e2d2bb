"""adapters/openai against llama.cpp's own HTTP server: what only a real peer shows."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import numpy as np
import pytest

from portico import ChatRequest, Kernel, Message, ToolCall, ToolResult
from portico.errors import AuthenticationFailed, ContextOverflow, ServiceError
from portico.plugins import Secret
from portico_llamacpp.server import LlamaCppServer
from portico_openai.chat import OpenAIChat
from portico_openai.config import OpenAIChatSettings, OpenAIEmbeddingsSettings
from portico_openai.embeddings import OpenAIEmbeddings

CALL = ToolCall("call_1", "Clock-Now", '{"city": "Rome"}')


def ask(*messages: Message, **options: Any) -> ChatRequest:
    return ChatRequest(
        [Message.of("system", "You are a helpful assistant."), *messages], **{"temperature": 0, **options}
    )


LONG = ask(Message.of("user", "Tell me a very long story."), max_tokens=1500)


@pytest.fixture(params=["chat", "responses"])
async def openai_chat(request: pytest.FixtureRequest, connection: dict[str, Any]) -> AsyncIterator[OpenAIChat]:
    """Give the adapter, by each API in turn."""
    chat = OpenAIChat(OpenAIChatSettings(**connection, api=request.param))
    yield chat
    await chat.aclose()


def busy_slots(server: LlamaCppServer) -> int:
    request = urllib.request.Request(
        server.base_url.removesuffix("/v1") + "/slots", headers={"Authorization": f"Bearer {server.api_key.reveal()}"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return sum(slot["is_processing"] for slot in json.load(answer))


async def wait_for_slots(server: LlamaCppServer, busy: int) -> None:
    async with asyncio.timeout(60):
        while await asyncio.to_thread(busy_slots, server) != busy:
            await asyncio.sleep(0.05)


async def test_the_answer_to_a_tool_turn_uses_the_result(openai_chat: OpenAIChat) -> None:
    request = ask(
        Message.of("user", "What time is it in Rome?"),
        Message.of("assistant", CALL),
        Message.of("tool", ToolResult(CALL.id, CALL.name, "12:34")),
        max_tokens=40,
    )
    reply = await openai_chat.complete(request)
    assert "12:34" in reply.text
    assert reply.finish in ("stop", "length")
    turn = await Kernel().complete(request, chat=openai_chat)
    assert "12:34" in turn.value


async def test_a_stream_is_the_reply_with_its_usage(openai_chat: OpenAIChat) -> None:
    request = ask(Message.of("user", "Say good morning."), max_tokens=16)
    whole = await openai_chat.complete(request)
    deltas = [delta async for delta in openai_chat.stream(request)]
    streamed = deltas[-1].reply
    assert streamed is not None
    assert streamed.text == whole.text == "".join(delta.text for delta in deltas)
    assert streamed.usage.output_tokens == whole.usage.output_tokens > 0
    assert streamed.usage.input_tokens == whole.usage.input_tokens > 10


async def test_a_closed_stream_frees_the_servers_slot(server: LlamaCppServer, openai_chat: OpenAIChat) -> None:
    stream = openai_chat.stream(LONG)
    await anext(stream)
    await wait_for_slots(server, 1)
    await stream.aclose()
    await wait_for_slots(server, 0)


async def test_a_stream_whose_reader_is_cancelled_frees_the_servers_slot(
    server: LlamaCppServer, openai_chat: OpenAIChat
) -> None:
    # A call that is not streamed goes on there, to its last token: llama.cpp does not look whether anybody waits.
    async def read() -> None:
        async with aclosing(openai_chat.stream(LONG)) as stream:
            async for _ in stream:
                pass

    reading = asyncio.create_task(read())
    await wait_for_slots(server, 1)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await wait_for_slots(server, 0)


async def test_more_calls_than_slots_are_all_answered(openai_chat: OpenAIChat) -> None:
    requests = [ask(Message.of("user", f"Say the number {number}."), max_tokens=8) for number in range(12)]
    replies = await asyncio.gather(*(openai_chat.complete(request) for request in requests))
    assert all(reply.text.strip() for reply in replies)


async def test_a_wrong_key_is_an_authentication_failure(connection: dict[str, Any]) -> None:
    wrong = {**connection, "api_key": Secret("not-the-key")}
    chat, embeddings = OpenAIChat(OpenAIChatSettings(**wrong)), OpenAIEmbeddings(OpenAIEmbeddingsSettings(**wrong))
    try:
        with pytest.raises(AuthenticationFailed):
            await chat.complete(ask(Message.of("user", "Hello.")))
        with pytest.raises(AuthenticationFailed):
            await embeddings.embed(["Hello."])
    finally:
        await chat.aclose()
        await embeddings.aclose()


async def test_a_question_that_is_too_long_is_a_context_overflow(openai_chat: OpenAIChat) -> None:
    request = ask(Message.of("user", "word " * 3_000))
    with pytest.raises(ContextOverflow):
        await openai_chat.complete(request)
    with pytest.raises(ContextOverflow):
        _ = [delta async for delta in openai_chat.stream(request)]


# llama.cpp reads no schema at Responses.
@pytest.mark.parametrize("openai_chat", ["chat"], indirect=True)
async def test_a_schema_that_the_server_cannot_take_is_refused_in_words(openai_chat: OpenAIChat) -> None:
    with pytest.raises(ServiceError, match=r"(?i)schema"):
        await openai_chat.complete(ask(Message.of("user", "Hello."), response_schema={"$ref": "#/$defs/nothing"}))


async def test_embeddings_are_unit_vectors_in_order(connection: dict[str, Any]) -> None:
    texts = ["The station clock stopped at noon.", "", "Bread rises faster in a warm kitchen.", "Copper turns green."]
    embeddings = OpenAIEmbeddings(OpenAIEmbeddingsSettings(**connection))
    try:
        together = await embeddings.embed(texts)
        alone = [await embeddings.embed([text]) for text in texts]
    finally:
        await embeddings.aclose()
    assert (together.rows, together.dimensions) == (4, 576)
    rows = np.asarray(together.buffer).reshape(4, 576)
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 0, 1, 1], abs=1e-4)
    for row, single in zip(rows, alone, strict=True):
        assert np.asarray(single.buffer) == pytest.approx(row, abs=1e-4)
    assert rows[0] @ rows[2] < 0.99
    assert embeddings.usage.input_tokens > 20
