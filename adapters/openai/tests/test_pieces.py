"""What a reply is made of does not depend on how its stream was cut."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hypothesis import given, strategies as st
from tests.support.exchanges import check_pieces

from portico import ChatDelta
from portico.errors import ServiceError
from portico_openai._completions.replies import CompletionReader
from portico_openai._responses.replies import ResponseReader
from portico_wire.errors import Peer
from portico_wire.events import EventReader


def events_of(pieces: list[bytes]) -> list[bytes]:
    reader = EventReader()
    return [event for piece in pieces if piece for event in reader.feed(piece)] + reader.end()


DELTAS = st.fixed_dictionaries(
    {},
    optional={
        "content": st.none() | st.text(st.characters(codec="utf-8"), max_size=6),
        "reasoning_content": st.text(st.characters(codec="utf-8"), max_size=6),
        "tool_calls": st.lists(
            st.fixed_dictionaries(
                {"index": st.integers(0, 2)},
                optional={"function": st.fixed_dictionaries({"arguments": st.text(max_size=5)})},
            ),
            max_size=2,
        ),
    },
)


PEER = Peer("Chat service", "openai", "OpenAI", "m", "http://x/v1", "x")


@given(deltas=st.lists(DELTAS, min_size=1, max_size=10))
def test_the_pieces_of_any_stream_make_its_reply(deltas: list[dict[str, object]]):
    reader = CompletionReader(PEER, "openai")
    given_out = []
    for delta in deltas:
        text = json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode()
        given_out += reader.add(text)
    given_out += reader.end()
    reply = reader.reply()
    assert "".join(delta.text for delta in given_out) == reply.text
    pieces = [delta.tool_call for delta in given_out if delta.tool_call]
    for position, call in enumerate(reply.tool_calls):
        own = [piece for piece in pieces if piece.index == position]
        assert own[0].id == call.id
        assert "".join(piece.arguments for piece in own) == call.arguments != ""
    assert {piece.index for piece in pieces} == set(range(len(reply.tool_calls)))
    assert reply.finish == ("tool_calls" if reply.tool_calls else "stop")


WORDS = st.text(st.characters(codec="utf-8"), max_size=8)
ITEMS = st.one_of(
    st.builds(
        lambda text, phase: {"type": "message", "content": [{"type": "output_text", "text": text}], "phase": phase},
        WORDS,
        st.sampled_from([None, "commentary", "final_answer"]),
    ),
    st.builds(
        lambda arguments: {"type": "function_call", "call_id": "call_1", "name": "Dice-Roll", "arguments": arguments},
        WORDS.filter(bool),
    ),
    st.builds(
        lambda texts: {"type": "reasoning", "summary": [{"type": "summary_text", "text": text} for text in texts]},
        st.lists(WORDS.filter(bool), max_size=3),
    ),
    st.just({"type": "web_search_call", "status": "completed", "action": {"type": "search"}}),
)
FORMS = st.fixed_dictionaries({name: st.booleans() for name in ("deltas", "added", "done", "numbered")})


def pieces_of(item: dict[str, Any], at: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of the pieces of an item, a letter each."""
    match item["type"]:
        case "message":
            text = item["content"][0]["text"]
            return [{"type": "response.output_text.delta", "delta": letter, **at} for letter in text]
        case "function_call":
            kind = "response.function_call_arguments.delta"
            return [{"type": kind, "delta": letter, **at} for letter in item["arguments"]]
        case "reasoning":
            kind = "response.reasoning_summary_text.delta"
            parts = enumerate(item["summary"])
            return [
                {"type": kind, "delta": letter, "summary_index": place, **at}
                for place, part in parts
                for letter in part["text"]
            ]
    return []


def read(events: list[dict[str, Any]]) -> tuple[ResponseReader, list[ChatDelta]]:
    reader = ResponseReader(PEER, "openai", "openai at x")
    deltas = [delta for event in events for delta in reader.add(json.dumps(event).encode())]
    return reader, deltas + reader.end()


@given(items=st.lists(ITEMS, max_size=5), form=FORMS, repeated=st.booleans())
def test_a_response_does_not_depend_on_what_was_streamed_of_it(items: list[Any], form: Any, repeated: bool):
    output = [{**item, "id": f"item_{place}"} for place, item in enumerate(items)]
    response = {"status": "completed", "model": "m-1", "output": output}
    whole = ResponseReader(PEER, "openai", "openai at x")
    whole.read(json.dumps(response).encode())
    whole.end()
    events: list[dict[str, Any]] = []
    for place, item in enumerate(output):
        at = {"output_index": place} if form["numbered"] else {"item_id": item["id"]}
        # A service that does not begin an item, and sends nothing else of it, is not told from one that lacks it.
        begun = {"type": item["type"], "id": item["id"], "call_id": item.get("call_id"), "name": item.get("name")}
        if form["added"] or not form["done"]:
            events.append({"type": "response.output_item.added", "item": begun, **at})
        events += pieces_of(item, at) if form["deltas"] else []
        if form["done"]:
            events.append({"type": "response.output_item.done", "item": item, **at})
    last = response if repeated or not form["done"] else {**response, "output": []}
    reader, deltas = read([*events, {"type": "response.completed", "response": last}])
    check_pieces([*deltas, ChatDelta(reply=reader.reply())], whole.reply())


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "text", "id"]), inner),
    max_leaves=4,
)
MEMBERS = ("delta", "item", "item_id", "output_index", "response", "summary_index", "message", "code", "error")
KINDS = ("output_text.delta", "function_call_arguments.delta", "output_item.added", "output_item.done", "completed")
STRANGE = st.fixed_dictionaries(
    {"type": st.sampled_from([*(f"response.{kind}" for kind in KINDS), "error"]) | ANYTHING},
    optional={
        name: ANYTHING | ITEMS | st.fixed_dictionaries({"output": st.lists(ANYTHING | ITEMS)}) for name in MEMBERS
    },
)


@given(events=st.lists(STRANGE, max_size=4))
def test_events_of_any_form_are_a_reply_or_a_clear_error(events: list[dict[str, Any]]):
    with suppress(ServiceError):
        reader, _ = read(events)
        reader.reply()
