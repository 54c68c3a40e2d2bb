"""What services answer at `/responses` becomes one reply or one error, whole or streamed, and goes back as it came.

The files are written after OpenAI's reference and the types of its SDK, and after the sources of llama.cpp and vLLM.
They are sent byte for byte.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.exchanges import check_pieces, made_by

from portico import ChatReply, ChatRequest, Citation, Message, Part, Reasoning, Text, ToolCall, ToolResult, Usage
from portico.errors import ContentRefused, ContextOverflow, RateLimited, ServiceError, ServiceUnavailable
from portico_openai._responses.replies import ResponseReader
from portico_wire.errors import Peer

PEER = Peer("Chat service", "openai", "OpenAI", "m-1", "https://example.org/v1", "example.org")
EXCHANGES = Path(__file__).parent / "exchanges" / "responses"
REQUEST = ChatRequest([Message.of("user", "Say hello.")])
GPT = "gpt-4.1-2025-04-14"
GPT5 = "gpt-5-2025-08-07"


def output_of(name: str) -> list[dict[str, Any]]:
    output: list[dict[str, Any]] = json.loads((EXCHANGES / "replies" / f"{name}.json").read_bytes())["output"]
    return output


def opaque(name: str, place: int, summary: str | None = None) -> Reasoning:
    """Return an item as it came."""
    return Reasoning(output_of(name)[place], summary)


def reply(model: str, finish: str, usage: Usage, *parts: Part) -> ChatReply:
    return ChatReply(Message("assistant", parts), finish, usage, model, "openai")


SUMMARY = "**Looking for the time**\n\nThe user asks for two towns.\n\n**Calling the clock**\n\nBoth at once."
OSLO = "https://www.visitoslo.com/en/?utm_source=openai"
WEATHER = "https://www.yr.no/en/oslo?utm_source=openai"
WEB = (
    f"The clock tower opens at noon. ([visitoslo.com]({OSLO})) It may rain. ([yr.no]({WEATHER})) "
    f"The tower closes at six. ([visitoslo.com]({OSLO}))"
)
SEARCHED = reply(
    GPT, "stop", Usage(328, 356), opaque("openai-web-search", 0), opaque("openai-web-search", 1), Text(WEB)
)
STEPS = '{"steps":[{"explanation":"Subtract 7","output":"8x = -30"}],"final_answer":"x = -3.75"}'

REPLIES = {
    "openai-text": reply(GPT, "stop", Usage(19, 10), Text("Hello! How can I assist you today?")),
    "openai-structured": reply(GPT, "stop", Usage(83, 28), Text(STEPS)),
    "openai-reasoning-tools": reply(
        GPT5,
        "tool_calls",
        Usage(1320, 151, 1024, 128, 64),
        opaque("openai-reasoning-tools", 0, SUMMARY),
        ToolCall("call_nKE9", "Clock-Now", '{"town":"Oslo"}'),
        ToolCall("call_pQ2x", "Clock-Now", '{"town":"Köln"}'),
    ),
    "openai-phases": reply(
        "gpt-5.3-codex",
        "tool_calls",
        Usage(88, 61, 0, 40),
        opaque("openai-phases", 0),
        Reasoning({"type": "message", "phase": "commentary"}),
        Text("I look at the clock."),
        opaque("openai-phases", 2, "Now the call."),
        ToolCall("call_Zz01", "Clock-Now", "{}"),
    ),
    "openai-web-search": replace(
        SEARCHED,
        message=replace(SEARCHED.message, untrusted=("the web, searched by openai",)),
        citations=(Citation(1, "Visit Oslo", OSLO, ""), Citation(2, "Weather in Oslo", WEATHER, "")),
    ),
    "openai-length": reply(GPT5, "length", Usage(1106, 64, 1024, 61), opaque("openai-length", 0), Text("Once upon a")),
    "openai-only-thought": reply(
        GPT5, "length", Usage(30, 64, 0, 64), opaque("openai-only-thought", 0, "Thinking and"), Text("")
    ),
    "openai-logprobs": reply(GPT, "stop", Usage(12, 3), Text("Yes.")),
    # Nothing is numbered, and what is done of items comes at the end.
    "llamacpp-tools": reply(
        "Qwen3-4B-Q4_K_M.gguf",
        "tool_calls",
        Usage(151, 88, 24),
        opaque("llamacpp-tools", 0, "I need the clock."),
        Text("I look."),
        ToolCall("fc_z1w", "Clock-Now", '{"town":"Oslo"}'),
    ),
    "vllm-reasoning": reply(
        "openai/gpt-oss-20b",
        "stop",
        Usage(70, 22, 16, 9),
        opaque("vllm-reasoning", 0, "The user greets me. I greet back."),
        Text("Good morning!"),
    ),
}
REFUSALS = {
    "openai-refusal": "refused to answer: I'm sorry, I cannot assist with that request.",
    "openai-filtered": "filtered its answer",
}


def files(folder: str) -> list[str]:
    return sorted(path.name for path in (EXCHANGES / folder).iterdir())


async def answers(name: str, loopback: Any, chat: Any) -> tuple[ChatReply | None, list[Any]]:
    """Send a file; return the whole reply, where it is one, and the pieces of the stream."""
    body = (EXCHANGES / name).read_bytes()
    if name.endswith(".sse"):
        loopback.will(loopback.streamed(body))
        return None, [delta async for delta in chat.stream(REQUEST)]
    loopback.will(loopback.whole(body))
    # A server that does not stream at all answers whole.
    return await chat.complete(REQUEST), [delta async for delta in chat.stream(REQUEST)]


@pytest.mark.parametrize("name", [name for name in files("replies") if Path(name).stem in REPLIES])
async def test_a_reply_is_read(name, loopback, make_chat):
    whole, deltas = await answers(f"replies/{name}", loopback, make_chat(api="responses"))
    expected = made_by(f"openai at 127.0.0.1:{loopback.port}", REPLIES[Path(name).stem])
    check_pieces(deltas, expected)
    assert whole in (None, expected)


@pytest.mark.parametrize("name", ["openai-logprobs.json", "openai-logprobs.sse"])
async def test_the_details_have_log_probabilities_and_the_service_tier(name, loopback, make_chat):
    _, deltas = await answers(f"replies/{name}", loopback, make_chat(api="responses"))
    details = deltas[-1].reply.details
    assert details["service_tier"] == "priority"
    assert [(each["token"], each["logprob"]) for each in details["logprobs"]] == [("Yes", -0.01), (".", -0.2)]
    assert [each["token"] for each in details["logprobs"][0]["top_logprobs"]] == ["Yes", "No"]


@pytest.mark.parametrize("name", [name for name in files("replies") if Path(name).stem in REFUSALS])
async def test_a_refusal_is_raised_with_the_models_words(name, loopback, make_chat):
    with pytest.raises(ContentRefused, match=REFUSALS[Path(name).stem]):
        await answers(f"replies/{name}", loopback, make_chat(api="responses"))


@pytest.mark.parametrize("name", [name for name in REPLIES if name.startswith("openai")])
async def test_a_reply_goes_back_as_the_items_that_came(name, loopback, make_chat):
    """What a service looks up or counts is left out, identifiers and probabilities, and reasoning without an answer."""
    output = [{**item} for item in output_of(name)]
    if output[-1]["type"] == "reasoning":
        output.pop()
    for item in output:
        item.pop("id")
        if item["type"] in ("message", "function_call"):
            item.pop("status")
        for part in item.get("content") or ():
            part["annotations"] = []
            part.pop("logprobs")
    loopback.will(loopback.whole((EXCHANGES / "replies" / f"{name}.json").read_bytes()))
    chat = make_chat(api="responses")
    said = (await chat.complete(REQUEST)).message
    results = [
        Message.of("tool", ToolResult(part.id, part.name, "4")) for part in said.content if isinstance(part, ToolCall)
    ]
    await chat.complete(ChatRequest([*REQUEST.messages, said, *results]))
    answers = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "4"}
        for item in output
        if item["type"] == "function_call"
    ]
    assert loopback.visits[1].json["input"] == [{"role": "user", "content": "Say hello."}, *output, *answers]


def test_an_output_is_read_in_its_order_and_nothing_of_it_twice():
    """Servers stream some of the items, or pieces without numbers, and write the whole output at the end."""
    thought: dict[str, Any] = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x"}
    said = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hello."}]}
    piece = {"type": "response.output_text.delta", "delta": "Hello."}
    done = {"type": "response.output_item.done", "item": said}
    last = {"type": "response.completed", "response": {"status": "completed", "output": [thought, said]}}
    for events in (
        [last],
        [piece, last],
        [{**piece, "output_index": 1, "item_id": "m"}, last],
        [{**piece, "output_index": 1}, {**done, "output_index": 1}, last],
        [{**done, "output_index": 1}, {**done, "item": thought, "output_index": 0}, last],
    ):
        reader = ResponseReader(PEER, "openai", "openai at example.org")
        deltas = [delta for event in events for delta in reader.add(json.dumps(event).encode())]
        assert "".join(delta.text for delta in deltas) == "Hello."
        assert reader.reply().message.content == (Reasoning(thought, None, "openai at example.org"), Text("Hello."))


def test_an_item_whose_type_is_no_word_is_handed_back():
    reader = ResponseReader(PEER, "openai", "openai at example.org")
    reader.read(json.dumps({"output": [{"type": ["odd"]}], "status": "completed"}).encode())
    assert reader.reply().text == ""


ERRORS: dict[str, tuple[type[ServiceError], str]] = {
    "200-error-event.sse": (ServiceUnavailable, "failed (500): The server had an error while processing your request"),
    "200-error-nested.sse": (RateLimited, "has no credit left for this key: You exceeded your current quota"),
    "200-failed-context.sse": (ContextOverflow, "Your input exceeds the context window"),
    "200-failed-image.sse": (ServiceError, "refused the request (400): The image URL could not be downloaded"),
    "200-failed-prompt.sse": (ContentRefused, "filtered the request: Invalid prompt"),
    "200-failed-rate.sse": (RateLimited, "asks for fewer requests: Rate limit reached for gpt-5"),
    "200-failed-server.json": (ServiceUnavailable, "failed (500): The model produced invalid content"),
    "200-failed-server.sse": (ServiceUnavailable, "You can retry your request"),
    "400-encrypted.json": (ServiceError, "Encrypted content is not supported with this model"),
    "400-moved.json": (ServiceError, "this parameter has moved to 'max_output_tokens'"),
    "400-no-output.json": (ServiceError, "No tool output found for function call call_nKE9"),
    "404-model.json": (ServiceError, "has no model 'm-1'"),
    "404-ollama-path.txt": (ServiceError, "404 page not found"),
    "500-image-llamacpp.json": (ServiceError, "takes text and no images with this model"),
}


def test_every_file_has_its_expectation():
    assert files("errors") == sorted(ERRORS)
    assert {Path(name).stem for name in files("replies")} == REPLIES.keys() | REFUSALS.keys()


@pytest.mark.parametrize("name", ERRORS)
async def test_an_error_is_mapped_and_says_who_and_what(name, loopback, make_chat):
    body = (EXCHANGES / "errors" / name).read_bytes()
    status = f"{name[:3]} Whatever"
    loopback.will(loopback.streamed(body) if name.endswith(".sse") else loopback.whole(body, status=status))
    chat = make_chat(api="responses")
    expected, words = ERRORS[name]
    for way in ("stream",) if name.endswith(".sse") else ("complete", "stream"):
        with pytest.raises(ServiceError) as caught:
            _ = [await chat.complete(REQUEST)] if way == "complete" else [delta async for delta in chat.stream(REQUEST)]
        assert type(caught.value) is expected, str(caught.value)
        assert words in str(caught.value)


def test_the_files_of_openai_are_of_its_sdks_form():
    from openai.types.responses import Response, ResponseStreamEvent
    from pydantic import TypeAdapter

    event = TypeAdapter(ResponseStreamEvent)
    for path in EXCHANGES.glob("replies/openai-*"):
        if path.suffix == ".json":
            Response.model_validate_json(path.read_bytes())
        else:
            for line in path.read_text("utf-8").splitlines():
                if line.startswith("data: "):
                    event.validate_json(line.removeprefix("data: "))
