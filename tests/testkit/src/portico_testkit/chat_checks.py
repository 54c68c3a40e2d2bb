"""How the ChatService kit asks, and what holds for every reply, stream and refusal."""

from __future__ import annotations

import gc
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from portico import ChatCapabilities, ChatDelta, ChatReply, ChatRequest, Reasoning, Source, Text, ToolCall, Usage
from portico.errors import PorticoError
from portico.plugins import PlainSchemaValidator
from portico.ports import ChatService
from portico_testkit.tasks import in_time

__all__ = [
    "WAYS",
    "Caller",
    "Pieces",
    "answer",
    "check_ended_streams",
    "check_json",
    "check_refusal",
    "check_reply",
    "comparable",
]

WAYS = ("complete", "stream")
"""The two ways in which a service is asked everything."""

_LONGEST_WAIT = 90.0
"""Seconds for one odd request; after that the kit gives up."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Asks one service, with a bound to what it writes and a seed to write it again, where it takes those."""

    service: ChatService
    max_output: int

    @property
    def capabilities(self) -> ChatCapabilities:
        """What the service declares."""
        return self.service.capabilities

    async def answer(self, way: str, request: ChatRequest, *, share: float = 1) -> ChatReply:
        """Return the checked reply; ``share`` is how much of the usual bound it may have."""
        return await answer(self.service, way, self.bounded(request, share))

    async def try_out(
        self,
        way: str,
        request: ChatRequest,
        what: str,
        refusals: Sequence[type[Exception]] = (PorticoError, ValueError),
        *,
        share: float = 0.25,
    ) -> ChatReply | None:
        """Ask something odd: return the checked reply, or None where it was refused as it may be."""
        try:
            answering = self.answer(way, request, share=share)
            return await in_time(answering, f"{what}: {way} had no answer", seconds=_LONGEST_WAIT)
        except AssertionError as error:
            raise AssertionError(f"{what}: {way}: {error}") from error
        except Exception as error:
            check_refusal(error, f"{what}: {way}", refusals)
        return None

    def bounded(self, request: ChatRequest, share: float = 1) -> ChatRequest:
        """Return the request as it is sent."""
        options: dict[str, Any] = {}
        if "max_tokens" in self.capabilities.sampling and request.max_tokens is None:
            options["max_tokens"] = max(1, round(self.max_output * share))
        if "seed" in self.capabilities.sampling and request.seed is None:
            options["seed"] = 1
        return replace(request, **options)


async def answer(chat_service: ChatService, way: str, request: ChatRequest) -> ChatReply:
    """Return the checked reply, whole or put together from a checked stream."""
    if way == "complete":
        reply = await chat_service.complete(request)
    else:
        pieces = Pieces()
        async for delta in chat_service.stream(request):
            pieces.take(delta)
        reply = pieces.whole()
    check_reply(reply, chat_service, request)
    return reply


class Pieces:
    """Puts the deltas of one stream together as any caller would, and holds the reply to them."""

    def __init__(self) -> None:
        self._reply: ChatReply | None = None
        self._texts: list[str] = []
        self._calls: dict[int, ToolCall] = {}

    def take(self, delta: ChatDelta) -> None:
        """Add the next delta."""
        assert isinstance(delta, ChatDelta), f"the stream has a {type(delta).__name__} in it"
        assert self._reply is None, "a delta carries the reply before the last one"
        self._reply = delta.reply
        self._texts.append(delta.text)
        assert isinstance(delta.reasoning, str), f"a delta's reasoning is {delta.reasoning!r}, not a str"
        piece = delta.tool_call
        if piece is None:
            return
        begun = self._calls.get(piece.index)
        if begun is None:
            assert piece.id, f"the first piece of call {piece.index} has no id: {piece}"
            assert piece.name, f"the first piece of call {piece.index} has no name: {piece}"
            self._calls[piece.index] = ToolCall(piece.id, piece.name, piece.arguments)
            return
        for what, first, later in (("id", begun.id, piece.id), ("name", begun.name, piece.name)):
            assert later in ("", first), f"the {what} of call {piece.index} is {first!r}, in a later piece {later!r}"
        self._calls[piece.index] = replace(begun, arguments=begun.arguments + piece.arguments)

    def whole(self) -> ChatReply:
        """Return the reply that came last."""
        reply = self._reply
        assert reply is not None, "the last delta carries no reply"
        text = "".join(self._texts)
        assert text == reply.text, f"the pieces joined are not the reply's text: {text!r}, not {reply.text!r}"
        indexes = sorted(self._calls)
        assert indexes == list(range(len(indexes))), f"calls are numbered from 0; the pieces have {indexes}"
        calls = tuple(self._calls[index] for index in indexes)
        assert calls == reply.tool_calls, f"the pieces joined are {calls}, the reply's calls {reply.tool_calls}"
        return reply


def check_reply(reply: ChatReply, chat_service: ChatService, request: ChatRequest) -> None:
    """Hold a reply to what is true of all."""
    assert isinstance(reply, ChatReply), f"the reply is a {type(reply).__name__}"
    assert reply.message.role == "assistant", f"the reply is of the role {reply.message.role!r}"
    assert reply.service == chat_service.name, f"the reply's service is {reply.service!r}, not {chat_service.name!r}"
    foreign = [part for part in reply.message.content if not isinstance(part, Text | ToolCall | Reasoning)]
    assert not foreign, f"a reply is made of Text, ToolCall and Reasoning, not of {foreign}"
    assert reply.finish in ("stop", "length", "tool_calls"), f"the reply's finish is {reply.finish!r}"
    _check_usage(reply.usage)
    _check_calls(reply, request)
    _check_citations(reply, request)


