"""The ChatService kit passes a correct service and catches broken ones."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from portico.chat import (
    ChatCapabilities,
    ChatDelta,
    ChatReply,
    ChatRequest,
    Citation,
    File,
    Image,
    Message,
    Reasoning,
    Source,
    Text,
    ToolCall,
    ToolCallDelta,
    ToolResult,
    Usage,
)
from portico.errors import (
    ConfigurationError,
    ContextOverflow,
    RateLimited,
    SchemaUnsupported,
    ServiceError,
    ServiceUnavailable,
)
from portico.strict import strict_form
from portico_testkit.chat_requests import STRICT
from portico_testkit.chat_service import ChatServiceKit
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.kit_failures import KnownFaults, keeps_its_lock
from portico_testkit.kit_of_a_kit import KitOfAKit

SAMPLING = frozenset({"temperature", "top_p", "max_tokens", "stop", "seed"})
EVERYTHING = ChatCapabilities(
    sources=True, tools=True, response_schema=True, strict=True, images=True, files=True, sampling=SAMPLING
)
TOWN = re.compile("Oslo|Lima")


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
        return reply_of(request, *calls_of(request, question), finish="tool_calls")
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


def calls_of(request: ChatRequest, question: str) -> list[ToolCall]:
    tool = request.offered[0]
    arguments = smallest(tool.parameters, tool.parameters)
    towns = dict.fromkeys(TOWN.findall(question)) if "first" in question else ()
    every = [arguments | {"town": town} for town in towns] or [arguments]
    return [ToolCall(f"call-{number}", tool.name, json.dumps(one)) for number, one in enumerate(every)]


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
    calls_several = True
    reports_usage = True


class TestScriptedChat(DemandingKit):
    @pytest.fixture
    def chat_service(self) -> ScriptedChat:
        return Thinking()


class TestOneThatOnlyCallsTools(DemandingKit):
    @pytest.fixture
    def chat_service(self) -> ScriptedChat:
        return Thinking(ChatCapabilities(tools=True))


class TestOneThatHasSchemasAlone(DemandingKit):
    schema_rounds = 2

    @pytest.fixture
    def chat_service(self) -> ScriptedChat:
        return Thinking(ChatCapabilities(response_schema=True, sampling=frozenset({"max_tokens"})))


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


class SpoilsWhole(Broken):
    """Spoils before the reply is taken apart, so that a stream's pieces and its reply agree."""

    def _next(self, request: ChatRequest) -> ChatReply:
        return self.ruin(super()._next(request), request)

    def ruin(self, reply: ChatReply, request: ChatRequest) -> ChatReply:
        raise AssertionError("a variant says how")


def parts_of(request: ChatRequest, kind: type) -> list[Any]:
    return [part for message in request.messages for part in message.content if isinstance(part, kind)]


def in_words(reply: ChatReply, words: str) -> ChatReply:
    return replace(reply, message=Message.of("assistant", words), finish="stop")


# What every service is asked


@caught_by("it_has_a_name_and_capabilities", "name is empty")
class Nameless(Broken):
    def __init__(self, **options):
        super().__init__(**options)
        self.name = ""


@caught_by("a_reply_is_the_assistants_and_says_who_answered", "the reply's service is ''")
class SaysNotWhoAnswered(Broken):
    def spoil(self, reply, request):
        return replace(reply, service="")


@caught_by("a_reply_is_the_assistants_and_says_who_answered", "of the role 'user'")
class AnswersAsTheUser(Broken):
    def spoil(self, reply, request):
        return replace(reply, message=replace(reply.message, role="user"))


@caught_by("a_reply_is_the_assistants_and_says_who_answered", "the reply has no parts")
class SaysNothing(SpoilsWhole):
    def ruin(self, reply, request):
        return replace(reply, message=Message("assistant", ()))


@caught_by("citations_are_of_the_sources_given", "a reply is made of Text, ToolCall and Reasoning")
class HandsItsSourcesBack(Broken):
    def spoil(self, reply, request):
        return replace(reply, message=Message.of("assistant", reply.text, *parts_of(request, Source)))


@caught_by("a_reply_is_the_assistants_and_says_who_answered", "the reply's finish is 'end_turn'")
class KeepsTheVendorsFinish(Broken):
    def spoil(self, reply, request):
        return replace(reply, finish="end_turn")


