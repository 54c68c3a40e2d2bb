"""What a model says, in the form of each kind of service: OpenAI's two, Anthropic's and Gemini's."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from portico import ToolCall

Said: TypeAlias = str | ToolCall | Sequence[ToolCall]
"""What the model says in one reply: its words, its tool call, or several calls."""


@dataclass(frozen=True, slots=True)
class Thinking:
    """What the model says after it has thought; ``seal`` is what has to go back to the service as it came."""

    said: Said
    thought: str = "Let me see."
    seal: str = "c2VhbCBvZiB0aGUgdGhvdWdodA=="


Saying: TypeAlias = Said | Thinking
"""One reply of the model."""

MODEL = "replayed-1"
READ, WRITTEN = 11, 7
"""Tokens of each reply."""
# So short that words, markers of citations and lines are cut in two.
_PIECE = 3
_JSON = "application/json"
_STREAM = "text/event-stream"


def calls_of(said: Saying) -> Sequence[ToolCall]:
    """Return the calls of a reply, of which there are none in words."""
    said = words_or_calls(said)
    return () if isinstance(said, str) else (said,) if isinstance(said, ToolCall) else said


def words_or_calls(saying: Saying) -> Said:
    """Return a reply without the thinking before it."""
    return saying.said if isinstance(saying, Thinking) else saying


def text_of(saying: Saying) -> str | None:
    """Return the words of a reply, None for one of calls."""
    said = words_or_calls(saying)
    return said if isinstance(said, str) else None


def pieces_of(text: str) -> Iterator[str]:
    """Cut a text into the pieces of a stream."""
    return (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))


class ModelForm(ABC):
    """How one kind of service is asked, and answers."""

    path: re.Pattern[str]

    def is_streamed(self, path: str, body: Any) -> bool:
        """Tell whether a stream is asked for."""
        return bool(body.get("stream"))

    @abstractmethod
    def last(self, body: Any) -> object:
        """Return the content of the last message."""

    @abstractmethod
    def whole(self, said: Saying, number: int) -> Any:
        """Return a whole reply."""

    @abstractmethod
    def events(self, said: Saying, number: int) -> Iterator[dict[str, Any] | str]:
        """Yield the data of the events of a stream."""

    def answer(self, path: str, body: Any, said: Saying, number: int) -> tuple[bytes, str]:
        """Return the reply's bytes and media type."""
        if not self.is_streamed(path, body):
            return json.dumps(self.whole(said, number)).encode(), _JSON
        lines = []
        for event in self.events(said, number):
            name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
            lines.append(f"{name}data: {event if isinstance(event, str) else json.dumps(event)}\n\n")
        return "".join(lines).encode(), _STREAM


class Completions(ModelForm):
    """OpenAI's Chat Completions."""

    path = re.compile(r"/v1/chat/completions")
    usage = {"prompt_tokens": READ, "completion_tokens": WRITTEN, "total_tokens": READ + WRITTEN}  # noqa: RUF012

    def last(self, body: Any) -> object:
        return body["messages"][-1]["content"]

    def _head(self, number: int, kind: str) -> dict[str, Any]:
        return {"id": f"reply-{number}", "object": kind, "created": 0, "model": MODEL}

    def _calls(self, said: Saying) -> list[dict[str, Any]]:
        return [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in calls_of(said)
        ]

    def _thought(self, said: Saying) -> dict[str, Any]:
        return {"reasoning_content": said.seal} if isinstance(said, Thinking) else {}

    def whole(self, said: Saying, number: int) -> Any:
        message: dict[str, Any] = {"role": "assistant", "content": text_of(said), **self._thought(said)}
        if calls := self._calls(said):
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        return {**self._head(number, "chat.completion"), "choices": [choice], "usage": self.usage}

    def events(self, said: Saying, number: int) -> Iterator[dict[str, Any] | str]:
        head = self._head(number, "chat.completion.chunk")
        deltas: list[dict[str, Any]] = [{"role": "assistant"}, *([thought] if (thought := self._thought(said)) else [])]
        if (text := text_of(said)) is not None:
            deltas += [{"content": piece} for piece in pieces_of(text)]
        else:
            deltas.append({"tool_calls": [{"index": index, **call} for index, call in enumerate(self._calls(said))]})
        for delta in deltas:
            yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        finish = "tool_calls" if calls_of(said) else "stop"
        yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
        yield {**head, "choices": [], "usage": self.usage}
        yield "[DONE]"


