"""A request of core as the body of a request to the service."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from portico import (
    ChatCapabilities,
    ChatRequest,
    File,
    Image,
    Message,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from portico_openai.config import OpenAIChatSettings
from portico_wire.answers import encode_json

EXTRAS = frozenset(
    {
        "frequency_penalty",
        "logit_bias",
        "metadata",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning_effort",
        "safety_identifier",
        "service_tier",
        "store",
        "user",
        "verbosity",
    }
)
"""OpenAI's own options. Those that ask for something a `ChatReply` cannot hold (several choices, log probabilities,
audio, annotations) are not among them."""

REASONING_FIELDS = ("reasoning_content", "reasoning")
"""Where servers put a model's thinking: DeepSeek, llama.cpp and vLLM the first, OpenRouter and Ollama the other."""

THOUGHT_PARTS = frozenset({"thinking", "redacted_thinking", "reasoning"})

_UNFIT_IN_NAMES = re.compile(r"[^0-9A-Za-z_-]")


def capabilities(settings: OpenAIChatSettings) -> ChatCapabilities:
    """Return what a service of these settings honours."""
    return ChatCapabilities(
        tools=settings.tools,
        response_schema=settings.response_schema,
        json_object=settings.takes_json_object,
        strict=settings.takes_strict,
        images=settings.images,
        files=settings.takes_files,
        sampling=frozenset({"temperature", "top_p", "max_tokens", "stop", "seed"}),
        extras=EXTRAS | frozenset(settings.extras),
    )


def request_body(request: ChatRequest, settings: OpenAIChatSettings, *, stream: bool) -> bytes:
    """Write the body of one request.

    Raises ``ValueError`` for a message that has no form on the wire, and ``TypeError`` for an extra, an argument or a
    schema that is not JSON.
    """
    fields: dict[str, Any] = {
        **settings.body,
        "model": settings.model,
        "messages": list(_messages(request.messages, maker_of(settings))),
    }
    offered = request.offered
    extras = dict(request.extras)
    if offered:
        fields["tools"] = [_tool(tool, 1_024 if settings.is_openai else None) for tool in offered]
    else:
        for without_tools in (fields, extras):
            without_tools.pop("parallel_tool_calls", None)
    if request.tool_choice.mode == "required":
        if not offered:
            raise ValueError("the tool choice is 'required', but no tool is offered")
        # A single tool is not named: its name would say no more, and llama.cpp takes an object here for "auto".
        fields["tool_choice"] = "required"
    # OpenAI refuses json_object where no message has the word.
    asks = settings.takes_json_object and any("json" in message.text.lower() for message in request.messages)
    if asks and request.response_schema == {"type": "object"}:
        fields["response_format"] = {"type": "json_object"}
    elif request.response_schema is not None:
        schema: dict[str, Any] = {"name": _name(request.response_name) or "reply", "schema": request.response_schema}
        if request.response_strict:
            schema["strict"] = True
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    options = {
        "temperature": request.temperature,
        "top_p": request.top_p,
        settings.token_limit_field: request.max_tokens,
        "stop": request.stop or None,
        "seed": request.seed,
    }
    for name, option in options.items():
        if isinstance(option, float) and not math.isfinite(option):
            raise ValueError(f"{name} is a finite number, not {option}")
        if option is not None:
            fields[name] = option
    if stream:
        fields["stream"] = True
        fields["stream_options"] = {"include_usage": True}
    return encode_json(fields | extras)


def maker_of(settings: OpenAIChatSettings) -> str:
    """Return who makes the reasoning in replies: services of one protocol do not take each other's."""
    return f"openai at {settings.host}"


def _tool(tool: Tool, most: int | None) -> dict[str, Any]:
    told = tool.description if tool.description[:most] == tool.description else f"{tool.description[:1_023]}…"
    function: dict[str, Any] = {"name": tool.name, "description": told, "parameters": tool.parameters}
    return {"type": "function", "function": function | ({"strict": True} if tool.strict else {})}


def _messages(messages: Any, service: str) -> Iterator[dict[str, Any]]:
    for message in messages:
        content = message.content
        if message.role == "assistant":
            yield _assistant(message, service)
        elif len(content) == 1 and type(content[0]) is Text and message.role != "tool":
            yield _add_name({"role": message.role, "content": content[0].text}, message)
        else:
            results = [part for part in content if isinstance(part, ToolResult)]
            for result in results:
                yield {"role": "tool", "tool_call_id": result.id, "content": result.content}
            rest = tuple(part for part in content if not isinstance(part, ToolResult))
            if message.role == "tool":
                if rest or not results:
                    raise ValueError("a message of the role 'tool' holds tool results, and nothing else")
            elif rest or not results:
                yield _add_name({"role": message.role, "content": _content(rest, message.role)}, message)


def _assistant(message: Message, service: str) -> dict[str, Any]:
    written: dict[str, Any] = {"role": "assistant", "content": None}
    texts = []
    calls = []
    thoughts: list[Any] = []
    for part in message.content:
        if isinstance(part, Text):
            texts.append(part.text)
        elif isinstance(part, ToolCall):
            function = {"name": _name(part.name), "arguments": part.arguments or "{}"}
            calls.append({"id": part.id, "type": "function", "function": function})
        elif isinstance(part, Reasoning):
            if part.service in ("", service) and isinstance(part.data, Mapping):
                written.update({name: part.data[name] for name in REASONING_FIELDS if name in part.data})
                thoughts += part.data.get("content", ())
        else:
            raise ValueError(f"a message of the assistant cannot hold the part {type(part).__name__}")
    if thoughts:
        written["content"] = thoughts + [{"type": "text", "text": text} for text in texts if text]
    elif texts or not calls:
        written["content"] = "".join(texts)
    if calls:
        written["tool_calls"] = calls
    return _add_name(written, message)


def _content(parts: tuple[Part, ...], role: str) -> Any:
    if all(isinstance(part, Text) for part in parts):
        return "".join(part.text for part in parts if isinstance(part, Text))
    return [_part(part, role) for part in parts]


def _part(part: Part, role: str) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Image):
        if (part.data is None) == (part.url is None):
            raise ValueError("an Image has either data or a url")
        url = part.url if part.data is None else _data_url(part.data, part.media_type)
        return {"type": "image_url", "image_url": {"url": url}}
    if isinstance(part, File) and part.data is not None:
        return {"type": "file", "file": {"filename": part.name, "file_data": _data_url(part.data, part.media_type)}}
    raise ValueError(f"a message of the role {role!r} cannot hold the part {type(part).__name__}")


def _data_url(data: bytes, media_type: str) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"


def _add_name(written: dict[str, Any], message: Message) -> dict[str, Any]:
    if message.name and message.role != "tool":
        written["name"] = _name(message.name)
    return written


def _name(name: str) -> str:
    """Write a name with the letters that services allow in one, at most 64."""
    return _UNFIT_IN_NAMES.sub("_", name)[:64]