@caught_by("a_reply_is_the_assistants_and_says_who_answered", "not read back")
class CannotReadItsOwnThoughts(Broken):
    def take(self, request):
        if parts_of(request, Reasoning):
            raise RuntimeError("not read back")
        return request

    def spoil(self, reply, request):
        return replace(reply, message=replace(reply.message, content=(*reply.message.content, Reasoning("hm"))))


@caught_by("an_option_outside_the_capabilities_is_refused", "complete took extras.no_such_extra")
class DropsOptions(Broken):
    async def complete(self, request):
        return await super().complete(ChatRequest(request.messages))


@caught_by("an_option_outside_the_capabilities_is_refused", "stream took extras.no_such_extra")
class DropsOptionsOfStreams(Broken):
    async def stream(self, request):
        async for delta in super().stream(ChatRequest(request.messages)):
            yield delta


@caught_by("an_option_outside_the_capabilities_is_refused", r"took strict \(of a tool\)")
class TakesStrictToolsThatItHasNot(Broken):
    def __init__(self):
        super().__init__(replace(EVERYTHING, strict=False))

    def take(self, request):
        return replace(request, tools=tuple(replace(tool, strict=False) for tool in request.tools))


@caught_by("the_sampling_options_declared_are_accepted", "no seeds here")
class DeclaresWhatItRefuses(Broken):
    def take(self, request):
        if request.seed == 0:
            raise RuntimeError("no seeds here")
        return request


@caught_by("a_reply_has_no_more_tokens_than_it_may", "where 16 were allowed")
class IgnoresMaxTokens(Broken):
    def take(self, request):
        if request.max_tokens == 16:
            return replace(ask_for(request, "One, two, three and on. " * 9), max_tokens=None)
        return request


@caught_by("a_reply_has_no_more_tokens_than_it_may", "cut after 16 tokens, its finish is 'stop'")
class CutsWithoutAWord(Broken):
    def take(self, request):
        return ask_for(request, "One, two, three and on. " * 9) if request.max_tokens == 16 else request

    def spoil(self, reply, request):
        return replace(reply, finish="stop") if reply.finish == "length" else reply


def ask_for(request: ChatRequest, words: str) -> ChatRequest:
    return replace(request, messages=[Message.of("user", words)])


@caught_by("a_reply_ends_before_a_stop_word", "complete was to stop before")
class IgnoresStopWords(Broken):
    def take(self, request):
        return replace(request, stop=())


@caught_by("a_reply_ends_before_a_stop_word", "stream was to stop before")
class StreamsOverStopWords(Broken):
    """Looks for a stop word in each piece alone."""

    async def stream(self, request):
        text = brain(replace(request, stop=())).text
        pieces = [text[start : start + 2] for start in range(0, len(text), 2)]
        end = next((n for n, piece in enumerate(pieces) if any(stop in piece for stop in request.stop)), len(pieces))
        for piece in pieces[:end]:
            yield ChatDelta(piece)
        yield ChatDelta(reply=replace(brain(request), message=Message.of("assistant", "".join(pieces[:end]))))


@caught_by("the_pieces_of_a_stream_make_the_reply", "the pieces joined are not the reply's text")
class LosesTheLastPiece(Broken):
    async def stream(self, request):
        held = None
        async for delta in super().stream(request):
            if held is not None and delta.reply is None:
                yield held
            held = delta
        yield held


@caught_by("the_pieces_of_a_stream_make_the_reply", "the last delta carries no reply")
class NeverGivesTheReply(Broken):
    async def stream(self, request):
        async for delta in super().stream(request):
            yield replace(delta, reply=None)


@caught_by("the_pieces_of_a_stream_make_the_reply", "carries the reply before the last one")
class GivesTheReplyEachTime(Broken):
    async def stream(self, request):
        reply = await self.complete(request)
        async for delta in super().stream(request):
            yield replace(delta, reply=reply)


@caught_by("the_pieces_of_a_stream_make_the_reply", "the stream has a str in it")
class StreamsStrings(Broken):
    async def stream(self, request):
        async for delta in super().stream(request):
            yield delta.text if delta.text else delta


