"""One request and its reply: the body of the request, and the reply from its pieces."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from portico_llamacpp._wire import About, CallPiece, Chunk, Guard, messages_of, result_text, sampling_of
from portico_llamacpp.config import LlamaCppSettings

_DEEPEST = 64
_MEMBERS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties")
_DECIMAL = r"^-?(0|[1-9][0-9]{0,20})([.][0-9]{1,12})?$"


def prepare_schema(schema: Any, root: str = "#", depth: int = 0) -> dict[str, Any]:
    """Return a schema that llama.cpp takes.

    It may allow more than the given one, since core validates the reply. ``root`` is its place in another schema, to
    which its references must lead. Raises ``SchemaUnsupported`` for schemas deeper than 64 levels, and for values that
    are not schemas.
    """
    if not isinstance(schema, Mapping | bool):
        raise SchemaUnsupported(f"A JSON Schema is an object, true or false, not {type(schema).__name__}.")
    if schema is False:
        raise SchemaUnsupported("llama.cpp cannot hold a reply to a JSON Schema that allows nothing (false).")
    if depth > _DEEPEST:
        raise SchemaUnsupported(f"The JSON Schema is deeper than {_DEEPEST} levels.")
    made: dict[str, Any] = {}
    for key, value in ({} if schema is True else schema).items():
        if key in _MEMBERS and isinstance(value, Mapping):
            made[key] = {name: prepare_schema(member, root, depth + 1) for name, member in value.items()}
        elif key in _LISTS and isinstance(value, list | tuple):
            made[key] = [prepare_schema(member, root, depth + 1) for member in value]
        elif key in _SINGLE and not isinstance(value, bool):
            made[key] = prepare_schema(value, root, depth + 1)
        elif key == "$ref" and isinstance(value, str) and value.startswith("#"):
            made[key] = root + value[1:]
        elif key == "pattern" and isinstance(value, str):
            if (written := _pattern(value)) is not None:
                made[key] = written
        else:
            made[key] = value
    if made.get("items") is False:
        del made["items"]
        made["maxItems"] = min(len(made.get("prefixItems", ())), made.get("maxItems", 2**31))
    elif made.get("items") is True:
        made["items"] = {}
    if made.get("type") == "string" and made.get("format") == "decimal" and "pattern" not in made:
        made["pattern"] = _DECIMAL
    return made


def _pattern(pattern: str) -> str | None:
    r"""Return a simple pattern as llama.cpp takes it, None for any other.

    Simple is one for the whole text, of ASCII, with no escape but ``\d``. It may match less, never more.
    """
    inner = pattern[1:-1]
    if not re.search(r"\[[^\]]*\\", inner):
        inner = inner.replace(r"\d", "[0-9]")
    if not (pattern.startswith("^") and pattern.endswith("$") and len(pattern) > 1 and inner.isascii()):
        return None
    if re.search(r"\\|\$|(?<!\[)\^|\(\?|[*+?}]\+", inner):
        return None
    return f"^({inner})$" if "|" in inner else f"^{inner}$"


def reply_schema(request: ChatRequest) -> dict[str, Any]:
    """Return the schema of a reply: a call of an offered tool or, in mode "auto", an answer."""
    definitions: dict[str, Any] = {}
    forms: list[dict[str, Any]] = []
    if request.tool_choice.mode != "required":
        answer: dict[str, Any] = {"type": "string"}
        if request.response_schema is not None:
            definitions["answer"] = prepare_schema(request.response_schema, "#/$defs/answer")
            answer = {"$ref": "#/$defs/answer"}
        forms.append(_build_object({"answer": answer}))
    for number, tool in enumerate(request.offered):
        definitions[f"tool-{number}"] = _object(prepare_schema(tool.parameters, f"#/$defs/tool-{number}"))
        forms.append(_build_object({"tool": {"const": tool.name}, "arguments": {"$ref": f"#/$defs/tool-{number}"}}))
    return {"anyOf": forms, "$defs": definitions}


def _object(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema of arguments that says that they are an object."""
    return schema if schema.keys() & {"type", "$ref", "anyOf", "oneOf", "allOf"} else {"type": "object", **schema}


def _build_object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def instruction(tools: Sequence[Tool], *, required: bool, guard: Guard) -> str:
    """Return words that list the tools and say how to call one."""
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


def plain_messages(messages: Iterable[Message], guard: Guard) -> list[dict[str, Any]]:
    """Write messages for a chat template that knows no tools: calls and results in words."""
    return [
        {"role": "user" if message.role == "tool" else message.role, "content": guard(_in_words(message))}
        for message in messages
    ]


def _in_words(message: Message) -> str:
    lines = [message.text] if message.text else []
    for part in message.content:
        if isinstance(part, ToolCall):
            lines.append(f"I call {part.name} with {part.arguments}.")
        elif isinstance(part, ToolResult):
            lines.append(f"Result of {part.name}:\n{result_text(part)}")
    return "\n".join(lines)


_CALL = re.compile(r'\s*\{\s*"tool"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*(?=\{)')


