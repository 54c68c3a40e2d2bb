"""Tool calls of models whose chat template knows no tools, and calls that must be made.

The model is told of the tools in words, and its reply is held to a schema: one JSON object that is a call, or an answer
where it may answer. A grammar keeps names and arguments right, however small the model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from secrets import token_hex
from typing import Any, Literal

from portico import ChatDelta, ChatRequest, Message, Tool, ToolCall, ToolCallDelta, ToolResult
from portico_llamacpp._schemas import moved
from portico_llamacpp._wire import Guard, result_text

_SURROGATE_PAIR = 12
_BEGINNING = re.compile(
    r'\s*\{\s*(?:"tool"\s*:\s*(?P<name>"(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*(?=\{)'
    r'|"answer"\s*:\s*(?:(?P<quote>")|(?=[^\s"])))'
)


def reply_schema(request: ChatRequest) -> dict[str, Any]:
    """Return the schema of a reply: a call of an offered tool or, in mode "auto", an answer."""
    definitions: dict[str, Any] = {}
    forms: list[dict[str, Any]] = []
    if request.tool_choice.mode != "required":
        answer: dict[str, Any] = {"type": "string"}
        if request.response_schema is not None:
            definitions["answer"] = moved(request.response_schema, "#/$defs/answer")
            answer = {"$ref": "#/$defs/answer"}
        forms.append(_closed({"answer": answer}))
    for number, tool in enumerate(request.offered):
        definitions[f"tool-{number}"] = _object(moved(tool.parameters, f"#/$defs/tool-{number}"))
        forms.append(_closed({"tool": {"const": tool.name}, "arguments": {"$ref": f"#/$defs/tool-{number}"}}))
    return {"anyOf": forms, "$defs": definitions}


def _object(schema: dict[str, Any]) -> dict[str, Any]:
    """Arguments are an object, also where their schema leaves it open."""
    return schema if schema.keys() & {"type", "$ref", "anyOf", "oneOf", "allOf"} else {"type": "object", **schema}


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def instruction(tools: Sequence[Tool], *, required: bool, guard: Guard) -> str:
    """Tell a model in words which tools there are and how it calls one."""
    lines = ["You can call these tools:"]
    for tool in tools:
        lines.append(f"- {tool.name}: {' '.join(tool.description.split())}")
        lines.append(f"  arguments: {json.dumps(tool.parameters, ensure_ascii=False)}")
    lines.append('To call one, reply with one JSON object: {"tool": "its name", "arguments": {…}}.')
    if required:
        lines.append("Call one now.")
    else:
        lines.append('To answer instead, when you need no tool or have its result, reply with {"answer": "…"}.')
    return guard("\n".join(lines))


def told(messages: Iterable[Message], guard: Guard) -> list[dict[str, Any]]:
    """Write messages for a chat template that knows no tools: calls and results in words."""
    return [{"role": role, "content": guard(text)} for message in messages for role, text in [_told(message)]]


def _told(message: Message) -> tuple[str, str]:
    lines = [message.text] if message.text else []
    for part in message.content:
        if isinstance(part, ToolCall):
            lines.append(f"I call {part.name} with {part.arguments}.")
        elif isinstance(part, ToolResult):
            lines.append(f"Result of {part.name}:\n{result_text(part)}")
    return "user" if message.role == "tool" else message.role, "\n".join(lines)


def with_instruction(messages: list[dict[str, Any]], words: str) -> list[dict[str, Any]]:
    """Put the words at the end of the system message, or make one of them."""
    if messages and messages[0]["role"] == "system":
        return [{**messages[0], "content": f"{messages[0]['content']}\n\n{words}"}, *messages[1:]]
    return [{"role": "system", "content": words}, *messages]


class CallReader:
    """Reads a reply of this form while it comes, and tells its words and its call from each other."""

    def __init__(self) -> None:
        self.words = ""
        self.call: ToolCall | None = None
        self._text = ""
        self._place = 0
        self._kind: Literal["", "answer", "call", "value"] = ""

    def feed(self, piece: str) -> Iterator[ChatDelta]:
        """Take a piece and yield what it adds to the words, or to the call."""
        self._text += piece
        if not self._kind:
            yield from self._begin()
        if self._kind == "answer":
            end = _end_of_words(self._text, self._place)
            if end > self._place:
                yield self._said(_decoded(self._text[self._place : end]))
                self._place = end
        elif self._kind == "call":
            # The last brace closes the reply, not the arguments: what may be it waits for what follows.
            yield from self._argued(len(self._text.rstrip(" \t\r\n}")))

    def end(self) -> Iterator[ChatDelta]:
        """Yield what is left of a whole reply. Raises ``ValueError`` where it is of another form."""
        value = json.loads(self._text)
        if self._kind == "call":
            yield from self._argued(len(self._text.rstrip()[:-1].rstrip()))
        elif self._kind == "value":
            yield self._said(json.dumps(value["answer"], ensure_ascii=False))
        elif self._kind != "answer":
            raise ValueError("it is neither a call nor an answer")

    def _begin(self) -> Iterator[ChatDelta]:
        match = _BEGINNING.match(self._text)
        if match is None:
            return
        self._place = match.end()
        if match["name"] is not None:
            self._kind = "call"
            self.call = ToolCall(f"call_{token_hex(8)}", json.loads(match["name"]), "")
            yield ChatDelta(tool_call=ToolCallDelta(0, self.call.id, self.call.name))
        else:
            self._kind = "answer" if match["quote"] else "value"

    def _said(self, words: str) -> ChatDelta:
        self.words += words
        return ChatDelta(words)

    def _argued(self, end: int) -> Iterator[ChatDelta]:
        if self.call is not None and end > self._place:
            piece = self._text[self._place : end]
            self._place = end
            self.call = replace(self.call, arguments=self.call.arguments + piece)
            yield ChatDelta(tool_call=ToolCallDelta(0, arguments=piece))


def _end_of_words(text: str, place: int) -> int:
    """Return where the JSON string that goes on at ``place`` ends, or what has come of it can be decoded."""
    while place < len(text) and text[place] != '"':
        length = 1
        if text[place] == "\\":
            length = 6 if text[place + 1 : place + 2] == "u" else 2
            if re.match(r"\\u[dD][89abAB]", text[place:]):
                following = text[place + 6 : place + 8]
                length = _SURROGATE_PAIR if "\\u".startswith(following) else 6
        if place + length > len(text):
            break
        place += length
    return place


def _decoded(text: str) -> str:
    """Decode the inside of a JSON string; half a surrogate pair becomes the replacement character."""
    words: str = json.loads(f'"{text}"', strict=False)
    return words if words.isascii() else words.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
