"""The ChatService kit passes a correct service and catches broken ones."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from portico import (
    ChatCapabilities,
    ChatDelta,
    ChatReply,
    ChatRequest,
    Citation,
    Message,
    Reasoning,
    Source,
    Text,
    ToolCall,
    ToolCallDelta,
    ToolResult,
    Usage,
)
from portico.errors import ContextOverflow, RateLimited, SchemaUnsupported, ServiceError, ServiceUnavailable
from portico.plugins import StrictForm
from portico_testkit.chat_requests import STRICT
from portico_testkit.chat_service import ChatServiceKit
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.kit_failures import Fault, KnownFaults

SAMPLING = frozenset({"temperature", "top_p", "max_tokens", "stop", "seed"})
EVERYTHING = ChatCapabilities(
    sources=True, tools=True, response_schema=True, strict=True, images=True, files=True, sampling=SAMPLING
)


def brain(request: ChatRequest) -> ChatReply:
    """Answer as a model does that has all its wits: call, fill in schemas, quote, stop in time."""
    if len(request.messages) > 1_000:
        raise ContextOverflow("The conversation has more than 1,000 messages.")
    if (request.max_tokens or 1) < 1 or not all(request.stop):
        raise ValueError("max_tokens is at least 1, and a stop word has letters")
    question = request.messages[-1].text if request.messages else ""
    must = request.tool_choice.mode == "required"
    if (must and not request.offered) or not all(tool.name for tool in request.offered):
        raise ValueError("a call is demanded, and no tool is offered, or one without a name")
    answered = any(isinstance(part, ToolResult) for part in request.messages[-1].content) if request.messages else True
    if request.offered and (must or not answered) and request.response_schema is None:
        tool = request.offered[0]
        call = ToolCall("call-1", tool.name, json.dumps(smallest(tool.parameters, tool.parameters)))
        return reply_of(request, call, finish="tool_calls")
    if request.response_schema is not None:
        text = json.dumps(smallest(request.response_schema, request.response_schema), ensure_ascii=False)
    else:
        text = " ".join([f"Asked: {question}", *(f"{source.text} [{source.number}]" for source in quoted(request))])
    for word in request.stop:
        text = text.partition(word)[0]
    tokens = re.findall(r"\s*\S+", text)
    cut = request.max_tokens is not None and len(tokens) > request.max_tokens
    text = "".join(tokens[: request.max_tokens])
    citations = tuple(Citation(source.number, source.name, source.link, source.text) for source in quoted(request))
    return reply_of(request, Text(text), finish="length" if cut else "stop", citations=citations)


def reply_of(request: ChatRequest, *parts: Any, **options: Any) -> ChatReply:
    read = sum(len(str(part).split()) for message in request.messages for part in message.content)
    written = sum(len(part.text.split()) if isinstance(part, Text) else 1 for part in parts)
    usage = Usage(read + 1, max(1, written), cached_tokens=read // 2)
    return ChatReply(Message("assistant", parts), usage=usage, service="scripted", **options)


def quoted(request: ChatRequest) -> list[Source]:
    """Return the sources that have a word of the question in them."""
    question = request.messages[-1].text if request.messages else ""
    sources = [part for message in request.messages for part in message.content if isinstance(part, Source)]
    words = {word for word in question.lower().strip("?").split() if len(word) > 4}
    return [source for source in sources if words & set(source.text.lower().strip(".").split())]


def smallest(schema: Any, root: Any) -> Any:
    """Make the shortest value of a schema."""
    if "$ref" in schema:
        found = root.get("$defs", {}).get(schema["$ref"].removeprefix("#/$defs/"))
        if found is None:
            raise SchemaUnsupported(f"there is no {schema['$ref']}")
        return smallest(found, root)
    if "anyOf" in schema:
        return smallest(schema["anyOf"][0], root)
    if "enum" in schema or "const" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    match schema.get("type", "object"):
        case "object":
            return {name: smallest(schema["properties"][name], root) for name in schema.get("required", ())}
        case "array":
            return [smallest(schema["items"], root) for _ in range(schema.get("minItems", 0))]
        case "string":
            return "Köln"
        case "integer" | "number":
            return 7
        case "boolean":
            return True
        case other:
            raise SchemaUnsupported(f"{other!r} is no type")


class Thinking(ScriptedChat):
    """A service that declares everything and can do it."""

    def __init__(self, capabilities: ChatCapabilities = EVERYTHING, *, fails: bool = False) -> None:
        super().__init__(brain, repeat=True, capabilities=capabilities)
        self.fails = fails

    def _next(self, request: ChatRequest) -> ChatReply:
        if self.fails:
            raise ServiceUnavailable("The chat service 'scripted' cannot be reached.")
        return super()._next(request)


class DemandingKit(ChatServiceKit):
    deterministic = True
    reports_usage = True


class TestScriptedChat(DemandingKit):
    @pytest.fixture
    def chat_service(self) -> ScriptedChat:
        return Thinking()


class TestOneThatTakesToolsAndCannotCall(ChatServiceKit):
    calls_tools = False

    @pytest.fixture
    def chat_service(self) -> ScriptedChat:
        return ScriptedChat("Good morning.", repeat=True, capabilities=ChatCapabilities(tools=True))


class TestScriptedChatWithoutAnything(ChatServiceKit):
    @pytest.fixture
    def chat_service(self) -> ScriptedChat:
        return ScriptedChat("Good morning.", repeat=True)


FAULTS = KnownFaults(DemandingKit, lambda kind: {"chat_service": kind, "failing_service": lambda: kind(fails=True)})
caught_by = FAULTS.caught_by


class Broken(Thinking):
    """Does right what a variant does not do wrong."""

    def spoil(self, reply: ChatReply, request: ChatRequest) -> ChatReply:
        return reply

    def take(self, request: ChatRequest) -> ChatRequest:
        return request

    async def complete(self, request: ChatRequest) -> ChatReply:
        return self.spoil(await super().complete(self.take(request)), request)

    async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        async for delta in super().stream(self.take(request)):
            yield replace(delta, reply=delta.reply and self.spoil(delta.reply, request))


def parts_of(request: ChatRequest, kind: type) -> list[Any]:
    return [part for message in request.messages for part in message.content if isinstance(part, kind)]


@caught_by("it_has_a_name_and_capabilities", "name is empty")
class Nameless(Broken):
    def __init__(self, **options):
        super().__init__(**options)
        self.name = ""


@caught_by("its_own_calls_go_back_with_their_results", "400: no such call")
class ForgetsItsCalls(Broken):
    def take(self, request):
        if any(call.id.startswith("call-") for call in parts_of(request, ToolCall)):
            raise ServiceError("400: no such call")
        return request


@caught_by("a_stream_or_call_given_up_leaves_it_usable", "busy")
class HoldsALockForEver(Broken):
    busy = False

    async def stream(self, request):
        if self.busy:
            raise RuntimeError("busy")
        async for delta in super().stream(request):
            self.busy = delta.reply is None
            yield delta


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: Fault, given: Any) -> None:
    await FAULTS.check(fault, given)


def test_the_strict_schema_of_the_kit_is_of_the_strict_form() -> None:
    form = StrictForm.of(STRICT)
    assert (form.schema, form.identity) == (STRICT, True)


async def test_a_script_is_said_line_by_line_and_then_is_over() -> None:
    request = ChatRequest([Message.of("user", "Next?")])
    chat = ScriptedChat("one", RateLimited("too fast"), lambda asked: asked.messages[0].text)
    assert (await chat.complete(request)).text == "one"
    with pytest.raises(RateLimited):
        await chat.complete(request)
    assert [delta.text async for delta in chat.stream(request)] == ["Next?", ""]
    with pytest.raises(AssertionError, match="3 lines; this is call 4"):
        await chat.complete(request)
    assert chat.requests == [request] * 4


async def test_a_script_calls_tools_and_thinks() -> None:
    oslo, lima = ToolCall("1", "Clock-Now", '{"town": "Oslo"}'), ToolCall("2", "Clock-Now")
    chat = ScriptedChat([Reasoning("…", "Two clocks."), "Let me look.", oslo, lima], usage=Usage(8, 4), piece=6)
    deltas = [delta async for delta in chat.stream(ChatRequest([Message.of("user", "What time is it?")]))]
    reply = deltas[-1].reply
    assert reply is not None
    assert (reply.finish, reply.text, reply.tool_calls) == ("tool_calls", "Let me look.", (oslo, lima))
    assert reply.usage == Usage(8, 4)
    assert "".join(delta.reasoning for delta in deltas) == "Two clocks."
    assert [delta.tool_call for delta in deltas if delta.tool_call] == [
        ToolCallDelta(0, "1", "Clock-Now"),
        ToolCallDelta(0, arguments='{"town'),
        ToolCallDelta(0, arguments='": "Os'),
        ToolCallDelta(0, arguments='lo"}'),
        ToolCallDelta(1, "2", "Clock-Now"),
        ToolCallDelta(1, arguments="{}"),
    ]
