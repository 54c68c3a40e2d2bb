"""What is sent: each request of core becomes exactly this body."""

from __future__ import annotations

import json
import math
from itertools import pairwise
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
from portico.plugins import Secret
from portico_anthropic._wire import capabilities, request_body
from portico_anthropic.config import AnthropicChatSettings

CLOCK = Tool("Clock-Now", "Tells the time.", {"type": "object", "properties": {"town": {"type": "string"}}})
DICE = Tool("Dice-Roll", "Rolls a die.", {"type": "object", "properties": {}, "additionalProperties": False}, True)
CLOCK_SENT = {
    "name": "Clock-Now",
    "description": "Tells the time.",
    "input_schema": {"type": "object", "properties": {"town": {"type": "string"}}},
}
DICE_SENT = {
    "name": "Dice-Roll",
    "description": "Rolls a die.",
    "input_schema": {"type": "object", "properties": {}, "additionalProperties": False},
    "strict": True,
}
SEARCH_SENT = {"type": "web_search_20250305", "name": "web_search"}
HELLO = [Message.of("user", "Hello")]
PLAIN = {
    "model": "m-1",
    "max_tokens": 16_384,
    "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
}
MAKER = "anthropic at api.anthropic.com"
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}


def sent(request: ChatRequest, *, stream: bool = False, **settings: Any) -> Any:
    made = AnthropicChatSettings(**{"model": "m-1", **settings})
    return json.loads(request_body(request, made, stream=stream))


def turns(*messages: Message, **settings: Any) -> list[tuple[str, list[Any]]]:
    return [(each["role"], each["content"]) for each in sent(ChatRequest(messages), **settings)["messages"]]


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def test_a_plain_question_is_the_least_that_can_be_sent():
    assert sent(ChatRequest(HELLO)) == PLAIN
    assert sent(ChatRequest(HELLO), stream=True) == {**PLAIN, "stream": True}


def test_every_option_has_its_field():
    request = ChatRequest(
        HELLO,
        temperature=0.0,
        top_p=0.5,
        max_tokens=9,
        stop=("END", "STOP"),
        extras={"top_k": 3, "metadata": {"user_id": "u"}, "service_tier": "standard_only", "effort": "low"},
    )
    assert sent(request, effort="high") == {
        **PLAIN,
        "max_tokens": 9,
        "temperature": 0.0,
        "top_p": 0.5,
        "top_k": 3,
        "stop_sequences": ["END", "STOP"],
        "metadata": {"user_id": "u"},
        "service_tier": "standard_only",
        "output_config": {"effort": "low"},
    }
    assert sent(ChatRequest(HELLO), max_tokens=50, effort="high", body={"service_tier": "auto"}) == {
        **PLAIN,
        "max_tokens": 50,
        "service_tier": "auto",
        "output_config": {"effort": "high"},
    }


def test_each_kind_of_message_has_its_form():
    messages = [
        Message.of("system", "Be ", "brief."),
        Message.of("system", "Be kind."),
        Message.of(
            "user",
            "What is this?",
            Image(data=b"\x89PNG"),
            Image(url="https://example.org/a.jpg"),
            File(b"%PDF", "a.pdf", "application/pdf"),
            File(None, "", "application/pdf", url="https://example.org/b.pdf"),
            File("Zoë".encode(), "c.md", "text/markdown"),
        ),
        Message.of(
            "assistant",
            Reasoning(THOUGHT, "Hm.", MAKER),
            "I look.",
            ToolCall("c1", "Clock-Now", '{"town": "Oslo"}'),
            ToolCall("c2", "Dice-Roll", ""),
        ),
        Message.of("tool", ToolResult("c1", "Clock-Now", "noon")),
        Message.of("tool", ToolResult("c2", "Dice-Roll", "no die", error=True)),
        Message.of("user", "And?"),
    ]
    body = sent(ChatRequest(messages))
    assert body["system"] == "Be brief.\n\nBe kind."
    assert [(each["role"], each["content"]) for each in body["messages"]] == [
        (
            "user",
            [
                text("What is this?"),
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}},
                {"type": "image", "source": {"type": "url", "url": "https://example.org/a.jpg"}},
                {
                    "type": "document",
                    "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
                    "title": "a.pdf",
                },
                {"type": "document", "source": {"type": "url", "url": "https://example.org/b.pdf"}},
                {
                    "type": "document",
                    "source": {"type": "text", "media_type": "text/plain", "data": "Zoë"},
                    "title": "c.md",
                },
            ],
        ),
        (
            "assistant",
            [
                THOUGHT,
                text("I look."),
                {"type": "tool_use", "id": "c1", "name": "Clock-Now", "input": {"town": "Oslo"}},
                {"type": "tool_use", "id": "c2", "name": "Dice-Roll", "input": {}},
            ],
        ),
        (
            "user",
            [
                {"type": "tool_result", "tool_use_id": "c1", "content": "noon"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "no die", "is_error": True},
                text("And?"),
            ],
        ),
    ]


