"""Replies in the form of calls: read piece by piece, whatever the pieces."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator

from portico import ChatDelta, ChatRequest, Message, Tool, ToolCall, ToolChoice, ToolResult
from portico_llamacpp._exchange import CallReader, instruction, reply_schema, told, with_instruction
from portico_llamacpp._wire import guard_of

PLAIN = guard_of(())
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


def read(text: str, cuts: list[int], *, whole: bool = True) -> tuple[CallReader, list[ChatDelta]]:
    reader = CallReader()
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    deltas = [delta for start, end in pairwise(places) for delta in reader.feed(text[start:end])]
    if whole:
        deltas += reader.end()
    return reader, deltas


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
CUTS = st.lists(st.integers(0, 400), max_size=12)
INDENTS = st.sampled_from([None, 0, 2])


@given(st.text(), CUTS, INDENTS, st.booleans())
def test_the_words_of_an_answer_come_as_they_are(
    words: str, cuts: list[int], indent: int | None, escaped: bool
) -> None:
    reader, deltas = read(json.dumps({"answer": words}, indent=indent, ensure_ascii=escaped), cuts)
    assert "".join(delta.text for delta in deltas) == words == reader.words
    assert reader.call is None


@given(st.dictionaries(st.text(), JSON, max_size=3), CUTS, INDENTS)
def test_the_pieces_of_a_calls_arguments_are_its_arguments(
    arguments: dict[str, Any], cuts: list[int], indent: int | None
) -> None:
    reader, deltas = read(json.dumps({"tool": "Clock-Now", "arguments": arguments}, indent=indent) + "\n", cuts)
    pieces = [delta.tool_call for delta in deltas if delta.tool_call is not None]
    assert reader.call is not None
    assert (pieces[0].id, pieces[0].name) == (reader.call.id, "Clock-Now")
    assert "".join(piece.arguments for piece in pieces) == reader.call.arguments
    assert json.loads(reader.call.arguments) == arguments
    assert not "".join(delta.text for delta in deltas)


@given(JSON.filter(lambda value: not isinstance(value, str)), CUTS, INDENTS)
def test_an_answer_with_a_form_is_its_json(answer: Any, cuts: list[int], indent: int | None) -> None:
    reader, deltas = read(json.dumps({"answer": answer}, indent=indent), cuts)
    assert json.loads(reader.words) == answer
    assert "".join(delta.text for delta in deltas) == reader.words


@given(st.text(), st.integers(0, 200), CUTS)
def test_an_answer_that_is_cut_short_gives_the_words_that_came(words: str, length: int, cuts: list[int]) -> None:
    text = json.dumps({"answer": words})[:length]
    reader, deltas = read(text, cuts, whole=False)
    assert words.startswith(reader.words)
    assert "".join(delta.text for delta in deltas) == reader.words


def test_a_call_that_is_cut_short_is_there_as_far_as_it_came() -> None:
    reader, _ = read('{"tool": "Clock-Now", "arguments": {"town": "Ro', [20, 40], whole=False)
    assert reader.call is not None
    assert (reader.call.name, reader.call.arguments) == ("Clock-Now", '{"town": "Ro')


def test_half_a_surrogate_pair_becomes_a_replacement_character() -> None:
    reader, _ = read(r'{"answer": "a\ud83d\n\ude00 \ud83d\ude00"}', list(range(40)))
    assert reader.words == "a\ufffd\n\ufffd 😀"


@pytest.mark.parametrize(
    "text", ["", "Hello.", '{"answer": "x"', '{"other": 1}', "[]", '{"tool": "x", "arguments": 5}']
)
def test_a_reply_of_another_form_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read(text, [1])


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
    told_to = with_instruction([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "?"}], words)
    assert told_to[0]["content"] == f"Be brief.\n\n{words}"
    assert with_instruction([{"role": "user", "content": "?"}], words)[0] == {"role": "system", "content": words}
    assert "Call one now." in instruction((CLOCK,), required=True, guard=PLAIN)


def test_calls_and_results_of_a_history_are_said_in_words() -> None:
    history = [
        *QUESTION,
        Message.of("assistant", "Let me look.", ToolCall("1", "Clock-Now", '{"town": "Oslo"}')),
        Message.of("tool", ToolResult("1", "Clock-Now", "noon"), ToolResult("2", "Dice-Roll", "lost", error=True)),
    ]
    assert told(history, guard_of(("noon",))) == [
        {"role": "user", "content": "What time is it?"},
        {"role": "assistant", "content": 'Let me look.\nI call Clock-Now with {"town": "Oslo"}.'},
        {"role": "user", "content": "Result of Clock-Now:\nn oon\nResult of Dice-Roll:\nError: lost"},
    ]