def _check_usage(usage: Usage) -> None:
    inputs = (usage.input_tokens, usage.cached_tokens, usage.cache_written_tokens)
    counts = (*inputs, usage.output_tokens, usage.reasoning_tokens)
    assert all(type(count) is int and count >= 0 for count in counts), f"tokens are counted from 0: {usage}"
    assert usage.cached_tokens <= usage.input_tokens, f"cached tokens are part of the input: {usage}"
    assert usage.cost is None or 0 <= usage.cost < float("inf"), f"the cost is a number of US dollars: {usage}"
    assert usage.reasoning_tokens <= usage.output_tokens, f"reasoning tokens are part of the output: {usage}"


def _check_calls(reply: ChatReply, request: ChatRequest) -> None:
    offered = [tool.name for tool in request.offered]
    calls = reply.tool_calls
    for call in calls:
        assert call.name in offered, f"it calls {call.name!r}, but was offered {offered}"
        assert call.id.strip(), f"the call of {call.name!r} has no id"
        if reply.finish != "length":
            _check_arguments(call)
    ids = [call.id for call in calls]
    assert len(set(ids)) == len(ids), f"several calls of one reply have one id: {ids}"
    if reply.finish != "length":
        expected = "tool_calls" if calls else "stop"
        assert reply.finish == expected, f"a reply with {len(calls)} calls has the finish {reply.finish!r}"


def _check_arguments(call: ToolCall) -> None:
    try:
        arguments = json.loads(call.arguments, parse_constant=_no_constant)
    except ValueError as error:
        raise AssertionError(f"the arguments of {call.name!r} are not JSON ({error}): {call.arguments!r}") from error
    assert isinstance(arguments, dict), f"the arguments of {call.name!r} are not an object: {call.arguments!r}"


def _check_citations(reply: ChatReply, request: ChatRequest) -> None:
    sources = [part for message in request.messages for part in message.content if isinstance(part, Source)]
    for citation in reply.citations:
        cited = [source for source in sources if source.number == citation.number]
        assert cited, f"there is no source {citation.number}: {citation}"
        assert any(citation.name == source.name for source in cited), f"source {citation.number} has another name"
        assert any(_place(citation.link) == _place(source.link) for source in cited), f"another place: {citation}"
        assert any(citation.quote in source.text for source in cited), f"its source does not say so: {citation}"


def _place(link: str | None) -> str | None:
    return None if link is None else link.partition("#")[0]


def check_json(text: str, schema: Mapping[str, Any], what: str) -> None:
    """Hold a text to be JSON, and valid under a schema of the keywords that the core knows."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except ValueError as error:
        raise AssertionError(f"{what}: this is not JSON ({error}): {text!r}") from error
    faults = PlainSchemaValidator().compile(schema)(value)
    assert not faults, f"{what}: {text!r} does not satisfy its schema: {'; '.join(faults)}"


def _no_constant(constant: str) -> NoReturn:
    raise ValueError(f"JSON has no {constant}")


def comparable(reply: ChatReply) -> ChatReply:
    """Return a reply without what may differ between equal ones: ids and blanks of calls, what came from a cache."""
    content = tuple(
        replace(part, id=f"call {place}", arguments=_spaced(part.arguments)) if isinstance(part, ToolCall) else part
        for place, part in enumerate(reply.message.content)
    )
    usage = replace(reply.usage, cached_tokens=0, cost=None)
    return replace(reply, message=replace(reply.message, content=content), usage=usage)


def _spaced(arguments: str) -> str:
    """Write JSON in one way: of a whole reply, some vendors give the value and not the model's text."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except ValueError:
        return arguments


async def check_ended_streams(chat_service: ChatService, request: ChatRequest) -> None:
    """Close streams before the first piece, after it and after the last, twice each; then forget one."""
    for pieces in (0, 1, None):
        stream: Any = chat_service.stream(request)
        assert hasattr(stream, "aclose"), "a stream has an `aclose`, as generators do: how else is it to be ended early"
        if pieces is None:
            async for _ in stream:
                pass
        elif pieces:
            await anext(stream)
        for _ in range(2):
            await stream.aclose()
    stream = chat_service.stream(request)
    await anext(stream)
    del stream
    gc.collect()


def check_refusal(
    error: Exception, what: str, refusals: Sequence[type[Exception]] = (PorticoError, ValueError)
) -> None:
    """Hold an error to be one of ``refusals``, and to say something.

    A subclass counts when it is one of our own errors: what an encoder or a parser raises derives from
    ``ValueError`` too, and is a library's error still.
    """
    own = isinstance(error, PorticoError) or type(error) in refusals
    if not own or not isinstance(error, tuple(refusals)):
        allowed = " or ".join(kind.__name__ for kind in refusals)
        raise AssertionError(f"{what} raised {type(error).__name__}, not {allowed}: {error}") from error
    assert str(error).strip(), f"{what} raised {type(error).__name__} without a word"
