"""Replies of Responses, whole or streamed, as core's values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from portico import ChatDelta, ChatReply, Message, Part, Reasoning, Text, ToolCall, ToolCallDelta, Usage
from portico.errors import ContentRefused, ServiceUnavailable
from portico_openai._shared_forms import InputDetails, OutputDetails, citations_of, usage_of
from portico_wire.answers import Answer, decode_answer
from portico_wire.chat import ReplyReader, unused_id, web_label
from portico_wire.errors import Peer, invalid, reported_error


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: InputDetails | None = None
    output_tokens_details: OutputDetails | None = None
    cost: float | None = None


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _Response(Answer):
    """A whole response: the fields that are read."""

    output: list[dict[str, Any]] | None = None
    status: str | None = None
    incomplete_details: _Incomplete | None = None
    usage: _Usage | None = None
    model: str | None = None
    service_tier: Any = None


class _Part(msgspec.Struct):
    """A part of what is said, or of the summary of what is thought."""

    type: str | None = None
    text: str | None = None
    refusal: str | None = None
    annotations: list[Any] | None = None
    logprobs: list[Any] | None = None


class _Output(msgspec.Struct):
    """An item of the output, of a type that is read: a message, a call or thinking."""

    type: str = ""
    content: list[_Part] | None = None
    summary: list[_Part] | None = None
    phase: str | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None


class _Event(Answer):
    """An event of a stream: the fields that are read of any kind."""

    type: str | None = None
    delta: str | None = None
    output_index: int | None = None
    item_id: str | None = None
    summary_index: int | None = None
    item: dict[str, Any] | None = None
    response: msgspec.Raw = msgspec.Raw()
    code: Any = None
    message: Any = None


_RESPONSES = msgspec.json.Decoder(_Response)
_EVENTS = msgspec.json.Decoder(_Event)
_DONE = b"[DONE]"
_LAST = frozenset({"response.completed", "response.incomplete", "response.failed"})
_NEW_PART = "\n\n"
"""Between two parts of a summary."""


_READ = frozenset({"message", "function_call", "reasoning"})


@dataclass(slots=True)
class _Item:
    """An item of the output: what was streamed of it, and all of it when it has come."""

    pieces: list[str] = field(default_factory=list)
    """Of its text, its arguments or its summary, by its type."""
    refusals: list[str] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    """As it came."""
    read: _Output = field(default_factory=_Output)
    complete: bool = False
    call: int | None = None
    """Its number among the calls, once the first piece of it was given out."""
    id: str = ""
    part: int = 0
    """The part of the summary that is being read."""

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def said(self) -> list[_Part]:
        return [part for part in self.read.content or () if part.type == "output_text"]


class ResponseReader(ReplyReader):
    """Put a reply together from the items of a response."""

    def __init__(self, peer: Peer, service: str, maker: str = "") -> None:
        super().__init__(peer)
        self._service = service
        self._maker = maker
        self._items: dict[int | str, _Item] = {}
        self._calls: list[_Item] = []
        self._last = _Response()

    def read(self, text: bytes) -> list[ChatDelta]:
        """Read a whole response and return what it brings."""
        response = decode_answer(_RESPONSES, text, self.peer, "a reply")
        self.begun = response.output is not None
        return self._finish(response)

    def add(self, event: bytes) -> list[ChatDelta]:
        """Read an event and return what it brings."""
        if event == _DONE:
            self.over = self.complete = True
            return []
        come = decode_answer(_EVENTS, event, self.peer, "a piece of a stream")
        kind = come.type or ""
        if kind == "response.output_text.delta":
            return self._add_text(come)
        if kind == "error" or (not kind and come.message):
            raise reported_error(self.peer, {"code": come.code, "message": come.message})
        self.begun = self.begun or kind.startswith("response.")
        match kind:
            case "response.function_call_arguments.delta":
                item = self._at(come)
                item.read.type = "function_call"
                return self._add_arguments(item, come.delta or "")
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                item, part = self._at(come), come.summary_index or 0
                item.read.type = "reasoning"
                piece = f"{_NEW_PART}{come.delta}" if part != item.part and item.pieces else come.delta or ""
                item.part = part
                item.pieces.append(piece)
                return [ChatDelta(reasoning=piece)]
            case "response.refusal.delta":
                self._at(come).refusals.append(come.delta or "")
            case "response.output_item.added" if come.item:
                item = self._at(come)
                item.read = self._read(come.item)
                return self._begin_call(item) if item.read.type == "function_call" else []
            case "response.output_item.done" if come.item:
                return self._complete(self._at(come), come.item)
            case _ if kind in _LAST:
                self.over = self.complete = True
                return self._finish(decode_answer(_RESPONSES, bytes(come.response), self.peer, "a reply"))
        return []

    def end(self) -> list[ChatDelta]:
        """Return what is still to be reported before the reply: arguments that the service left empty."""
        return [delta for item in self._calls if not item.text for delta in self._add_arguments(item, "{}")]

    def reply(self) -> ChatReply:
        """Return the reply.

        Raises ``ContentRefused``, ``ServiceUnavailable`` where the service gave up, and ``ResponseInvalid`` where it
        said nothing at all.
        """
        refusals = [refusal for item in self._items.values() for refusal in item.refusals]
        if refusals:
            raise ContentRefused(self.peer.says(f"refused to answer: {''.join(refusals)}"))
        cut = self._last.status == "incomplete"
        if cut and self._last.incomplete_details and self._last.incomplete_details.reason == "content_filter":
            raise ContentRefused(self.peer.says("filtered its answer."))
        if self._last.status in {"failed", "cancelled"}:
            raise ServiceUnavailable(self.peer.says("gave up on its answer. Try again."))
        if not self.begun:
            raise invalid(self.peer, "sent a reply without a message in it.")
        parts = [part for item in self._items.values() for part in self._parts(item)]
        if not self._calls and not any(isinstance(part, Text) for part in parts):
            parts.append(Text(""))
        said = [part for item in self._items.values() for part in item.said]
        citations = citations_of(each for part in said for each in part.annotations or ())
        searched = any(item.data.get("type") == "web_search_call" for item in self._items.values())
        logprobs = [each for part in said for each in part.logprobs or ()]
        tier = self._last.service_tier
        return ChatReply(
            Message("assistant", tuple(parts), untrusted=web_label(self._service) if searched or citations else None),
            "length" if cut else "tool_calls" if self._calls else "stop",
            _read_usage(self._last.usage),
            self._last.model or self.peer.model,
            self._service,
            citations,
            ({"service_tier": tier} if tier else {}) | ({"logprobs": logprobs} if logprobs else {}),
        )

    def _parts(self, item: _Item) -> Iterator[Part]:
        match item.read.type:
            case "message":
                if item.read.phase and item.text:
                    # It must go back with the text, and a text has no place for it.
                    yield Reasoning({"type": "message", "phase": item.read.phase}, None, self._maker)
                if item.text:
                    yield Text(item.text)
            case "function_call" if item.call is not None:
                yield ToolCall(item.id, item.read.name or "", item.text)
            case "" | "reasoning" if item.data:
                # Also what is not read here, such as a search.
                yield Reasoning(item.data, item.text or None, self._maker)

    def _read(self, data: dict[str, Any]) -> _Output:
        """Read an item of a type that is known here; others are only handed back."""
        if str(data.get("type")) not in _READ:
            return _Output()
        try:
            return msgspec.convert(data, _Output)
        except msgspec.ValidationError as error:
            what = f"sent an item of a reply that is not in {self.peer.protocol}'s format ({error})"
            raise invalid(self.peer, what, msgspec.json.encode(data)) from error

    def _at(self, event: _Event) -> _Item:
        key: object = event.output_index
        if key is None:  # llama.cpp does not number its items.
            key = event.item_id or (event.item or {}).get("id")
        return self._items.setdefault(key if isinstance(key, int | str) else len(self._items), _Item())

    def _add_text(self, event: _Event) -> list[ChatDelta]:
        self.begun = True
        item, piece = self._at(event), event.delta or ""
        item.read.type = "message"
        item.pieces.append(piece)
        self.characters += len(piece)
        return [ChatDelta(piece)]

    def _begin_call(self, item: _Item) -> list[ChatDelta]:
        if item.call is not None:
            return []
        item.call = len(self._calls)
        wanted = item.read.call_id or item.read.id or f"call_{item.call}"
        item.id = unused_id(wanted, (call.id for call in self._calls))
        self._calls.append(item)
        return [ChatDelta(tool_call=ToolCallDelta(item.call, item.id, item.read.name or "", item.text))]

    def _add_arguments(self, item: _Item, piece: str) -> list[ChatDelta]:
        item.pieces.append(piece)
        if item.call is None or not piece:
            return []
        return [ChatDelta(tool_call=ToolCallDelta(item.call, arguments=piece))]

    def _complete(self, item: _Item, data: dict[str, Any]) -> list[ChatDelta]:
        """Take all of an item, and return what was not streamed of it."""
        item.data, item.read, item.complete = data, self._read(data), True
        read = item.read
        deltas = self._begin_call(item) if read.type == "function_call" else []
        if not item.refusals:
            item.refusals += (part.refusal or "" for part in read.content or () if part.type == "refusal")
        if item.pieces:
            return deltas
        if read.type == "function_call":
            return deltas + self._add_arguments(item, read.arguments or "")
        if read.type == "reasoning":
            thought = _NEW_PART.join(part.text or "" for part in read.summary or ())
            thought = thought or "".join(part.text or "" for part in read.content or ())
            item.pieces.append(thought)
            return [ChatDelta(reasoning=thought)] if thought else []
        text = "".join(part.text or "" for part in item.said)
        item.pieces.append(text)
        self.characters += len(text)
        return [ChatDelta(text)] if text else []

    def _finish(self, response: _Response) -> list[ChatDelta]:
        """Take the whole output: its items in their order, of which some, or parts of some, have been streamed."""
        self._last = response
        deltas: list[ChatDelta] = []
        streamed = list(self._items.values())
        output: list[_Item] = []
        for data in response.output or ():
            kind = data.get("type")
            item = next((each for each in streamed if kind in (each.read.type, each.data.get("type"))), None)
            if item is None:
                item = _Item()
            else:
                streamed.remove(item)
            output.append(item)
            if not item.complete:
                deltas += self._complete(item, data)
        self._items = dict(enumerate((*output, *streamed)))
        return deltas


def _read_usage(usage: _Usage | None) -> Usage:
    found = usage or _Usage()
    details = found.input_tokens_details, found.output_tokens_details
    return usage_of(found.input_tokens, found.output_tokens, *details, found.cost)
