"""Hypothesis strategies for what chat services take and give."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Literal

from hypothesis import strategies as st

from portico import (
    Audio,
    ChatCapabilities,
    ChatReply,
    File,
    Image,
    Message,
    Part,
    Reasoning,
    Source,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from portico_testkit.strategies import json_values

__all__ = ["chat_replies", "conversations", "messages"]

_EVERYTHING = ChatCapabilities(
    sources=True,
    tools=True,
    response_schema=True,
    strict=True,
    images=True,
    files=True,
    audio=True,
    links=frozenset({"Image", "File"}),
    sampling=frozenset({"temperature", "top_p", "max_tokens", "stop", "seed"}),
)
_TEXT = st.text(max_size=12)
_LINK = st.just("https://example.com/a.png")
_NAMES = st.text("abcXYZ019_-", min_size=1, max_size=64)
_KEYS = st.sampled_from(["a", "b", "c d", "ключ", "$ref", ""])
_COUNTS = st.integers(0, 2**40)
_JSON = json_values(3)
_COINS = st.booleans()
_MAKERS = st.sampled_from(["", "scripted"])
_OF_FIVE = st.integers(0, 4)
_NAME = st.none() | _NAMES
_SYSTEM_TEXTS = st.lists(st.builds(Text, _TEXT), max_size=2).map(tuple)
_ARGUMENTS = st.dictionaries(_KEYS, _JSON, max_size=3).flatmap(
    lambda drawn: st.sampled_from([json.dumps(drawn), json.dumps(drawn, ensure_ascii=False, indent=1)])
)


@cache
def _tool_calls(names: tuple[str, ...]) -> st.SearchStrategy[list[ToolCall]]:
    """Draw calls of one reply: other ids, arguments that are the JSON text of an object."""
    one = st.builds(ToolCall, st.uuids().map(str), st.sampled_from(names), _ARGUMENTS)
    return st.lists(one, min_size=1, max_size=3, unique_by=lambda call: call.id)


@st.composite
def messages(draw: st.DrawFn, capabilities: ChatCapabilities = _EVERYTHING) -> Message:
    """Draw a message of a user or of the system, of the parts that the capabilities allow; it may have none."""
    if draw(_OF_FIVE) == 0:
        return Message("system", draw(_SYSTEM_TEXTS))
    return Message("user", tuple(draw(_contents(capabilities))), draw(_NAME))


@cache
def _contents(capabilities: ChatCapabilities) -> st.SearchStrategy[list[Part]]:
    parts: st.SearchStrategy[Part] = st.builds(Text, _TEXT)
    if capabilities.sources:
        name = st.none() | _TEXT
        parts |= st.builds(Source, st.integers(0, 99), _TEXT, name, name)
    if capabilities.images:
        kinds = st.sampled_from(["image/png", "image/jpeg"])
        parts |= st.builds(Image, st.binary(max_size=8), st.none(), kinds)
        if "Image" in capabilities.links:
            parts |= st.builds(Image, st.none(), _LINK, kinds)
    if capabilities.files:
        kinds = st.sampled_from(["text/plain", "application/pdf"])
        parts |= st.builds(File, st.binary(max_size=8), _TEXT, kinds)
        if "File" in capabilities.links:
            parts |= st.builds(File, st.none(), _TEXT, kinds, _LINK)
    if capabilities.audio:
        parts |= st.builds(Audio, st.binary(max_size=8))
    return st.lists(parts, max_size=3)


@st.composite
def conversations(
    draw: st.DrawFn, capabilities: ChatCapabilities = _EVERYTHING, *, names: Sequence[str] = ("Clock-Now", "Lamp-Off")
) -> list[Message]:
    """Draw a conversation that a service may have had, and that it is to answer now.

    The calls of a reply are answered by what follows it, each once, in any order, in one message or in several.
    ``names`` are the tools that may have been called.
    """
    said: list[Message] = []
    taken: set[str] = set()
    for _ in range(draw(st.integers(0, 2))):
        said.append(draw(messages(capabilities)))
        reply = draw(chat_replies(names if capabilities.tools else ()))
        calls = [call for call in reply.tool_calls if call.id not in taken]
        taken |= {call.id for call in calls}
        kept = [part for part in reply.message.content if not isinstance(part, ToolCall) or part in calls]
        said.append(Message("assistant", tuple(kept)))
        results = [ToolResult(call.id, call.name, draw(_TEXT), draw(_COINS)) for call in calls]
        results = draw(st.permutations(results))
        if draw(_COINS):
            said += [Message("tool", (result,)) for result in results]
        elif results:
            said.append(Message("tool", tuple(results)))
    if not said or said[-1].role == "assistant" or draw(_COINS):
        said.append(draw(messages(capabilities)))
    return said


@st.composite
def chat_replies(
    draw: st.DrawFn, names: Sequence[str] = ("Clock-Now", "Lamp-Off"), *, service: str = "scripted"
) -> ChatReply:
    """Draw a reply of any parts; ``names`` are the tools that it may call.

    One with calls has the finish "tool_calls", or "length" with the last call's arguments cut short.
    """
    parts: list[Part] = [
        Reasoning(draw(_JSON), draw(st.none() | _TEXT), draw(_MAKERS)) for _ in range(draw(st.integers(0, 1)))
    ]
    parts += [Text(text) for text in draw(st.lists(_TEXT, max_size=2))]
    calls = draw(_tool_calls(tuple(names))) if draw(_COINS) and names else []
    whole: Literal["stop", "tool_calls"] = "tool_calls" if calls else "stop"
    finish: Literal["stop", "length", "tool_calls"] = "length" if draw(_COINS) else whole
    if calls and finish == "length":
        last = calls[-1]
        calls[-1] = ToolCall(last.id, last.name, last.arguments[: draw(st.integers(0, len(last.arguments)))])
    read, written = draw(_COUNTS), draw(_COUNTS)
    usage = Usage(read, written, draw(st.integers(0, read)), draw(st.integers(0, written)))
    return ChatReply(Message("assistant", (*parts, *calls)), finish, usage, draw(_TEXT), service)
