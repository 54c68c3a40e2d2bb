"""What a service answers, whole or in pieces, as a reply of core."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from portico import ChatDelta, ChatReply, Message, Part, Reasoning, Text, ToolCall, ToolCallDelta, Usage
from portico.errors import ContentRefused, ServiceUnavailable
from portico_openai._errors import Peer, filtered_categories, invalid, reported
from portico_openai._wire import REASONING_FIELDS


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: Any = None


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None


class _Choice(msgspec.Struct):
    index: int | None = 0
    message: _Message | None = None
    delta: _Message | None = None
    finish_reason: str | None = None
    content_filter_results: Any = None


class _InputDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _OutputDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _InputDetails | None = None
    completion_tokens_details: _OutputDetails | None = None


class Piece(msgspec.Struct):
    """A completion, or a chunk of one: the fields that are read of either."""

    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    model: str | None = None
    error: Any = None
    message: Any = None


_decode = msgspec.json.Decoder(Piece).decode


def decoded(text: bytes, peer: Peer, what: str) -> Piece:
    """Read a completion or a chunk; raises the error that it reports, or ``ResponseInvalid``."""
    try:
        piece = _decode(text)
    except msgspec.ValidationError as error:
        raise invalid(peer, f"sent {what} that is not in OpenAI's format ({error})", text) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        broken = text.strip()
        raise invalid(
            peer, f"sent {what} that is not JSON" if broken else f"sent {what} that is empty", text
        ) from error
    if piece.error:
        raise reported(peer, piece.error)
    if piece.choices is None and isinstance(piece.message, str):
        # An error without its envelope.
        raise reported(peer, {"message": piece.message})
    return piece


@dataclass(slots=True)
class _WrittenCall:
    id: str
    name: str
    given: str | None
    """The service's own identifier, which another call of the reply may have as well."""
    arguments: list[str] = field(default_factory=list)


class Gathering:
    """Put a reply together from its pieces: one piece for a whole reply, many for a streamed one."""

    def __init__(self, peer: Peer, service: str) -> None:
        self._peer = peer
        self._service = service
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._reasoning: dict[str, Any] = {}
        self._calls: list[_WrittenCall] = []
        self._positions: dict[int, int] = {}
        self._filtered: Any = None
        self._usage: _Usage | None = None
        self._model = ""
        self.started = False
        """Whether a message has begun."""
        self.finish: str | None = None
        """The service's own word for why it ended; None while it goes on."""

    @property
    def characters(self) -> int:
        """Characters of text so far."""
        return sum(map(len, self._texts))

    def add(self, piece: Piece) -> list[ChatDelta]:
        """Take a piece in and return what it brings."""
        if piece.usage is not None:
            self._usage = piece.usage
        if piece.model:
            self._model = piece.model
        deltas: list[ChatDelta] = []
        for choice in piece.choices or ():
            if choice.index:
                continue
            said = choice.delta or choice.message
            if said is not None:
                self.started = True
                thought = self._think(said)
                if said.content or thought:
                    self._texts.append(said.content or "")
                    deltas.append(ChatDelta(said.content or "", reasoning=thought))
                if said.refusal:
                    self._refusals.append(said.refusal)
                if said.tool_calls:
                    self._call(said.tool_calls, deltas)
            if choice.finish_reason:
                self.finish = choice.finish_reason
                self._filtered = choice.content_filter_results
        return deltas

    def end(self) -> list[ChatDelta]:
        """Return what is still to be told of before the reply: arguments that the service left empty."""
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
            raise ContentRefused(self._peer.says(f"refused to answer: {''.join(self._refusals)}"))
        if self.finish == "content_filter":
            raise ContentRefused(self._peer.says(f"filtered its answer{filtered_categories(self._filtered)}."))
        if self.finish in {"error", "insufficient_system_resource"}:
            raise ServiceUnavailable(self._peer.says(f"gave up on its answer ({self.finish}). Try again."))
        if not self.started:
            raise invalid(self._peer, "sent a reply without a message in it.")
        parts: list[Part] = []
        if self._reasoning:
            parts.append(Reasoning(self._reasoning, self._summary()))
        text = "".join(self._texts)
        if text or not self._calls:
            parts.append(Text(text))
        parts += [ToolCall(call.id, call.name, "".join(call.arguments)) for call in self._calls]
        return ChatReply(
            Message("assistant", tuple(parts)),
            # OpenAI itself says "stop" of a call that was asked for by name.
            "length" if self.finish == "length" else "tool_calls" if self._calls else "stop",
            _usage(self._usage),
            self._model or self._peer.model,
            self._service,
        )

    def _think(self, said: _Message) -> str:
        thought = ""
        for name in REASONING_FIELDS:
            value = getattr(said, name)
            if not value:
                continue
            if isinstance(value, str):
                # Servers that fill two fields put the same words into both.
                thought = thought or value
                self._reasoning[name] = self._reasoning.get(name, "") + value
            elif isinstance(value, list):
                _join_details(self._reasoning.setdefault(name, []), value)
            else:
                self._reasoning[name] = value
        return thought

    def _summary(self) -> str | None:
        return next((value for value in self._reasoning.values() if isinstance(value, str)), None)

    def _call(self, pieces: list[_Call], deltas: list[ChatDelta]) -> None:
        for order, piece in enumerate(pieces):
            function = piece.function or _Function()
            name = function.name or ""
            number = piece.index if piece.index is not None else order
            position = self._positions.get(number)
            # Some servers count every call as the first: another id is another call.
            if position is None or (name and piece.id and piece.id != self._calls[position].given):
                position = self._positions[number] = len(self._calls)
                # Some servers give no id; the answer to a call needs one.
                self._calls.append(_WrittenCall(self._own_id(piece.id or f"call_{position}"), name, piece.id))
                first = True
            else:
                first = False
            call = self._calls[position]
            arguments = function.arguments
            if not isinstance(arguments, str):
                arguments = "" if arguments is None else msgspec.json.encode(arguments).decode()
            call.arguments.append(arguments)
            if first:
                deltas.append(ChatDelta(tool_call=ToolCallDelta(position, call.id, name, arguments)))
            elif arguments:
                deltas.append(ChatDelta(tool_call=ToolCallDelta(position, arguments=arguments)))

    def _own_id(self, wanted: str) -> str:
        taken = {call.id for call in self._calls}
        while wanted in taken:
            wanted += f"_{len(taken)}"
        return wanted


def _join_details(known: list[Any], pieces: list[Any]) -> None:
    """Add pieces of OpenRouter's ``reasoning_details``: those of one index and type are one, cut up."""
    for piece in pieces:
        last = known[-1] if known else None
        if not isinstance(piece, dict) or not isinstance(last, dict) or not _is_same(last, piece):
            known.append(dict(piece) if isinstance(piece, dict) else piece)
            continue
        for key, value in piece.items():
            if key in {"text", "summary", "data"} and isinstance(value, str):
                last[key] = (last.get(key) or "") + value
            elif value is not None:
                last[key] = value


def _is_same(last: dict[str, Any], piece: dict[str, Any]) -> bool:
    return "index" in piece and all(piece.get(key) == last.get(key) for key in ("index", "type"))


def _usage(usage: _Usage | None) -> Usage:
    if usage is None:
        return Usage()
    read, written = usage.prompt_tokens_details, usage.completion_tokens_details
    return Usage(
        usage.prompt_tokens or 0,
        usage.completion_tokens or 0,
        (read and read.cached_tokens) or 0,
        (written and written.reasoning_tokens) or 0,
    )
