"""What Gemini answers, in its public format, becomes one reply or one error, whole or streamed.

The files are written after Google's reference, its SDK and what users report of it, not recorded; they are sent byte
for byte.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from portico import ChatReply, ChatRequest, Citation, Message, Part, Reasoning, Text, Tool, ToolCall, ToolResult, Usage
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
FLASH, NEW = "gemini-2.5-flash", "gemini-3.8-flash"
SIGNATURE = "CpUBAXLI2nzD2uv1H5Qm0a7m8T2b4S6fYx9Q=="
OTHER = "EjQKMgFyyNp8p1v0cD4x8fQm2nZr5K9tWb3LhUeGs7oRy1="
MADE = "an identifier of ours"
STEPS = '{"steps":[{"explanation":"Subtract 7","output":"8x = -30"}],"final_answer":"x = -3.75"}'
REDIRECT = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/AUZIYQ"
FOUND = {
    "untrusted": ("the web, searched by gemini",),
    "citations": (
        Citation(1, "reuters.com", f"{REDIRECT}F2", "The policy rate is 4.0 %."),
        Citation(2, "norges-bank.no", f"{REDIRECT}E1", "It was lowered in September."),
        Citation(1, "reuters.com", f"{REDIRECT}F2", "It was lowered in September."),
    ),
}


def reply(model: str, finish: str, usage: Usage, *parts: Part, untrusted: Any = None, citations: Any = ()) -> ChatReply:
    return ChatReply(Message("assistant", parts, None, untrusted), finish, usage, model, "gemini", citations)


def thought(text: str, **signature: str) -> Reasoning:
    return Reasoning({"text": text, "thought": True, **signature}, text)


def signed(signature: str) -> Reasoning:
    return Reasoning({"thoughtSignature": signature})


SEARCHED = (
    Reasoning(
        {
            "toolCall": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["noon oslo"]}},
            "thoughtSignature": SIGNATURE,
        }
    ),
    Reasoning(
        {
            "toolResponse": {
                "id": "t1",
                "toolType": "GOOGLE_SEARCH_WEB",
                "response": {"search_suggestions": "<div>…</div>"},
            },
            "thoughtSignature": OTHER,
        }
    ),
    signed(SIGNATURE),
    ToolCall("f7", "Clock-Now", '{"town":"Oslo"}'),
)
REPLIES = {
    "text": reply(FLASH, "stop", Usage(4, 9), Text("Hello! How can I help you today?")),
    # The tokens come after the end of the text.
    "text-late-usage": reply(FLASH, "stop", Usage(4, 9), Text("Hello! How can I help you today?")),
    "length": reply(FLASH, "length", Usage(1106, 64, 1024, 61), Text("Once upon a")),
    "length-in-thought": reply(FLASH, "length", Usage(8, 64, 0, 64), Text("")),
    "empty": reply(FLASH, "stop", Usage(8, 0), Text("")),
    "structured": reply(FLASH, "stop", Usage(83, 28), Text(STEPS)),
    "tools": reply(
        FLASH,
        "tool_calls",
        Usage(120, 51),
        ToolCall(MADE, "Clock-Now", '{"town":"Oslo"}'),
        ToolCall(MADE, "Clock-Now", '{"town":"Köln"}'),
        ToolCall(MADE, "Dice-Roll", "{}"),
    ),
    "signed-tools": reply(
        NEW,
        "tool_calls",
        Usage(140, 134, 0, 96),
        thought("**Looking at the clocks**\n\nTwo towns."),
        signed(SIGNATURE),
        ToolCall("c8f1kq2s", "Clock-Now", '{"town":"Oslo","at":[1,{"half":0.5}]}'),
        ToolCall("w3n0xz7d", "Clock-Now", '{"town":"Rome"}'),
    ),
    "signed-text": reply(NEW, "stop", Usage(30, 45, 0, 40), signed(OTHER), Text("It is noon.")),
    "signed-end": reply(
        NEW, "stop", Usage(30, 45, 0, 40), Text("It is noon."), Reasoning({"text": "", "thoughtSignature": OTHER})
    ),
    "signed-thought": reply(
        NEW, "stop", Usage(30, 45, 0, 40), thought("Noon?", thoughtSignature=SIGNATURE), Text("It is noon.")
    ),
    "code": reply(
        FLASH,
        "stop",
        Usage(45, 30),
        Reasoning({"executableCode": {"language": "PYTHON", "code": "print(6*7)\n"}}),
        Reasoning({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n"}}),
        Text("It is 42."),
    ),
    "search": reply(
        FLASH, "stop", Usage(216, 48, 0, 30), Text("The policy rate is 4.0 %. It was lowered in September."), **FOUND
    ),
    "search-unused": reply(FLASH, "stop", Usage(11, 2), Text("Hello.")),
    "search-and-tools": reply(
        NEW, "tool_calls", Usage(290, 80, 0, 50), *SEARCHED, untrusted=("the web, searched by gemini",)
    ),
    "two-candidates": reply(FLASH, "stop", Usage(5, 8), Text("First.")),
}


def files(folder: str) -> list[str]:
    return sorted(path.name for path in (EXCHANGES / folder).iterdir())


def answer(loopback: Any, name: str) -> bytes:
    body = (EXCHANGES / "replies" / name).read_bytes()
    return loopback.whole(body) if name.endswith(".json") else loopback.streamed(body)


def made_at(loopback: Any, reply: ChatReply) -> ChatReply:
    """Return a reply whose reasoning says that the service on loopback made it."""
    maker = f"gemini at 127.0.0.1:{loopback.port}"
    parts = (replace(part, service=maker) if isinstance(part, Reasoning) else part for part in reply.message.content)
    return replace(reply, message=replace(reply.message, content=tuple(parts)))


def without_made(reply: ChatReply) -> ChatReply:
    """Return the reply with one word for all identifiers of ours, which differ."""
    ids = [call.id for call in reply.tool_calls]
    assert len(set(ids)) == len(ids)
    parts = tuple(
        replace(part, id=MADE) if isinstance(part, ToolCall) and part.id.startswith("portico_") else part
        for part in reply.message.content
    )
    return replace(reply, message=replace(reply.message, content=parts))


@pytest.mark.parametrize("name", [name for name in files("replies") if Path(name).stem in REPLIES])
async def test_a_reply_is_read(name, loopback, make_chat):
    expected = made_at(loopback, REPLIES[Path(name).stem])
    loopback.will(answer(loopback, name))
    if name.endswith(".json"):
        assert without_made(await make_chat().complete(REQUEST)) == expected
    # A server that does not stream at all answers whole.
    deltas = [delta async for delta in make_chat().stream(REQUEST)]
    whole = deltas[-1].reply
    assert without_made(whole) == expected
    assert [delta for delta in deltas[:-1] if delta.reply] == []
    assert "".join(delta.text for delta in deltas) == expected.text
    thoughts = [part.summary or "" for part in expected.message.content if isinstance(part, Reasoning)]
    assert "".join(delta.reasoning for delta in deltas) == "".join(thoughts)
    pieces = [delta.tool_call for delta in deltas if delta.tool_call]
    assert [ToolCall(piece.id, piece.name, piece.arguments) for piece in pieces] == list(whole.tool_calls)
    assert [piece.index for piece in pieces] == list(range(len(pieces)))


@pytest.mark.parametrize("name", [name for name in files("replies") if name.startswith(("signed", "search-and"))])
async def test_what_is_signed_goes_back_on_its_own_part_as_it_came(name, loopback, make_chat):
    chat = make_chat()
    loopback.will(answer(loopback, name), loopback.whole((EXCHANGES / "replies" / "text.json").read_bytes()))
    deltas = [delta async for delta in chat.stream(REQUEST)]
    first = deltas[-1].reply.message
    results = [ToolResult(part.id, part.name, "noon") for part in deltas[-1].reply.tool_calls]
    following = Message("tool", tuple(results)) if results else Message.of("user", "And now?")
    await chat.complete(ChatRequest([*REQUEST.messages, first, following]))
    sent = loopback.visits[1].json["contents"][1]["parts"]
    assert (
        sent
        == {
            "signed-tools": [
                {"text": "**Looking at the clocks**\n\nTwo towns.", "thought": True},
                {
                    "functionCall": {
                        "id": "c8f1kq2s",
                        "name": "Clock-Now",
                        "args": {"town": "Oslo", "at": [1, {"half": 0.5}]},
                    },
                    "thoughtSignature": SIGNATURE,
                },
                {"functionCall": {"id": "w3n0xz7d", "name": "Clock-Now", "args": {"town": "Rome"}}},
            ],
            "signed-text": [{"text": "It is noon.", "thoughtSignature": OTHER}],
            "signed-end": [{"text": "It is noon."}, {"text": "", "thoughtSignature": OTHER}],
            "signed-thought": [
                {"text": "Noon?", "thought": True, "thoughtSignature": SIGNATURE},
                {"text": "It is noon."},
            ],
            "search-and-tools": [
                SEARCHED[0].data,
                SEARCHED[1].data,
                {
                    "functionCall": {"id": "f7", "name": "Clock-Now", "args": {"town": "Oslo"}},
                    "thoughtSignature": SIGNATURE,
                },
            ],
        }[Path(name).stem]
    )


@pytest.mark.parametrize(
    ("parts", "sent"),
    [
        # A signature alone is a part for itself, not that of what follows.
        (
            [{"text": "Yes."}, {"thoughtSignature": OTHER}, {"functionCall": {"id": "f", "name": "x", "args": {}}}],
            [
                {"text": "Yes."},
                {"text": "", "thoughtSignature": OTHER},
                {
                    "functionCall": {"id": "f", "name": "x", "args": {}},
                    "thoughtSignature": "skip_thought_signature_validator",
                },
            ],
        ),
        ([{"text": None, "functionCall": None, "fileData": {"fileUri": "u"}}], [{"fileData": {"fileUri": "u"}}]),
        ([{"text": None, "thought": None}, {"text": "Yes."}], [{"text": "Yes."}]),
    ],
)
async def test_a_part_of_another_form_keeps_its_place(parts, sent, loopback, make_chat):
    chat = make_chat()
    loopback.will(loopback.whole({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}))
    said = (await chat.complete(REQUEST)).message
    await chat.complete(ChatRequest([*REQUEST.messages, said, *REQUEST.messages]))
    assert loopback.visits[1].json["contents"][1]["parts"] == sent


async def test_a_call_without_an_identifier_goes_back_without_one(loopback, make_chat):
    chat = make_chat(model="gemini-2.5-flash")
    loopback.will(answer(loopback, "tools.json"), answer(loopback, "text.json"))
    first = await chat.complete(REQUEST)
    results = (ToolResult(call.id, "?", '{"time": "noon"}') for call in first.tool_calls[:2])
    await chat.complete(ChatRequest([*REQUEST.messages, first.message, Message("tool", tuple(results))]))
    calls, answers = loopback.visits[1].json["contents"][1:]
    assert calls["parts"][0] == {"functionCall": {"name": "Clock-Now", "args": {"town": "Oslo"}}}
    assert answers["parts"] == [{"functionResponse": {"name": "Clock-Now", "response": {"time": "noon"}}}] * 2


REFUSALS: dict[str, tuple[type[ServiceError], str]] = {
    "blocked": (ContentRefused, "blocked the request: PROHIBITED_CONTENT."),
    "blocked-vertex": (ContentRefused, "blocked the request: MODEL_ARMOR (Blocked by Floor Setting."),
    "refused-blocklist": (ContentRefused, "stopped its answer: BLOCKLIST."),
    "refused-image-safety": (ContentRefused, "stopped its answer: IMAGE_SAFETY."),
    "refused-midway": (ContentRefused, "stopped its answer: SAFETY."),
    "refused-prohibited-content": (ContentRefused, "stopped its answer: PROHIBITED_CONTENT."),
    "refused-recitation": (ContentRefused, "stopped its answer: RECITATION."),
    "refused-safety": (ContentRefused, "stopped its answer: SAFETY."),
    "refused-spii": (ContentRefused, "stopped its answer: SPII."),
    "broken-call": (ResponseInvalid, "broke its answer off: MALFORMED_FUNCTION_CALL (Malformed function call: print("),
    "broken-unexpected": (ResponseInvalid, "broke its answer off: UNEXPECTED_TOOL_CALL (Unexpected tool call: Lamp"),
    "broken-other": (ServiceUnavailable, "gave up on its answer: OTHER. Try again."),
}


@pytest.mark.parametrize("name", [name for name in files("replies") if Path(name).stem in REFUSALS])
async def test_a_refusal_is_raised_with_geminis_reason(name, loopback, make_chat):
    kind, words = REFUSALS[Path(name).stem]
    loopback.will(answer(loopback, name))
    with pytest.raises(ServiceError) as caught:
        if name.endswith(".json"):
            await make_chat().complete(REQUEST)
        else:
            [delta async for delta in make_chat().stream(REQUEST)]
    assert type(caught.value) is kind
    assert words in str(caught.value)


ERRORS: dict[str, tuple[type[ServiceError], str]] = {
    "200-midway-overloaded.sse": (ServiceUnavailable, "failed (503): The model is overloaded"),
    "200-midway-quota.sse": (RateLimited, "asks for fewer requests: You exceeded your current quota"),
    "400-both-tools.json": (ServiceError, "refused the request (400): Please enable tool_config"),
    "400-context.json": (ContextOverflow, "The input token count (1200293) exceeds"),
    "400-key.json": (AuthenticationFailed, "refused the key (400): API key not valid"),
    "400-location.json": (ServiceError, "User location is not supported"),
    "400-signature.json": (ServiceError, "missing a thought_signature"),
    "400-unknown-field.json": (ServiceError, "Unknown name \"topKay\" at 'generation_config'"),
    "400-vertex-context.json": (ContextOverflow, "maximum number of tokens allowed (131072)"),
    "401-vertex-token.json": (AuthenticationFailed, "Request had invalid authentication credentials"),
    "403-no-key.json": (AuthenticationFailed, "refused the key (403): Method doesn't allow unregistered callers"),
    "404-model.json": (ServiceError, "has no model 'm-1'"),
    "404-path.html": (ServiceError, "with the title “Error 404 (Not Found)!!1”. base_url usually ends in /v1beta."),
    "404-vertex-model.json": (ServiceError, "has no model 'm-1'"),
    "429-quota.json": (RateLimited, "Quota exceeded for metric"),
    "429-vertex.json": (RateLimited, "Resource exhausted"),
    "500-internal.json": (ServiceUnavailable, "failed (500): An internal error has occurred"),
    "503-overloaded.json": (ServiceUnavailable, "failed (503): The model is overloaded"),
    "504-deadline.json": (ServiceUnavailable, "failed (504): The request timed out"),
}


def test_every_file_has_its_expectation():
    assert files("errors") == sorted(ERRORS)
    assert {Path(name).stem for name in files("replies")} == REPLIES.keys() | REFUSALS.keys()


WAYS = [(name, way) for name in ERRORS for way in ("complete", "stream") if way == "stream" or name[-4:] != ".sse"]


@pytest.mark.parametrize(("name", "way"), WAYS)
async def test_an_error_is_mapped_and_says_who_and_what(name, way, loopback, make_chat):
    body = (EXCHANGES / "errors" / name).read_bytes()
    if name.endswith(".sse"):
        loopback.will(loopback.streamed(body))
    else:
        kind = "text/html" if name.endswith(".html") else "application/json"
        loopback.will(loopback.whole(body, status=f"{name[:3]} Whatever", kind=kind))
    expected, words = ERRORS[name]
    with pytest.raises(ServiceError) as caught:
        if way == "complete":
            await make_chat().complete(REQUEST)
        else:
            [delta async for delta in make_chat().stream(REQUEST)]
    said = str(caught.value)
    assert type(caught.value) is expected, said
    assert words in said
    assert said.startswith(f"Chat service 'gemini' (m-1 at 127.0.0.1:{loopback.port}) ")
    if isinstance(caught.value, RateLimited):
        assert caught.value.retry_after == (17.0 if "quota" in name else None)


async def test_the_wait_that_an_error_names_in_its_body_is_kept(loopback, make_chat):
    body = (EXCHANGES / "errors" / "429-quota.json").read_bytes()
    good = answer(loopback, "text.json")
    loopback.will(loopback.whole(body, status="429 No"), good)
    with pytest.raises(RateLimited):
        await make_chat(max_retries=2, timeout=10.0).complete(REQUEST)
    assert len(loopback.visits) == 1, "17 s are longer than the call may last"
    loopback.will(loopback.whole(body.replace(b'"17s"', b'"0.001s"'), status="429 No"), good)
    assert (await make_chat(max_retries=2).complete(REQUEST)).finish == "stop"
    assert len(loopback.visits) == 2


@pytest.mark.parametrize(("service", "sent"), [("", True), ("gemini at example.org", False), ("openai at x", False)])
async def test_the_thinking_of_another_service_is_not_sent(service, sent, loopback, make_chat):
    loopback.will(answer(loopback, "text.json"))
    said = Message.of("assistant", replace(thought("Hm."), service=service), "Yes.")
    await make_chat().complete(ChatRequest([said, Message.of("user", "Sure?")]))
    expected = [{"text": "Hm.", "thought": True}] if sent else []
    assert loopback.visits[0].json["contents"][0]["parts"] == [*expected, {"text": "Yes."}]


async def test_a_search_and_tools_may_be_together(loopback, make_chat):
    loopback.will(answer(loopback, "search-and-tools.json"))
    request = ChatRequest(REQUEST.messages, tools=(Tool("Clock-Now", "", {}),))
    await make_chat(web_search=True).complete(request)
    assert loopback.visits[0].json["toolConfig"] == {"includeServerSideToolInvocations": True}