def test_results_come_first_in_their_turn():
    call = Message.of("assistant", ToolCall("c1", "x"), ToolCall("c2", "y"))
    results = [ToolResult("c1", "x", "1"), ToolResult("c2", "y", "2")]
    for told in (
        [Message.of("user", "Wait.", *results)],
        [Message.of("user", "Wait.", results[0]), Message.of("tool", results[1])],
        [Message.of("tool", results[0]), Message.of("user", "Wait."), Message.of("tool", results[1])],
    ):
        *_, (_, last) = turns(call, *told)
        assert [block.get("content") or block["text"] for block in last] == ["1", "2", "Wait."]


def test_a_later_system_message_is_joined_to_the_first_or_stays_in_its_place():
    messages = (Message.of("system", "A."), *HELLO, Message.of("system", "B."), Message.of("user", "Hi"))
    joined = sent(ChatRequest(messages))
    assert joined["system"] == "A.\n\nB."
    assert [each["role"] for each in joined["messages"]] == ["user"]
    in_place = sent(ChatRequest(messages), system_in_place=True)
    assert in_place["system"] == "A."
    assert [(each["role"], each["content"][0]["text"]) for each in in_place["messages"]] == [
        ("user", "Hello"),
        ("system", "B."),
        ("user", "Hi"),
    ]


def test_identifiers_are_of_letters_that_are_taken_and_none_stands_for_two_calls():
    def round_of(id: str) -> list[Message]:
        return [Message.of("assistant", ToolCall(id, "a.b")), Message.of("tool", ToolResult(id, "a.b", "r"))]

    written = turns(*round_of("call:0"), *round_of("call:0"), *round_of("call_0"))
    calls = [block for role, blocks in written for block in blocks if block["type"] == "tool_use"]
    results = [block["tool_use_id"] for _, blocks in written for block in blocks if block["type"] == "tool_result"]
    assert [call["id"] for call in calls] == results == ["call_0", "call_0_", "call_0__"]
    assert {call["name"] for call in calls} == {"a_b"}


@pytest.mark.parametrize("arguments", ["[1]", "no JSON", '{"a": ', "null", '{"a": "\ud800"}'])
def test_arguments_that_are_no_object_go_back_in_one(arguments: str):
    ((_, (call,)),) = turns(Message.of("assistant", ToolCall("c", "x", arguments)))
    assert call["input"] == {"INVALID_JSON": clean(arguments)}


@pytest.mark.parametrize(
    ("part", "goes_back"),
    [
        (Reasoning(THOUGHT, "Hm.", MAKER), True),
        (Reasoning(THOUGHT, "Hm."), True),
        (Reasoning({"type": "redacted_thinking", "data": "x"}), True),
        (Reasoning({"type": "web_search_tool_result", "content": []}, None, MAKER), True),
        (Reasoning(THOUGHT, "Hm.", "anthropic at elsewhere.example"), False),
        (Reasoning({"type": "thinking", "thinking": "Hm."}), False),
        (Reasoning({"reasoning_content": "Hm."}), False),
        (Reasoning("Hm."), False),
        (Reasoning(object(), None, MAKER), False),
    ],
)
def test_what_this_service_thought_goes_back_and_nothing_of_another(part: Reasoning, goes_back: bool):
    ((_, blocks),) = turns(Message.of("assistant", part, "Yes."))
    assert blocks == ([part.data] if goes_back else []) + [text("Yes.")]


