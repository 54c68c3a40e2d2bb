"""What the tests of exchanges with services have in common: a stream is checked against its reply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from portico import ChatDelta, ChatReply, Reasoning, ToolCall


def made_by(maker: str, reply: ChatReply) -> ChatReply:
    """Return a reply whose reasoning says that ``maker`` made it."""
    parts = (replace(part, service=maker) if isinstance(part, Reasoning) else part for part in reply.message.content)
    return replace(reply, message=replace(reply.message, content=tuple(parts)))


def check_pieces(deltas: Sequence[ChatDelta], expected: ChatReply) -> None:
    """Check that a stream has this reply at its end, and the pieces of it before."""
    assert deltas[-1].reply == expected
    assert [delta for delta in deltas[:-1] if delta.reply] == []
    assert "".join(delta.text for delta in deltas) == expected.text
    thoughts = [part.summary or "" for part in expected.message.content if isinstance(part, Reasoning)]
    assert "".join(delta.reasoning for delta in deltas) == "".join(thoughts)
    calls: dict[int, ToolCall] = {}
    for piece in (delta.tool_call for delta in deltas if delta.tool_call):
        begun = calls.get(piece.index, ToolCall(piece.id, piece.name, ""))
        assert piece.index in calls or (piece.id and piece.name), "the first piece of a call has its id and name"
        calls[piece.index] = ToolCall(begun.id, begun.name, begun.arguments + piece.arguments)
    assert tuple(calls.values()) == expected.tool_calls
