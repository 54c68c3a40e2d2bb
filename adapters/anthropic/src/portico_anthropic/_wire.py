"""A request of core as the body of a request to the service."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

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
from portico_anthropic._schemas import held_form
from portico_anthropic.config import LEAST_BUDGET, AnthropicChatSettings
from portico_wire.answers import encode_json
from portico_wire.requests import add_sampling, check_attached, must_call, no_place_for, split_results

VERSION = {"anthropic": "2023-06-01", "bedrock": "bedrock-2023-05-31", "vertex": "vertex-2023-10-16"}
"""The version of the protocol: a header at Anthropic, a field of the body elsewhere."""

_PASSED = frozenset({"inference_geo", "metadata", "service_tier", "speed", "thinking"})
_OWN = frozenset({"disable_parallel_tool_use", "effort", "parallel_tool_calls", "web_search"})
_IMAGES = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
_TEXTS = frozenset({"application/json", "text/*"})
_PDF = "application/pdf"
_UNFIT_IN_NAMES = re.compile(r"[^0-9A-Za-z_-]")
_LONGEST_NAME = 128
_LONGEST_TITLE = 200
_THOUGHTS = {"thinking": "signature", "redacted_thinking": "data"}
"""The blocks of thinking, and what each must have."""
_UNMARKED = frozenset(_THOUGHTS)
"""The blocks that cannot be the last that is kept."""
CITED = "citations"
"""The type of what stands behind a text in a message and goes back in its block: its citations."""
_ANYTHING: dict[str, Any] = {"type": "object"}
BINDING = "thinking-binding-controls-2026-08-01"
"""The name of the beta that lets a request say what becomes of thinking before which something has changed."""
_CALL = "Answer with a call of a tool, and nothing else."
"""What asks for a call that cannot be forced."""
_OBJECTS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def capabilities(settings: AnthropicChatSettings) -> ChatCapabilities:
    """Return what a service of these settings honours."""
    sampled = settings.takes_sampling
    attached = {"Image": settings.images, "File": settings.files}
    return ChatCapabilities(
        tools=settings.tools,
        response_schema=settings.response_schema,
        strict=settings.strict,
        images=settings.images,
        files=settings.files,
        # Neither Bedrock nor Vertex fetches anything.
        links=frozenset(name for name, taken in attached.items() if taken and settings.through == "anthropic"),
        media_types=(_IMAGES if settings.images else frozenset())
        | ({_PDF, *_TEXTS} if settings.files else frozenset()),
        sampling=frozenset({"max_tokens", "stop", *(("temperature", "top_p") if sampled else ())}),
        extras=(_PASSED | _OWN | frozenset(settings.extras) | ({"top_k"} if sampled else frozenset()))
        - ({"web_search"} if settings.through == "bedrock" else frozenset()),
    )


def maker_of(settings: AnthropicChatSettings) -> str:
    """Return who makes the thinking in replies."""
    return f"anthropic at {settings.host}"


def request_body(request: ChatRequest, settings: AnthropicChatSettings, *, stream: bool) -> bytes:
    """Write the body of one request.

    Raises ``ValueError`` for a message that has no form on the wire, and ``TypeError`` for an extra or a schema that is
    not JSON.
    """
    extras = dict(request.extras)
    own = {name: extras.pop(name) for name in _OWN & extras.keys()}
    written = _Conversation(maker_of(settings), in_place=settings.system_in_place)
    written.add(request.messages)
    fields: dict[str, Any] = dict(settings.body)
    if settings.through == "anthropic":
        fields["model"] = settings.model
    else:
        fields["anthropic_version"] = VERSION[settings.through]
    if settings.through == "bedrock" and settings.preserves_thinking:
        fields["anthropic_beta"] = [*fields.get("anthropic_beta", ()), BINDING]
    fields["max_tokens"] = settings.max_tokens if request.max_tokens is None else request.max_tokens
    _add_tools(fields, request, settings, own, written.called)
    output: dict[str, Any] = {"effort": own.get("effort", settings.effort)}
    if request.response_schema is not None:
        schema = _held(encode_json(request.response_schema))
        if schema is None:
            written.system.append(
                "Answer with one JSON value and nothing else: no words around it, no code fence. It must be valid "
                f"under this JSON Schema:\n{json.dumps(request.response_schema, ensure_ascii=False, default=dict)}"
            )
        else:
            output["format"] = {"type": "json_schema", "schema": schema}
    output = {name: value for name, value in output.items() if value is not None}
    if output:
        fields["output_config"] = output
    required = must_call(request)
    if required and settings.preserves_thinking:
        written.add([Message.of("user", _CALL)])
    _add_thinking(fields, settings, written.messages, forced=required and not settings.preserves_thinking)
    options = {"temperature": request.temperature, "top_p": request.top_p, "stop_sequences": request.stop or None}
    add_sampling(fields, options)
    if written.system:
        fields["system"] = "\n\n".join(written.system)
    fields["messages"] = written.messages
    if settings.cache != "off":
        _mark(fields, {"type": "ephemeral", "ttl": settings.cache}, itself=settings.through == "anthropic")
    if stream and settings.through != "bedrock":
        fields["stream"] = True
    return encode_json(fields | extras)


def _add_thinking(
    fields: dict[str, Any], settings: AnthropicChatSettings, messages: Iterable[dict[str, Any]], *, forced: bool
) -> None:
    kind = settings.thinking
    if kind == "off":
        fields["thinking"] = {"type": "disabled"}
    elif forced:
        # It leaves no room for thinking.
        return
    elif kind == "budget":
        budget = min(settings.thinking_budget, fields["max_tokens"] - 1)
        if budget >= LEAST_BUDGET and _begins_with_thinking(messages):
            fields["thinking"] = {"type": "enabled", "budget_tokens": budget}
    elif kind == "between_tools":
        fields["thinking"] = {"type": kind}
    elif kind == "adaptive" or settings.preserves_thinking:
        fields["thinking"] = {"type": "adaptive"}
        if kind:
            # Newer models leave their thoughts out of replies otherwise.
            fields["thinking"]["display"] = "summarized"
        if settings.preserves_thinking:
            # The service would refuse a conversation whose system, tools or earlier messages have changed.
            fields["thinking"]["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}


def _begins_with_thinking(messages: Iterable[dict[str, Any]]) -> bool:
    """Tell whether the turn to be ended began with thinking, if it has begun: one whose call was forced did not."""
    first = None
    for turn in reversed([*messages]):
        kind = turn["content"][0]["type"]
        if turn["role"] == "assistant":
            first = kind
        elif kind != "tool_result":
            break
    return first is None or first in _THOUGHTS


def _add_tools(
    fields: dict[str, Any],
    request: ChatRequest,
    settings: AnthropicChatSettings,
    own: Mapping[str, Any],
    called: Iterable[str],
) -> None:
    """Write the tools, and how they may be called."""
    mode = request.tool_choice.mode
    offered = request.tools if mode == "none" else request.offered
    if not offered:
        # The service refuses calls in a history without tools.
        mode = "none"
        offered = tuple(Tool(name, "Not at hand any more.", _ANYTHING) for name in called)
    tools = [_tool(tool, strict=settings.strict) for tool in offered]
    # A search would do for a call that is required.
    if own.get("web_search", settings.web_search) and mode != "required":
        search = {"type": "web_search_20250305", "name": "web_search", **settings.web_search_options}
        # The service would take "none" as no search either: only the search is offered then.
        tools, mode = [search] if mode == "none" else [*tools, search], "auto"
    if not tools:
        return
    fields["tools"] = tools
    choice: dict[str, Any] = {}
    if mode == "none":
        choice = {"type": "none"}
    elif mode == "required" and not settings.preserves_thinking:
        choice = {"type": "tool", "name": tools[0]["name"]} if len(tools) == 1 else {"type": "any"}
    if mode != "none" and (own.get("disable_parallel_tool_use") or own.get("parallel_tool_calls") is False):
        choice = {"type": "auto", **choice, "disable_parallel_tool_use": True}
    if choice:
        fields["tool_choice"] = choice


def _tool(tool: Tool, *, strict: bool) -> dict[str, Any]:
    schema = _held(encode_json(tool.parameters)) if tool.strict and strict else None
    written = {"name": tool.name, "description": tool.description, "input_schema": schema or tool.parameters}
    return {**written, "strict": True} if schema else written


@lru_cache(1_000)
def _held(schema: bytes) -> msgspec.Raw | None:
    form = held_form(msgspec.json.decode(schema))
    return None if form is None else msgspec.Raw(msgspec.json.encode(form))


def _mark(fields: dict[str, Any], mark: dict[str, Any], *, itself: bool) -> None:
    """Say what is kept: tools and system, which other conversations have too, and everything up to the last block."""
    if "system" in fields:
        fields["system"] = [{"type": "text", "text": fields["system"], "cache_control": mark}]
    elif "tools" in fields:
        fields["tools"][-1] = {**fields["tools"][-1], "cache_control": mark}
    if itself:
        fields["cache_control"] = mark
        return
    last = fields["messages"][-1]["content"] if fields["messages"] else []
    if last and last[-1]["type"] not in _UNMARKED:
        last[-1] = {**last[-1], "cache_control": mark}


class _Conversation:
    """Messages as turns of user and assistant in alternation, and what the system says."""

    def __init__(self, maker: str, *, in_place: bool) -> None:
        self.messages: list[dict[str, Any]] = []
        self.system: list[str] = []
        self.called: dict[str, None] = {}
        """The names of the tools that were called, in order."""
        self._maker = maker
        self._in_place = in_place
        self._ids: dict[str, str] = {}
        """By the identifier of a call, the one that was sent for it last."""
        self._sent: set[str] = set()

    def add(self, messages: Iterable[Message]) -> None:
        """Write messages behind those that are written."""
        for message in messages:
            if message.role == "system":
                self._add_system(message)
            elif message.role == "assistant":
                said = list(self._said(message.content))
                # The service takes no message that ends with thinking: of a reply that was cut off.
                while said and said[-1]["type"] in _THOUGHTS:
                    said.pop()
                self._add_turn("assistant", said)
            else:
                self._add_turn("user", self._asked(message))

    def _add_system(self, message: Message) -> None:
        if not all(isinstance(part, Text) for part in message.content):
            raise ValueError("a message of the system holds text, and nothing else")
        text = message.text
        if not text.strip():
            return
        if self._in_place and self.messages:
            self.messages.append({"role": "system", "content": [{"type": "text", "text": text}]})
        else:
            self.system.append(text)

    def _add_turn(self, role: str, blocks: list[dict[str, Any]]) -> None:
        if not blocks:
            return
        last = self.messages[-1] if self.messages else None
        if last is None or last["role"] != role:
            self.messages.append({"role": role, "content": blocks})
            return
        # Results stand before everything else in their turn.
        place = next((at for at, each in enumerate(last["content"]) if each["type"] != "tool_result"), None)
        results = [block for block in blocks if block["type"] == "tool_result"]
        if place is None or not results:
            last["content"] += blocks
        else:
            last["content"][place:place] = results
            last["content"] += [block for block in blocks if block["type"] != "tool_result"]

    def _asked(self, message: Message) -> list[dict[str, Any]]:
        results, rest = split_results(message)
        said = [block for part in (rest.content if rest else ()) for block in _block(part)]
        return [*map(self._result, results), *said]

    def _result(self, result: ToolResult) -> dict[str, Any]:
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": self._ids.get(result.id) or _fit(result.id)}
        if result.content:
            block["content"] = result.content
        if result.error:
            block["is_error"] = True
        return block

    def _said(self, parts: Iterable[Part]) -> Iterator[dict[str, Any]]:
        said: dict[str, Any] = {}
        for part in parts:
            if isinstance(part, Text):
                if part.text.strip():
                    said = {"type": "text", "text": part.text}
                    yield said
            elif isinstance(part, ToolCall):
                yield self._call(part)
            elif isinstance(part, Reasoning):
                if not isinstance(part.data, Mapping) or not self._is_ours(part):
                    continue
                match part.data:  # what is no block of the service is left out: it would refuse the conversation
                    case {"type": kind, "citations": cited} if kind == CITED:
                        said["citations"] = cited
                    case {"type": str(kind)} if kind != CITED:
                        yield dict(part.data)
            else:
                raise no_place_for(part, "assistant")

    def _is_ours(self, part: Reasoning) -> bool:
        if part.service:
            return part.service == self._maker
        proof = _THOUGHTS.get(str(part.data.get("type")))
        return proof is not None and proof in part.data

    def _call(self, call: ToolCall) -> dict[str, Any]:
        # The service wants an identifier once in a conversation; others count their calls anew in each reply.
        sent = _fit(call.id)
        while sent in self._sent:
            sent += "_"
        self._sent.add(sent)
        self._ids[call.id] = sent
        name = _UNFIT_IN_NAMES.sub("_", call.name)[:_LONGEST_NAME] or "_"
        self.called[name] = None
        return {"type": "tool_use", "id": sent, "name": name, "input": _input(call.arguments)}


def _input(arguments: str) -> Any:
    """Return the arguments as they are; what is no object goes back in one, so that the model sees what it wrote."""
    try:
        text = (arguments or "{}").encode()
        _OBJECTS.decode(text)
    except (UnicodeEncodeError, msgspec.DecodeError, RecursionError):
        return {"INVALID_JSON": arguments}
    return msgspec.Raw(text)


def _fit(id: str) -> str:
    return _UNFIT_IN_NAMES.sub("_", id) or "_"


def _block(part: Part) -> Iterator[dict[str, Any]]:
    if isinstance(part, Text):
        if part.text.strip():
            yield {"type": "text", "text": part.text}
    elif isinstance(part, Image):
        yield {"type": "image", "source": _source(part)}
    elif isinstance(part, File):
        document = {"type": "document", "source": _document(part)}
        yield {**document, "title": part.name[:_LONGEST_TITLE]} if part.name else document
    else:
        raise no_place_for(part, "user")


def _source(part: Image | File) -> dict[str, Any]:
    check_attached(part)
    if part.data is None:
        return {"type": "url", "url": part.url}
    return {"type": "base64", "media_type": part.media_type, "data": base64.b64encode(part.data).decode("ascii")}


def _document(part: File) -> dict[str, Any]:
    if part.media_type == _PDF:
        return _source(part)
    if part.data is None:
        raise ValueError(f"a File by link is a PDF, not {part.media_type}: give its data")
    return {"type": "text", "media_type": "text/plain", "data": part.data.decode("utf-8", "replace")}