@pytest.mark.parametrize(
    ("choice", "tools", "word"),
    [
        (ToolChoice(), [CLOCK_SENT, DICE_SENT], None),
        (ToolChoice("none"), [CLOCK_SENT, DICE_SENT], {"type": "none"}),
        (ToolChoice("auto", exclude=("Clock-Now", "Dice-Roll")), None, None),
        (ToolChoice("auto", include=("Dice-Roll",)), [DICE_SENT], None),
        (ToolChoice("required"), [CLOCK_SENT, DICE_SENT], {"type": "any"}),
        (ToolChoice("required", include=("Clock-Now",)), [CLOCK_SENT], {"type": "tool", "name": "Clock-Now"}),
    ],
)
def test_how_tools_may_be_called_is_said(choice: ToolChoice, tools: Any, word: Any):
    expected = {**PLAIN, "tools": tools, "tool_choice": word}
    request = ChatRequest(HELLO, tools=(CLOCK, DICE), tool_choice=choice)
    assert sent(request) == {key: value for key, value in expected.items() if value is not None}
    searching = sent(request, web_search=True)
    # A search neither stands in for a call that must be made, nor is it forbidden with the calls.
    offered = [] if choice.mode == "none" else tools or []
    assert searching["tools"] == offered + ([] if choice.mode == "required" else [SEARCH_SENT])
    assert searching.get("tool_choice") == (word if choice.mode == "required" else None)


def test_calls_one_at_a_time_are_asked_for_by_either_name():
    for extras in ({"parallel_tool_calls": False}, {"disable_parallel_tool_use": True}):
        one = ChatRequest(HELLO, tools=(CLOCK,), extras=extras)
        assert sent(one)["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
        assert sent(ChatRequest(HELLO, extras=extras)) == PLAIN
        must = ChatRequest(HELLO, tools=(CLOCK, DICE), tool_choice=ToolChoice("required"), extras=extras)
        assert sent(must)["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}


def test_a_history_of_calls_has_tools_even_where_none_is_offered():
    history = [*HELLO, Message.of("assistant", ToolCall("c1", "x")), Message.of("tool", ToolResult("c1", "x", "1"))]
    body = sent(ChatRequest(history))
    assert [tool["name"] for tool in body["tools"]] == ["x"]
    assert body["tool_choice"] == {"type": "none"}


def test_a_call_that_is_required_of_no_tool_is_a_mistake():
    with pytest.raises(ValueError, match="no tool is offered"):
        sent(ChatRequest(HELLO, tool_choice=ToolChoice("required")))


def test_a_schema_is_sent_in_the_form_that_is_held_or_told_in_words():
    schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}, "required": ["a"]}
    body = sent(ChatRequest(HELLO, response_schema=schema, extras={"effort": "low"}))
    assert body["output_config"]["effort"] == "low"
    form = body["output_config"]["format"]
    assert form["type"] == "json_schema"
    assert form["schema"]["additionalProperties"] is False
    assert "minimum" not in form["schema"]["properties"]["a"]
    by_name = {"type": "object", "additionalProperties": {"type": "integer"}}
    told = sent(ChatRequest(HELLO, response_schema=by_name))
    assert "output_config" not in told
    assert json.dumps(by_name) in told["system"]


@pytest.mark.parametrize(
    ("settings", "thinking"),
    [
        ({}, None),
        ({"thinking": "off"}, {"type": "disabled"}),
        ({"thinking": "adaptive"}, {"type": "adaptive", "display": "summarized"}),
        ({"thinking": "between_tools"}, {"type": "between_tools"}),
        ({"thinking": "budget", "thinking_budget": 2_000}, {"type": "enabled", "budget_tokens": 2_000}),
    ],
)
def test_thinking_is_as_set_unless_a_call_is_required_or_the_request_says_otherwise(settings, thinking):
    assert sent(ChatRequest(HELLO), **settings).get("thinking") == thinking
    required = ChatRequest(HELLO, tools=(CLOCK,), tool_choice=ToolChoice("required"))
    assert sent(required, **settings).get("thinking") in (None, {"type": "disabled"})
    own = ChatRequest(HELLO, extras={"thinking": {"type": "disabled"}})
    assert sent(own, **settings)["thinking"] == {"type": "disabled"}


