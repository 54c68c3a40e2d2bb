"""Replies of Chat Completions, whole or streamed, as core's values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import msgspec

from portico import ChatDelta, ChatReply, Message, Part, Reasoning, Text, ToolCall, ToolCallDelta, Usage
from portico.errors import ContentRefused, ServiceUnavailable
from portico_openai._completions.requests import REASONING_FIELDS, THOUGHT_PARTS
from portico_openai._shared_forms import InputDetails, OutputDetails, citations_of, usage_of
from portico_wire.answers import Answer, decode_answer
from portico_wire.chat import ReplyReader, unused_id, web_label
from portico_wire.errors import Peer, invalid, reported_error


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: Any = None


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Message(msgspec.Struct):
    content: str | list[Any] | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    annotations: list[Any] | None = None


class _Logprobs(msgspec.Struct):
    content: list[Any] | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: InputDetails | None = None
    completion_tokens_details: OutputDetails | None = None
    cost: float | None = None


class _Choice(msgspec.Struct):
    index: int | None = 0
    message: _Message | None = None
    delta: _Message | None = None
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None
    usage: _Usage | None = None


class _OfGroq(msgspec.Struct):
    usage: _Usage | None = None


class Piece(Answer):
    """A completion, or a chunk of one: the fields that are read of either."""

    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    model: str | None = None
    message: Any = None
    service_tier: Any = None
    x_groq: _OfGroq | None = None


_PIECES = msgspec.json.Decoder(Piece)


def decode_piece(text: bytes, peer: Peer, what: str) -> Piece:
    """Read a completion or a chunk; raises the error that it reports, or ``ResponseInvalid``."""
    piece = decode_answer(_PIECES, text, peer, what)
    if piece.choices is None and isinstance(piece.message, str):
        # An error without its envelope.
        raise reported_error(peer, {"message": piece.message})
    return piece


@dataclass(slots=True)
class _WrittenCall:
    id: str
    name: str
    given: str | None
    """The service's own identifier, where it gives one."""
    arguments: list[str] = field(default_factory=list)


_DONE = b"[DONE]"


