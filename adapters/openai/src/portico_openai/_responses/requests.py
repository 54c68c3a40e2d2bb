"""A request of core as the body of a request to Responses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from portico import ChatCapabilities, ChatRequest, File, Image, Message, Part, Reasoning, Text, Tool, ToolCall
from portico_openai import _shared_forms as forms
from portico_openai.config import OpenAIChatSettings
from portico_wire.answers import encode_json
from portico_wire.requests import add_sampling, must_call, no_place_for, split_results

EXTRAS = forms.EXTRAS | {"include", "max_tool_calls", "moderation", "reasoning", "reasoning_summary", "truncation"}
"""OpenAI's own options. What makes the service keep the conversation is not among them: Portico sends it each time."""

_INNER = {
    "reasoning_effort": ("reasoning", "effort"),
    "reasoning_summary": ("reasoning", "summary"),
    "verbosity": ("text", "verbosity"),
}
"""Options that lie inside of an object here."""

_ENCRYPTED = "reasoning.encrypted_content"
_LOGPROBS = "message.output_text.logprobs"
_NO_REASONING = re.compile(r"(ft:)?(gpt-[34]|gpt-5-chat|chatgpt-)")
"""Models of which OpenAI refuses to encrypt the reasoning, as they have none."""
_OWN_ITEMS = frozenset({"message", "reasoning", "web_search_call"})
"""The types of items that go back without a word of who made them."""


def capabilities(settings: OpenAIChatSettings) -> ChatCapabilities:
    """Return what a service of these settings honours."""
    return ChatCapabilities(
        tools=settings.tools,
        response_schema=settings.response_schema,
        json_object=settings.takes_json_object,
        strict=settings.takes_strict,
        images=settings.images,
        files=settings.takes_files,
        links=frozenset({"Image", "File"}),
        sampling=frozenset({"temperature", "top_p", "max_tokens"}),
        extras=EXTRAS | frozenset(settings.extras),
    )


def request_body(request: ChatRequest, settings: OpenAIChatSettings, *, stream: bool) -> bytes:
    """Write the body of one request. Nothing is kept at the service: reasoning comes back encrypted and is sent again.

    Raises ``ValueError`` for a message that has no form on the wire, and ``TypeError`` for an extra, an argument or a
    schema that is not JSON.
    """
    fields: dict[str, Any] = {"store": False, **settings.body, **request.extras}
    for name, (outer, inner) in _INNER.items():
        if name in fields:
            fields[outer] = {**(fields.get(outer) or {}), inner: fields.pop(name)}
    include = fields.pop("include", [] if _NO_REASONING.match(settings.model) else [_ENCRYPTED])
    if fields.pop("logprobs", False) or fields.get("top_logprobs"):
        include = [*include, _LOGPROBS]
    if include:
        fields["include"] = include
    searches = fields.pop("web_search", settings.web_search)
    fields["model"] = settings.model
    fields["input"] = list(_items(request.messages, forms.maker_of(settings)))
    tools = [_tool(tool, settings) for tool in request.offered]
    if tools or searches:
        fields["tools"] = [*tools, {"type": "web_search"}] if searches else tools
    else:
        fields.pop("parallel_tool_calls", None)
    if must_call(request):
        names = [{"type": "function", "name": tool["name"]} for tool in tools]
        if len(names) == 1 and settings.calls_by_name:
            fields["tool_choice"] = names[0]
        else:
            # A search of the web is a call too.
            among = {"type": "allowed_tools", "mode": "required", "tools": names}
            fields["tool_choice"] = among if searches else "required"
    if (form := forms.reply_format(request, settings)) is not None:
        kind, about = form
        fields["text"] = {**(fields.get("text") or {}), "format": {"type": kind, **about}}
    options = {"temperature": request.temperature, "top_p": request.top_p, "max_output_tokens": request.max_tokens}
    add_sampling(fields, options)
    if stream:
        fields["stream"] = True
    return encode_json(fields)


def _tool(tool: Tool, settings: OpenAIChatSettings) -> dict[str, Any]:
    described = forms.fit_description(tool.description, settings)
    # A function that does not say so is strict here.
    about = {"description": described, "parameters": tool.parameters, "strict": tool.strict}
    return {"type": "function", "name": tool.name, **about}


def _items(messages: Any, service: str) -> Iterator[dict[str, Any]]:
    for message in messages:
        if message.role == "assistant":
            items = list(_of_assistant(message, service))
            # The service takes no reasoning that nothing follows: of a reply that was cut off.
            while items and items[-1]["type"] == "reasoning":
                items.pop()
            yield from items
            continue
        results, rest = split_results(message)
        for result in results:
            yield {"type": "function_call_output", "call_id": result.id, "output": result.content}
        if rest is not None:
            yield {"role": message.role, "content": forms.content_of(rest, _part)}


def _of_assistant(message: Message, service: str) -> Iterator[dict[str, Any]]:
    about: dict[str, Any] = {}
    for part in message.content or (Text(""),):
        if isinstance(part, Text):
            if part.text or len(message.content) <= 1:
                said = {"type": "output_text", "text": part.text, "annotations": []}
                yield {"type": "message", "role": "assistant", "content": [said], **about}
            about = {}
        elif isinstance(part, ToolCall):
            name = forms.fit_name(part.name)
            yield {"type": "function_call", "call_id": part.id, "name": name, "arguments": part.arguments or "{}"}
        elif isinstance(part, Reasoning):
            item = part.data
            # What has no type is of Chat Completions.
            kind = item.get("type") if isinstance(item, Mapping) else None
            if isinstance(kind, str) and (part.service == service or (not part.service and kind in _OWN_ITEMS)):
                if kind == "message":
                    about = {"phase": item.get("phase")}
                else:
                    # The service would look for an id among what it stores.
                    yield {name: member for name, member in item.items() if name != "id"}
        else:
            raise no_place_for(part, "assistant")


def _part(part: Part, role: str) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "input_text", "text": part.text}
    if isinstance(part, Image):
        return {"type": "input_image", "image_url": forms.url_of(part), "detail": "auto"}
    if isinstance(part, File):
        url = forms.url_of(part)
        return {"type": "input_file", **({"file_url": url} if part.url else {"filename": part.name, "file_data": url})}
    raise no_place_for(part, role)
