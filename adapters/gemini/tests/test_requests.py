"""What is sent: each request of core becomes exactly this body."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
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
from portico_gemini._schemas import Declarations, narrowed
from portico_gemini._wire import request_body
from portico_gemini.config import GeminiChatSettings

TOWN = {"type": "object", "properties": {"town": {"type": "string"}}}
CLOCK = Tool("Clock-Now", "Tells the time.", TOWN)
DICE = Tool("Dice-Roll", "Rolls a die.", {"type": "object", "properties": {}})
CLOCK_SENT = {"name": "Clock-Now", "description": "Tells the time.", "parametersJsonSchema": TOWN}
DICE_SENT = {"name": "Dice-Roll", "description": "Rolls a die."}
HELLO = [Message.of("user", "Hello")]
HELLO_SENT = [{"role": "user", "parts": [{"text": "Hello"}]}]
UNSIGNED = {"thoughtSignature": "skip_thought_signature_validator"}


def sent(request: ChatRequest, **settings: Any) -> Any:
    made = GeminiChatSettings(**{"model": "gemini-3.8-flash", **settings})
    return json.loads(request_body(request, made, Declarations()))


def test_a_plain_question_is_the_least_that_can_be_sent():
    assert sent(ChatRequest(HELLO)) == {"contents": HELLO_SENT}


def test_every_option_has_its_field():
    request = ChatRequest(
        HELLO,
        temperature=0.0,
        top_p=0.5,
        max_tokens=9,
        stop=("END", "STOP"),
        seed=0,
        extras={"topK": 40, "cachedContent": "cachedContents/c1", "safetySettings": []},
    )
    assert sent(request) == {
        "contents": HELLO_SENT,
        "cachedContent": "cachedContents/c1",
        "safetySettings": [],
        "generationConfig": {
            "temperature": 0.0,
            "topP": 0.5,
            "maxOutputTokens": 9,
            "stopSequences": ["END", "STOP"],
            "seed": 0,
            "topK": 40,
        },
    }


@pytest.mark.parametrize(
    ("settings", "thinking"),
    [
        ({"thinking_level": "low"}, {"thinkingLevel": "LOW"}),
        ({"thinking_budget": 0}, {"thinkingBudget": 0}),
        ({"thinking_budget": -1, "include_thoughts": True}, {"thinkingBudget": -1, "includeThoughts": True}),
    ],
)
def test_how_much_is_thought_is_set(settings: dict[str, Any], thinking: dict[str, Any]):
    assert sent(ChatRequest(HELLO), **settings)["generationConfig"] == {"thinkingConfig": thinking}
    own = {"thinkingConfig": {"thinkingLevel": "HIGH"}}
    assert sent(ChatRequest(HELLO, extras=own), **settings)["generationConfig"] == own


def test_each_kind_of_message_has_its_form():
    messages = [
        Message.of("system", "Be ", "brief."),
        Message("user", (Text("What is this?"), Image(data=b"\x89PNG"), Audio(b"RIFF"))),
        Message.of("user", File(b"%PDF", "a.pdf", "application/pdf"), Image(url="https://example.org/a.jpg?x=1")),
        Message.of(
            "user",
            File(None, "v", "video/mp4", url="https://www.youtube.com/watch?v=1"),
            File(None, "f", "text/plain", url="https://generativelanguage.googleapis.com/v1beta/files/f1"),
            Audio(url="gs://bucket/speech"),
        ),
        Message("assistant", (Text("I look."), ToolCall("c1", "Clock-Now", '{"town":"Oslo"}'), ToolCall("c2", "x"))),
        Message.of("tool", ToolResult("c1", "Clock-Now", '{"time": "noon"}')),
        Message.of("system", "Speak Norwegian."),
        Message.of("tool", ToolResult("c2", "x", "no die", error=True)),
        Message("user", ()),
        Message("assistant", ()),
        Message.of("assistant", "It is noon."),
    ]
    assert sent(ChatRequest(messages)) == {
        "systemInstruction": {"parts": [{"text": "Be "}, {"text": "brief."}, {"text": "Speak Norwegian."}]},
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"text": "What is this?"},
                    {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}},
                    {"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"inlineData": {"mimeType": "application/pdf", "data": "JVBERg=="}},
                    {"fileData": {"fileUri": "https://example.org/a.jpg?x=1", "mimeType": "image/jpeg"}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"fileData": {"fileUri": "https://www.youtube.com/watch?v=1"}},
                    {"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/f1"}},
                    {"fileData": {"fileUri": "gs://bucket/speech", "mimeType": "audio/wav"}},
                ],
            },
            {
                "role": "model",
                "parts": [
                    {"text": "I look."},
                    {"functionCall": {"id": "c1", "name": "Clock-Now", "args": {"town": "Oslo"}}, **UNSIGNED},
                    {"functionCall": {"id": "c2", "name": "x", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "c1", "name": "Clock-Now", "response": {"time": "noon"}}},
                    {"functionResponse": {"id": "c2", "name": "x", "response": {"error": "no die"}}},
                ],
            },
            {"role": "user", "parts": [{"text": ""}]},
            {"role": "model", "parts": [{"text": "It is noon."}]},
        ],
    }


@pytest.mark.parametrize(("model", "is_sent"), [("gemini-2.5-pro", False), ("gemini-3.8-flash", True), ("x", True)])
def test_a_call_of_another_model_is_marked_for_models_that_want_signatures(model: str, is_sent: bool):
    (content,) = sent(ChatRequest([Message.of("assistant", ToolCall("c1", "x"))]), model=model)["contents"]
    assert (content["parts"][0].get("thoughtSignature") == UNSIGNED["thoughtSignature"]) is is_sent


def test_a_name_or_arguments_that_a_model_made_up_go_back_in_a_form_that_gemini_takes():
    calls = (ToolCall("c1", "multi tool/use", '{"a": '), ToolCall("c2", "9lives", "[1]"))
    results = (ToolResult("c1", "multi tool/use", "{}"), ToolResult("gone", "9lives", "[1]"))
    model, user = sent(ChatRequest([Message("assistant", calls), Message("tool", results)]))["contents"]
    assert [part["functionCall"]["name"] for part in model["parts"]] == ["multi_tool_use", "_9lives"]
    assert [part["functionCall"]["args"] for part in model["parts"]] == [{"arguments": '{"a": '}, {"arguments": [1]}]
    answers = [part["functionResponse"] for part in user["parts"]]
    assert [answer["name"] for answer in answers] == ["multi_tool_use", "_9lives"]
    assert [answer["response"] for answer in answers] == [{}, {"result": [1]}]


def test_reasoning_of_unknown_makers_goes_back_where_its_form_is_geminis():
    for data, is_sent in (
        ({"text": "Hm.", "thought": True}, True),
        ({"executableCode": {"language": "PYTHON", "code": "1"}}, True),
        ({"reasoning": "Hm."}, False),
        ({"type": "thinking", "thinking": "Hm.", "signature": "s"}, False),
        ("words", False),
    ):
        (content,) = sent(ChatRequest([Message.of("assistant", Reasoning(data), "Yes.")]))["contents"]
        assert content["parts"] == [*([data] if is_sent else []), {"text": "Yes."}]


@pytest.mark.parametrize(
    ("choice", "tools", "config"),
    [
        (ToolChoice(), [CLOCK_SENT, DICE_SENT], None),
        (ToolChoice("none"), None, None),
        (ToolChoice("auto", include=("Dice-Roll",)), [DICE_SENT], None),
        (ToolChoice("required"), [CLOCK_SENT, DICE_SENT], {"mode": "ANY"}),
        (
            ToolChoice("required", exclude=("Dice-Roll",)),
            [CLOCK_SENT],
            {"mode": "ANY", "allowedFunctionNames": ["Clock-Now"]},
        ),
    ],
)
def test_the_tools_that_are_offered_are_sent_and_no_others(choice: ToolChoice, tools: Any, config: Any):
    body = sent(ChatRequest(HELLO, tools=(CLOCK, DICE), tool_choice=choice))
    assert body.get("tools") == (tools and [{"functionDeclarations": tools}])
    assert body.get("toolConfig") == (config and {"functionCallingConfig": config})


def test_a_call_that_is_required_of_no_tool_is_a_mistake():
    with pytest.raises(ValueError, match="no tool is offered"):
        sent(ChatRequest(HELLO, tool_choice=ToolChoice("required")))


def test_google_is_searched_where_the_setting_or_the_request_says_so():
    search = [{"googleSearch": {}}]
    on, off = (ChatRequest(HELLO, extras={"web_search": wanted}) for wanted in (True, False))
    assert sent(on)["tools"] == sent(ChatRequest(HELLO), web_search=True)["tools"] == search
    assert "tools" not in sent(ChatRequest(HELLO))
    assert "tools" not in sent(off, web_search=True)
    both = ChatRequest(HELLO, tools=(DICE,))
    for settings, config in (
        ({}, {"includeServerSideToolInvocations": True}),
        ({"through": "vertex", "project": "p"}, None),
    ):
        body = sent(both, web_search=True, **settings)
        assert body["tools"] == [{"functionDeclarations": [DICE_SENT]}, *search]
        assert body.get("toolConfig") == config


def test_a_reply_is_held_to_its_schema_or_to_be_json():
    bare = sent(ChatRequest(HELLO, response_schema={"type": "object"}))
    held = sent(ChatRequest(HELLO, response_schema=TOWN))
    assert bare["generationConfig"] == {"responseMimeType": "application/json"}
    assert held["generationConfig"] == {"responseMimeType": "application/json", "responseJsonSchema": TOWN}


@pytest.mark.parametrize(
    ("schema", "taken"),
    [
        ({"$schema": "x", "type": "string", "pattern": "a", "minLength": 1, "default": "a"}, {"type": "string"}),
        ({"type": "string", "format": "email"}, {"type": "string"}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        ({"const": "hat"}, {"type": "string", "enum": ["hat"]}),
        ({"enum": [1, 2.5], "description": "d"}, {"type": "number", "enum": [1, 2.5], "description": "d"}),
        (
            {"enum": ["a", None, True]},
            {"anyOf": [{"type": "null"}, {"type": "boolean"}, {"type": "string", "enum": ["a"]}]},
        ),
        ({"type": "integer", "exclusiveMinimum": 0}, {"type": "integer", "minimum": 1}),
        ({"type": "integer", "exclusiveMinimum": 0.5}, {"type": "integer", "minimum": 1}),
        ({"type": "integer", "exclusiveMaximum": 2.5}, {"type": "integer", "maximum": 2}),
        ({"type": "number", "exclusiveMaximum": 1}, {"type": "number", "maximum": 1}),
        ({"$ref": "#/definitions/a", "description": "d"}, {"$ref": "#/$defs/a"}),
        ({"type": "array", "items": True, "uniqueItems": True}, {"type": "array", "items": True}),
        ({"properties": {"pattern": {"not": {}}, "a": True}}, {"properties": {"pattern": {}, "a": {}}}),
        ({"additionalProperties": False, "anyOf": [{"allOf": []}]}, {"additionalProperties": False, "anyOf": [{}]}),
    ],
    ids=str,
)
def test_a_schema_has_only_what_gemini_takes(schema: dict[str, Any], taken: dict[str, Any]):
    assert narrowed(schema) == taken


def test_a_circle_is_taken_out_of_what_is_required():
    node = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "parts": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
        "required": ["name", "parts"],
    }
    tree = {"properties": {"tree": {"$ref": "#/$defs/node"}}, "required": ["tree"], "$defs": {"node": node}}
    written = narrowed(tree)
    assert written["required"] == ["tree"]
    assert written["$defs"]["node"] == {**node, "required": ["name"]}
    assert node["required"] == ["name", "parts"], "the caller's schema stays as it is"


def test_fields_of_the_settings_go_with_every_request_and_a_requests_own_win():
    settings = {"body": {"labels": {"a": "b"}, "generationConfig": {"topK": 3, "temperature": 1.0}}}
    own = ChatRequest(HELLO, temperature=0.5, extras={"labels": {"c": "d"}})
    assert sent(ChatRequest(HELLO), **settings) == {"contents": HELLO_SENT, **settings["body"]}
    assert sent(own, **settings) == {
        "contents": HELLO_SENT,
        "labels": {"c": "d"},
        "generationConfig": {"topK": 3, "temperature": 0.5},
    }


async def test_what_gemini_does_not_take_is_refused_by_name_and_nothing_is_sent(loopback, make_chat):
    bare = make_chat(tools=False, response_schema=False)
    odd = ChatRequest(
        [Message.of("user", Image(b"x", media_type="image/gif"), Source(1, "passage"))],
        tools=(DICE,),
        response_schema=TOWN,
        response_strict=True,
        extras={"candidateCount": 3},
    )
    for call in (bare.complete(odd), anext(bare.stream(odd))):
        with pytest.raises(UnsupportedOption) as caught:
            await call
        for option in ("tools", "response_schema", "strict", "image/gif", "sources", "extras.candidateCount"):
            assert option in str(caught.value)
    assert loopback.visits == []


@pytest.mark.parametrize(
    "message",
    [
        Message.of("assistant", Image(data=b"x")),
        Message.of("system", Image(data=b"x")),
        Message.of("tool", "words"),
        Message("tool", ()),
        Message.of("user", Image()),
        Message.of("user", Audio(b"x", url="https://example.org/")),
        Message.of("user", ToolCall("c1", "x")),
    ],
)
def test_a_message_that_has_no_form_on_the_wire_is_a_mistake(message: Message):
    with pytest.raises(ValueError, match=r"holds|hold|either"):
        sent(ChatRequest([message]))


def test_numbers_that_json_cannot_hold_are_not_sent_as_nothing():
    with pytest.raises(ValueError, match="temperature"):
        sent(ChatRequest(HELLO, temperature=math.nan))


TEXTS = st.text(st.characters(), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=3)
USERS = st.builds(Message, st.sampled_from(["system", "user"]), st.lists(st.builds(Text, TEXTS), max_size=3).map(tuple))
ASSISTANTS = st.lists(
    st.builds(Text, TEXTS) | st.builds(ToolCall, TEXTS, TEXTS, OBJECTS.map(json.dumps)) | st.builds(Reasoning, JSON),
    max_size=4,
).map(lambda parts: Message("assistant", tuple(parts)))
RESULTS = st.lists(st.builds(ToolResult, TEXTS, TEXTS, TEXTS | JSON.map(json.dumps)), min_size=1, max_size=3).map(
    lambda parts: Message("tool", tuple(parts))
)


def clean(value: Any) -> Any:
    """Return the value without halves of surrogate pairs, which UTF-8 cannot hold."""
    return json.loads(
        json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )


def read(text: str, words: Any) -> Any:
    """Return the JSON that a text is, or else ``words``: also where it names half a surrogate pair."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return words


