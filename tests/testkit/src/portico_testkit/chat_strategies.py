"""Hypothesis strategies for what chat services take and give."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal

from hypothesis import strategies as st

from portico import (
    ChatCapabilities,
    ChatReply,
    ChatRequest,
    File,
    Image,
    Message,
    Part,
    Reasoning,
    Source,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Usage,
)
from portico.plugins import StrictForm
from portico_testkit.strategies import json_values

__all__ = ["chat_replies", "chat_requests", "conversations", "messages", "tools"]

_EVERYTHING = ChatCapabilities(
    sources=True,
    tools=True,
    response_schema=True,
    strict=True,
    images=True,
    files=True,
    sampling=frozenset({"temperature", "top_p", "max_tokens", "stop", "seed"}),
)
_TEXT = st.text(max_size=12)
_NAMES = st.text("abcXYZ019_-", min_size=1, max_size=64)
_KEYS = st.sampled_from(["a", "b", "c d", "ключ", "$ref", ""])
_COUNTS = st.integers(0, 2**40)
_JSON = json_values(3)
_COINS = st.booleans()
_OF_FIVE = st.integers(0, 4)
_NAME = st.none() | _NAMES
_SYSTEM_TEXTS = st.lists(st.builds(Text, _TEXT), max_size=2).map(tuple)
_ARGUMENTS = st.dictionaries(_KEYS, _JSON, max_size=3).flatmap(
    lambda drawn: st.sampled_from([json.dumps(drawn), json.dumps(drawn, ensure_ascii=False, indent=1)])
)


@st.composite
def tools(draw: st.DrawFn, *, strict: bool = True) -> Tool:
    """Draw a tool; where ``strict`` allows it, some are strict, and then their schema is of the strict form."""
    tight = strict and draw(_COINS)
    return Tool(draw(_NAMES), draw(_TEXT), draw(_objects(tight=tight)), tight)


@cache
def _schemas() -> st.SearchStrategy[dict[str, Any]]:
    kinds: st.SearchStrategy[Any] = st.sampled_from(["string", "integer", "number", "boolean", "null"])
    leaves = kinds.map(lambda kind: {"type": kind})
    leaves |= st.lists(_TEXT, min_size=1, max_size=3, unique=True).map(lambda words: {"type": "string", "enum": words})
    described = st.tuples(leaves, _TEXT).map(lambda drawn: drawn[0] | {"description": drawn[1]})
    return st.recursive(
        leaves | described,
        lambda inner: (
            inner.map(lambda items: {"type": "array", "items": items})
            | st.lists(inner, min_size=2, max_size=3).map(lambda options: {"anyOf": options})
            | _plain_objects(inner)
        ),
        max_leaves=4,
    )


@st.composite
def _plain_objects(draw: st.DrawFn, inner: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    properties = draw(st.dictionaries(_KEYS, inner, max_size=3))
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if draw(_COINS):
        schema["additionalProperties"] = False
    if properties:
        schema["required"] = draw(st.lists(st.sampled_from(list(properties)), unique=True))
    return schema


@st.composite
def _objects(draw: st.DrawFn, *, tight: bool) -> Mapping[str, Any]:
    schema = draw(_plain_objects(_schemas()))
    return StrictForm.of(schema).schema if tight else schema


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
        parts |= st.builds(Image, st.none(), st.just("https://example.com/a.png"), kinds)
    if capabilities.files:
        parts |= st.builds(File, st.binary(max_size=8), _TEXT, st.sampled_from(["text/plain", "application/pdf"]))
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
def chat_requests(draw: st.DrawFn, capabilities: ChatCapabilities = _EVERYTHING) -> ChatRequest:
    """Draw a request that a service with these capabilities honours; extras it has none."""
    offered = draw(st.lists(tools(strict=capabilities.strict), max_size=3, unique_by=lambda tool: tool.name))
    offered = offered if capabilities.tools else []
    names = [tool.name for tool in offered]
    choice = ToolChoice()
    if names:
        some: st.SearchStrategy[tuple[str, ...]] = st.lists(
            st.sampled_from([*names, "Not-There"]), max_size=2, unique=True
        ).map(tuple)
        choice = ToolChoice(draw(st.sampled_from(["auto", "none"])), draw(st.none() | some), draw(some))
        request = ChatRequest([], tuple(offered), choice)
        if draw(_COINS) and request.offered:
            choice = ToolChoice("required", choice.include, choice.exclude)
    schema, tight = None, False
    if capabilities.response_schema and draw(_COINS):
        tight = capabilities.strict and draw(_COINS)
        schema = draw(_objects(tight=tight))
    sampling: dict[str, st.SearchStrategy[Any]] = {
        "temperature": st.floats(0, 2),
        "top_p": st.floats(0.1, 1),
        "max_tokens": st.integers(1, 4096),
        "stop": st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=4).map(tuple),
        "seed": st.integers(0, 2**31 - 1),
    }
    allowed = {option: sampling[option] for option in sorted(capabilities.sampling)}
    return ChatRequest(
        draw(conversations(capabilities, names=names or ("Clock-Now",))),
        tuple(offered),
        choice,
        response_schema=schema,
        response_name=draw(_NAMES),
        response_strict=tight,
        **draw(st.fixed_dictionaries({}, optional=allowed)),
    )


@st.composite
def chat_replies(
    draw: st.DrawFn, names: Sequence[str] = ("Clock-Now", "Lamp-Off"), *, service: str = "scripted"
) -> ChatReply:
    """Draw a reply of any parts; ``names`` are the tools that it may call.

    One with calls has the finish "tool_calls", or "length" with the last call's arguments cut short.
    """
    parts: list[Part] = [Reasoning(draw(_JSON), draw(st.none() | _TEXT)) for _ in range(draw(st.integers(0, 1)))]
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


@st.composite
def _pieces(draw: st.DrawFn, text: str) -> list[str]:
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=4)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