@caught_by("the_pieces_of_a_stream_make_the_reply", "streamed ChatReply")
class StreamsOtherWords(Broken):
    async def stream(self, request):
        reply = brain(request)
        reply = replace(reply, message=Message.of("assistant", reply.text.upper()))
        yield ChatDelta(reply.text, reply=reply)


@caught_by("equal_requests_have_equal_replies", "one request was answered with")
class RemembersTheLastTurn(SpoilsWhole):
    def ruin(self, reply, request):
        return replace(reply, model=str(len(self.requests)))


@caught_by("equal_requests_have_equal_replies", "reached the next call")
class KeepsTheStopWords(Broken):
    kept: tuple[str, ...] = ()

    def take(self, request):
        self.kept = request.stop or self.kept
        return replace(request, stop=self.kept)


@caught_by("concurrent_calls_do_not_mix", "there is no source 11")
class KeepsTheRequestOnItself(Broken):
    async def complete(self, request):
        self.request = request
        await asyncio.sleep(0)
        return await super().complete(self.request)


@caught_by("a_request_is_not_changed", "complete changed the messages")
class GrowsTheMessages(Broken):
    async def complete(self, request):
        reply = await super().complete(request)
        request.messages.append(reply.message)
        return reply


# Usage


@caught_by("a_reply_is_the_assistants_and_says_who_answered", "tokens are counted from 0")
class CountsBelowNothing(Broken):
    def spoil(self, reply, request):
        return replace(reply, usage=Usage(1, -1))


@caught_by("a_reply_is_the_assistants_and_says_who_answered", "cached tokens are part of the input")
class CountsCachedTokensApart(Broken):
    def spoil(self, reply, request):
        return replace(reply, usage=replace(reply.usage, cached_tokens=reply.usage.input_tokens + 1))


@caught_by("usage_is_counted", "stream reports no tokens read")
class CountsNothingInStreams(Broken):
    async def stream(self, request):
        async for delta in super().stream(request):
            yield replace(delta, reply=delta.reply and replace(delta.reply, usage=Usage()))


@caught_by("usage_is_counted", "with a long system message")
class SendsTheLastMessageAlone(Broken):
    def take(self, request):
        return replace(request, messages=request.messages[-1:])


@caught_by("usage_is_counted", "with a long result of a tool")
class LosesResults(Broken):
    def take(self, request):
        kept = [message for message in request.messages if message.role != "tool"]
        return replace(request, messages=kept)


# Tools


@caught_by("no_tool_is_called_where_none_may_be", "but was offered \\[\\]")
class CallsWhenToldNotTo(SpoilsWhole):
    def ruin(self, reply, request):
        calls = (ToolCall("1", tool.name) for tool in request.tools[:1])
        return replace(reply, message=Message.of("assistant", *calls), finish="tool_calls") if request.tools else reply


@caught_by("no_tool_is_called_where_none_may_be", "told not to call, it says nothing")
class FallsSilentWithoutTools(SpoilsWhole):
    def ruin(self, reply, request):
        return replace(reply, message=Message("assistant", ())) if request.tool_choice.mode == "none" else reply


@caught_by("tools_of_any_shape_may_be_offered", "it calls 'Clock-Now', but was offered")
class OffersEverything(Broken):
    def take(self, request):
        return replace(request, tool_choice=replace(request.tool_choice, include=None, exclude=()))


@caught_by("tools_of_any_shape_may_be_offered", "it calls 'Clock-Now', but was offered")
class KnowsNoExclude(Broken):
    def take(self, request):
        return replace(request, tool_choice=replace(request.tool_choice, exclude=()))


@caught_by("tools_of_any_shape_may_be_offered", "unnameable")
class KnowsOnlyShortNames(Broken):
    def take(self, request):
        if any(len(tool.name) > 40 for tool in request.tools):
            raise RuntimeError("unnameable")
        return request


@caught_by("a_tool_is_called_where_one_must_be", "a call was demanded, and the reply has none")
class NeverCalls(Broken):
    def take(self, request):
        return replace(request, tools=(), tool_choice=replace(request.tool_choice, mode="auto"))


