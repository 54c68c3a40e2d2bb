"""What is sent to Chat Completions: each request of core becomes exactly this body."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico import (
    Audio,
    ChatRequest,
    File,
    Image,
    Message,
    Reasoning,
    Source,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from portico.errors import UnsupportedOption
from portico_openai._completions.requests import EXTRAS, capabilities, request_body
from portico_openai.config import OpenAIChatSettings

RESPONSES_ITEM = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]}
CLOCK = Tool("Clock-Now", "Tells the time.", {"type": "object", "properties": {"town": {"type": "string"}}})
DICE = Tool("Dice-Roll", "Rolls a die.", {"type": "object", "properties": {}}, strict=True)
CLOCK_SENT = {
    "type": "function",
    "function": {
        "name": "Clock-Now",
        "description": "Tells the time.",
        "parameters": {"type": "object", "properties": {"town": {"type": "string"}}},
    },
}
DICE_SENT = {
    "type": "function",
    "function": {
        "name": "Dice-Roll",
        "description": "Rolls a die.",
        "parameters": {"type": "object", "properties": {}},
        "strict": True,
    },
}
HELLO = [Message.of("user", "Hello")]
HELLO_SENT = [{"role": "user", "content": "Hello"}]
LOCAL = "http://127.0.0.1:8080/v1"
ROUTER = "https://openrouter.ai/api/v1"


def sent(request: ChatRequest, *, stream: bool = False, **settings: Any) -> Any:
    made = OpenAIChatSettings(**{"model": "m-1", **settings})
    return json.loads(request_body(request, made, stream=stream))


def test_a_plain_question_is_the_least_that_can_be_sent():
    body = request_body(ChatRequest(HELLO), OpenAIChatSettings(model="m-1"), stream=False)
    assert body == b'{"model":"m-1","messages":[{"role":"user","content":"Hello"}]}'


def test_a_stream_is_asked_for_with_its_usage():
    assert sent(ChatRequest(HELLO), stream=True) == {
        "model": "m-1",
        "messages": HELLO_SENT,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize(("settings", "length"), [({}, 1_024), ({"base_url": LOCAL}, 2_000)])
def test_a_description_is_no_longer_than_openai_takes(settings: dict[str, str], length: int):
    request = ChatRequest(HELLO, tools=(Tool("Dice-Roll", "d" * 2_000, {}), Tool("Dice-Drop", "d" * 1_024, {})))
    told = [tool["function"]["description"] for tool in sent(request, **settings)["tools"]]
    assert [len(each) for each in told] == [length, 1_024]
    assert told[0].startswith("d" * (length - 1))
    assert told[1] == "d" * 1_024


def test_a_name_that_a_model_made_up_goes_back_with_letters_that_openai_takes():
    call = ToolCall("c1", "multi_tool_use.parallel", "{}")
    (written,) = sent(ChatRequest([Message("assistant", (call,))]))["messages"]
    assert written["tool_calls"][0]["function"]["name"] == "multi_tool_use_parallel"


def test_every_option_has_its_field():
    request = ChatRequest(
        HELLO,
        temperature=0.0,
        top_p=0.5,
        max_tokens=9,
        stop=("END", "STOP"),
        seed=0,
        extras={"reasoning_effort": "low"},
    )
    options = {"temperature": 0.0, "top_p": 0.5, "stop": ["END", "STOP"], "seed": 0, "reasoning_effort": "low"}
    plain = {"model": "m-1", "messages": HELLO_SENT, **options}
    assert sent(request) == {**plain, "max_completion_tokens": 9}
    assert sent(request, base_url=LOCAL) == {**plain, "max_tokens": 9}
    assert sent(request, base_url=LOCAL, max_tokens_field="max_completion_tokens") == {
        **plain,
        "max_completion_tokens": 9,
    }
    assert sent(request, max_tokens_field="max_tokens") == {**plain, "max_tokens": 9}


def test_each_kind_of_message_has_its_form():
    messages = [
        Message.of("system", "Be ", "brief."),
        Message(
            "user", (Text("What is this?"), Image(data=b"\x89PNG"), Image(url="https://example.org/a.jpg")), "Zoë B"
        ),
        Message.of("user", "Read it.", File(b"words", "a.txt", "text/plain")),
        Message(
            "assistant",
            (
                Reasoning({"reasoning_content": "Hm.", "other": 1}, "Hm."),
                Text("I look."),
                ToolCall("c1", "Clock-Now", '{"town":"Oslo"}'),
                ToolCall("c2", "Dice-Roll", ""),
            ),
        ),
        Message.of("tool", ToolResult("c1", "Clock-Now", "noon"), ToolResult("c2", "Dice-Roll", "no die", error=True)),
        Message.of("assistant", "It is noon."),
        Message("user", ()),
        Message("assistant", ()),
    ]
    assert sent(ChatRequest(messages))["messages"] == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "name": "Zo__B",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
                {"type": "image_url", "image_url": {"url": "https://example.org/a.jpg"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Read it."},
                {"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,d29yZHM="}},
            ],
        },
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "Hm.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "Clock-Now", "arguments": '{"town":"Oslo"}'}},
                {"id": "c2", "type": "function", "function": {"name": "Dice-Roll", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "noon"},
        {"role": "tool", "tool_call_id": "c2", "content": "no die"},
        {"role": "assistant", "content": "It is noon."},
        {"role": "user", "content": ""},
        {"role": "assistant", "content": ""},
    ]


def test_sound_is_sent_as_bytes_with_its_format():
    parts = [Audio(b"RIFF"), Audio(b"RIFF", media_type="audio/x-wav"), Audio(b"ID3", media_type="audio/mpeg")]
    (written,) = sent(ChatRequest([Message.of("user", "What is said?", *parts)]))["messages"]
    assert written["content"] == [
        {"type": "text", "text": "What is said?"},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}},
    ]
    for hears in (True, False):
        assert capabilities(OpenAIChatSettings(model="m", audio=hears)).audio is hears


def test_a_link_to_a_file_is_sent_where_it_is_taken():
    report = File(None, "report.pdf", "application/pdf", "https://example.org/report.pdf")
    (written,) = sent(ChatRequest([Message.of("user", report)]), base_url=ROUTER)["messages"]
    file = {"filename": "report.pdf", "file_data": "https://example.org/report.pdf"}
    assert written["content"] == [{"type": "file", "file": file}]
    for address, links in ((ROUTER, {"Image", "File"}), (LOCAL, {"Image"})):
        assert capabilities(OpenAIChatSettings(model="m", base_url=address)).links == links


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({}, {"web_search_options": {}}),
        ({"base_url": ROUTER}, {"plugins": [{"id": "web"}]}),
        ({"body": {"web_search_options": {"search_context_size": "low"}}}, None),
    ],
)
def test_a_search_of_the_web_is_asked_for_by_the_setting_or_the_request(settings: dict[str, Any], field: Any):
    field = settings.get("body", field)
    plain = {"model": "m-1", "messages": HELLO_SENT}
    asked, not_asked = (ChatRequest(HELLO, extras={"web_search": wanted}) for wanted in (True, False))
    assert sent(ChatRequest(HELLO), web_search=True, **settings) == plain | field
    assert sent(asked, **settings) == plain | field
    assert sent(not_asked, web_search=True, **settings) == plain | settings.get("body", {})


def test_predicted_output_goes_as_it_is():
    prediction = {"type": "content", "content": "class User: ..."}
    assert sent(ChatRequest(HELLO, extras={"prediction": prediction}))["prediction"] == prediction


def test_calls_without_words_have_no_content():
    message = Message.of("assistant", ToolCall("c1", "Clock-Now"))
    (written,) = sent(ChatRequest([message]))["messages"]
    assert written["content"] is None


def test_reasoning_goes_back_as_it_came_unless_it_is_of_another_kind_of_service():
    thought = Reasoning({"reasoning": "Hm."}, "Hm.")
    request = ChatRequest([Message.of("assistant", thought, "Yes.")])
    plain = {"role": "assistant", "content": "Yes."}
    assert sent(request)["messages"] == [{**plain, **thought.data}]
    for foreign in (object(), "words", {"thinking": "Hm.", "signature": b"x"}, RESPONSES_ITEM):
        other = ChatRequest([Message.of("assistant", Reasoning(foreign), "Yes.")])
        assert sent(other)["messages"] == [plain]


@pytest.mark.parametrize(
    ("choice", "tools", "word"),
    [
        (ToolChoice(), [CLOCK_SENT, DICE_SENT], None),
        (ToolChoice("none"), None, None),
        (ToolChoice("none", include=("Dice-Roll",)), None, None),
        (ToolChoice("auto", exclude=("Clock-Now", "Dice-Roll")), None, None),
        (ToolChoice("auto", include=("Dice-Roll",)), [DICE_SENT], None),
        (ToolChoice("required"), [CLOCK_SENT, DICE_SENT], "required"),
        (ToolChoice("required", exclude=("Dice-Roll",)), [CLOCK_SENT], "required"),
        (ToolChoice("required", include=("Clock-Now",)), [CLOCK_SENT], "required"),
    ],
)
def test_the_tools_that_are_offered_are_sent_and_no_others(choice: ToolChoice, tools: Any, word: Any):
    request = ChatRequest(HELLO, tools=(CLOCK, DICE), tool_choice=choice)
    expected = {"model": "m-1", "messages": HELLO_SENT, "tools": tools, "tool_choice": word}
    assert sent(request, base_url=LOCAL) == {key: value for key, value in expected.items() if value is not None}


@pytest.mark.parametrize(
    ("settings", "named"), [({}, True), ({"base_url": LOCAL}, False), ({"base_url": LOCAL, "tool_by_name": True}, True)]
)
def test_a_single_tool_that_must_be_called_is_named_where_that_is_taken(settings: dict[str, Any], named: bool):
    alone = ChatRequest(HELLO, tools=(CLOCK, DICE), tool_choice=ToolChoice("required", include=("Clock-Now",)))
    by_name = {"type": "function", "function": {"name": "Clock-Now"}}
    assert sent(alone, **settings)["tool_choice"] == (by_name if named else "required")
    several = ChatRequest(HELLO, tools=(CLOCK, DICE), tool_choice=ToolChoice("required"))
    assert sent(several, **settings)["tool_choice"] == "required"


def test_a_call_that_is_required_of_no_tool_is_a_mistake():
    with pytest.raises(ValueError, match="no tool is offered"):
        sent(ChatRequest(HELLO, tool_choice=ToolChoice("required")))


def test_a_schema_goes_with_its_name_and_its_strictness():
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    loose = ChatRequest(HELLO, response_schema=schema, response_name="Math reasoning")
    strict = ChatRequest(HELLO, response_schema=schema, response_strict=True)
    assert sent(loose)["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "Math_reasoning", "schema": schema},
    }
    assert sent(strict)["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": schema, "strict": True},
    }


@pytest.mark.parametrize(
    ("settings", "is_sent"),
    [({}, True), ({"base_url": LOCAL}, False), ({"base_url": LOCAL, "json_object": True}, True)],
)
def test_a_json_object_is_asked_for_where_there_is_no_schema(settings: dict[str, Any], is_sent: bool):
    bare = ChatRequest([Message.of("user", "Greet in JSON.")], response_schema={"type": "object"})
    wordless = ChatRequest(HELLO, response_schema={"type": "object"})
    described = ChatRequest(HELLO, response_schema={"type": "object", "properties": {"a": {}}})
    assert (sent(bare, **settings)["response_format"] == {"type": "json_object"}) is is_sent
    for other in (wordless, described):
        assert sent(other, **settings)["response_format"]["type"] == "json_schema"
    assert capabilities(OpenAIChatSettings(model="m", **settings)).json_object is is_sent


def test_fields_of_the_settings_go_with_every_request_and_a_requests_own_win():
    settings = {"body": {"reasoning_effort": "low", "parallel_tool_calls": False, "temperature": 1.0}}
    own = ChatRequest(HELLO, temperature=0.5, extras={"reasoning_effort": "high"})
    plain = {"model": "m-1", "messages": HELLO_SENT}
    assert sent(ChatRequest(HELLO), **settings) == {**plain, "reasoning_effort": "low", "temperature": 1.0}
    assert sent(own, **settings) == {**plain, "reasoning_effort": "high", "temperature": 0.5}
    # Without tools, OpenAI refuses to hear how they are called.
    assert sent(ChatRequest(HELLO, tools=(CLOCK,)), **settings)["parallel_tool_calls"] is False
    alone = {"parallel_tool_calls": False}
    assert "parallel_tool_calls" not in sent(ChatRequest(HELLO, extras=alone))
    assert sent(ChatRequest(HELLO, tools=(CLOCK,), extras=alone))["parallel_tool_calls"] is False


async def test_what_a_server_does_not_take_is_refused_by_name_and_nothing_is_sent(loopback, make_chat):
    loopback.will(loopback.whole(loopback.completion()))
    bare = make_chat(tools=False, response_schema=False, images=False, files=False)
    odd = ChatRequest(
        [Message.of("user", Image(data=b"x"), File(b"x", "a", "b/c"), Source(1, "passage"))],
        tools=(DICE,),
        response_schema={"type": "object"},
        response_strict=True,
        extras={"top_k": 3},
    )
    for call in (bare.complete(odd), anext(bare.stream(odd))):
        with pytest.raises(UnsupportedOption) as caught:
            await call
        for option in ("tools", "response_schema", "strict", "images", "files", "sources", "extras.top_k"):
            assert option in str(caught.value)
    assert loopback.visits == []
    own = make_chat(extras=("top_k",))
    await own.complete(ChatRequest(HELLO, extras={"top_k": 3, "user": "u"}))
    assert loopback.visits[0].json == {"model": "m-1", "messages": HELLO_SENT, "top_k": 3, "user": "u"}


@pytest.mark.parametrize(
    ("address", "is_openai"),
    [
        ("https://api.openai.com/v1", True),
        ("https://eu.api.openai.com/v1", True),
        ("https://acme.openai.azure.com/openai/v1/", True),
        ("https://acme.services.ai.azure.com/openai/v1/", True),
        ("http://127.0.0.1:11434/v1", False),
        ("https://openrouter.ai/api/v1", False),
        ("https://api.openai.com.example.org/v1", False),
        ("https://notapi.openai.com/v1", False),
    ],
)
def test_what_only_openais_models_take_is_declared_at_their_addresses_only(address: str, is_openai: bool):
    made = capabilities(OpenAIChatSettings(model="m", base_url=address))
    assert (made.strict, made.files) == (is_openai, is_openai)
    told = capabilities(OpenAIChatSettings(model="m", base_url=address, strict=not is_openai, files=not is_openai))
    assert (told.strict, told.files) == (not is_openai, not is_openai)
    assert made.extras == EXTRAS
    assert not made.sources


@pytest.mark.parametrize(
    "message",
    [
        Message.of("assistant", Image(data=b"x")),
        Message.of("tool", "words"),
        Message("tool", ()),
        Message.of("tool", ToolResult("c1", "x", "y"), Text("words")),
        Message.of("user", Image()),
        Message.of("user", File(None, "a.txt", "text/plain")),
        Message.of("user", Audio()),
        Message.of("user", Image(data=b"x", url="https://example.org/")),
        Message.of("user", ToolCall("c1", "x")),
        Message.of("user", "words", Reasoning({})),
    ],
)
def test_a_message_that_has_no_form_on_the_wire_is_a_mistake(message: Message):
    with pytest.raises(ValueError, match=r"holds|hold|either"):
        sent(ChatRequest([message]))


async def test_what_is_not_json_is_a_mistake_and_says_so(make_chat):
    for extras in ({"metadata": object()}, {"metadata": {1j: 2}}):
        with pytest.raises(TypeError):
            await make_chat().complete(ChatRequest(HELLO, extras=extras))


TEXTS = st.text(st.characters(), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
TOOLS = st.builds(Tool, TEXTS, TEXTS, st.dictionaries(TEXTS, JSON, max_size=3))
USERS = st.builds(Message, st.sampled_from(["system", "user"]), st.lists(st.builds(Text, TEXTS), max_size=3).map(tuple))
ASSISTANTS = st.lists(
    st.builds(Text, TEXTS) | st.builds(ToolCall, TEXTS, TEXTS, TEXTS) | st.builds(Reasoning, JSON), max_size=4
).map(lambda parts: Message("assistant", tuple(parts)))
RESULTS = st.lists(st.builds(ToolResult, TEXTS, TEXTS, TEXTS), min_size=1, max_size=3).map(
    lambda parts: Message("tool", tuple(parts))
)


def clean(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@given(messages=st.lists(USERS | ASSISTANTS | RESULTS, max_size=5), tools=st.lists(TOOLS, max_size=3))
def test_whatever_is_said_is_sent_whole(messages: list[Message], tools: list[Tool]):
    body = sent(ChatRequest(messages, tools=tuple(tools)))
    texts = "".join(written.get("content") or "" for written in body["messages"])
    said = "".join(
        part.text if isinstance(part, Text) else part.content
        for message in messages
        for part in message.content
        if isinstance(part, Text | ToolResult)
    )
    assert clean(texts) == clean(said)
    calls = [call for written in body["messages"] for call in written.get("tool_calls", ())]
    made = [part for message in messages for part in message.content if isinstance(part, ToolCall)]
    assert [call["function"]["arguments"] for call in calls] == [clean(call.arguments) or "{}" for call in made]
    assert [tool["function"]["name"] for tool in body.get("tools", ())] == [clean(tool.name) for tool in tools]
    expected = sum(len(message.content) if message.role == "tool" else 1 for message in messages)
    assert len(body["messages"]) == expected


def test_numbers_that_json_cannot_hold_are_not_sent_as_nothing():
    for option in ("temperature", "top_p"):
        with pytest.raises(ValueError, match=option):
            sent(ChatRequest(HELLO, **{option: math.nan}))


def test_settings_that_cannot_work_are_refused():
    for wrong in (
        {"model": ""},
        {"base_url": "api.openai.com/v1"},
        {"base_url": "https://user:word@example.org/v1"},
        {"base_url": "https://example.org/v1?api-version=1"},
        {"headers": {"X-A": "a\nb"}},
        {"headers": {"X A": "a"}},
        {"body": {"messages": []}},
        {"extras": ("tools",)},
        {"timeout": 0.0},
        {"max_retries": -1},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            OpenAIChatSettings(**{"model": "m", **wrong})


def test_listing_what_it_registers_imports_no_vendor():
    import subprocess
    import sys

    code = (
        "import sys, portico_openai._plugin as p; p.portico_chat_services(); p.portico_embedding_generators(); "
        "print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"openai", "httpx2", "aiohttp", "numpy", "attr", "msgspec"} & set(loaded)
