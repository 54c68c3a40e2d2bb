"""Threads as JSON: what is saved is what is read, and what is no thread is refused with the place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico._agents.reducing import Reduced
from portico._agents.thread import Thread, ThreadTurn
from portico._chat.messages import File, Image, Message, Reasoning, Source, Text, ToolCall, ToolResult, Usage
from portico.errors import ThreadFormatError
from portico_testkit.chat_strategies import conversations
from portico_testkit.strategies import json_values, near

COUNTS = st.integers(0, 2**40)
USAGE = st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS)
OPAQUE = st.builds(Message, st.just("assistant"), st.tuples(st.builds(Reasoning, json_values(3) | st.binary())))
TURNS = st.builds(
    ThreadTurn,
    st.tuples(conversations(), st.lists(OPAQUE, max_size=1)).map(lambda drawn: (*drawn[0], *drawn[1])),
    st.none() | st.text(max_size=5),
    st.just(Usage()) | USAGE,
)

EVERY_PART = (
    Message(
        "user",
        (
            Text("What is this?"),
            Image(b"\x89PNG\x00\xff", None, "image/png"),
            Image(None, "https://example.org/a.jpg", "image/jpeg"),
            File(b"%PDF", "a.pdf", "application/pdf"),
            Source(3, "A port is a protocol.", "Ports", "https://example.org/ports"),
            Source(4, "Nameless."),
        ),
        "Ada",
    ),
    Message(
        "assistant", (Reasoning({"id": "r1", "list": [1, 2.5, None, True]}, "Let me see."), ToolCall("1", "Look-up"))
    ),
    Message("tool", (ToolResult("1", "Look-up", "nothing", error=True, cause=LookupError("nothing")),)),
    Message("assistant", (Reasoning(b"\x00signature"), Text("I do not know."))),
)


@st.composite
def threads(draw: st.DrawFn) -> Thread:
    thread = Thread(draw(st.text(min_size=1, max_size=8)))
    for turn in draw(st.lists(TURNS, max_size=3)):
        thread.keep(turn)
    reduced = Reduced(draw(st.integers(0, len(thread.turns))), tuple(draw(st.just(()) | conversations())), draw(USAGE))
    if thread.turns and draw(st.booleans()):
        thread.keep(draw(TURNS), reduced)
    return thread


def same(one: Thread, other: Thread) -> None:
    assert (one.id, one.turns, one.reduced) == (other.id, other.turns, other.reduced)
    for mine, theirs in zip(one.messages, other.messages, strict=True):
        for part, again in zip(mine.content, theirs.content, strict=True):
            # 1, 1.0 and True are equal in Python, and so are a bytes and a bytearray.
            assert (type(part), repr(part)) == (type(again), repr(again))


@given(threads())
def test_a_thread_comes_back_from_json_as_it_was(thread: Thread) -> None:
    text = json.dumps(thread.to_json(), allow_nan=False)
    same(thread, Thread.from_json(json.loads(text)))
    assert json.dumps(Thread.from_json(json.loads(text)).to_json()) == text


def test_every_kind_of_part_comes_back() -> None:
    thread = Thread("t1", messages=EVERY_PART)
    again = Thread.from_json(json.loads(json.dumps(thread.to_json())))
    same(thread, again)
    assert {type(part) for message in again.messages for part in message.content} == {
        Text,
        Image,
        File,
        Source,
        ToolCall,
        ToolResult,
        Reasoning,
    }


def test_the_form_is_this() -> None:
    thread = Thread("t1", messages=[Message.of("user", "Hello"), Message("assistant", (Reasoning([1]), Text("Hi")))])
    thread.keep(ThreadTurn((Message.of("user", "?"),), "guide", Usage(3, 4)), Reduced(1, (Message.of("user", "…"),)))
    assert thread.to_json() == {
        "version": 1,
        "id": "t1",
        "turns": [
            {
                "messages": [
                    {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
                    {
                        "role": "assistant",
                        "content": [{"type": "reasoning", "data": [1]}, {"type": "text", "text": "Hi"}],
                    },
                ]
            },
            {
                "agent": "guide",
                "messages": [{"role": "user", "content": [{"type": "text", "text": "?"}]}],
                "usage": {"input_tokens": 3, "output_tokens": 4},
            },
        ],
        "reduced": {"turns": 1, "messages": [{"role": "user", "content": [{"type": "text", "text": "…"}]}]},
    }


def test_what_was_raised_is_not_saved() -> None:
    (result,) = Thread.from_json(Thread(messages=EVERY_PART).to_json()).messages[2].content
    assert isinstance(result, ToolResult)
    assert (result.content, result.error, result.cause) == ("nothing", True, None)


def test_a_thread_of_nothing_comes_back() -> None:
    assert Thread.from_json(Thread("t1").to_json()).to_json() == {"version": 1, "id": "t1", "turns": []}


def test_options_are_given_when_it_is_read_since_they_are_not_saved() -> None:
    thread = Thread.from_json(Thread("t1", budget=10).to_json(), budget=20, when_busy="refuse")
    assert (thread.budget, thread.when_busy) == (20, "refuse")
    assert Thread.from_json(Thread("t1", budget=10).to_json()).budget is None


def test_what_is_saved_is_a_copy() -> None:
    data: dict[str, Any] = {"steps": [1]}
    thread = Thread(messages=[Message("assistant", (Reasoning(data),))])
    document = thread.to_json()
    data["steps"].append(2)
    assert document["turns"][0]["messages"][0]["content"][0]["data"] == {"steps": [1]}
    read = Thread.from_json(document)
    document["turns"][0]["messages"][0]["content"][0]["data"]["steps"].append(3)
    (part,) = read.messages[0].content
    assert part == Reasoning({"steps": [1]})


DOCUMENT = Thread("t1", messages=EVERY_PART).to_json() | {
    "reduced": {"turns": 1, "messages": [{"role": "user", "content": [{"type": "text", "text": "…"}]}]}
}


@given(near(DOCUMENT))
def test_a_document_with_one_place_changed_is_a_thread_or_one_clear_error(document: Any) -> None:
    try:
        thread = Thread.from_json(document)
    except ThreadFormatError as error:
        assert str(error).startswith("$"), f"the error does not begin with the place: {error}"
        assert len(str(error)) < 400
    else:
        same(thread, Thread.from_json(thread.to_json()))


@given(json_values())
def test_any_json_value_is_a_thread_or_one_clear_error(document: Any) -> None:
    with pytest.raises(ThreadFormatError, match=r"^\$"):
        Thread.from_json(document)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("version",), 2, "$.version: expected 1 (a newer Portico may have written the thread), got 2"),
        (("version",), "1", "$.version: expected 1 "),
        (("version",), True, "$.version: expected 1 "),
        (("id",), "", "$.id: expected a text that is not empty"),
        (("titel",), "x", "$: unknown key 'titel'; known are version, id, turns, reduced."),
        (("turns", 0, "messages", 0, "role"), "assistent", "$.turns[0].messages[0].role: expected one of system, user"),
        (("turns", 0, "messages", 0, "content", 0, "text"), 5, "content[0].text: expected a string, got 5"),
        (
            ("turns", 0, "messages", 0, "content", 0, "type"),
            "video",
            "content[0].type: expected one of text, image, file",
        ),
        (
            ("turns", 0, "messages", 0, "content", 1, "data"),
            "a",
            "$.turns[0].messages[0].content[1].data: expected bytes",
        ),
        (("turns", 0, "messages", 0, "content", 1, "data"), "å===", "content[1].data: expected bytes in Base64"),
        (("turns", 0, "messages", 0, "content", 4, "number"), True, "content[4].number: expected a whole number"),
        (("turns", 0, "messages", 1, "content", 0, "bytes"), "AA==", 'exactly one of "data" and "bytes" is needed'),
        (
            ("turns", 0, "messages", 2, "content", 0, "id"),
            "9",
            "$.turns[0].messages: messages[2]: there is no call before",
        ),
        (("turns", 0, "usage"), {"tokens": 5}, "$.turns[0].usage: unknown key 'tokens'"),
        (("turns", 0, "usage"), {"input_tokens": -5}, "$.turns[0].usage.input_tokens: expected a number of at least 0"),
        (("reduced", "turns"), 2, "$.reduced.turns: 2 turns are reduced, and the thread has 1."),
    ],
)
def test_what_is_wrong_is_told_with_its_place(path: tuple[str | int, ...], value: Any, words: str) -> None:
    document = json.loads(json.dumps(DOCUMENT))
    inner = document
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    with pytest.raises(ThreadFormatError) as raised:
        Thread.from_json(document)
    assert words in str(raised.value)


def test_a_call_without_its_result_is_refused() -> None:
    document = json.loads(json.dumps(DOCUMENT))
    del document["turns"][0]["messages"][2]
    with pytest.raises(ThreadFormatError, match=r"\$\.turns\[0\]\.messages: the call '1' has no result"):
        Thread.from_json(document)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ThreadFormatError, match=r"^\$: missing: version, id, turns\.$"):
        Thread.from_json({})


@pytest.mark.parametrize(
    "data", [{1: 2}, {1, 2}, (1, 2), float("nan"), object(), [{"a": float("inf")}], bytearray(b"a")]
)
def test_what_json_does_not_have_is_refused_with_its_place(data: Any) -> None:
    thread = Thread(messages=[Message.of("user", "Hello"), Message("assistant", (Text("Hi"), Reasoning(data)))])
    with pytest.raises(
        ThreadFormatError, match=r"^\$\.turns\[0\]\.messages\[1\]\.content\[1\]\.data.*: JSON has no form"
    ):
        thread.to_json()


def test_what_is_nested_without_end_is_refused_both_ways() -> None:
    deep: list[Any] = []
    deep.append(deep)
    with pytest.raises(ThreadFormatError, match="nest deeper than 200 levels"):
        Thread(messages=[Message("assistant", (Reasoning(deep),))]).to_json()
    document = Thread("t1", messages=[Message("assistant", (Reasoning(1),))]).to_json()
    document["turns"][0]["messages"][0]["content"][0]["data"] = deep
    with pytest.raises(ThreadFormatError, match="nest deeper than 200 levels"):
        Thread.from_json(document)