@caught_by("a_tool_is_called_where_one_must_be", "has the finish 'stop'")
class StopsAtCalls(Broken):
    def spoil(self, reply, request):
        return replace(reply, finish="stop")


@caught_by("a_reply_is_the_assistants_and_says_who_answered", "a reply with 0 calls has the finish 'tool_calls'")
class AlwaysAsksForTools(Broken):
    def spoil(self, reply, request):
        return replace(reply, finish="tool_calls")


class SpoilsCalls(SpoilsWhole):
    def ruin(self, reply, request):
        calls = [self.ruin_call(call, place) for place, call in enumerate(reply.tool_calls)]
        return replace(reply, message=Message.of("assistant", *calls)) if calls else reply

    def ruin_call(self, call, place):
        raise AssertionError("a variant says how")


@caught_by("a_tool_is_called_where_one_must_be", "are not JSON")
class WritesPythonForArguments(SpoilsCalls):
    def ruin_call(self, call, place):
        return replace(call, arguments=str(json.loads(call.arguments) | {"a": None}))


@caught_by("a_tool_is_called_where_one_must_be", "JSON has no NaN")
class WritesNotANumber(SpoilsCalls):
    def ruin_call(self, call, place):
        return replace(call, arguments='{"a": NaN}')


@caught_by("a_tool_is_called_where_one_must_be", "are not an object")
class WritesAListOfArguments(SpoilsCalls):
    def ruin_call(self, call, place):
        return replace(call, arguments="[]")


@caught_by("a_tool_is_called_where_one_must_be", "are not JSON")
class WritesNothingForNoArguments(SpoilsCalls):
    def ruin_call(self, call, place):
        return replace(call, arguments=call.arguments.removeprefix("{}"))


@caught_by("a_tool_is_called_where_one_must_be", "has no id")
class GivesNoIds(SpoilsCalls):
    def ruin_call(self, call, place):
        return replace(call, id=" ")


@caught_by("several_calls_come_in_order", "several calls of one reply have one id")
class GivesOneIdToAll(SpoilsCalls):
    def ruin_call(self, call, place):
        return replace(call, id=call.name)


@caught_by("several_calls_come_in_order", "it calls for \\['Lima', 'Oslo'\\]")
class TurnsCallsRound(SpoilsWhole):
    def ruin(self, reply, request):
        return replace(reply, message=Message.of("assistant", *reversed(reply.message.content)))


@caught_by("several_calls_come_in_order", "it calls for \\['Oslo'\\]")
class KeepsTheFirstCallAlone(SpoilsWhole):
    def ruin(self, reply, request):
        return replace(reply, message=Message("assistant", reply.message.content[:1]))


class SpoilsPieces(Broken):
    async def stream(self, request):
        async for delta in super().stream(request):
            if delta.tool_call is None:
                yield delta
            elif (piece := self.ruin_piece(delta.tool_call)) is not None:
                yield ChatDelta(tool_call=piece)

    def ruin_piece(self, piece: ToolCallDelta) -> ToolCallDelta | None:
        raise AssertionError("a variant says how")


@caught_by("the_pieces_of_a_stream_make_the_reply", "the pieces joined are \\(\\), the reply's calls")
class StreamsNoCalls(SpoilsPieces):
    def ruin_piece(self, piece):
        return None


@caught_by("the_pieces_of_a_stream_make_the_reply", "the pieces joined are .*, the reply's calls")
class LosesPiecesOfArguments(SpoilsPieces):
    def ruin_piece(self, piece):
        return None if ":" in piece.arguments else piece


@caught_by("the_pieces_of_a_stream_make_the_reply", r"numbered from 0; the pieces have \[1\]")
class NumbersCallsFromOne(SpoilsPieces):
    def ruin_piece(self, piece):
        return replace(piece, index=piece.index + 1)


@caught_by("the_pieces_of_a_stream_make_the_reply", "the first piece of call 0 has no id")
class StreamsNoIds(SpoilsPieces):
    def ruin_piece(self, piece):
        return replace(piece, id="")


@caught_by("the_pieces_of_a_stream_make_the_reply", "the first piece of call 0 has no name")
class StreamsNoNames(SpoilsPieces):
    def ruin_piece(self, piece):
        return replace(piece, name="")


