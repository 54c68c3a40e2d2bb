"""What a reply is made of does not depend on how its stream was cut."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st

from portico_openai._replies import CompletionReader
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


@given(deltas=st.lists(DELTAS, min_size=1, max_size=10))
def test_the_pieces_of_any_stream_make_its_reply(deltas: list[dict[str, object]]):
    peer = Peer("Chat service", "openai", "OpenAI", "m", "http://x/v1", "x")
    reader = CompletionReader(peer, "openai")
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