def read_call(text: str, *, cut: bool = False) -> tuple[str, ToolCall | None]:
    """Return the words or the call of a reply in this form; it may be incomplete if it is ``cut``.

    Raises ``ValueError`` for a complete reply of another form.
    """
    begun = _CALL.match(text)
    value = {} if cut else json.loads(text)
    if begun is not None:
        # The last brace closes the reply, not the arguments.
        arguments = text[begun.end() :] if cut else text[begun.end() :].rstrip()[:-1].rstrip()
        return "", ToolCall(f"call_{token_hex(8)}", json.loads(begun[1]), arguments)
    if cut:
        return text, None
    if not isinstance(value, dict) or "answer" not in value:
        raise ValueError("it is neither a call nor an answer")
    answer = value["answer"]
    words = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    return words.encode("utf-16", "surrogatepass").decode("utf-16", "replace"), None


def body_of(
    request: ChatRequest, settings: LlamaCppSettings, about: About, guard: Guard
) -> tuple[dict[str, Any], bool]:
    """Return the request's body, and whether the reply is held to the form that `read_call` reads.

    That form is used if the chat template has no tools, if a call is required (llama.cpp would allow words first), and
    if there is a response schema (llama.cpp would allow no calls).
    """
    offered = request.offered
    formed = bool(offered) and (
        not about.tools or request.tool_choice.mode == "required" or request.response_schema is not None
    )
    native = about.tools and not formed
    messages = messages_of(request, guard) if native else plain_messages(request.messages, guard)
    # Without a system message, templates add their own, and that of SmolLM2 confuses the model.
    system = messages.pop(0)["content"] if messages[0]["role"] == "system" else settings.system_message
    body = {
        "temperature": settings.temperature,
        "max_tokens": settings.max_tokens,
        "seed": settings.seed,
        "repeat_penalty": settings.repeat_penalty,
        **sampling_of(request),
        "stream": True,
        "stream_options": {"include_usage": True},
        # Pieces also come while the prompt is read, so that the call can be stopped then.
        "return_progress": True,
    }
    parallel = body.pop("parallel_tool_calls", True)
    schema: dict[str, Any] | None = None
    if formed:
        words = instruction(offered, required=request.tool_choice.mode == "required", guard=guard)
        system = f"{system}\n\n{words}" if system else words
        schema = {"name": "reply", "schema": reply_schema(request)}
    elif request.response_schema is not None:
        schema = {"name": request.response_name, "schema": prepare_schema(request.response_schema)}
    if schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if native and offered:
        fields = ("name", "description", "parameters")
        body["tools"] = [
            {"type": "function", "function": {field: getattr(tool, field) for field in fields}} for tool in offered
        ]
        body["parallel_tool_calls"] = parallel
    body["messages"] = [*([{"role": "system", "content": system}] if system else []), *messages]
    return {name: value for name, value in body.items() if value is not None}, formed


class ReplyReader:
    """Builds a reply from its pieces. A reply in the form of a call is shown whole, at its end."""

    def __init__(self, service: str, model: str, *, formed: bool) -> None:
        self._service = service
        self._model = model
        self._formed = formed
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: dict[int, ToolCall] = {}
        self._finish = ""
        self._usage = Usage()

    def feed(self, chunk: Chunk) -> Iterator[ChatDelta]:
        """Add a piece and yield its deltas."""
        if chunk.usage is not None:
            self._usage = chunk.usage.usage()
        for choice in chunk.choices:
            self._finish = choice.finish_reason or self._finish
            if choice.delta.reasoning_content:
                self._thoughts.append(choice.delta.reasoning_content)
                yield ChatDelta(reasoning=choice.delta.reasoning_content)
            if choice.delta.content:
                self._texts.append(choice.delta.content)
                if not self._formed:
                    yield ChatDelta(choice.delta.content)
            for piece in choice.delta.tool_calls:
                yield ChatDelta(tool_call=self._add_call(piece))

    def _add_call(self, piece: CallPiece) -> ToolCallDelta:
        known = self._calls.get(piece.index, ToolCall("", "", ""))
        delta = ToolCallDelta(piece.index, piece.id or "", piece.function.name or "", piece.function.arguments or "")
        self._calls[piece.index] = ToolCall(
            known.id or delta.id, known.name or delta.name, known.arguments + delta.arguments
        )
        return delta

    def end(self) -> Iterator[ChatDelta]:
        """Yield the last deltas and the reply. Raises ``ResponseInvalid``."""
        if not self._finish:
            raise ResponseInvalid(f"{self._model} ended its reply without a reason.")
        text = "".join(self._texts)
        if self._formed:
            try:
                text, call = read_call(text, cut=self._finish == "length")
            except (ValueError, RecursionError) as error:
                wrong = f"{self._model} did not keep to the form of a reply with tools: {error}."
                raise ResponseInvalid(wrong) from error
            if call is not None:
                self._calls[0] = call
                yield ChatDelta(tool_call=ToolCallDelta(0, call.id, call.name, call.arguments))
            if text:
                yield ChatDelta(text)
        thoughts = "".join(self._thoughts)
        parts: list[Part] = [Reasoning(thoughts, thoughts, self._service)] if thoughts else []
        calls = [self._calls[index] for index in sorted(self._calls)]
        if text or not calls:
            parts.append(Text(text))
        finish: Literal["stop", "length", "tool_calls"] = "tool_calls" if calls else "stop"
        finish = "length" if self._finish == "length" else finish
        message = Message("assistant", (*parts, *calls))
        yield ChatDelta(reply=ChatReply(message, finish, self._usage, model=self._model, service=self._service))