class CompletionReader(ReplyReader):
    """Put a reply together from its pieces: one piece for a whole reply, many for a streamed one."""

    def __init__(self, peer: Peer, service: str, maker: str = "", *, searched: bool = False) -> None:
        """Take what the reply says of itself; ``searched`` tells that the service was asked to search the web."""
        super().__init__(peer)
        self._service = service
        self._maker = maker
        self._searched = searched
        self._annotations: list[Any] = []
        self._details: dict[str, Any] = {}
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._reasoning: dict[str, str] = {}
        self._thoughts: list[dict[str, Any]] = []
        self._streamed = False
        self._calls: list[_WrittenCall] = []
        self._positions: dict[int, int] = {}
        self._usage: _Usage | None = None
        self._model = ""
        self._finish: str | None = None

    def read(self, text: bytes) -> list[ChatDelta]:
        """Read a whole completion and return what it brings."""
        return self._add(decode_piece(text, self.peer, "a reply"))

    def add(self, event: bytes) -> list[ChatDelta]:
        """Read a chunk and return what it brings."""
        if event == _DONE:
            self.over = self.complete = True
            return []
        return self._add(decode_piece(event, self.peer, "a piece of a stream"))

    def _add(self, piece: Piece) -> list[ChatDelta]:
        # Groq puts it under its own name into the last piece of a stream, Moonshot into the choice.
        usage = piece.x_groq.usage if piece.x_groq and not piece.usage else piece.usage
        if usage is not None:
            self._usage = usage
        if piece.model:
            self._model = piece.model
        if piece.service_tier:
            self._details["service_tier"] = piece.service_tier
        deltas: list[ChatDelta] = []
        for choice in piece.choices or ():
            if choice.index:
                continue
            said = choice.delta or choice.message
            if said is not None:
                self.begun, self._streamed = True, choice.delta is not None
                content, inner = said.content or "", ""
                if isinstance(content, list):
                    content, inner = self._add_parts(content)
                thought = self._add_reasoning(said) or inner
                if content or thought:
                    self._texts.append(content)
                    self.characters += len(content)
                    deltas.append(ChatDelta(content, reasoning=thought))
                if said.refusal:
                    self._refusals.append(said.refusal)
                if said.tool_calls:
                    self._add_calls(said.tool_calls, deltas)
                if said.annotations:
                    self._annotations += said.annotations
            if choice.logprobs and choice.logprobs.content:
                self._details.setdefault("logprobs", []).extend(choice.logprobs.content)
            self._usage = choice.usage or self._usage
            if choice.finish_reason:
                self._finish = choice.finish_reason
                self.complete = True
        return deltas

    def end(self) -> list[ChatDelta]:
        """Return what is still to be reported before the reply: arguments that the service left empty."""
        deltas = []
        for index, call in enumerate(self._calls):
            if not any(call.arguments):
                call.arguments.append("{}")
                deltas.append(ChatDelta(tool_call=ToolCallDelta(index, arguments="{}")))
        return deltas

    def reply(self) -> ChatReply:
        """Return the reply.

        Raises ``ContentRefused``, ``ServiceUnavailable`` where the service gave up, and
        ``ResponseInvalid`` where it said nothing at all.
        """
        if self._refusals:
            raise ContentRefused(self.peer.says(f"refused to answer: {''.join(self._refusals)}"))
        if self._finish == "content_filter":
            raise ContentRefused(self.peer.says("filtered its answer."))
        if self._finish == "error":
            raise ServiceUnavailable(self.peer.says("gave up on its answer. Try again."))
        if not self.begun:
            raise invalid(self.peer, "sent a reply without a message in it.")
        parts: list[Part] = []
        if self._reasoning or self._thoughts:
            thoughts = list(_join_pieces(self._thoughts)) if self._streamed else self._thoughts
            data = {**self._reasoning, **({"content": thoughts} if thoughts else {})}
            parts.append(
                Reasoning(data, next(iter(self._reasoning.values()), "".join(map(_thought_of, thoughts))), self._maker)
            )
        text = "".join(self._texts)
        if text or not self._calls:
            parts.append(Text(text))
        parts += [ToolCall(call.id, call.name, "".join(call.arguments)) for call in self._calls]
        citations = citations_of(self._annotations)
        searched = self._searched or bool(citations)
        return ChatReply(
            Message("assistant", tuple(parts), untrusted=web_label(self._service) if searched else None),
            # OpenAI itself says "stop" of a call that was asked for by name.
            "length" if self._finish == "length" else "tool_calls" if self._calls else "stop",
            _read_usage(self._usage),
            self._model or self.peer.model,
            self._service,
            citations,
            self._details,
        )

    def _add_reasoning(self, said: _Message) -> str:
        thought = ""
        for name in REASONING_FIELDS:
            value = getattr(said, name)
            if value and isinstance(value, str):
                # Servers that fill two fields put the same words into both.
                thought = thought or value
                self._reasoning[name] = self._reasoning.get(name, "") + value
        return thought

    def _add_parts(self, parts: list[Any]) -> tuple[str, str]:
        """Return the text and the thinking of a content that is a list, as Mistral and Databricks write it."""
        text = thought = ""
        for part in parts:
            match part:
                case {"type": str(kind)} if kind in THOUGHT_PARTS:
                    thought += _thought_of(part)
                    self._thoughts.append(part)
                case {"text": str(words)}:
                    text += words
        return text, thought

    def _add_calls(self, pieces: list[_Call], deltas: list[ChatDelta]) -> None:
        for order, piece in enumerate(pieces):
            function = piece.function or _Function()
            name = function.name or ""
            arguments = function.arguments
            if not isinstance(arguments, str):
                arguments = "" if arguments is None else msgspec.json.encode(arguments).decode()
            number = piece.index if piece.index is not None else order
            position = self._positions.get(number)
            # Some servers count every call as the first: another id is another call.
            first = position is None or bool(name and piece.id and piece.id != self._calls[position].given)
            if first:
                position = self._positions[number] = len(self._calls)
                unused = unused_id(piece.id or f"call_{position}", (call.id for call in self._calls))
                self._calls.append(_WrittenCall(unused, name, piece.id))
            call = self._calls[position or 0]
            call.arguments.append(arguments)
            if first:
                deltas.append(ChatDelta(tool_call=ToolCallDelta(position or 0, call.id, name, arguments)))
            elif arguments:
                deltas.append(ChatDelta(tool_call=ToolCallDelta(position or 0, arguments=arguments)))


_THOUGHT_MEMBERS = ("thinking", "summary", "reasoning", "text")
"""Where a part has its thinking: a text, or a list of parts with a text each."""


def _thought_of(part: dict[str, Any]) -> str:
    members = (part.get(name) for name in _THOUGHT_MEMBERS)
    value = next((value for value in members if value and isinstance(value, str | list)), "")
    texts = [each.get("text") if isinstance(each, dict) else each for each in value]
    return "".join(text for text in texts if isinstance(text, str))


def _join_pieces(pieces: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the parts of which these are the pieces: neighbours of one type are one part."""
    for _, group in groupby(pieces, lambda piece: piece["type"]):
        some = list(group)
        whole = {name: value for piece in some for name, value in piece.items()}
        for name in [name for name in _THOUGHT_MEMBERS if isinstance(whole.get(name), str | list)][:1]:
            inner = [each for each in whole[name] if isinstance(each, dict)]
            text = "".join(map(_thought_of, some))
            whole[name] = [{**inner[-1], "text": text}] if inner else text
        yield whole


def _read_usage(usage: _Usage | None) -> Usage:
    found = usage or _Usage()
    details = found.prompt_tokens_details, found.completion_tokens_details
    return usage_of(found.prompt_tokens, found.completion_tokens, *details, found.cost)
