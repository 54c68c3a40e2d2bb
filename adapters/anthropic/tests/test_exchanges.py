"""Recorded forms of replies and errors, byte for byte, of Anthropic, Bedrock, Vertex and llama.cpp."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from portico import (
    ChatReply,
    ChatRequest,
    Citation,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolCallDelta,
    ToolResult,
    Usage,
)
from portico.errors import (
    AuthenticationFailed,
    ContentRefused,
    ContextOverflow,
    RateLimited,
    ServiceError,
    ServiceUnavailable,
)
from portico_anthropic._replies import MessageReader
from portico_anthropic.config import AnthropicChatSettings
from portico_wire.errors import Peer

PEER = Peer("Chat service", "anthropic", "Anthropic", "m-1", "https://example.org", "example.org")
EXCHANGES = Path(__file__).parent / "exchanges"
REQUEST = ChatRequest([Message.of("user", "Say hello.")])
CLAUDE = "claude-sonnet-5-5"
SIGNATURE = "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds+q1J0f9w=="
THOUGHT = {"type": "thinking", "thinking": "The user greets me. I greet back.", "signature": SIGNATURE}
REDACTED = {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIwxtE3rAFBa8cr3qpP"}
STEPS = '{"steps":[{"explanation":"Subtract 7","output":"8x = -30"}],"final_answer":"x = -3.75"}'
OSLO = ToolCall("toolu_01D7FLrfh4GYq7yT1ULFeyMV", "Clock-Now", '{"town":"Oslo"}')
WIKIPEDIA = ("Claude Shannon - Wikipedia", "https://en.wikipedia.org/wiki/Claude_Shannon")
BRITANNICA = ("Claude Shannon | Britannica", "https://www.britannica.com/biography/Claude-Shannon")
CITATIONS = (
    Citation(1, *BRITANNICA, "Claude Shannon, in full Claude Elwood Shannon"),
    Citation(2, *WIKIPEDIA, "Claude Elwood Shannon (April 30, 1916 - February 24, 2001)"),
    Citation(1, *BRITANNICA, "died in Medford, Massachusetts"),
)


def reply(finish: str, usage: Usage, *parts: Part, model: str = CLAUDE) -> ChatReply:
    return ChatReply(Message("assistant", parts), finish, usage, model, "anthropic")


def thought(data: dict[str, str]) -> Reasoning:
    return Reasoning(data, data.get("thinking") or None)


REPLIES = {
    "text": reply("stop", Usage(12, 11), Text("Hello! How can I help you today?")),
    # What was read from the cache and what was written to it count as input.
    "length": reply("length", Usage(2054, 3, 1800, 0, 248), Text("Once upon a")),
    "stop-sequence": reply("stop", Usage(15, 6), Text("One, two, ")),
    "context-window": reply("length", Usage(199_990, 10), Text("And so on")),
    "empty": reply("stop", Usage(40, 3), Text("")),
    "structured": reply("stop", Usage(230, 36), Text(STEPS)),
    "tools": reply(
        "tool_calls",
        Usage(472, 89),
        Text("I look at the clocks."),
        OSLO,
        ToolCall("toolu_01A09q90qw90lq917835lq9", "Clock-Now", '{"town":"Köln"}'),
        ToolCall("toolu_01T1x1fJ34qAmk2tNTrN7Up6", "Dice-Roll", "{}"),
    ),
    "thinking": reply("stop", Usage(14, 42, 0, 31), thought(THOUGHT), thought(REDACTED), Text("Good morning!")),
    "thinking-tools": reply("tool_calls", Usage(480, 60, 0, 20), thought({**THOUGHT, "thinking": ""}), OSLO),
    "llamacpp": reply("stop", Usage(33, 2, 32), Text("B"), model="SmolLM2-135M-Instruct.Q4_1"),
}
SEARCHES = {"web-search", "web-search-failed", "paused", "paused-rest"}
REFUSALS = {"refusal": "This request appears to seek help with malware", "refusal-bare": "refused to answer."}


def files(folder: str) -> list[str]:
    return sorted(path.name for path in (EXCHANGES / folder).iterdir())


def exchange(loopback: Any, name: str) -> bytes:
    """Return the answer that the file of a reply is."""
    body = (EXCHANGES / "replies" / name).read_bytes()
    return loopback.streamed(body) if name.endswith(".sse") else loopback.whole(body)


async def run(chat: Any, request: ChatRequest, way: str) -> tuple[ChatReply, list[Any]]:
    if way == "json":
        return await chat.complete(request), []
    deltas = [delta async for delta in chat.stream(request)]
    assert [delta for delta in deltas[:-1] if delta.reply] == []
    return deltas[-1].reply, deltas


def check_pieces(deltas: list[Any], whole: ChatReply) -> None:
    """Hold the pieces of a stream to its reply."""
    assert "".join(delta.text for delta in deltas) == whole.text
    thoughts = [part.summary or "" for part in whole.message.content if isinstance(part, Reasoning)]
    assert "".join(delta.reasoning for delta in deltas) == "".join(thoughts)
    pieces: dict[int, list[ToolCallDelta]] = {}
    for delta in deltas:
        if delta.tool_call:
            pieces.setdefault(delta.tool_call.index, []).append(delta.tool_call)
    made = [ToolCall(some[0].id, some[0].name, "".join(each.arguments for each in some)) for some in pieces.values()]
    assert tuple(made) == whole.tool_calls


def made_at(loopback: Any, reply: ChatReply) -> ChatReply:
    """Return a reply whose reasoning says that the service on loopback made it."""
    maker = f"anthropic at 127.0.0.1:{loopback.port}"
    parts = (replace(part, service=maker) if isinstance(part, Reasoning) else part for part in reply.message.content)
    return replace(reply, message=replace(reply.message, content=tuple(parts)))


@pytest.mark.parametrize("name", [name for name in files("replies") if Path(name).stem in REPLIES])
async def test_a_reply_is_read(name, loopback, make_chat):
    expected = made_at(loopback, REPLIES[Path(name).stem])
    loopback.will(exchange(loopback, name))
    if name.endswith(".json"):
        assert await make_chat().complete(REQUEST) == expected
    # A server that does not stream at all answers whole.
    streamed, deltas = await run(make_chat(), REQUEST, "sse")
    assert streamed == expected
    check_pieces(deltas, expected)


WAYS = pytest.mark.parametrize("way", ["json", "sse"])


@WAYS
@pytest.mark.parametrize("name", ["text", "thinking", "thinking-tools", "tools", "web-search", "web-search-failed"])
async def test_a_reply_goes_back_as_it_came(name, way, loopback, make_chat):
    """Thinking, searches and citations too, in their places: the service takes its own words no other way."""
    recorded = EXCHANGES / "replies" / f"{name}.{way}"
    chat = make_chat()
    loopback.will(exchange(loopback, recorded.name if recorded.exists() else f"{name}.json"))
    got, _ = await run(chat, REQUEST, way)
    results = [ToolResult(call.id, call.name, "noon") for call in got.message.content if isinstance(call, ToolCall)]
    loopback.will(loopback.whole(loopback.message()))
    await chat.complete(ChatRequest([*REQUEST.messages, got.message, Message.of("user", *results, "And now?")]))
    (said,) = [each["content"] for each in loopback.visits[0].json["messages"] if each["role"] == "assistant"]
    content = json.loads((EXCHANGES / "replies" / f"{name}.json").read_bytes())["content"]
    calls = [block for block in content if block["type"] == "tool_use"]
    for call in calls:
        assert call.pop("caller") == {"type": "direct"}
    assert said == content


@WAYS
async def test_a_search_of_the_service_is_cited(way, loopback, make_chat):
    loopback.will(exchange(loopback, f"web-search.{way}"))
    got, _ = await run(make_chat(web_search=True), REQUEST, way)
    words = "Claude Shannon was born on April 30, 1916, in Petoskey. He died in Medford."
    assert got.text == f"I'll search for when Claude Shannon was born.{words}"
    assert got.citations == CITATIONS
    assert got.message.untrusted == ("the web, searched by anthropic",)
    assert (got.finish, got.usage) == ("stop", Usage(6039, 931))


@WAYS
async def test_a_turn_that_the_service_pauses_is_continued(way, loopback, make_chat):
    loopback.will(*(exchange(loopback, f"{name}.{way}") for name in ("paused", "paused-rest")))
    got, deltas = await run(make_chat(web_search=True), REQUEST, way)
    loopback.will(exchange(loopback, f"web-search.{way}"))
    at_once, _ = await run(make_chat(web_search=True), REQUEST, way)
    assert replace(got, usage=Usage()) == replace(at_once, usage=Usage())
    assert got.usage == Usage(2679 + 5800, 80 + 100)
    if deltas:
        check_pieces(deltas, got)


async def test_what_has_come_before_a_pause_is_sent_back_as_it_came(loopback, make_chat):
    loopback.will(*(exchange(loopback, f"{name}.json") for name in ("paused", "paused-rest")))
    await make_chat(web_search=True).complete(REQUEST)
    first, second = (visit.json for visit in loopback.visits)
    said = json.loads((EXCHANGES / "replies" / "paused.json").read_bytes())["content"]
    assert second == {**first, "messages": [*first["messages"], {"role": "assistant", "content": said}]}


@pytest.mark.parametrize("block", [{"kind": "text"}, {"type": 5}, {"type": ["text"]}, {"type": "citations"}], ids=repr)
async def test_what_is_no_block_does_not_go_back_after_a_pause(block, loopback, make_chat):
    paused = json.loads((EXCHANGES / "replies" / "paused.json").read_bytes())
    damaged = paused | {"content": [*paused["content"], block]}
    loopback.will(loopback.whole(json.dumps(damaged).encode()), exchange(loopback, "paused-rest.json"))
    await make_chat(web_search=True).complete(REQUEST)
    assert loopback.visits[1].json["messages"][-1]["content"] == paused["content"]


@WAYS
async def test_a_service_that_only_pauses_is_not_asked_for_ever(way, loopback, make_chat):
    loopback.will(exchange(loopback, f"paused.{way}"))
    got, _ = await run(make_chat(web_search=True), REQUEST, way)
    assert got.finish == "length"
    assert len(loopback.visits) == 9


@pytest.mark.parametrize("name", [name for name in files("replies") if Path(name).stem in REFUSALS])
async def test_a_refusal_is_raised_with_its_reason(name, loopback, make_chat):
    loopback.will(exchange(loopback, name))
    with pytest.raises(ContentRefused) as caught:
        await run(make_chat(), REQUEST, name[-4:].lstrip("."))
    assert REFUSALS[Path(name).stem] in str(caught.value)


def test_a_stream_with_nulls_and_pieces_of_other_blocks_is_read():
    start = {"type": "content_block_start", "index": 0}
    piece = {"type": "content_block_delta", "index": 0}
    events = [
        {**start, "content_block": {"type": "thinking", "thinking": "", "signature": None}},
        {**piece, "delta": {"type": "thinking_delta", "thinking": "Hm."}},
        {**piece, "delta": {"type": "signature_delta", "signature": "c2ln"}},
        {**start, "index": 1, "content_block": {"type": "text", "text": None, "citations": 1}},
        {**piece, "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a": 1}'}},
        {**piece, "index": 1, "delta": {"type": "text_delta", "text": "Hello."}},
        {**piece, "index": 1, "delta": {"type": "unheard_of_delta", "text": None}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": None},
        {"type": "message_stop"},
    ]
    reader = MessageReader(PEER, "anthropic", "anthropic at example.org")
    deltas = [delta for event in events for delta in reader.add(json.dumps(event).encode())]
    whole = reader.reply()
    check_pieces(deltas, whole)
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    assert whole.message.content == (Reasoning(thought, "Hm.", "anthropic at example.org"), Text("Hello."))


async def test_tokens_that_are_kept_for_an_hour_cost_what_that_costs(loopback, make_chat, monkeypatch):
    monkeypatch.setattr(AnthropicChatSettings, "address", "https://api.anthropic.com")
    usage = {"input_tokens": 0, "cache_creation_input_tokens": 1_000, "output_tokens": 0}
    loopback.will(loopback.whole(loopback.message(model="claude-haiku-4-5", usage=usage)))
    costs = [(await make_chat(cache=kept).complete(REQUEST)).usage.cost for kept in ("5m", "1h")]
    assert costs[1] / costs[0] == pytest.approx(2 / 1.25)


ERRORS: dict[str, tuple[type[ServiceError], str]] = {
    "200-api-midway.sse": (ServiceUnavailable, "Internal server error"),
    "200-overloaded-midway.sse": (ServiceUnavailable, "Overloaded. Try again later."),
    "200-rate-midway.sse": (RateLimited, "Number of requests has exceeded your rate limit"),
    "200-too-long-midway.sse": (ContextOverflow, "prompt is too long: 215019 tokens > 200000 maximum"),
    "400-bedrock-too-long.json": (ContextOverflow, "Input is too long for requested model"),
    "400-context-limit.json": (ContextOverflow, "decrease input length or `max_tokens`"),
    "400-credit.json": (ServiceError, "has no credit left for this key: Your credit balance is too low"),
    "400-llamacpp-context.json": (ContextOverflow, "exceeds the available context size"),
    "400-prompt-too-long.json": (ContextOverflow, "prompt is too long: 215019 tokens"),
    "400-schema.json": (ServiceError, "must be explicitly set to false"),
    "400-temperature.json": (ServiceError, "`temperature` is deprecated for this model"),
    "401-key.json": (AuthenticationFailed, "refused the key (401): invalid x-api-key. Look at api_key."),
    "402-billing.json": (ServiceError, "Waiting does not help: add credit"),
    "403-bedrock-model.json": (AuthenticationFailed, "You don't have access to the model"),
    "403-permission.json": (AuthenticationFailed, "does not have permission"),
    "404-model.json": (ServiceError, "has no model 'm-1'"),
    "404-path.json": (ServiceError, "base_url"),
    "404-vertex-model.json": (ServiceError, "has no model 'm-1'"),
    "413-too-large.json": (ContextOverflow, "Request exceeds the maximum size"),
    "429-bedrock.json": (RateLimited, "Too many tokens, please wait"),
    "429-rate.json": (RateLimited, "Try again in 7 s."),
    "429-spend.json": (RateLimited, "Waiting does not help"),
    "429-vertex.json": (RateLimited, "Quota exceeded"),
    "500-api.json": (ServiceUnavailable, "failed (500): Internal server error"),
    "504-timeout.json": (ServiceUnavailable, "failed (504): Request timed out"),
    "529-overloaded.json": (ServiceUnavailable, "failed (529): Overloaded"),
}


def test_every_exchange_has_its_expectation():
    assert files("errors") == sorted(ERRORS)
    assert {Path(name).stem for name in files("replies")} == REPLIES.keys() | SEARCHES | REFUSALS.keys()


@pytest.mark.parametrize(
    ("name", "way"), [(name, way) for name in ERRORS for way in ("json", "sse") if way == "sse" or name[-4:] != ".sse"]
)
async def test_an_error_is_mapped_and_says_who_and_what(name, way, loopback, make_chat):
    body = (EXCHANGES / "errors" / name).read_bytes()
    if name.endswith(".sse"):
        loopback.will(loopback.streamed(body))
    else:
        wait = {"retry_after": "7"} if name == "429-rate.json" else {}
        loopback.will(loopback.whole(body, status=f"{name[:3]} Whatever", **wait))
    expected, words = ERRORS[name]
    with pytest.raises(ServiceError) as caught:
        await run(make_chat(), REQUEST, way)
    said = str(caught.value)
    assert type(caught.value) is expected, said
    assert words in said
    assert said.startswith(f"Chat service 'anthropic' (m-1 at 127.0.0.1:{loopback.port}) ")
    if isinstance(caught.value, RateLimited):
        assert caught.value.retry_after == (7.0 if name == "429-rate.json" else None)


async def test_a_missing_key_is_what_is_blamed(loopback, make_chat):
    loopback.will(loopback.whole((EXCHANGES / "errors" / "401-key.json").read_bytes(), status="401 Unauthorized"))
    with pytest.raises(AuthenticationFailed, match=r"No api_key is set\."):
        await make_chat(api_key=None).complete(REQUEST)