def test_newer_models_drop_thinking_that_a_change_made_invalid_and_are_asked_for_a_call():
    """They refuse a conversation whose beginning has changed otherwise, and calls that are forced."""
    newer = {"model": "claude-sonnet-5-5"}
    binding = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    assert sent(ChatRequest(HELLO), **newer)["thinking"] == {"type": "adaptive", **binding}
    shown = {"type": "adaptive", "display": "summarized", **binding}
    assert sent(ChatRequest(HELLO), thinking="adaptive", **newer)["thinking"] == shown
    result = Message.of("tool", ToolResult("c", "Clock-Now", "noon"))
    asked = [*HELLO, Message.of("assistant", ToolCall("c", "Clock-Now")), result]
    body = sent(ChatRequest(asked, tools=(CLOCK,), tool_choice=ToolChoice("required")), web_search=True, **newer)
    assert "tool_choice" not in body
    assert body["tools"] == [CLOCK_SENT]
    assert body["thinking"] == {"type": "adaptive", **binding}
    assert [block["type"] for block in body["messages"][-1]["content"]] == ["tool_result", "text"]
    assert sent(ChatRequest(HELLO), preserved_thinking=False, **newer) == PLAIN | newer


def test_a_turn_that_began_without_thinking_ends_without_it():
    """Thinking with a budget must stand at the beginning of a turn, where there is none if a call was forced."""
    thought = Reasoning(THOUGHT, "Hm.", MAKER)
    calls = [
        Message.of("assistant", ToolCall("c1", "x")),
        Message.of("tool", ToolResult("c1", "x", "1")),
        Message.of("assistant", ToolCall("c2", "x")),
        Message.of("tool", ToolResult("c2", "x", "2")),
    ]
    thinking = Message("assistant", (thought, *calls[0].content))
    for messages, thinks in (
        ([*HELLO, *calls], False),
        ([*HELLO, thinking, *calls[1:]], True),
        ([*HELLO, *calls, Message.of("assistant", "Two."), *HELLO], True),
    ):
        assert ("thinking" in sent(ChatRequest(messages), thinking="budget")) is thinks


@pytest.mark.parametrize(("limit", "budget"), [(9_000, 8_192), (4_000, 3_999), (1_024, None)])
def test_a_request_with_a_lower_limit_thinks_less(limit: int, budget: int | None):
    body = sent(ChatRequest(HELLO, max_tokens=limit), thinking="budget")
    assert body.get("thinking", {}).get("budget_tokens") == budget


def test_thinking_that_nothing_follows_is_not_sent():
    thought = Reasoning(THOUGHT, "Hm.", MAKER)
    cut = [*HELLO, Message.of("assistant", thought, ""), Message.of("user", "And?")]
    assert turns(*cut) == [("user", [text("Hello"), text("And?")])]
    assert turns(Message.of("assistant", "Yes.", thought)) == [("assistant", [text("Yes.")])]


def test_what_is_kept_is_marked_where_others_have_it_too_and_at_the_end():
    mark = {"type": "ephemeral", "ttl": "1h"}
    asked = ChatRequest([Message.of("system", "Be brief."), *HELLO], tools=(CLOCK, DICE))
    body = sent(asked, cache="1h")
    assert body["system"] == [{**text("Be brief."), "cache_control": mark}]
    assert body["cache_control"] == mark
    assert body["tools"] == [CLOCK_SENT, DICE_SENT]
    bare = sent(ChatRequest(HELLO, tools=(CLOCK, DICE)), cache="1h")
    assert bare["tools"] == [CLOCK_SENT, {**DICE_SENT, "cache_control": mark}]
    # Elsewhere the service does not find the end by itself.
    bedrock = sent(asked, cache="1h", through="bedrock", aws_region="eu-west-1")
    assert "cache_control" not in bedrock
    assert bedrock["messages"][-1]["content"][-1] == {**text("Hello"), "cache_control": mark}