@caught_by("the_pieces_of_a_stream_make_the_reply", "the id of call 0 is 'call-0', in a later piece 'chunk'")
class GivesEachPieceAnId(SpoilsPieces):
    def ruin_piece(self, piece):
        return piece if piece.id else replace(piece, id="chunk")


@caught_by("several_calls_come_in_order", "the pieces joined are|the id of call 0")
class StreamsAllCallsAsOne(SpoilsPieces):
    def ruin_piece(self, piece):
        return replace(piece, index=0)


@caught_by("two_streams_read_in_turn_do_not_mix", "the pieces joined are")
class KeepsPiecesOnItself(Broken):
    pieces: ClassVar[list[str]] = []

    async def stream(self, request):
        self.pieces.clear()
        async for delta in super().stream(request):
            if delta.tool_call is not None:
                self.pieces.append(delta.tool_call.arguments)
            call = delta.reply.tool_calls[0] if delta.reply and delta.reply.tool_calls else None
            if call is None:
                yield delta
                continue
            mixed = replace(call, arguments="".join(self.pieces))
            yield ChatDelta(reply=replace(delta.reply, message=Message.of("assistant", mixed)))


@caught_by("a_history_of_calls_and_results_is_taken", "a history with a failure was not taken")
class CannotTellFailures(Broken):
    def take(self, request):
        if any(result.error for result in parts_of(request, ToolResult)):
            raise KeyError("content")
        return request


@caught_by("a_history_of_calls_and_results_is_taken", "several results in one message was not taken")
class SendsOneResultForEachMessage(Broken):
    def take(self, request):
        for message in request.messages:
            if sum(isinstance(part, ToolResult) for part in message.content) > 1:
                raise ServiceError("400: a call has no result")
        return request


@caught_by("a_history_of_calls_and_results_is_taken", "an empty result was not taken")
class SendsNothingForNothing(Broken):
    def take(self, request):
        if any(not result.content for result in parts_of(request, ToolResult)):
            raise ServiceError("400: content is missing")
        return request


@caught_by("a_history_of_calls_and_results_is_taken", "odd characters was not taken")
class SendsAscii(Broken):
    def take(self, request):
        for result in parts_of(request, ToolResult):
            result.content.encode("ascii")
        return request


@caught_by("a_history_of_calls_and_results_is_taken", "several results in one message was not taken")
class NeedsToolsForAHistoryOfCalls(Broken):
    def take(self, request):
        if parts_of(request, ToolCall) and not request.tools:
            raise ServiceError("400: tools are missing")
        return request


@caught_by("its_own_calls_go_back_with_their_results", "400: no such call")
class ForgetsItsCalls(Broken):
    def take(self, request):
        if any(call.id.startswith("call-") for call in parts_of(request, ToolCall)):
            raise ServiceError("400: no such call")
        return request


# Schemas


@caught_by("a_reply_is_held_to_its_schema", "complete, flat: this is not JSON")
class IgnoresSchemas(Broken):
    def take(self, request):
        return replace(request, response_schema=None)


@caught_by("a_reply_is_held_to_its_schema", "stream, flat: this is not JSON")
class IgnoresSchemasInStreams(Broken):
    async def stream(self, request):
        async for delta in super().stream(replace(request, response_schema=None)):
            yield delta


@caught_by("a_reply_is_held_to_its_schema", "this is not JSON .*```")
class FencesItsJson(SpoilsWhole):
    def ruin(self, reply, request):
        return in_words(reply, f"```json\n{reply.text}\n```") if request.response_schema else reply


@caught_by("a_reply_is_held_to_its_schema", "recursion: .* does not satisfy its schema: .*missing")
class FollowsNoReferences(Broken):
    def take(self, request):
        schema = request.response_schema
        return replace(request, response_schema={**schema, "$defs": {"node": {}}}) if schema else request


@caught_by("a_reply_is_held_to_its_schema", r"arrays: .* does not satisfy its schema: .*at least 2 elements")
class CountsNoElements(SpoilsWhole):
    def ruin(self, reply, request):
        return in_words(reply, re.sub(r"\[[^\[\]]*\]", "[]", reply.text)) if request.response_schema else reply


