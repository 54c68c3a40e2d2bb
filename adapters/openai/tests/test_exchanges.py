"""What services answer, in their public formats, becomes one reply or one error, whole or streamed.

The files are written after the services' documentation and sources, not recorded; they are sent byte for byte.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.exchanges import check_pieces, made_by

from portico import ChatReply, ChatRequest, Citation, Message, Part, Reasoning, Text, ToolCall, Usage
from portico.errors import (
    AuthenticationFailed,
    ContentRefused,
    ContextOverflow,
    RateLimited,
    ResponseInvalid,
    ServiceError,
    ServiceUnavailable,
)

EXCHANGES = Path(__file__).parent / "exchanges"
REQUEST = ChatRequest([Message.of("user", "Say hello.")])
GPT = "gpt-4o-mini-2024-07-18"
THOUGHT = {
    "type": "thinking",
    "thinking": [{"type": "text", "text": "The user greets me. I greet back."}],
    "closed": True,
}
SUMMARY = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Noon or not?", "signature": "c2ln"}]}
STEPS = '{"steps":[{"explanation":"Subtract 7","output":"8x = -30"}],"final_answer":"x = -3.75"}'


def reply(model: str, finish: str, usage: Usage, *parts: Part) -> ChatReply:
    return ChatReply(Message("assistant", parts), finish, usage, model, "openai")


def searched(*members: Any) -> ChatReply:
    """Return a reply for which the service searched the web."""
    made = reply(*members)
    return replace(made, message=replace(made.message, untrusted=("the web, searched by openai",)))


REPLIES = {
    "openai-text": reply(GPT, "stop", Usage(19, 10), Text("Hello! How can I assist you today?")),
    "openai-length": reply(GPT, "length", Usage(1106, 64, 1024, 61), Text("Once upon a")),
    "openai-structured": reply(GPT, "stop", Usage(83, 28), Text(STEPS)),
    "openai-tools": reply(
        GPT,
        "tool_calls",
        Usage(120, 51),
        ToolCall("call_nKE9", "Clock-Now", '{"town":"Oslo"}'),
        ToolCall("call_pQ2x", "Clock-Now", '{"town":"Köln"}'),
        ToolCall("call_Zz01", "Dice-Roll", "{}"),
    ),
    "azure-text": reply("gpt-4o-2024-11-20", "stop", Usage(9, 4), Text("Hello there.")),
    "llamacpp-reasoning": reply(
        "Qwen3-4B-Q4_K_M.gguf",
        "stop",
        Usage(14, 22),
        Reasoning({"reasoning_content": "The user greets me. I greet back."}, "The user greets me. I greet back."),
        Text("Good morning!"),
    ),
    "ollama-tools": reply(
        "qwen3:8b",
        "tool_calls",
        Usage(151, 88),
        Reasoning({"reasoning": "I need the clock."}, "I need the clock."),
        ToolCall("call_z1w", "Clock-Now", '{"town":"Oslo"}'),
    ),
    # A call that was asked for by name ends with "stop".
    "vllm-tools": reply(
        "Qwen/Qwen3-8B", "tool_calls", Usage(170, 19), ToolCall("chatcmpl-tool-4c1", "Clock-Now", '{"town": "Oslo"}')
    ),
    "openrouter-reasoning": reply(
        "anthropic/claude-sonnet-4",
        "stop",
        Usage(40, 30, 12, 20, cost=0.0001),
        Reasoning({"reasoning": "Noon or not?"}, "Noon or not?"),
        Text("It is noon."),
    ),
    # The usage of a stream is under a name of Groq's.
    "groq-text": reply(
        "openai/gpt-oss-120b",
        "stop",
        Usage(80, 24, 64, 12),
        Reasoning({"reasoning": "A greeting."}, "A greeting."),
        Text("Hello there."),
    ),
    "openrouter-search": replace(
        searched(
            "openai/gpt-4.1-mini",
            "stop",
            Usage(1204, 32, cache_written_tokens=100, cost=0.0205),
            Text("The clock tower opens at noon [visitoslo.com](https://www.visitoslo.com/en/)."),
        ),
        citations=(Citation(1, "Visit Oslo", "https://www.visitoslo.com/en/", "The tower is open from noon to six."),),
    ),
    "openai-logprobs": reply(GPT, "stop", Usage(12, 2), Text("Yes.")),
    # The content is a list of parts, the thinking first.
    "mistral-thinking": reply(
        "magistral-medium-2509",
        "stop",
        Usage(9, 22),
        Reasoning({"content": [THOUGHT]}, "The user greets me. I greet back."),
        Text("Good morning!"),
    ),
    "databricks-reasoning": reply(
        "claude-sonnet-4", "stop", Usage(40, 30), Reasoning({"content": [SUMMARY]}, "Noon or not?"), Text("It is noon.")
    ),
    # Every call is number 0, and lines end with CRLF.
    "gemini-tools": reply(
        "gemini-2.5-flash",
        "tool_calls",
        Usage(60, 20),
        ToolCall("function-call-1", "Clock-Now", '{"town":"Oslo"}'),
        ToolCall("function-call-2", "Clock-Now", '{"town":"Rome"}'),
    ),
    # No id, no arguments, no usage, and no [DONE] is needed.
    "lmstudio-tools": reply("granite-3", "tool_calls", Usage(), ToolCall("call_0", "Dice-Roll", "{}")),
}


def files(folder: str) -> list[str]:
    return sorted(path.name for path in (EXCHANGES / folder).iterdir())


@pytest.mark.parametrize("name", [name for name in files("replies") if Path(name).stem in REPLIES])
async def test_a_reply_is_read(name, loopback, make_chat):
    body = (EXCHANGES / "replies" / name).read_bytes()
    expected = made_by(f"openai at 127.0.0.1:{loopback.port}", REPLIES[Path(name).stem])
    if name.endswith(".json"):
        loopback.will(loopback.whole(body))
        assert await make_chat().complete(REQUEST) == expected
        # A server that does not stream at all answers whole.
        deltas = [delta async for delta in make_chat().stream(REQUEST)]
    else:
        loopback.will(loopback.streamed(body))
        deltas = [delta async for delta in make_chat().stream(REQUEST)]
    check_pieces(deltas, expected)


@pytest.mark.parametrize("name", ["openai-logprobs.json", "openai-logprobs.sse"])
async def test_the_details_have_log_probabilities_and_the_service_tier(name, loopback, make_chat):
    body = (EXCHANGES / "replies" / name).read_bytes()
    loopback.will(loopback.whole(body) if name.endswith(".json") else loopback.streamed(body))
    deltas = [delta async for delta in make_chat().stream(REQUEST)]
    details = deltas[-1].reply.details
    assert details["service_tier"] == "priority"
    assert [(each["token"], each["logprob"]) for each in details["logprobs"]] == [("Yes", -0.01), (".", -0.2)]


@pytest.mark.parametrize(("service", "sent"), [("", True), ("openai at api.openai.com", False), ("anthropic", False)])
async def test_the_thinking_of_another_service_is_not_sent(service, sent, loopback, make_chat):
    thought = Reasoning({"reasoning_content": "Hm."}, "Hm.", service)
    loopback.will(loopback.whole(loopback.completion()))
    await make_chat().complete(ChatRequest([Message.of("assistant", thought, "Yes."), Message.of("user", "Sure?")]))
    assert ("reasoning_content" in loopback.visits[0].json["messages"][0]) is sent


@pytest.mark.parametrize("name", ["mistral-thinking", "databricks-reasoning"])
async def test_thinking_in_a_content_is_handed_back_as_it_came(name, loopback, make_chat):
    expected = REPLIES[name].message
    loopback.will(loopback.whole(loopback.completion()))
    await make_chat().complete(ChatRequest([*REQUEST.messages, expected, Message.of("user", "And now?")]))
    thought = THOUGHT if name.startswith("mistral") else SUMMARY
    sent = loopback.visits[0].json["messages"][1]
    assert sent == {"role": "assistant", "content": [thought, {"type": "text", "text": expected.text}]}


REFUSALS = {
    "openai-refusal": (ContentRefused, "I'm sorry, I cannot assist with that request."),
    "azure-filtered": (ContentRefused, "filtered its answer"),
}


@pytest.mark.parametrize("name", [name for name in files("replies") if Path(name).stem in REFUSALS])
async def test_a_refusal_is_raised_with_the_models_words(name, loopback, make_chat):
    body = (EXCHANGES / "replies" / name).read_bytes()
    kind, words = REFUSALS[Path(name).stem]
    chat = make_chat()
    loopback.will(loopback.whole(body) if name.endswith(".json") else loopback.streamed(body))
    with pytest.raises(kind) as caught:
        if name.endswith(".json"):
            await chat.complete(REQUEST)
        else:
            async for _ in chat.stream(REQUEST):
                pass
    assert type(caught.value) is kind
    assert words in str(caught.value)


ERRORS: dict[str, tuple[type[ServiceError], str]] = {
    "200-llamacpp-midway.sse": (ContextOverflow, "Context size has been exceeded"),
    "200-lmstudio-event.sse": (ContextOverflow, "greater than the context length"),
    "200-openrouter-midway.sse": (ServiceUnavailable, "Provider disconnected unexpectedly"),
    "200-openrouter-upstream.json": (ServiceUnavailable, "Provider returned error"),
    "200-vllm-midway.sse": (RateLimited, "too many requests"),
    "400-azure-filter.json": (ContentRefused, "filtered the request: The response was filtered"),
    "400-deepseek-image.json": (ServiceError, "no images with this model (400): Failed to deserialize"),
    "400-gemini-list.json": (ServiceError, "refused the request (400): Request contains an invalid argument"),
    "400-groq-tool.json": (ResponseInvalid, "details. It wrote: It is noon in Oslo"),
    "400-groq-image.json": (ServiceError, "no images with this model (400): messages[0].content must be"),
    "400-llamacpp-context.json": (ContextOverflow, "exceeds the available context size"),
    "400-llamacpp-old-context.json": (ContextOverflow, "enable context shift"),
    "400-lmstudio-context.json": (ContextOverflow, "context length of only 4096"),
    "400-lmstudio-image.json": (ServiceError, "no images with this model (400): Model does not support images"),
    "400-mistral-image.json": (ServiceError, "no images with this model (400): Image input is not enabled"),
    "400-ollama-context.json": (ContextOverflow, "input length exceeds"),
    "400-ollama-image.json": (ServiceError, "no images with this model (400): this model does not support image"),
    "400-ollama-tools.json": (ServiceError, "does not support tools"),
    "400-openai-context.json": (ContextOverflow, "resulted in 131023 tokens"),
    "400-openai-embeddings-context.json": (ContextOverflow, "however you requested 10028 tokens"),
    "400-openai-image-format.json": (ServiceError, "refused the request (400): You uploaded an unsupported image"),
    "400-openai-image.json": (ServiceError, "no images with this model (400): Invalid content type. image_url"),
    "400-openai-option.json": (ServiceError, "'temperature' does not support 0.2"),
    "400-openai-prompt.json": (ContentRefused, "flagged as potentially violating"),
    "400-openai-schema.json": (ServiceError, "'additionalProperties' is required"),
    "400-vllm-context.json": (ContextOverflow, "maximum context length is 4096"),
    "400-vllm-image.json": (ServiceError, "no images with this model (400): At most 0 image(s)"),
    "400-vllm-new-context.json": (ContextOverflow, "longer than the maximum model length of 4096"),
    "400-vllm-old-context.json": (ContextOverflow, "256 in the completion"),
    "401-azure-key.json": (AuthenticationFailed, "invalid subscription key"),
    "401-llamacpp-key.json": (AuthenticationFailed, "refused the key (401): Invalid API Key. Look at api_key."),
    "401-openai-key.json": (AuthenticationFailed, "Incorrect API key provided: ********"),
    "402-deepseek-balance.json": (ServiceError, "has no credit left for this key: Insufficient Balance"),
    "403-openai-region.json": (AuthenticationFailed, "Country, region, or territory not supported"),
    "403-openrouter-moderation.json": (ContentRefused, "your input was flagged"),
    "404-azure-deployment.json": (ServiceError, "has no model 'm-1'"),
    "404-ollama-model.json": (ServiceError, "try pulling it first. Correct model."),
    "404-openai-model.json": (ServiceError, "has no model 'm-1'"),
    "404-openai-path.json": (ServiceError, "base_url usually ends in /v1"),
    "404-openrouter-image.json": (ServiceError, "no images with this model (404): No endpoints found"),
    "404-vllm-model.json": (ServiceError, "has no model 'm-1'"),
    "413-proxy-text.json": (ContextOverflow, "request entity too large"),
    "422-deepseek-old-image.json": (ServiceError, "no images with this model (422): Failed to deserialize"),
    "422-mistral-field.json": (ServiceError, '"loc":["body","top_k"],"msg":"Extra inputs are not permitted"'),
    "422-fastapi.json": (ServiceError, '"loc":["body","messages"]'),
    "429-azure.json": (RateLimited, "retry after 7 seconds. Try again in 7 s."),
    "429-openai-quota.json": (RateLimited, "Waiting does not help"),
    "429-openai-rate.json": (RateLimited, "asks for fewer requests: Rate limit reached for gpt-4o-mini"),
    "500-llamacpp-batch.json": (ContextOverflow, "too large to process"),
    "500-llamacpp-image.json": (ServiceError, "no images with this model (500): image input is not supported - hint"),
    "500-openai.json": (ServiceUnavailable, "failed (500): The server had an error"),
    "502-nginx.html": (ServiceUnavailable, "failed (502): a page in HTML with the title “502 Bad Gateway”"),
    "503-llamacpp-loading.json": (ServiceUnavailable, "Loading model. Try again later."),
    "503-openai.json": (ServiceUnavailable, "currently overloaded"),
}


def test_every_error_has_its_expectation():
    assert files("errors") == sorted(ERRORS)
    assert {Path(name).stem for name in files("replies")} == REPLIES.keys() | REFUSALS.keys()


WAYS = [(name, way) for name in ERRORS for way in ("complete", "stream") if way == "stream" or name[-4:] != ".sse"]


@pytest.mark.parametrize(("name", "way"), WAYS)
async def test_an_error_is_mapped_and_says_who_and_what(name, way, loopback, make_chat):
    body = (EXCHANGES / "errors" / name).read_bytes()
    status = name[:3]
    if name.endswith(".sse"):
        loopback.will(loopback.streamed(body))
    else:
        kind = "text/html" if name.endswith(".html") else "application/json"
        wait = {"retry_after": "7"} if name.startswith("429-azure") else {}
        loopback.will(loopback.whole(body, status=f"{status} Whatever", kind=kind, **wait))
    chat = make_chat()
    expected, words = ERRORS[name]
    with pytest.raises(ServiceError) as caught:
        if way == "complete":
            await chat.complete(REQUEST)
        else:
            async for _ in chat.stream(REQUEST):
                pass
    said = str(caught.value)
    assert type(caught.value) is expected, said
    assert words in said
    assert said.startswith(f"Chat service 'openai' (m-1 at 127.0.0.1:{loopback.port}) ")
    assert loopback.key not in said + repr(caught.value.__cause__)
    if isinstance(caught.value, RateLimited):
        assert caught.value.retry_after == (7.0 if name == "429-azure.json" else None)
