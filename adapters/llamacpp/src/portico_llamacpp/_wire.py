"""Core's messages as llama.cpp's JSON, which is that of OpenAI's chat completions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from portico import ChatRequest, Message, Reasoning, ToolCall, ToolResult, Usage

Guard = Callable[[str], str]
"""Breaks up the control tokens in a text."""


class Failure(msgspec.Struct):
    """A failure, in the words of llama.cpp or of the model's process."""

    message: str = ""
    type: str = ""
    n_prompt_tokens: int = 0
    n_ctx: int = 0


class CalledFunction(msgspec.Struct):
    """A piece of a call's function."""

    name: str | None = None
    arguments: str | None = None


class CallPiece(msgspec.Struct):
    """A piece of a tool call."""

    index: int = 0
    id: str | None = None
    function: CalledFunction = msgspec.field(default_factory=CalledFunction)


class Delta(msgspec.Struct):
    """What a piece of a reply adds."""

    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[CallPiece] = []


class Choice(msgspec.Struct):
    """The one choice of a piece."""

    delta: Delta = msgspec.field(default_factory=Delta)
    finish_reason: str | None = None


class _CachedTokens(msgspec.Struct):
    cached_tokens: int = 0


class TokenCount(msgspec.Struct):
    """The tokens of a reply."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _CachedTokens | None = None

    def usage(self) -> Usage:
        """Return them in the core's words."""
        details = self.prompt_tokens_details
        return Usage(self.prompt_tokens, self.completion_tokens, details.cached_tokens if details else 0, cost=0.0)


class Chunk(msgspec.Struct):
    """A piece of a reply, or the refusal of one."""

    choices: list[Choice] = []
    usage: TokenCount | None = None
    error: Failure | None = None


class About(msgspec.Struct, frozen=True):
    """What the process reports about the loaded model."""

    address: str
    model: str
    context_size: int
    tools: bool
    """Whether its chat template takes tools."""
    control: tuple[str, ...]


class Line(msgspec.Struct):
    """One line from the model's process."""

    id: int = 0
    chunk: Chunk | None = None
    end: bool = False
    error: Failure | None = None
    ready: About | None = None
    failed: Failure | None = None


read_line = msgspec.json.Decoder(Line).decode
_encode = msgspec.json.Encoder().encode


def write_json(value: Any) -> bytes:
    """Write a JSON text on one line. Raises ``ValueError`` for what JSON in UTF-8 cannot hold."""
    try:
        return _encode(value)
    except UnicodeEncodeError as error:
        raise ValueError(f"half a surrogate pair is no text: {error.object[error.start : error.end]!r}") from error
    except (TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"the request has a value that JSON cannot hold: {error}") from error


def guard_of(control: Sequence[str]) -> Guard:
    """Return a function that breaks up control tokens in a text, so that no text can end its own message.

    llama.cpp finds control tokens anywhere in a prompt. A space after the first letter makes a token plain text:
    ``<|im_end|>`` becomes ``< |im_end|>``. Lone surrogates become question marks.
    """
    pattern = re.compile("|".join(re.escape(token) for token in sorted(control, key=len, reverse=True)) or "(?!)")

    def guard(text: str) -> str:
        if not text.isascii():
            text = text.encode("utf-8", "replace").decode("utf-8")
        while pattern.search(text):  # two broken tokens may form another
            text = pattern.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)
        return text

    return guard


def messages_of(request: ChatRequest, guard: Guard) -> list[dict[str, Any]]:
    """Write messages for a chat template that knows tools."""
    return [written for message in request.messages for written in _write_message(message, guard)]


def _write_message(message: Message, guard: Guard) -> Iterator[dict[str, Any]]:
    for part in message.content:
        if isinstance(part, ToolResult):
            yield {"role": "tool", "tool_call_id": part.id, "name": part.name, "content": guard(result_text(part))}
    calls = [part for part in message.content if isinstance(part, ToolCall)]
    if message.role == "tool" and not calls and not message.text:
        return
    written: dict[str, Any] = {"role": message.role, "content": guard(message.text)}
    own = [part.data for part in message.content if isinstance(part, Reasoning) and part.service in ("", "llamacpp")]
    thoughts = [data for data in own if isinstance(data, str)]
    if thoughts:
        written["reasoning_content"] = guard("\n".join(thoughts))
    if calls:
        written["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": guard(_arguments(call))}}
            for call in calls
        ]
    yield written


def _arguments(call: ToolCall) -> str:
    """Return a call's arguments as a JSON object, which templates need; a model may have written something else."""
    try:
        if isinstance(msgspec.json.decode(call.arguments), dict):
            return call.arguments
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        pass
    return write_json({"text": call.arguments.encode("utf-8", "replace").decode()}).decode()


def result_text(result: ToolResult) -> str:
    """Return the text of a tool's result, with "Error:" before a failure."""
    return f"Error: {result.content}" if result.error else result.content


def sampling_of(request: ChatRequest) -> dict[str, Any]:
    """Return the sampling settings of a request. Raises ``ValueError`` for one out of range.

    llama.cpp accepts any number, and gives some an unexpected meaning.
    """
    for name, value, least, most in (
        ("temperature", request.temperature, 0, math.inf),
        ("top_p", request.top_p, 0, 1),
        ("max_tokens", request.max_tokens, 1, 2**31 - 1),
        ("seed", request.seed, 0, 2**32 - 2),
    ):
        if value is not None and not least <= value <= most:
            bound = f"at least {least}" if most == math.inf else f"from {least} to {most}"
            raise ValueError(f"{name} is {bound}, not {value}")
    if "" in request.stop:
        raise ValueError("a stop word is empty")
    settings = {
        "temperature": request.temperature,
        "top_p": request.top_p,
        "max_tokens": request.max_tokens,
        "seed": request.seed,
        "stop": list(request.stop) or None,
    }
    return {**request.extras, **{name: value for name, value in settings.items() if value is not None}}