@caught_by("schemas_of_calls_at_once_do_not_mix", "with others at once, .* does not satisfy its schema")
class KeepsTheSchemaOnItself(Broken):
    async def complete(self, request):
        self.schema = request.response_schema
        await asyncio.sleep(0)
        return await super().complete(replace(request, response_schema=self.schema))


@caught_by("a_reply_is_held_to_its_schema", "each of 19 replies with a schema was cut short")
class CutsItsJson(Broken):
    def spoil(self, reply, request):
        return replace(reply, finish="length") if request.response_schema is not None else reply


@caught_by("a_reply_is_held_to_its_schema", "where a reply with a schema was wanted|but was offered")
class AnswersSchemasByCalls(SpoilsWhole):
    def ruin(self, reply, request):
        if request.response_schema is None:
            return reply
        return replace(reply, message=Message.of("assistant", ToolCall("1", "json", reply.text)), finish="tool_calls")


@caught_by("tools_beside_a_schema_are_honoured_or_refused", r"with tools \(auto\), flat: this is not JSON")
class ForgetsTheSchemaBesideTools(Broken):
    def take(self, request):
        return replace(request, tools=(), response_schema=None) if request.tools else request


@caught_by("the_strict_form_is_taken_and_held_to", "400: strict")
class RefusesTheStrictForm(Broken):
    def take(self, request):
        if request.response_strict:
            raise ServiceError("400: strict")
        return request


@caught_by("the_strict_form_is_taken_and_held_to", "strict: .* does not satisfy its schema")
class HoldsLooselyToTheStrictForm(SpoilsWhole):
    def ruin(self, reply, request):
        return in_words(reply, "{}") if request.response_strict else reply


@caught_by("the_strict_form_is_taken_and_held_to", "the arguments of a strict tool")
class HoldsLooselyToStrictTools(SpoilsCalls):
    def ruin_call(self, call, place):
        return replace(call, arguments="{}")


# Sources


@caught_by("citations_are_of_the_sources_given", "there is no source 99")
class InventsACitation(Broken):
    def spoil(self, reply, request):
        return replace(reply, citations=(*reply.citations, Citation(99, None, None, "Invented.")))


@caught_by("citations_are_of_the_sources_given", "its source does not say so")
class InventsAQuote(Broken):
    def spoil(self, reply, request):
        return replace(reply, citations=tuple(replace(one, quote=f"{one.quote}!") for one in reply.citations))


@caught_by("citations_are_of_the_sources_given", "another place")
class CitesAnotherPlace(Broken):
    def spoil(self, reply, request):
        return replace(reply, citations=tuple(replace(one, link="file:///elsewhere") for one in reply.citations))


@caught_by("citations_are_of_the_sources_given", "does not answer from them")
class IgnoresItsSources(Broken):
    def take(self, request):
        return replace(request, messages=[Message.of("user", request.messages[-1].text)])


@caught_by("sources_are_data", "there is no source 9")
class EndsSourcesByText(Broken):
    """Reads its sources back out of the prompt that they were rendered into."""

    def spoil(self, reply, request):
        prompt = " ".join(source.text for source in parts_of(request, Source))
        found = [Citation(int(number), None, None, "") for number in re.findall(r'<source number="(\d+)"', prompt)]
        return replace(reply, citations=(*reply.citations, *found))


# What is odd, broken or given up


@caught_by("blank_requests_are_answered_or_refused_properly", "raised IndexError, not ServiceError or ValueError")
class FailsOnNoMessages(Broken):
    def take(self, request):
        return replace(request, messages=[*request.messages[:-1], request.messages[-1]])


@caught_by("images_and_files_are_answered_or_refused_properly", "half an image: complete raised RuntimeError")
class FailsOnImages(Broken):
    def take(self, request):
        if any(len(image.data or b"") == 30 for image in parts_of(request, Image)):
            raise RuntimeError("libpng")
        return request


@caught_by("images_and_files_are_answered_or_refused_properly", "no kind: complete raised UnicodeDecodeError")
class ReadsEveryFileAsText(Broken):
    def take(self, request):
        for file in parts_of(request, File):
            file.data.decode()
        return request


@caught_by("odd_requests_are_answered_or_refused_properly", "half a surrogate: .* raised UnicodeEncodeError")
class CannotEncode(Broken):
    def take(self, request):
        for message in request.messages:
            message.text.encode()
        return request


