"""A request of core as the body of a request to Chat Completions."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from portico import Audio, ChatCapabilities, ChatRequest, File, Image, Message, Part, Reasoning, Text, Tool, ToolCall
from portico_openai import _shared_forms as forms
from portico_openai.config import OpenAIChatSettings
from portico_wire.answers import encode_json
from portico_wire.requests import add_sampling, must_call, no_place_for, split_results

EXTRAS = forms.EXTRAS | {"frequency_penalty", "logit_bias", "prediction", "presence_penalty"}
"""OpenAI's own options. Those that ask for something a `ChatReply` cannot hold (several choices, sound) are not among
them."""

REASONING_FIELDS = ("reasoning_content", "reasoning")
"""Where servers put a model's thinking: DeepSeek, llama.cpp and vLLM the first, OpenRouter and Ollama the other."""

THOUGHT_PARTS = frozenset({"thinking", "redacted_thinking", "reasoning"})

_SOUNDS = {"mpeg": "mp3", "vnd.wave": "wav", "wave": "wav", "x-wav": "wav"}
"""Formats of sound by subtypes of media types that are not the format's name."""


def capabilities(settings: OpenAIChatSettings) -> ChatCapabilities:
    """Return what a service of these settings honours."""
    return ChatCapabilities(
        tools=settings.tools,
        response_schema=settings.response_schema,
        json_object=settings.takes_json_object,
        strict=settings.takes_strict,
        images=settings.images,
        files=settings.takes_files,
        audio=settings.audio,
        links=frozenset({"Image", "File"} if settings.is_openrouter else {"Image"}),
        sampling=frozenset({"temperature", "top_p", "max_tokens", "stop", "seed"}),
        extras=EXTRAS | frozenset(settings.extras),
    )


def searches(request: ChatRequest, settings: OpenAIChatSettings) -> bool:
    """Tell whether the service is asked to search the web."""
    return bool(request.extras.get("web_search", settings.web_search))


def request_body(request: ChatRequest, settings: OpenAIChatSettings, *, stream: bool) -> bytes:
    """Write the body of one request.

    Raises ``ValueError`` for a message that has no form on the wire, and ``TypeError`` for an extra, an argument or a
    schema that is not JSON.
    """
    fields: dict[str, Any] = {
        **settings.body,
        "model": settings.model,
        "messages": list(_messages(request.messages, forms.maker_of(settings))),
    }
    offered = request.offered
    extras = {name: extra for name, extra in request.extras.items() if name != "web_search"}
    if offered:
        fields["tools"] = [_tool(tool, settings) for tool in offered]
    else:
        for without_tools in (fields, extras):
            without_tools.pop("parallel_tool_calls", None)
    if must_call(request):
        by_name = len(offered) == 1 and settings.calls_by_name
        fields["tool_choice"] = {"type": "function", "function": {"name": offered[0].name}} if by_name else "required"
    if searches(request, settings):
        if settings.is_openrouter:
            fields.setdefault("plugins", [{"id": "web"}])
        else:
            fields.setdefault("web_search_options", {})
    if (form := forms.reply_format(request, settings)) is not None:
        kind, about = form
        fields["response_format"] = {"type": kind} | ({kind: about} if about else {})
    options = {
        "temperature": request.temperature,
        "top_p": request.top_p,
        settings.token_limit_field: request.max_tokens,
        "stop": request.stop or None,
        "random_seed" if settings.is_mistral else "seed": request.seed,
    }
    add_sampling(fields, options)
    if stream:
        fields["stream"] = True
        if not settings.is_mistral:  # It sends the usage unasked.
            fields["stream_options"] = {"include_usage": True}
    return encode_json(fields | extras)


def _tool(tool: Tool, settings: OpenAIChatSettings) -> dict[str, Any]:
    described = forms.fit_description(tool.description, settings)
    function: dict[str, Any] = {"name": tool.name, "description": described, "parameters": tool.parameters}
    return {"type": "function", "function": function | ({"strict": True} if tool.strict else {})}


def _messages(messages: Any, service: str) -> Iterator[dict[str, Any]]:
    for message in messages:
        if message.role == "assistant":
            yield _assistant(message, service)
            continue
        results, rest = split_results(message)
        for result in results:
            yield {"role": "tool", "tool_call_id": result.id, "content": result.content}
        if rest is not None:
            yield _add_name({"role": message.role, "content": forms.content_of(rest, _part)}, message)


def _assistant(message: Message, service: str) -> dict[str, Any]:
    written: dict[str, Any] = {"role": "assistant", "content": None}
    texts = []
    calls = []
    thoughts: list[Any] = []
    for part in message.content:
        if isinstance(part, Text):
            texts.append(part.text)
        elif isinstance(part, ToolCall):
            function = {"name": forms.fit_name(part.name), "arguments": part.arguments or "{}"}
            calls.append({"id": part.id, "type": "function", "function": function})
        elif isinstance(part, Reasoning):
            # What has a type is an item of Responses.
            if part.service in ("", service) and isinstance(part.data, Mapping) and "type" not in part.data:
                written.update({name: part.data[name] for name in REASONING_FIELDS if name in part.data})
                thoughts += part.data.get("content") or ()
        else:
            raise no_place_for(part, "assistant")
    if thoughts:
        written["content"] = thoughts + [{"type": "text", "text": text} for text in texts if text]
    elif texts or not calls:
        written["content"] = "".join(texts)
    if calls:
        written["tool_calls"] = calls
    return _add_name(written, message)


def _part(part: Part, role: str) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": {"url": forms.url_of(part)}}
    if isinstance(part, File):
        # Where links are taken, they stand in place of the data.
        return {"type": "file", "file": {"filename": part.name, "file_data": forms.url_of(part)}}
    if isinstance(part, Audio) and part.data is not None:
        kind = part.media_type.partition("/")[2]
        sound = {"data": base64.b64encode(part.data).decode("ascii"), "format": _SOUNDS.get(kind, kind)}
        return {"type": "input_audio", "input_audio": sound}
    raise no_place_for(part, role)


def _add_name(written: dict[str, Any], message: Message) -> dict[str, Any]:
    if message.name and message.role != "tool":
        written["name"] = forms.fit_name(message.name)
    return written