class Responses(ModelForm):
    """OpenAI's Responses."""

    path = re.compile(r"/v1/responses")

    def last(self, body: Any) -> object:
        last = body["input"] if isinstance(body["input"], str) else body["input"][-1].get("content")
        return last[0].get("text") if isinstance(last, list) and len(last) == 1 else last

    def _output(self, said: Saying) -> list[dict[str, Any]]:
        summary = [{"type": "summary_text", "text": said.thought}] if isinstance(said, Thinking) else []
        thought = [
            {"type": "reasoning", "id": "rs_0", "summary": summary, "encrypted_content": said.seal}
            for said in (said,)
            if isinstance(said, Thinking)
        ]
        if (text := text_of(said)) is not None:
            content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
            message = {"type": "message", "id": "msg_0", "status": "completed", "role": "assistant", "content": content}
            return [*thought, message]
        return [
            *thought,
            *(
                {
                    "type": "function_call",
                    "id": f"fc_{index}",
                    "call_id": call.id,
                    "name": call.name,
                    "arguments": call.arguments,
                    "status": "completed",
                }
                for index, call in enumerate(calls_of(said))
            ),
        ]

    def whole(self, said: Saying, number: int) -> Any:
        usage = {
            "input_tokens": READ,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": WRITTEN,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": READ + WRITTEN,
        }
        head = {"id": f"resp_{number}", "object": "response", "created_at": 0, "status": "completed", "error": None}
        return {**head, "model": MODEL, "output": self._output(said), "usage": usage}

    def events(self, said: Saying, number: int) -> Iterator[dict[str, Any] | str]:
        whole = self.whole(said, number)
        counted = enumerate(self._events(whole))
        yield from ({**event, "sequence_number": sequence} for sequence, event in counted)

    def _events(self, whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        yield {"type": "response.created", "response": begun}
        for index, item in enumerate(whole["output"]):
            at = {"item_id": item["id"], "output_index": index}
            empty: dict[str, Any] = {"message": {"content": []}, "function_call": {"arguments": ""}}.get(
                item["type"], {}
            )
            yield {
                "type": "response.output_item.added",
                "output_index": index,
                "item": {**item, **empty, "status": "in_progress"},
            }
            if item["type"] == "message":
                part, text = {"content_index": 0, **at}, item["content"][0]["text"]
                for piece in pieces_of(text):
                    yield {"type": "response.output_text.delta", "delta": piece, "logprobs": [], **part}
                yield {"type": "response.output_text.done", "text": text, "logprobs": [], **part}
            elif item["type"] == "reasoning":
                part = {"summary_index": 0, **at}
                for piece in pieces_of(item["summary"][0]["text"]):
                    yield {"type": "response.reasoning_summary_text.delta", "delta": piece, **part}
            else:
                for piece in pieces_of(item["arguments"]):
                    yield {"type": "response.function_call_arguments.delta", "delta": piece, **at}
                yield {"type": "response.function_call_arguments.done", "arguments": item["arguments"], **at}
            yield {"type": "response.output_item.done", "output_index": index, "item": item}
        yield {"type": "response.completed", "response": whole}


class Messages(ModelForm):
    """Anthropic's Messages."""

    path = re.compile(r"/v1/messages")

    def last(self, body: Any) -> object:
        last = body["messages"][-1]["content"]
        return last[0].get("text") if isinstance(last, list) and len(last) == 1 else last

    def _content(self, said: Saying) -> list[dict[str, Any]]:
        thought: list[dict[str, Any]] = []
        if isinstance(said, Thinking):
            thought = [{"type": "thinking", "thinking": said.thought, "signature": said.seal}]
        if (text := text_of(said)) is not None:
            return [*thought, {"type": "text", "text": text}]
        return thought + [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
            for call in calls_of(said)
        ]

    def whole(self, said: Saying, number: int) -> Any:
        return {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": self._content(said),
            "stop_reason": "tool_use" if calls_of(said) else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": READ, "output_tokens": WRITTEN},
        }

    def events(self, said: Saying, number: int) -> Iterator[dict[str, Any] | str]:
        whole = self.whole(said, number)
        usage = {"input_tokens": READ, "output_tokens": 1}
        yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None, "usage": usage}}
        for index, block in enumerate(whole["content"]):
            at, begun = {"index": index}, dict(block)
            if block["type"] == "tool_use":
                begun["input"], kind, member = {}, "input_json_delta", "partial_json"
                text = json.dumps(block["input"], ensure_ascii=False)
            else:
                member = block["type"]
                kind, text, begun[member] = "text_delta" if member == "text" else "thinking_delta", block[member], ""
            if seal := begun.get("signature"):
                begun["signature"] = ""
            yield {"type": "content_block_start", "content_block": begun, **at}
            for piece in pieces_of(text):
                yield {"type": "content_block_delta", "delta": {"type": kind, member: piece}, **at}
            if seal:
                yield {"type": "content_block_delta", "delta": {"type": "signature_delta", "signature": seal}, **at}
            yield {"type": "content_block_stop", **at}
        ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": WRITTEN}}
        yield {"type": "message_stop"}


