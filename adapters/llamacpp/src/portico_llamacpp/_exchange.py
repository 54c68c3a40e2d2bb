"""One request and its reply: what is sent to the model, and what its pieces come to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from portico import ChatDelta, ChatReply, ChatRequest, Message, Part, Reasoning, Text, ToolCall, ToolCallDelta, Usage
from portico.errors import ResponseInvalid
from portico_llamacpp._calls import CallReader, instruction, reply_schema, told, with_instruction
from portico_llamacpp._schemas import prepared
from portico_llamacpp._wire import (
    About,
    CallPiece,
    Chunk,
    Guard,
    messages_of,
    response_format,
    sampling_of,
    tools_of,
    with_system_message,
)
from portico_llamacpp.config import LlamaCppSettings


def body_of(
    request: ChatRequest, settings: LlamaCppSettings, about: About, guard: Guard
) -> tuple[dict[str, Any], bool]:
    """Return what llama.cpp is asked, and whether the reply is held to the form of `CallReader`.

    That form is used where the template knows no tools, where one must be called (llama.cpp lets words come first
    all the same), and where a reply is held to a schema (llama.cpp then lets no calls through).
    """
    offered = request.offered
    formed = bool(offered) and (
        not about.tools or request.tool_choice.mode == "required" or request.response_schema is not None
    )
    native = about.tools and not formed
    messages = messages_of(request, guard) if native else told(request.messages, guard)
    messages = with_system_message(messages, settings.system_message)
    body = {
        "temperature": settings.temperature,
        "max_tokens": settings.max_tokens,
        "seed": settings.seed,
        "repeat_penalty": settings.repeat_penalty,
        **sampling_of(request),
        "stream": True,
        "stream_options": {"include_usage": True},
        # Pieces come while the prompt is read, too: each is a moment at which the call can be stopped.
        "return_progress": True,
    }
    if formed:
        words = instruction(offered, required=request.tool_choice.mode == "required", guard=guard)
        messages = with_instruction(messages, words)
        body["response_format"] = response_format("reply", reply_schema(request))
    elif request.response_schema is not None:
        body["response_format"] = response_format(request.response_name, prepared(request.response_schema))
    if native and offered:
        body["tools"] = tools_of(offered)
        body["parallel_tool_calls"] = True
    body["messages"] = messages
    return {name: value for name, value in body.items() if value is not None}, formed


class ReplyReader:
    """Puts the pieces of a reply together."""

    def __init__(self, service: str, model: str, *, formed: bool) -> None:
        self._service = service
        self._model = model
        self._former = CallReader() if formed else None
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: dict[int, ToolCall] = {}
        self._finish = ""
        self._usage = Usage()

    def feed(self, chunk: Chunk) -> Iterator[ChatDelta]:
        """Take a piece and yield what it has to show."""
        if chunk.usage is not None:
            self._usage = chunk.usage.usage()
        for choice in chunk.choices:
            self._finish = choice.finish_reason or self._finish
            if choice.delta.reasoning_content:
                self._thoughts.append(choice.delta.reasoning_content)
                yield ChatDelta(reasoning=choice.delta.reasoning_content)
            if choice.delta.content and self._former is not None:
                yield from self._former.feed(choice.delta.content)
            elif choice.delta.content:
                self._texts.append(choice.delta.content)
                yield ChatDelta(choice.delta.content)
            for piece in choice.delta.tool_calls:
                yield ChatDelta(tool_call=self._called(piece))

    def _called(self, piece: CallPiece) -> ToolCallDelta:
        known = self._calls.get(piece.index, ToolCall("", "", ""))
        delta = ToolCallDelta(piece.index, piece.id or "", piece.function.name or "", piece.function.arguments or "")
        self._calls[piece.index] = ToolCall(
            known.id or delta.id, known.name or delta.name, known.arguments + delta.arguments
        )
        return delta

    def end(self) -> Iterator[ChatDelta]:
        """Yield what is left to show, the reply with the last of it. Raises ``ResponseInvalid``."""
        if not self._finish:
            raise ResponseInvalid(f"{self._model} ended its reply without a reason.")
        if self._former is not None:
            if self._finish != "length":
                yield from self._whole(self._former)
            self._texts.append(self._former.words)
            if self._former.call is not None:
                self._calls[0] = self._former.call
        yield ChatDelta(reply=self._reply())

    def _whole(self, former: CallReader) -> Iterator[ChatDelta]:
        try:
            yield from former.end()
        except (ValueError, RecursionError) as error:
            raise ResponseInvalid(f"{self._model} did not keep to the form of a reply with tools: {error}.") from error

    def _reply(self) -> ChatReply:
        thoughts = "".join(self._thoughts)
        parts: list[Part] = [Reasoning(thoughts, thoughts)] if thoughts else []
        calls = [self._calls[index] for index in sorted(self._calls)]
        text = "".join(self._texts)
        if text or not calls:
            parts.append(Text(text))
        parts += calls
        finish: Literal["stop", "length", "tool_calls"] = "stop"
        if self._finish == "length":
            finish = "length"
        elif calls:
            finish = "tool_calls"
        return ChatReply(
            Message("assistant", tuple(parts)), finish, self._usage, model=self._model, service=self._service
        )