def test_a_search_is_offered_as_set_and_a_request_may_say_otherwise():
    options = {"max_uses": 3, "allowed_domains": ["example.org"]}
    assert sent(ChatRequest(HELLO), web_search=True, web_search_options=options)["tools"] == [SEARCH_SENT | options]
    newer = {"type": "web_search_20260318"}
    assert sent(ChatRequest(HELLO), web_search=True, web_search_options=newer)["tools"] == [SEARCH_SENT | newer]
    assert sent(ChatRequest(HELLO, extras={"web_search": True}))["tools"] == [SEARCH_SENT]
    assert sent(ChatRequest(HELLO, extras={"web_search": False}), web_search=True) == PLAIN


async def test_what_is_not_taken_is_refused_by_name_and_nothing_is_sent(loopback, make_chat):
    loopback.will(loopback.whole(loopback.message()))
    bare = make_chat(sampling=False, tools=False, response_schema=False, images=False, files=False, strict=False)
    odd = ChatRequest(
        [Message.of("user", Image(data=b"x"), File(b"x", "a", "text/plain"), Source(1, "passage"), Audio(b"x"))],
        tools=(DICE,),
        response_schema={"type": "object"},
        response_strict=True,
        temperature=0.5,
        top_p=0.5,
        seed=1,
        extras={"top_k": 3},
    )
    names = "tools response_schema strict images files audio sources temperature top_p seed extras.top_k"
    for call in (bare.complete(odd), anext(bare.stream(odd))):
        with pytest.raises(UnsupportedOption) as caught:
            await call
        assert [option for option in names.split() if option not in str(caught.value)] == []
    for part in (Image(data=b"x", media_type="image/tiff"), File(b"x", "a.zip", "application/zip")):
        with pytest.raises(UnsupportedOption, match="attached of the type"):
            await make_chat().complete(ChatRequest([Message.of("user", part)]))
    with pytest.raises(UnsupportedOption, match="links"):
        linked = ChatRequest([Message.of("user", Image(url="https://example.org/a.png"))])
        await make_chat(through="vertex", project="p", api_key=None, auth_token=bare._settings.api_key).complete(linked)
    assert loopback.visits == []
    await make_chat(extras=("top_n",)).complete(ChatRequest(HELLO, extras={"top_n": 3}))
    assert loopback.visits[0].json == {**PLAIN, "top_n": 3}


@pytest.mark.parametrize(
    "message",
    [
        Message.of("assistant", Image(data=b"x")),
        Message.of("tool", "words"),
        Message("tool", ()),
        Message.of("tool", ToolResult("c1", "x", "y"), Text("words")),
        Message.of("user", Image()),
        Message.of("user", Image(data=b"x", url="https://example.org/")),
        Message.of("user", File(None, "a", "application/pdf")),
        Message.of("user", File(None, "a.md", "text/markdown", url="https://example.org/a.md")),
        Message.of("user", ToolCall("c1", "x")),
        Message.of("user", "words", Reasoning({})),
        Message.of("system", Image(data=b"x")),
    ],
)
def test_a_message_that_has_no_form_on_the_wire_is_a_mistake(message: Message):
    with pytest.raises(ValueError, match=r"holds|hold|either|is a PDF"):
        sent(ChatRequest([message]))


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        ("claude-opus-4-6", True),
        ("claude-haiku-4-5-20251001", True),
        ("claude-sonnet-4-20250514", True),
        ("claude-3-5-sonnet-20241022", True),
        ("anthropic.claude-opus-4-6-v1", True),
        ("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", True),
        ("SmolLM2-135M-Instruct", True),
        ("claude-opus-4-7", False),
        ("claude-sonnet-5", False),
        ("claude-sonnet-5-5@20260601", False),
        ("anthropic.claude-fable-5-1", False),
        ("claude-mythos-preview", False),
    ],
)
def test_only_older_models_take_a_temperature(model: str, takes: bool):
    assert ("temperature" in capabilities(AnthropicChatSettings(model=model)).sampling) is takes
    told = capabilities(AnthropicChatSettings(model=model, sampling=not takes))
    assert ("temperature" in told.sampling) is not takes


@pytest.mark.parametrize("thinking", ["adaptive", "between_tools", "budget"])
def test_a_model_that_thinks_takes_no_temperature(thinking: Any):
    made = AnthropicChatSettings(model="claude-sonnet-4-5", thinking=thinking)
    assert capabilities(made).sampling == {"max_tokens", "stop"}