@caught_by("odd_requests_are_answered_or_refused_properly", "arguments that are not JSON: .* raised JSONDecodeError")
class ReadsArguments(Broken):
    def take(self, request):
        for call in parts_of(request, ToolCall):
            json.loads(call.arguments or "{}")
        return request


@caught_by("odd_requests_are_answered_or_refused_properly", "somebody else's reasoning: .* raised TypeError")
class SendsAnyReasoning(Broken):
    def take(self, request):
        json.dumps([part.data for part in parts_of(request, Reasoning)])
        return request


@caught_by("odd_requests_are_answered_or_refused_properly", "a result without a call: .* raised KeyError")
class NamesResultsByTheirCalls(Broken):
    def take(self, request):
        names = {call.id: call.name for call in parts_of(request, ToolCall)}
        for result in parts_of(request, ToolResult):
            names[result.id]
        return request


@caught_by("odd_requests_are_answered_or_refused_properly", "raised ServiceError without a word")
class RefusesWithoutAWord(Broken):
    def take(self, request):
        if request.messages[-1].role == "system":
            raise ServiceError("")
        return request


@caught_by("odd_requests_are_answered_or_refused_properly", "a name with a space in it: .* had no answer after 0.3 sec")
class Hangs(Broken):
    async def complete(self, request):
        if request.messages[-1].name is not None:
            await asyncio.sleep(60)
        return await super().complete(request)

    async def stream(self, request):
        if request.messages[-1].name is not None:
            await asyncio.sleep(60)
        async for delta in super().stream(request):
            yield delta


@caught_by("odd_requests_are_answered_or_refused_properly", "no connection")
class LosesItsConnectionOverBadRequests(Broken):
    closed = False

    def take(self, request):
        if self.closed:
            raise ServiceUnavailable("no connection")
        self.closed = request.seed == 2**70
        return request


@caught_by(
    "a_conversation_is_answered_or_too_long", "of 2001 messages: complete raised ServiceError, not ContextOverflow"
)
class CannotTellWhatIsTooLong(Broken):
    def take(self, request):
        if len(request.messages) > 1_000:
            raise ServiceError("400: too long")
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


@caught_by("a_stream_or_call_given_up_leaves_it_usable", "after a cancelled call it never answers")
class KeepsItsLockWhenCancelled(Broken):
    complete = keeps_its_lock(Broken.complete)


@caught_by("a_stream_or_call_given_up_leaves_it_usable", r"tasks go on 0.3 seconds after all was given up: .*_watch")
class WatchesOnWhenCancelled(Broken):
    async def complete(self, request):
        watch = asyncio.create_task(self._watch())
        reply = await super().complete(request)
        watch.cancel()
        return reply

    async def _watch(self):
        await asyncio.sleep(5)


class Queued:
    """Fills a queue from a task, which closing stops."""

    def __init__(self, deltas):
        self.queue = asyncio.Queue(maxsize=1)
        self.task = asyncio.create_task(self._fill(deltas))

    async def _fill(self, deltas):
        async for delta in deltas:
            await self.queue.put(delta)
        await self.queue.put(None)

    def __aiter__(self):
        return self

    async def __anext__(self):
        if (delta := await self.queue.get()) is None:
            raise StopAsyncIteration
        return delta

    async def aclose(self):
        self.task.cancel()


@caught_by("a_stream_or_call_given_up_leaves_it_usable", r"tasks go on 0.3 seconds after all was given up: .*_fill")
class ReadsOnWhenForgotten(Broken):
    def stream(self, request):
        return Queued(super().stream(request))


class Held:
    """Holds a connection until it is closed, which has to be once and in time."""

    def __init__(self, deltas, *, once=False, begun=False, going_on=False):
        self.deltas = deltas
        self.refused = {"closed": once, "new": begun, "at its end": going_on}
        self.state = "new"

    def __aiter__(self):
        return self

    async def __anext__(self):
        try:
            delta = await anext(self.deltas)
        except StopAsyncIteration:
            self.state = "at its end"
            raise
        self.state = "read"
        return delta

    async def aclose(self):
        if self.refused.get(self.state):
            raise RuntimeError(f"the stream is {self.state}")
        self.state = "closed"
        await self.deltas.aclose()