class Gemini(ModelForm):
    """Gemini's contents."""

    path = re.compile(r"/v1beta/models/[\w.-]+:(stream)?[gG]enerateContent")

    def is_streamed(self, path: str, body: Any) -> bool:
        return "stream" in path

    def last(self, body: Any) -> object:
        last = body["contents"][-1]["parts"]
        return last[0].get("text") if len(last) == 1 else last

    def _piece(self, parts: list[dict[str, Any]], number: int, **further: Any) -> dict[str, Any]:
        candidate = {"content": {"role": "model", "parts": parts}, "index": 0, **further}
        usage = {"promptTokenCount": READ, "candidatesTokenCount": WRITTEN, "totalTokenCount": READ + WRITTEN}
        head = {"modelVersion": MODEL, "responseId": f"reply-{number}"}
        return {"candidates": [candidate], "usageMetadata": usage, **head}

    def _calls(self, said: Saying) -> list[dict[str, Any]]:
        return [
            {"functionCall": {"id": call.id, "name": call.name, "args": json.loads(call.arguments)}}
            for call in calls_of(said)
        ]

    def whole(self, said: Saying, number: int) -> Any:
        return self._piece([*self._thought(said), *self._sealed(said)], number, finishReason="STOP")

    def _thought(self, said: Saying) -> list[dict[str, Any]]:
        return [{"text": said.thought, "thought": True}] if isinstance(said, Thinking) else []

    def _sealed(self, said: Saying) -> list[dict[str, Any]]:
        parts = self._calls(said) if (text := text_of(said)) is None else [{"text": text}]
        return [{**parts[0], "thoughtSignature": said.seal}, *parts[1:]] if isinstance(said, Thinking) else parts

    def events(self, said: Saying, number: int) -> Iterator[dict[str, Any] | str]:
        if thought := self._thought(said):
            yield self._piece(thought, number)
        parts = self._sealed(said)
        if "text" in parts[0] and "thoughtSignature" not in parts[0]:
            yield from (self._piece([{"text": piece}], number) for piece in pieces_of(parts[0]["text"]))
            parts = [{"text": ""}]
        yield self._piece(parts, number, finishReason="STOP")


FORMS: tuple[ModelForm, ...] = (Completions(), Responses(), Messages(), Gemini())