@given(messages=st.lists(USERS | ASSISTANTS | RESULTS, max_size=5))
def test_whatever_is_said_is_sent_whole(messages: list[Message]):
    body = sent(ChatRequest(messages))
    parts = [part for content in body["contents"] for part in content["parts"]]
    said = [part for message in messages for part in message.content if message.role != "system"]
    assert clean("".join(part["text"] for part in parts if "text" in part)) == clean(
        "".join(part.text for part in said if isinstance(part, Text))
    )
    system = "".join(part["text"] for part in body.get("systemInstruction", {"parts": []})["parts"])
    assert system == clean("".join(message.text for message in messages if message.role == "system"))
    calls = [part["functionCall"]["args"] for part in parts if "functionCall" in part]
    made = [part.arguments for part in said if isinstance(part, ToolCall)]
    assert calls == [clean(read(arguments, {"arguments": arguments})) for arguments in made]
    answers = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
    results = [part.content for part in said if isinstance(part, ToolResult)]
    assert len(answers) == len(results)
    for answer, content in zip(answers, results, strict=True):
        value = read(content, content)
        assert answer == clean(value if isinstance(value, dict) else {"result": value})


@given(schema=OBJECTS)
def test_any_schema_can_be_narrowed_and_stays_so(schema: dict[str, Any]):
    once = narrowed(schema)
    assert narrowed(once) == once