def test_a_number_that_is_none_is_a_mistake():
    with pytest.raises(ValueError, match="finite"):
        sent(ChatRequest(HELLO, temperature=math.nan))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"through": "bedrock"}, "needs aws_region"),
        ({"through": "vertex"}, "needs project"),
        ({"aws_region": "eu-west-1"}, "aws_region is for bedrock: set through = 'bedrock' too"),
        ({"project": "p"}, "project is for vertex"),
        ({"aws_access_key": "a"}, "together"),
        ({"api_key": "a", "auth_token": "b"}, "give one of them"),
        ({"through": "vertex", "project": "p", "api_key": "a"}, "Vertex takes no api_key"),
        ({"through": "bedrock", "aws_region": "r", "api_key": "a", "aws_profile": "p"}, "instead of aws_access_key"),
        ({"thinking": "budget", "max_tokens": 4_096}, "less than max_tokens, which is 4096"),
        ({"thinking_budget": 100}, "thinking_budget"),
        ({"through": "bedrock", "aws_region": "r", "web_search": True}, "no web_search"),
        ({"body": {"system": "x"}}, "may not name system"),
    ],
)
def test_settings_that_do_not_go_together_are_one_clear_error(settings: dict[str, Any], said: str):
    secret = {"api_key", "auth_token", "aws_access_key"}
    made = {name: Secret(value) if name in secret else value for name, value in settings.items()}
    with pytest.raises(ValueError, match=said):
        AnthropicChatSettings(model="m", **made)


TEXTS = st.text(st.characters(), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=3)
TOOLS = st.builds(Tool, TEXTS, TEXTS, OBJECTS)
USERS = st.builds(Message, st.sampled_from(["system", "user"]), st.lists(st.builds(Text, TEXTS), max_size=3).map(tuple))
CALLS = st.builds(ToolCall, TEXTS, TEXTS, TEXTS | OBJECTS.map(json.dumps))
ASSISTANTS = st.lists(st.builds(Text, TEXTS) | CALLS | st.builds(Reasoning, JSON), max_size=4).map(
    lambda parts: Message("assistant", tuple(parts))
)
RESULTS = st.lists(st.builds(ToolResult, TEXTS, TEXTS, TEXTS), min_size=1, max_size=3).map(
    lambda parts: Message("tool", tuple(parts))
)


def clean(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def an_object(text: str) -> dict[str, Any] | None:
    """Return the object that a text is in UTF-8."""
    try:
        value = json.loads(text or "{}")
        json.dumps(value, ensure_ascii=False).encode()
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def letters(texts: Any) -> str:
    """Return what is said, white space apart: a text of nothing else is not taken."""
    return "".join(sorted("".join(clean("".join(texts)).split())))


@given(
    messages=st.lists(USERS | ASSISTANTS | RESULTS, max_size=5), tools=st.lists(TOOLS, max_size=3), kept=st.booleans()
)
def test_whatever_is_said_is_sent_whole(messages: list[Message], tools: list[Tool], kept: bool):
    body = sent(ChatRequest(messages, tools=tuple(tools)), cache="5m" if kept else "off")
    parts = [part for message in messages for part in message.content]
    blocks = [block for turn in body["messages"] for block in turn["content"]]
    system = body.get("system", "")
    told = [system] if isinstance(system, str) else [block["text"] for block in system]
    told += [block.get("text") or block.get("content") or "" for block in blocks]
    assert letters(told) == letters(
        part.text if isinstance(part, Text) else part.content for part in parts if isinstance(part, Text | ToolResult)
    )
    made = [part for part in parts if isinstance(part, ToolCall)]
    calls = [block for block in blocks if block["type"] == "tool_use"]
    for call, part in zip(calls, made, strict=True):
        value = an_object(part.arguments)
        assert call["input"] == ({"INVALID_JSON": clean(part.arguments)} if value is None else value)
    assert len({call["id"] for call in calls}) == len(calls)
    if tools:
        assert [tool["name"] for tool in body["tools"]] == [clean(tool.name) for tool in tools]
    roles = [turn["role"] for turn in body["messages"]]
    assert all(one != other for one, other in pairwise(roles))
    assert all(turn["content"] for turn in body["messages"])
