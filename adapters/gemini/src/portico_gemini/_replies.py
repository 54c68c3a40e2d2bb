"""Replies of Gemini, whole or streamed, as core's values."""

from __future__ import annotations

from uuid import uuid4

import msgspec

from portico import ChatDelta, ChatReply, Citation, Message, Part, Reasoning, Text, ToolCall, ToolCallDelta, Usage
from portico.errors import ContentRefused, ServiceUnavailable
from portico_gemini._wire import MADE_ID, SIGNATURE
from portico_wire.answers import Answer, decode_answer
from portico_wire.chat import ReplyReader, unused_id, web_label
from portico_wire.errors import Peer, invalid


class _Call(msgspec.Struct):
    name: str | None = None
    args: msgspec.Raw = msgspec.Raw(b"{}")
    id: str | None = None


class _Part(msgspec.Struct, rename="camel"):
    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: _Call | None = None


class _Content(msgspec.Struct):
    parts: list[msgspec.Raw] | None = None


class _Segment(msgspec.Struct):
    text: str | None = None


class _Page(msgspec.Struct):
    uri: str | None = None
    title: str | None = None


class _Chunk(msgspec.Struct):
    web: _Page | None = None


class _Support(msgspec.Struct, rename="camel"):
    segment: _Segment | None = None
    grounding_chunk_indices: list[int] | None = None


class _Grounding(msgspec.Struct, rename="camel"):
    web_search_queries: list[str] | None = None
    grounding_chunks: list[_Chunk] | None = None
    grounding_supports: list[_Support] | None = None


class _Candidate(msgspec.Struct, rename="camel"):
    index: int | None = 0
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    grounding_metadata: _Grounding | None = None


class _Feedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None
    block_reason_message: str | None = None


class _Usage(msgspec.Struct, rename="camel"):
    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    cached_content_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None


class _Piece(Answer, rename="camel"):
    candidates: list[_Candidate] | None = None
    prompt_feedback: _Feedback | None = None
    usage_metadata: _Usage | None = None
    model_version: str | None = None


_PIECES = msgspec.json.Decoder(_Piece)
_PARTS = msgspec.json.Decoder(_Part)

_REFUSALS = {
    "BLOCKLIST",
    "ESCALATION",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "IMAGE_SAFETY",
    "LANGUAGE",
    "MODEL_ARMOR",
    "PROHIBITED_CONTENT",
    "PUP_LIMITED_DISABLED",
    "RECITATION",
    "SAFETY",
    "SPII",
}
_FINISHED = {None, "", "STOP", "FINISH_REASON_UNSPECIFIED", "FUNCTION_CALL"}
"""The last is that of servers other than Google's."""
_CUT = {"MAX_TOKENS", "CONTINUATION"}


