"""Replies that are tool calls, and the instructions that tell a model how to write them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator

from portico import ChatRequest, Message, Tool, ToolCall, ToolChoice, ToolResult
from portico_llamacpp._exchange import body_of, instruction, plain_messages, read_call, reply_schema
from portico_llamacpp._wire import About, guard_of
from portico_llamacpp.config import LlamaCppSettings

PLAIN = guard_of(())
ABOUT = About(address="", model="m", context_size=8192, tools=False, control=())
CLOCK = Tool(
    "Clock-Now",
    "Tell the\n time.",
    {
        "type": "object",
        "properties": {"town": {"$ref": "#/$defs/town"}},
        "required": ["town"],
        "$defs": {"town": {"type": "string"}},
    },
)
DICE = Tool("Dice-Roll", "Roll.", {})
QUESTION = [Message.of("user", "What time is it?")]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(JSON)
def test_an_answer_is_its_words_or_its_json(answer: Any) -> None:
    words, call = read_call(json.dumps({"answer": answer}))
    assert (words if isinstance(answer, str) else json.loads(words)) == answer
    assert call is None


@given(st.dictionaries(st.text(), JSON, max_size=3))
def test_a_call_has_its_arguments(arguments: dict[str, Any]) -> None:
    words, call = read_call(json.dumps({"tool": "Clock-Now", "arguments": arguments}) + "\n")
    assert call is not None
    assert (words, call.name, json.loads(call.arguments)) == ("", "Clock-Now", arguments)


def test_half_a_surrogate_pair_becomes_a_replacement_character() -> None:
    assert read_call(r'{"answer": "a\ud83d\n\ude00 \ud83d\ude00"}')[0] == "a\ufffd\n\ufffd 😀"


@pytest.mark.parametrize(
    "text", ["", "Hello.", '{"answer": "x"', '{"other": 1}', "[]", '{"tool": "x", "arguments": 5}']
)
def test_a_reply_of_another_form_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_call(text)


def test_the_schema_lets_through_calls_of_offered_tools_and_answers() -> None:
    validator = Draft202012Validator(reply_schema(ChatRequest(QUESTION, tools=(CLOCK, DICE))))
    assert validator.is_valid({"answer": "It is noon."})
    assert validator.is_valid({"tool": "Clock-Now", "arguments": {"town": "Oslo"}})
    assert validator.is_valid({"tool": "Dice-Roll", "arguments": {"anything": 1}})
    assert not validator.is_valid({"tool": "Clock-Now", "arguments": {"town": 5}})
    assert not validator.is_valid({"tool": "Dice-Roll", "arguments": []})
    assert not validator.is_valid({"tool": "Nobody", "arguments": {}})
    assert not validator.is_valid("It is noon.")


def test_a_call_that_is_required_leaves_no_answer_and_tools_left_out_cannot_be_called() -> None:
    choice = ToolChoice("required", exclude=("Dice-Roll",))
    validator = Draft202012Validator(reply_schema(ChatRequest(QUESTION, tools=(CLOCK, DICE), tool_choice=choice)))
    assert validator.is_valid({"tool": "Clock-Now", "arguments": {"town": "Oslo"}})
    assert not validator.is_valid({"answer": "It is noon."})
    assert not validator.is_valid({"tool": "Dice-Roll", "arguments": {}})


def test_an_answer_beside_tools_is_held_to_the_schema_of_replies() -> None:
    schema = {"$ref": "#/$defs/hour", "$defs": {"hour": {"type": "integer"}}}
    validator = Draft202012Validator(reply_schema(ChatRequest(QUESTION, tools=(CLOCK,), response_schema=schema)))
    assert validator.is_valid({"answer": 12})
    assert not validator.is_valid({"answer": "noon"})


def test_a_model_is_told_of_its_tools_in_the_system_message() -> None:
    words = instruction((CLOCK, DICE), required=False, guard=PLAIN)
    assert "Clock-Now: Tell the time." in words
    assert '"town"' in words
    for messages in ([Message.of("system", "Be brief."), *QUESTION], QUESTION):
        body, formed = body_of(ChatRequest(messages, tools=(CLOCK,)), LlamaCppSettings(system_message=""), ABOUT, PLAIN)
        system = body["messages"][0]["content"]
        assert formed
        assert system.startswith("Be brief.\n\n") == (len(messages) > 1)
        assert "Clock-Now: Tell the time." in system
    assert "Call one now." in instruction((CLOCK,), required=True, guard=PLAIN)


def test_calls_and_results_of_a_history_are_said_in_words() -> None:
    history = [
        *QUESTION,
        Message.of("assistant", "Let me look.", ToolCall("1", "Clock-Now", '{"town": "Oslo"}')),
        Message.of("tool", ToolResult("1", "Clock-Now", "noon"), ToolResult("2", "Dice-Roll", "lost", error=True)),
    ]
    assert plain_messages(history, guard_of(("noon",))) == [
        {"role": "user", "content": "What time is it?"},
        {"role": "assistant", "content": 'Let me look.\nI call Clock-Now with {"town": "Oslo"}.'},
        {"role": "user", "content": "Result of Clock-Now:\nn oon\nResult of Dice-Roll:\nError: lost"},
    ]
