"""The events of a stream do not depend on how its bytes were cut."""

from __future__ import annotations

from hypothesis import given, strategies as st

from portico_wire.events import EventReader

LINES = st.sampled_from(
    [
        b"data: one",
        b"data:two",
        b"data:  three ",
        b"data:",
        "data: Köln 中文 🧦".encode(),
        b"event: message",
        b"id: 7",
        b"retry: 10",
        b": a comment",
        b":",
        b"datum: no",
        b" data: no",
        b"",
        b"",
        b"data: [DONE]",
    ]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
STREAMS = st.lists(st.tuples(LINES, ENDS), max_size=12).map(lambda lines: b"".join(b"".join(line) for line in lines))


def events_of(pieces: list[bytes]) -> list[bytes]:
    reader = EventReader()
    return [event for piece in pieces if piece for event in reader.feed(piece)] + reader.end()


@given(stream=STREAMS | st.binary(max_size=60), data=st.data())
def test_any_cut_of_the_bytes_gives_the_same_events(stream: bytes, data: st.DataObject):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    pieces = [stream[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    bytewise = [stream[place : place + 1] for place in range(len(stream))]
    assert events_of(pieces) == events_of([stream]) == events_of(bytewise)


@given(payloads=st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=20), max_size=5))
def test_what_is_written_is_read(payloads: list[str]):
    stream = b"".join(b"event: x\ndata: %s\nid: 1\n\n: ping\n\n" % payload.encode() for payload in payloads)
    assert events_of([stream]) == [payload.encode() for payload in payloads]


def test_the_lines_of_an_event_are_joined():
    assert events_of([b'data: {"a":\ndata: 1}\n\n']) == [b'{"a":\n1}']