class GeminiReader(ReplyReader):
    """Put a reply together from its pieces: one piece for a whole reply, many for a streamed one."""

    def __init__(self, peer: Peer, service: str, maker: str) -> None:
        super().__init__(peer)
        self._service = service
        self._maker = maker
        self._parts: list[Part] = []
        self._pieces: list[str] = []
        """What has come of a text, or of thinking, that may go on."""
        self._thinks = False
        self._calls: list[ToolCall] = []
        self._usage: _Usage | None = None
        self._model = ""
        self._finish: str | None = None
        self._message: str | None = None
        self._blocked: _Feedback | None = None
        self._grounding: _Grounding | None = None
        self._searched = False

    def read(self, text: bytes) -> list[ChatDelta]:
        """Read a whole reply and return what it brings."""
        return self._add(text, "a reply")

    def add(self, event: bytes) -> list[ChatDelta]:
        """Read a piece of a stream and return what it brings."""
        return self._add(event, "a piece of a stream")

    def _add(self, text: bytes, what: str) -> list[ChatDelta]:
        piece = decode_answer(_PIECES, text, self.peer, what)
        if piece.usage_metadata is not None:
            self._usage = piece.usage_metadata
        if piece.model_version:
            self._model = piece.model_version
        if piece.prompt_feedback is not None and piece.prompt_feedback.block_reason:
            self._blocked = piece.prompt_feedback
            self.begun = self.complete = True
        deltas: list[ChatDelta] = []
        for candidate in piece.candidates or ():
            if candidate.index:
                continue
            if candidate.content is not None:
                self.begun = True
                for raw in candidate.content.parts or ():
                    self._add_part(raw, text, deltas)
            found = candidate.grounding_metadata
            if found is not None and (found.grounding_chunks or found.web_search_queries):
                self._grounding, self._searched = found, True
            if candidate.finish_reason:
                self._finish, self._message = candidate.finish_reason, candidate.finish_message
                self.begun = self.complete = True
        return deltas

    def _add_part(self, raw: msgspec.Raw, text: bytes, deltas: list[ChatDelta]) -> None:
        try:
            part = _PARTS.decode(raw)
        except msgspec.ValidationError as error:
            raise invalid(self.peer, f"sent a part that is not in Gemini's format ({error})", text) from error
        signature = part.thought_signature
        if part.function_call is not None:
            self._add_call(part.function_call, signature, deltas)
        elif part.text is None:
            whole = {name: value for name, value in msgspec.json.decode(raw).items() if value is not None}
            if whole.keys() == {SIGNATURE}:
                # Alone it would stand for the signature of what follows.
                whole["text"] = ""
            # Beside tools of the application, a search may leave nothing else.
            self._searched = self._searched or "toolCall" in whole
            if whole:
                self._close()
                self._parts.append(Reasoning(whole, None, self._maker))
        elif part.thought:
            self._go_on(part.text, thinks=True)
            if part.text:
                deltas.append(ChatDelta(reasoning=part.text))
            if signature:
                self._close(signature)
        elif part.text or signature:
            if signature:
                # What is signed stays a part for itself.
                self._close()
            if part.text:
                self._go_on(part.text, thinks=False)
                self.characters += len(part.text)
                deltas.append(ChatDelta(part.text))
            if signature and part.text:
                self._parts.append(Reasoning({SIGNATURE: signature}, None, self._maker))
                self._close()
            elif signature:
                self._parts.append(Reasoning({"text": "", SIGNATURE: signature}, None, self._maker))

    def _go_on(self, text: str, *, thinks: bool) -> None:
        if self._thinks is not thinks:
            self._close()
            self._thinks = thinks
        self._pieces.append(text)

    def _close(self, signature: str | None = None) -> None:
        """End the text, or the thinking, that has come so far; ``signature`` is the thinking's."""
        if not self._pieces:
            return
        text = "".join(self._pieces)
        self._pieces.clear()
        if self._thinks:
            data = {"text": text, "thought": True, **({SIGNATURE: signature} if signature else {})}
            self._parts.append(Reasoning(data, text, self._maker))
        else:
            self._parts.append(Text(text))

    def _add_call(self, call: _Call, signature: str | None, deltas: list[ChatDelta]) -> None:
        self._close()
        if signature:
            self._parts.append(Reasoning({SIGNATURE: signature}, None, self._maker))
        # Whole replies are written with line breaks.
        arguments = msgspec.json.format(bytes(call.args), indent=-1).decode()
        if not arguments.startswith("{"):
            arguments = "{}"
        unused = unused_id(call.id or f"{MADE_ID}{uuid4().hex}", (made.id for made in self._calls))
        made = ToolCall(unused, call.name or "", arguments)
        deltas.append(ChatDelta(tool_call=ToolCallDelta(len(self._calls), made.id, made.name, made.arguments)))
        self._calls.append(made)
        self._parts.append(made)

    def reply(self) -> ChatReply:
        """Return the reply.

        Raises ``ContentRefused`` with Gemini's reason, ``ServiceUnavailable`` where it gave up, and
        ``ResponseInvalid`` where it said nothing at all or made a call that cannot be read.
        """
        if self._blocked is not None:
            reason, words = self._blocked.block_reason, self._blocked.block_reason_message
            raise ContentRefused(self.peer.says(f"blocked the request: {_told(self.peer, reason, words)}."))
        if not self.begun:
            raise invalid(self.peer, "sent a reply without a candidate in it.")
        if self._finish in _REFUSALS:
            told = _told(self.peer, self._finish, self._message)
            raise ContentRefused(self.peer.says(f"stopped its answer: {told}."))
        if self._finish == "OTHER":
            told = _told(self.peer, self._finish, self._message)
            raise ServiceUnavailable(self.peer.says(f"gave up on its answer: {told}. Try again."))
        if self._finish not in _FINISHED | _CUT:
            raise invalid(self.peer, f"broke its answer off: {_told(self.peer, self._finish, self._message)}.")
        self._close()
        if not self._calls and not any(isinstance(part, Text) for part in self._parts):
            self._parts.append(Text(""))
        untrusted = web_label(self._service) if self._searched else None
        return ChatReply(
            Message("assistant", tuple(self._parts), None, untrusted),
            "length" if self._finish in _CUT else "tool_calls" if self._calls else "stop",
            _read_usage(self._usage),
            self._model or self.peer.model,
            self._service,
            tuple(_citations(self._grounding)) if self._grounding is not None else (),
        )


def _told(peer: Peer, reason: str | None, words: str | None) -> str:
    return f"{reason} ({peer.shorten(words)})" if words else f"{reason}"


def _citations(found: _Grounding) -> list[Citation]:
    chunks = found.grounding_chunks or []
    numbers: dict[str, int] = {}
    citations = []
    for support in found.grounding_supports or ():
        quote = (support.segment and support.segment.text) or ""
        for index in support.grounding_chunk_indices or ():
            page = chunks[index].web if 0 <= index < len(chunks) else None
            if page is not None and page.uri:
                number = numbers.setdefault(page.uri, len(numbers) + 1)
                citations.append(Citation(number, page.title, page.uri, quote))
    return citations


def _read_usage(usage: _Usage | None) -> Usage:
    if usage is None:
        return Usage()
    thoughts = usage.thoughts_token_count or 0
    return Usage(
        (usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0),
        (usage.candidates_token_count or 0) + thoughts,
        usage.cached_content_token_count or 0,
        thoughts,
    )
