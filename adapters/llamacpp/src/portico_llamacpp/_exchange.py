"""One request and its reply: what is sent to the model, and what its pieces come to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from secrets import token_hex
from typing import Any, Literal

from portico import (
    ChatDelta,
    ChatReply,
    ChatRequest,
    Message,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolCallDelta,
    ToolResult,
    Usage,
)
from portico.errors import ResponseInvalid, SchemaUnsupported
from portico_llamacpp._wire import (
    About,
    CallPiece,
    Chunk,
    Guard,
    messages_of,
    response_format,
    result_text,
    sampling_of,
    tools_of,
    with_system_message,
)
from portico_llamacpp.config import LlamaCppSettings

_DEEPEST = 64
_MEMBERS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties")

_YEAR = "([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_LEAP = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
_DATE = (
    f"({_YEAR}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
    f"|{_LEAP}-02-29)"
)
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{3})?"
_ZONE = "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_FORMATS = {
    # llama.cpp's own would let 30 February pass.
    "date": f"^{_DATE}$",
    "date-time": f"^{_DATE}T{_CLOCK}{_ZONE}$",
    "time": f"^{_CLOCK}{_ZONE}?$",
    "decimal": r"^-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,12})?$",
}
_CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": r" \t\n\r"}
_ESCAPE = re.compile(r"\\(.)|(\[)|(\])|([^\x00-\x7f])", re.DOTALL)


def prepared(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema as llama.cpp takes it; the given one stays as it is.

    Raises ``SchemaUnsupported`` where nothing at all is allowed, and for schemas deeper than 64 levels.
    """
    return _Preparation("#").schema(schema, 0)


def moved(schema: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return a schema that will stand at ``place`` of another: its references, from its own root, lead there."""
    return _Preparation(place).schema(schema, 0)


class _Preparation:
    def __init__(self, root: str) -> None:
        self.root = root

    def schema(self, schema: Any, depth: int) -> dict[str, Any]:
        if schema is True:
            return {}
        if schema is False:
            raise SchemaUnsupported("llama.cpp cannot hold a reply to a JSON Schema that allows nothing (false).")
        if not isinstance(schema, Mapping):
            raise SchemaUnsupported(f"A JSON Schema is an object, true or false, not {type(schema).__name__}.")
        if depth > _DEEPEST:
            raise SchemaUnsupported(f"The JSON Schema is deeper than {_DEEPEST} levels.")
        made = {key: self.keyword(key, value, depth + 1) for key, value in schema.items()}
        self.close(made, schema)
        self.describe_text(made)
        return made

    def keyword(self, key: str, value: Any, depth: int) -> Any:
        if key in _MEMBERS and isinstance(value, Mapping):
            return {name: self.schema(member, depth) for name, member in value.items() if member is not False}
        if key in _LISTS and isinstance(value, list | tuple):
            return [self.schema(member, depth) for member in value if key != "anyOf" or member is not False]
        if key in _SINGLE and not isinstance(value, bool):
            return self.schema(value, depth)
        if key == "$ref" and isinstance(value, str) and value.startswith("#"):
            return self.root + value[1:]
        return value

    def close(self, made: dict[str, Any], schema: Mapping[str, Any]) -> None:
        """Say in other words that nothing follows the elements or members that are named."""
        if made.get("items") is False:
            del made["items"]
            made["maxItems"] = min(len(made.get("prefixItems", ())), made.get("maxItems", 2**31))
        elif made.get("items") is True:
            made["items"] = {}
        for name in made.get("required", ()):
            if isinstance(schema.get("properties"), Mapping) and schema["properties"].get(name) is False:
                raise SchemaUnsupported(f"The JSON Schema requires {name!r} and allows no value for it.")

    def describe_text(self, made: dict[str, Any]) -> None:
        pattern = made.get("pattern")
        if isinstance(pattern, str):
            made.pop("pattern")
            if (written := _pattern(pattern)) is not None:
                made["pattern"] = written
        elif made.get("type") == "string" and made.get("format") in _FORMATS:
            made["pattern"] = _FORMATS[made.pop("format")]


def _pattern(pattern: str) -> str | None:
    """Return a pattern in llama.cpp's words, None where it has none. It may match less, never more.

    The pattern of JSON Schema matches anywhere in a text, llama.cpp's all of it.
    """
    try:
        re.compile(pattern)
    except re.error:
        return None
    if re.search(r"\(\?(?!:)|\\[bBpPAZk1-9]|[*+?}]\+", pattern):
        return None
    body = pattern.removeprefix("^")
    closed = body.endswith("$") and not re.search(r"(?<!\\)(?:\\\\)*\\\$$", body)
    inner = body[:-1] if closed else body
    if _has_anchor(inner):
        return None
    try:
        written = _ESCAPE.sub(_escaper(), inner)
    except LookupError:
        return None
    start, end = ("" if pattern.startswith("^") else ".*"), ("" if closed else ".*")
    return f"^{start}({written}){end}$" if "|" in inner or start or end else f"^{written}$"


def _has_anchor(pattern: str) -> bool:
    bare = re.sub(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", "", pattern)
    return "^" in bare or "$" in bare


def _escaper() -> Callable[[re.Match[str]], str]:
    inside = False

    def escape(match: re.Match[str]) -> str:
        nonlocal inside
        letter, opening, closing, far = match.groups()
        if far:
            if ord(far) > 0xFFFF:
                raise LookupError
            return f"\\u{ord(far):04x}"
        if opening or closing:
            inside = bool(opening) or (inside and not closing)
            return match[0]
        if letter in _CLASSES:
            return _CLASSES[letter] if inside else f"[{_CLASSES[letter]}]"
        if letter in "DWS":
            if inside:
                raise LookupError
            return f"[^{_CLASSES[letter.lower()]}]"
        if letter in "/\"'<>=!@#%&,:;_~` ":
            return letter
        return match[0]

    return escape


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