@caught_by("a_stream_or_call_given_up_leaves_it_usable", "the stream is closed")
class ClosesItsStreamsOnce(Broken):
    def stream(self, request):
        return Held(super().stream(request), once=True)


@caught_by("a_stream_or_call_given_up_leaves_it_usable", "the stream is new")
class ClosesWhatIsReadOnly(Broken):
    def stream(self, request):
        return Held(super().stream(request), begun=True)


@caught_by("a_stream_or_call_given_up_leaves_it_usable", "the stream is at its end")
class ClosesWhatGoesOnOnly(Broken):
    def stream(self, request):
        return Held(super().stream(request), going_on=True)


@caught_by("a_stream_or_call_given_up_leaves_it_usable", "has an `aclose`, as generators do")
class EndsItsStreamsItself(Broken):
    def stream(self, request):
        return aiter(Unclosable(super().stream(request)))


class Unclosable:
    def __init__(self, deltas):
        self.deltas = deltas

    def __aiter__(self):
        return self

    async def __anext__(self):
        return await anext(self.deltas)


@caught_by("a_stream_or_call_given_up_leaves_it_usable", "a cancelled call raised ServiceUnavailable")
class TakesACancelledCallForAFailure(Broken):
    async def complete(self, request):
        try:
            return await super().complete(request)
        except BaseException as error:
            raise ServiceUnavailable("no connection") from error


@caught_by("a_stream_or_call_given_up_leaves_it_usable", "as if nobody had cancelled it")
class TakesNoNoticeOfCancellation(Broken):
    async def complete(self, request):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.001)
        return await super().complete(request)


@caught_by("a_call_leaves_the_event_loop_free", "the event loop waits by time.sleep in")
class BlocksTheLoop(Broken):
    def take(self, request):
        time.sleep(0.05)
        return request


@caught_by("a_call_leaves_the_event_loop_free", "the event loop waits by time.sleep in")
class BlocksTheLoopInStreams(Broken):
    async def stream(self, request):
        time.sleep(0.05)
        async for delta in super().stream(request):
            yield delta


@caught_by("a_vendor_that_fails_is_a_service_error", "complete raised ConnectionError")
class LetsTheVendorsErrorOut(Broken):
    async def complete(self, request):
        if self.fails:
            raise ConnectionError("[Errno 111]")
        return await super().complete(request)


@caught_by("a_vendor_that_fails_is_a_service_error", "stream raised ConnectionError")
class LetsTheVendorsErrorOutOfStreams(Broken):
    async def stream(self, request):
        if self.fails:
            raise ConnectionError("[Errno 111]")
        async for delta in super().stream(request):
            yield delta


@caught_by("a_vendor_that_fails_is_a_service_error", "and says '' only")
class FailsWithoutAWord(Broken):
    def take(self, request):
        if self.fails:
            raise ServiceUnavailable("")
        return request


@caught_by("a_vendor_that_fails_is_a_service_error", "and what it stands on fails")
class AnswersForAVendorThatFails(Broken):
    def __init__(self, fails=False):
        super().__init__()


class HasNoModel(Broken):
    """What is wrong is a setting, such as a model's file."""

    def take(self, request):
        if self.fails:
            raise ConfigurationError("model.bin is no model. Set `model` of [chat.broken] to one.")
        return super().take(request)


class TestTheChatServiceKit(KitOfAKit):
    faults = FAULTS
    correct = (Broken, HasNoModel)


def test_the_strict_schema_of_the_kit_is_of_the_strict_form() -> None:
    form = strict_form(STRICT)
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


async def test_a_line_may_be_one_call_alone_or_a_reply_with_its_own_usage() -> None:
    call = ToolCall("1", "Clock-Now")
    whole = ChatReply(Message.of("assistant", "Noon."), "length", Usage(5, 5))
    chat = ScriptedChat(call, whole, usage=Usage(1, 1))
    request = ChatRequest([Message.of("user", "What time is it?")])
    reply = await chat.complete(request)
    assert (reply.tool_calls, reply.finish, reply.usage) == ((call,), "tool_calls", Usage(1, 1))
    assert await chat.complete(request) is whole
