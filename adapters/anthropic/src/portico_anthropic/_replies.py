"""Replies of the service, whole or streamed, as core's values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from portico import ChatDelta, ChatReply, Citation, Message, Part, Reasoning, Text, ToolCall, ToolCallDelta, Usage
from portico.errors import ContentRefused
from portico_anthropic._wire import CITED
from portico_wire.answers import Answer, decode_answer
from portico_wire.chat import ReplyReader, unused_id, web_label
from portico_wire.errors import Peer, invalid


class _OutputDetails(msgspec.Struct):
    thinking_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: _OutputDetails | None = None


class _StopDetails(msgspec.Struct):
    category: str | None = None
    explanation: str | None = None


class _Reply(Answer):
    content: list[dict[str, Any]] | None = None
    model: str | None = None
    stop_reason: str | None = None
    stop_details: _StopDetails | None = None
    usage: _Usage | None = None


class _Delta(msgspec.Struct):
    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    citation: dict[str, Any] | None = None
    stop_reason: str | None = None
    stop_details: _StopDetails | None = None


class _Event(Answer):
    type: str | None = None
    index: int | None = None
    delta: _Delta | None = None
    content_block: dict[str, Any] | None = None
    message: _Reply | None = None
    usage: _Usage | None = None


_REPLIES = msgspec.json.Decoder(_Reply)
_EVENTS = msgspec.json.Decoder(_Event)
_PAUSED = "pause_turn"
_PAUSES = 8
"""Times at most that a turn that the service pauses is continued."""
_CUT = frozenset({"max_tokens", "model_context_window_exceeded", _PAUSED})


@dataclass(slots=True)
class _Block:
    """A block of the reply while it is written."""

    data: dict[str, Any]
    call: int = -1
    """The number of the call that it is, if any."""
    pieces: list[str] = field(default_factory=list)
    """Of its text, its thinking or its JSON."""

    @property
    def kind(self) -> str:
        return str(self.data.get("type"))

    @property
    def whole(self) -> dict[str, Any]:
        """The block as the service would have written it at once, calls excepted."""
        written = "".join(self.pieces)
        if self.kind in {"text", "thinking"}:
            return {**self.data, self.kind: written}
        return {**self.data, "input": msgspec.json.decode(written)} if written else self.data


class MessageReader(ReplyReader):
    """Put a reply together from its blocks, which come whole or in pieces."""

    def __init__(self, peer: Peer, service: str, maker: str) -> None:
        super().__init__(peer)
        self._service = service
        self._maker = maker
        self._blocks: list[_Block] = []
        self._open: dict[int, _Block] = {}
        """The blocks of the present answer, by their numbers in it."""
        self._calls: list[_Block] = []
        self._model = ""
        self._stop: str | None = None
        self._stop_details: _StopDetails | None = None
        self._counted = Usage()
        """What the answers before the present one took."""
        self._usage = _Usage()
        self._pauses = 0

    def go_on(self) -> bool:
        """Where the service has paused, expect a further answer, whose blocks stand behind those that have come."""
        if self._stop != _PAUSED or self._pauses == _PAUSES:
            return False
        self._pauses += 1
        self._counted += _read_usage(self._usage)
        self._usage, self._stop = _Usage(), None
        self._open.clear()
        self.complete = self.over = False
        return True

    def read(self, text: bytes) -> list[ChatDelta]:
        """Read a whole message and return what it brings."""
        reply = decode_answer(_REPLIES, text, self.peer, "a reply")
        if reply.content is None:
            raise invalid(self.peer, "sent a reply without content in it", text)
        self._add_message(reply)
        self._end_with(reply.stop_reason, reply.stop_details)
        return [delta for number, block in enumerate(reply.content) for delta in self._begin(number, block)]

    def add(self, event: bytes) -> list[ChatDelta]:
        """Read an event and return what it brings."""
        read = decode_answer(_EVENTS, event, self.peer, "a piece of a stream")
        if read.type == "content_block_delta":
            return self._add_delta(read.index or 0, read.delta) if read.delta else []
        match read.type:
            case "content_block_start" if read.content_block:
                return list(self._begin(read.index or 0, read.content_block))
            case "message_start" if read.message:
                self._add_message(read.message)
            case "message_delta":
                self._add_usage(read.usage)
                if read.delta:
                    self._end_with(read.delta.stop_reason, read.delta.stop_details)
            case "message_stop":
                self.over = self.complete = True
        return []

    def end(self) -> list[ChatDelta]:
        """Return what is still to be reported before the reply: arguments that the service left empty."""
        deltas = []
        for block in self._calls:
            if not any(block.pieces):
                block.pieces.append("{}")
                deltas.append(ChatDelta(tool_call=ToolCallDelta(block.call, arguments="{}")))
        return deltas

    def reply(self) -> ChatReply:
        """Return the reply.

        Raises ``ContentRefused``, and ``ResponseInvalid`` where the service said nothing at all.
        """
        if self._stop == "refusal":
            details = self._stop_details or _StopDetails()
            why = details.explanation or details.category
            raise ContentRefused(self.peer.says(f"refused to answer{f': {why}' if why else '.'}"))
        if not self.begun:
            raise invalid(self.peer, "sent a reply without a message in it.")
        parts = list(self.parts())
        if not any(isinstance(part, Text | ToolCall) for part in parts):
            parts.append(Text(""))
        citations = tuple(_citations(self._blocks))
        searched = citations or any(block.kind == "web_search_tool_result" for block in self._blocks)
        return ChatReply(
            Message("assistant", tuple(parts), untrusted=web_label(self._service) if searched else None),
            "length" if self._stop in _CUT else "tool_calls" if self._calls else "stop",
            self._counted + _read_usage(self._usage),
            self._model or self.peer.model,
            self._service,
            citations,
        )

    def parts(self) -> Iterator[Part]:
        """Yield the parts of the message so far: what only the service reads has its place among them."""
        for block in self._blocks:
            if block.call >= 0:
                yield ToolCall(block.data["id"], block.data["name"], "".join(block.pieces) or "{}")
                continue
            data = self._whole(block)
            if block.kind == "text":
                yield Text(data["text"])
                if data.get("citations"):
                    yield Reasoning({"type": CITED, "citations": data["citations"]}, None, self._maker)
            else:
                yield Reasoning(data, data["thinking"] or None if block.kind == "thinking" else None, self._maker)

    def _whole(self, block: _Block) -> dict[str, Any]:
        try:
            return block.whole
        except msgspec.DecodeError as error:
            raise invalid(self.peer, f"sent {block.kind} whose input is not JSON", "".join(block.pieces)) from error

    def _add_message(self, message: _Reply) -> None:
        self.begun = True
        self._model = message.model or self._model
        self._add_usage(message.usage)

    def _add_usage(self, usage: _Usage | None) -> None:
        """Take the counts that are given: those of a later event stand for all that came before."""
        if usage is not None:
            for name in usage.__struct_fields__:
                value = getattr(usage, name)
                if value is not None:
                    setattr(self._usage, name, value)

    def _end_with(self, reason: str | None, details: _StopDetails | None) -> None:
        if reason:
            self._stop, self._stop_details, self.complete = reason, details, True

    def _begin(self, number: int, data: dict[str, Any]) -> Iterator[ChatDelta]:
        if not isinstance(data.get("citations"), list):
            data.pop("citations", None)
        block = _Block(data)
        self.begun = True
        self._blocks.append(block)
        self._open[number] = block
        match data:
            case {"type": "tool_use", "name": str(name)}:
                self._begin_call(block)
                arguments = msgspec.json.encode(data["input"]).decode() if data.get("input") else ""
                block.pieces.append(arguments)
                yield ChatDelta(tool_call=ToolCallDelta(block.call, data["id"], name, arguments))
            case {"type": "text", "text": str(text)} if text:
                yield self._say(block, text)
            case {"type": "thinking", "thinking": str(thought)}:
                block.pieces.append(thought)
                if thought:
                    yield ChatDelta(reasoning=thought)

    def _begin_call(self, block: _Block) -> None:
        block.call = len(self._calls)
        wanted = str(block.data.get("id") or f"toolu_{block.call}")
        block.data["id"] = unused_id(wanted, (call.data["id"] for call in self._calls))
        self._calls.append(block)

    def _say(self, block: _Block, text: str) -> ChatDelta:
        block.pieces.append(text)
        self.characters += len(text)
        return ChatDelta(text)

    def _add_delta(self, number: int, delta: _Delta) -> list[ChatDelta]:
        block = self._open.get(number)
        if block is None:
            list(self._begin(number, {"type": "thinking" if delta.thinking is not None else "text"}))
            block = self._open[number]
        if delta.text and block.kind == "text":
            return [self._say(block, delta.text)]
        if delta.thinking and block.kind == "thinking":
            block.pieces.append(delta.thinking)
            return [ChatDelta(reasoning=delta.thinking)]
        if delta.partial_json and block.kind not in {"text", "thinking"}:
            block.pieces.append(delta.partial_json)
            if block.call >= 0:
                return [ChatDelta(tool_call=ToolCallDelta(block.call, arguments=delta.partial_json))]
        elif delta.signature:
            block.data["signature"] = f"{block.data.get('signature') or ''}{delta.signature}"
        elif delta.citation:
            block.data["citations"] = [*block.data.get("citations", ()), delta.citation]
        return []


def _citations(blocks: Iterable[_Block]) -> Iterator[Citation]:
    """Yield what the service relied on in its search, numbered by link in the order of first mention."""
    numbers: dict[str, int] = {}
    for block in blocks:
        for cited in block.data.get("citations", ()):
            match cited:
                case {"type": "web_search_result_location", "url": str(link)}:
                    number = numbers.setdefault(link, len(numbers) + 1)
                    yield Citation(number, cited.get("title"), link, cited.get("cited_text") or "")


def _read_usage(usage: _Usage) -> Usage:
    read, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    thought = usage.output_tokens_details
    return Usage(
        (usage.input_tokens or 0) + read + written,
        usage.output_tokens or 0,
        read,
        (thought and thought.thinking_tokens) or 0,
        written,
    )
