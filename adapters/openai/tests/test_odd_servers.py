"""Servers that do almost what OpenAI does: understood where that is possible, told in their own words where not."""

from __future__ import annotations

import pytest

from portico import ChatReply, ChatRequest, Message
from portico.errors import ResponseInvalid, ServiceUnavailable
from portico_openai.chat import OpenAIChat

REQUEST = ChatRequest([Message.of("user", "Say hello.")])


async def answered(chat: OpenAIChat, way: str) -> ChatReply:
    if way == "complete":
        return await chat.complete(REQUEST)
    return [delta.reply async for delta in chat.stream(REQUEST)][-1]


@pytest.mark.parametrize("way", ["complete", "stream"])
async def test_a_page_where_a_reply_should_be_points_to_the_address(way, loopback, make_chat):
    loopback.will(loopback.whole(b"<html><title>Welcome to nginx!</title></html>", kind="text/html"))
    with pytest.raises(ResponseInvalid) as caught:
        await answered(make_chat(), way)
    assert str(caught.value).endswith("a page in HTML with the title “Welcome to nginx!”. Look at base_url.")


@pytest.mark.parametrize(
    "line",
    [
        b'event: error\ndata: {"message":"the slot is gone"}\n\n',
        b'event: error\ndata: {"error":{"message":"the slot is gone"}}\n\n',
        b'data: {"error":"the slot is gone"}\n\n',
    ],
    ids=["bare", "openai", "text"],
)
async def test_an_error_inside_of_a_stream_is_told_in_the_servers_words(line, loopback, make_chat):
    loopback.will(loopback.streamed(loopback.event({"content": "Half"}) + line))
    with pytest.raises(ServiceUnavailable, match=r"failed \(500\): the slot is gone\. Try again later\."):
        await answered(make_chat(), "stream")


async def test_a_choice_without_a_number_is_the_first(loopback, make_chat):
    choice = b'{"index":null,"delta":{"content":"Hi"},"finish_reason":"stop"}'
    loopback.will(loopback.streamed(b'data: {"choices":[' + choice + b"]}\n\n"))
    assert (await answered(make_chat(), "stream")).text == "Hi"


@pytest.mark.parametrize(("first", "second"), [("call_0", "call_0"), ("call_1", None), ("", ""), (None, "call_0")])
async def test_calls_have_identifiers_of_their_own_whatever_the_server_gives(first, second, loopback, make_chat):
    def piece(index: int, given: str | None, arguments: str) -> bytes:
        function = {"name": f"tool-{index}", "arguments": arguments}
        return loopback.event({"tool_calls": [{"index": index, "id": given, "function": function}]})

    loopback.will(
        loopback.streamed(
            piece(0, first, "{")
            + piece(1, second, "{")
            + piece(0, first, "}")
            + piece(1, second, "}")
            + loopback.event({}, "tool_calls")
        )
    )
    calls = (await answered(make_chat(), "stream")).tool_calls
    assert [(call.name, call.arguments) for call in calls] == [("tool-0", "{}"), ("tool-1", "{}")]
    assert len({call.id for call in calls}) == 2
