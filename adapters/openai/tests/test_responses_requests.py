"""What is sent to Responses: each request of core becomes exactly this body."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico import Audio, ChatRequest, File, Image, Message, Reasoning, Text, Tool, ToolCall, ToolChoice, ToolResult
from portico_openai._responses.requests import capabilities, request_body
from portico_openai.config import OpenAIChatSettings

CLOCK = Tool("Clock-Now", "Tells the time.", {"type": "object", "properties": {"town": {"type": "string"}}})
DICE = Tool("Dice-Roll", "Rolls a die.", {"type": "object", "properties": {}}, strict=True)
CLOCK_SENT = {
    "type": "function",
    "name": "Clock-Now",
    "description": "Tells the time.",
    "parameters": {"type": "object", "properties": {"town": {"type": "string"}}},
    "strict": False,
}
DICE_SENT = {
    "type": "function",
    "name": "Dice-Roll",
    "description": "Rolls a die.",
    "parameters": {"type": "object", "properties": {}},
    "strict": True,
}
HELLO = [Message.of("user", "Hello")]
PLAIN = {
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "model": "m-1",
    "input": [{"role": "user", "content": "Hello"}],
}
LOCAL = "http://127.0.0.1:8080/v1"
SEARCH = {"type": "web_search"}


def sent(request: ChatRequest, *, stream: bool = False, **settings: Any) -> Any:
    made = OpenAIChatSettings(**{"model": "m-1", **settings})
    return json.loads(request_body(request, made, stream=stream))


@pytest.mark.parametrize(
    ("address", "api", "path"),
    [
        ("https://api.openai.com/v1", "auto", "/responses"),
        ("https://eu.api.openai.com/v1", "auto", "/responses"),
        ("https://api.openai.com/v1", "chat", "/chat/completions"),
        ("https://acme.openai.azure.com/openai/v1/", "auto", "/chat/completions"),
        ("https://acme.openai.azure.com/openai/v1/", "responses", "/responses"),
        (LOCAL, "auto", "/chat/completions"),
        ("https://api.openai.com.example.org/v1", "auto", "/chat/completions"),
    ],
)
async def test_openais_own_address_is_asked_by_responses_unless_the_setting_says_else(address, api, path):
    import httpx2

    from portico.errors import ServiceError
    from portico_openai.chat import OpenAIChat

    asked = []

    def refuse(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.path)
        return httpx2.Response(400, json={"error": {"message": "no"}})

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(refuse)) as client:
        chat = OpenAIChat(OpenAIChatSettings(model="m", base_url=address, api=api), http_client=client)
        with pytest.raises(ServiceError):
            await chat.complete(ChatRequest(HELLO))
    assert asked[0].endswith(path)
    assert ("seed" in chat.capabilities.sampling) is (path != "/responses")


async def test_what_only_the_other_api_has_is_refused_with_the_way_to_it():
    from portico.errors import UnsupportedOption
    from portico_openai.chat import OpenAIChat

    chat = OpenAIChat(OpenAIChatSettings(model="m"))
    with pytest.raises(UnsupportedOption, match=r"stop, seed\. It does by Chat Completions: set api to 'chat'"):
        await chat.complete(ChatRequest(HELLO, stop=("END",), seed=1))
    with pytest.raises(UnsupportedOption, match=r"stop, extras\.top_k\.$"):
        await chat.complete(ChatRequest(HELLO, stop=("END",), extras={"top_k": 1}))


def test_a_plain_question_is_kept_nowhere_and_its_reasoning_comes_back():
    assert sent(ChatRequest(HELLO)) == PLAIN
    assert sent(ChatRequest(HELLO), stream=True) == {**PLAIN, "stream": True}


@pytest.mark.parametrize("model", ["gpt-4o-mini", "gpt-4.1-2025-04-14", "ft:gpt-4o:acme::1", "gpt-5-chat-latest"])
def test_a_model_without_reasoning_is_not_asked_for_it(model: str):
    assert "include" not in sent(ChatRequest(HELLO), model=model)


def test_every_option_has_its_field():
    request = ChatRequest(
        HELLO,
        temperature=0.0,
        top_p=0.5,
        max_tokens=9,
        extras={"reasoning_effort": "low", "reasoning_summary": "auto", "verbosity": "high", "service_tier": "flex"},
    )
    assert sent(request) == {
        **PLAIN,
        "temperature": 0.0,
        "top_p": 0.5,
        "max_output_tokens": 9,
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"verbosity": "high"},
        "service_tier": "flex",
    }
    assert capabilities(OpenAIChatSettings(model="m")).sampling == {"temperature", "top_p", "max_tokens"}


def test_fields_of_the_settings_go_with_every_request_and_a_requests_own_win():
    body = {
        "store": True,
        "include": [],
        "reasoning": {"effort": "low", "summary": "auto"},
        "parallel_tool_calls": False,
        "temperature": 1.0,
    }
    own = ChatRequest(HELLO, tools=(CLOCK,), temperature=0.5, extras={"reasoning_effort": "high"})
    assert sent(own, body=body) == {
        "store": True,
        "model": "m-1",
        "input": PLAIN["input"],
        "reasoning": {"effort": "high", "summary": "auto"},
        "parallel_tool_calls": False,
        "temperature": 0.5,
        "tools": [CLOCK_SENT],
    }
    assert "parallel_tool_calls" not in sent(ChatRequest(HELLO), body=body)


@pytest.mark.parametrize("extras", [{"logprobs": True}, {"top_logprobs": 2}, {"logprobs": True, "top_logprobs": 2}])
def test_log_probabilities_are_included_when_asked_for(extras: dict[str, Any]):
    body = sent(ChatRequest(HELLO, extras=extras))
    assert body["include"] == ["reasoning.encrypted_content", "message.output_text.logprobs"]
    assert body.get("top_logprobs") == extras.get("top_logprobs")
    assert "logprobs" not in body


def test_each_kind_of_message_has_its_form():
    thought = {"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA", "summary": []}
    messages = [
        Message.of("system", "Be ", "brief."),
        Message.of("user", "What is this?", Image(data=b"\x89PNG"), Image(url="https://example.org/a.jpg")),
        Message.of(
            "user",
            File(b"words", "a.txt", "text/plain"),
            File(None, "b.pdf", "application/pdf", "https://example.org/b.pdf"),
        ),
        Message(
            "assistant",
            (
                Reasoning(thought, None, "openai at api.openai.com"),
                Text("I look."),
                ToolCall("c1", "Clock.Now", '{"town":"Oslo"}'),
                ToolCall("c2", "Dice-Roll", ""),
            ),
        ),
        Message.of("tool", ToolResult("c1", "Clock-Now", "noon"), ToolResult("c2", "Dice-Roll", "no die", error=True)),
        Message.of("assistant", "It is noon."),
        Message("user", ()),
        Message("assistant", ()),
    ]

    def said(text: str) -> dict[str, Any]:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        return {"type": "message", "role": "assistant", "content": content}

    assert sent(ChatRequest(messages))["input"] == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What is this?"},
                {"type": "input_image", "image_url": "data:image/png;base64,iVBORw==", "detail": "auto"},
                {"type": "input_image", "image_url": "https://example.org/a.jpg", "detail": "auto"},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,d29yZHM="},
                {"type": "input_file", "file_url": "https://example.org/b.pdf"},
            ],
        },
        {"type": "reasoning", "encrypted_content": "gAAA", "summary": []},
        said("I look."),
        {"type": "function_call", "call_id": "c1", "name": "Clock_Now", "arguments": '{"town":"Oslo"}'},
        {"type": "function_call", "call_id": "c2", "name": "Dice-Roll", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "noon"},
        {"type": "function_call_output", "call_id": "c2", "output": "no die"},
        said("It is noon."),
        {"role": "user", "content": ""},
        said(""),
    ]


@pytest.mark.parametrize(
    "foreign",
    [
        Reasoning({"type": "reasoning", "summary": []}, None, "openai at other.example.org"),
        Reasoning({"type": "thinking", "thinking": "Hm."}, None, "anthropic at api.anthropic.com"),
        Reasoning({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, "Hm."),
        Reasoning({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
        Reasoning({"reasoning_content": "Hm."}, "Hm."),
        Reasoning("words"),
    ],
)
def test_the_thinking_of_another_service_or_api_is_not_sent(foreign: Reasoning):
    items = sent(ChatRequest([Message.of("assistant", foreign, "Yes.")]))["input"]
    assert [item["type"] for item in items] == ["message"]


@pytest.mark.parametrize(
    ("choice", "settings", "tools", "chosen"),
    [
        (ToolChoice(), {}, [CLOCK_SENT, DICE_SENT], None),
        (ToolChoice("none"), {}, None, None),
        (ToolChoice("none"), {"web_search": True}, [SEARCH], None),
        (ToolChoice("auto", include=("Dice-Roll",)), {"web_search": True}, [DICE_SENT, SEARCH], None),
        (ToolChoice("required"), {}, [CLOCK_SENT, DICE_SENT], "required"),
        (ToolChoice("required", include=("Clock-Now",)), {}, [CLOCK_SENT], {"type": "function", "name": "Clock-Now"}),
        (ToolChoice("required", include=("Clock-Now",)), {"base_url": LOCAL}, [CLOCK_SENT], "required"),
        # A search would be a call too.
        (
            ToolChoice("required"),
            {"web_search": True},
            [CLOCK_SENT, DICE_SENT, SEARCH],
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "Clock-Now"}, {"type": "function", "name": "Dice-Roll"}],
            },
        ),
    ],
)
def test_the_tools_that_are_offered_are_sent_and_no_others(choice: ToolChoice, settings: Any, tools: Any, chosen: Any):
    request = ChatRequest(HELLO, tools=(CLOCK, DICE), tool_choice=choice)
    expected = {**PLAIN, "tools": tools, "tool_choice": chosen}
    assert sent(request, **settings) == {key: value for key, value in expected.items() if value is not None}


def test_a_search_of_the_web_is_asked_for_by_the_setting_or_the_request():
    asked, not_asked = (ChatRequest(HELLO, extras={"web_search": wanted}) for wanted in (True, False))
    assert sent(asked) == {**PLAIN, "tools": [SEARCH]}
    assert sent(not_asked, web_search=True) == PLAIN


def test_a_schema_goes_with_its_name_and_its_strictness():
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    form = {"type": "json_schema", "name": "Math_reasoning", "schema": schema}
    request = ChatRequest(HELLO, response_schema=schema, response_name="Math reasoning", extras={"verbosity": "low"})
    assert sent(request)["text"] == {"verbosity": "low", "format": form}
    strict = ChatRequest(HELLO, response_schema=schema, response_strict=True)
    assert sent(strict)["text"] == {"format": {**form, "name": "reply", "strict": True}}
    bare = ChatRequest([Message.of("user", "Greet in JSON.")], response_schema={"type": "object"})
    assert sent(bare)["text"] == {"format": {"type": "json_object"}}


@pytest.mark.parametrize(
    "message",
    [
        Message.of("assistant", Image(data=b"x")),
        Message.of("tool", "words"),
        Message("tool", ()),
        Message.of("tool", ToolResult("c1", "x", "y"), Text("words")),
        Message.of("user", Image()),
        Message.of("user", File(b"x", "a.txt", "text/plain", "https://example.org/a.txt")),
        Message.of("user", Audio(b"RIFF")),
        Message.of("user", ToolCall("c1", "x")),
    ],
)
def test_a_message_that_has_no_form_on_the_wire_is_a_mistake(message: Message):
    with pytest.raises(ValueError, match=r"holds|hold|either"):
        sent(ChatRequest([message]))


TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
USERS = st.builds(Message, st.sampled_from(["system", "user"]), st.lists(st.builds(Text, TEXTS), max_size=3).map(tuple))
ASSISTANTS = st.lists(st.builds(Text, TEXTS) | st.builds(ToolCall, TEXTS, TEXTS, TEXTS), max_size=4).map(
    lambda parts: Message("assistant", tuple(parts))
)
RESULTS = st.lists(st.builds(ToolResult, TEXTS, TEXTS, TEXTS), min_size=1, max_size=3).map(
    lambda parts: Message("tool", tuple(parts))
)


@given(messages=st.lists(USERS | ASSISTANTS | RESULTS, max_size=5))
def test_whatever_is_said_is_sent_whole_and_in_its_order(messages: list[Message]):
    found = []
    for item in sent(ChatRequest(messages))["input"]:
        content = item.get("content", item.get("output", item.get("arguments")))
        found.append(content if isinstance(content, str) else content[0]["text"])
    said = [
        part.text
        if isinstance(part, Text)
        else part.content
        if isinstance(part, ToolResult)
        else part.arguments or "{}"
        for message in messages
        for part in message.content
        if isinstance(part, Text | ToolResult | ToolCall)
    ]
    assert "".join(found) == "".join(said)
