"""A request of core as the body of a request to Gemini."""

from __future__ import annotations

import base64
import mimetypes
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import msgspec

from portico import (
    Audio,
    ChatCapabilities,
    ChatRequest,
    File,
    Image,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from portico_gemini._schemas import Declarations, narrowed
from portico_gemini.config import GeminiChatSettings
from portico_wire.answers import encode_json
from portico_wire.requests import add_sampling, check_attached, must_call, no_place_for, split_results

_GENERATION = frozenset(
    {
        "audioTimestamp",
        "enableEnhancedCivicAnswers",
        "frequencyPenalty",
        "mediaResolution",
        "presencePenalty",
        "thinkingConfig",
        "topK",
    }
)
"""Extras that stand in ``generationConfig``."""
EXTRAS = _GENERATION | {
    "cachedContent",
    "labels",
    "modelArmorConfig",
    "safetySettings",
    "serviceTier",
    "store",
    "web_search",
}
"""Gemini's own options. Those that ask for something a `ChatReply` cannot hold (several candidates, log probabilities,
pictures, speech) are not among them."""

_MEDIA_TYPES = frozenset(
    {
        "application/pdf",
        "audio/*",
        "image/heic",
        "image/heif",
        "image/jpeg",
        "image/png",
        "image/webp",
        "text/*",
        "video/*",
    }
)
_OWN_ADDRESSES = ("generativelanguage.googleapis.com", "www.youtube.com", "youtube.com", "youtu.be")
"""Hosts whose files have a type that Gemini knows."""
SIGNATURE = "thoughtSignature"
_SIGNED = frozenset(
    {"codeExecutionResult", "executableCode", "inlineData", "thought", SIGNATURE, "toolCall", "toolResponse"}
)
"""Members by which a part is known as Gemini's, where it is not known who made it."""
_UNSIGNED = "skip_thought_signature_validator"
"""What Google's documentation says to send for a call that another model made."""
_WITHOUT_SIGNATURES = re.compile(r"gemini-[12]\b")
MADE_ID = "portico_"
"""How the identifiers begin that are ours: not all models give one, and those that give none get none back."""
_UNFIT_IN_NAMES = re.compile(r"[^0-9A-Za-z_.:-]")


def capabilities(settings: GeminiChatSettings) -> ChatCapabilities:
    """Return what a service of these settings honours."""
    return ChatCapabilities(
        tools=settings.tools,
        response_schema=settings.response_schema,
        json_object=True,
        images=True,
        files=True,
        audio=True,
        links=frozenset({"Image", "File", "Audio"}),
        media_types=_MEDIA_TYPES,
        sampling=frozenset({"temperature", "top_p", "max_tokens", "stop", "seed"}),
        extras=EXTRAS | frozenset(settings.extras),
    )


def maker_of(settings: GeminiChatSettings) -> str:
    """Return who makes the reasoning in replies: no other service takes it."""
    return f"gemini at {settings.host}"


def request_body(request: ChatRequest, settings: GeminiChatSettings, declarations: Declarations) -> bytes:
    """Write the body of one request.

    Raises ``ValueError`` for a message that has no form on the wire, and ``TypeError`` for an extra or a schema that
    is not JSON.
    """
    extras = dict(request.extras)
    searches = extras.pop("web_search", settings.web_search)
    fields: dict[str, Any] = {**settings.body, "contents": list(_contents(request.messages, settings))}
    system = [
        {"text": part.text}
        for message in request.messages
        if message.role == "system"
        for part in message.content
        if isinstance(part, Text)
    ]
    if system:
        fields["systemInstruction"] = {"parts": system}
    _add_tools(fields, request, settings, declarations, searches=searches)
    generation = _generation(request, settings)
    generation |= {name: extras.pop(name) for name in _GENERATION.intersection(extras)}
    if generation:
        fields["generationConfig"] = {**fields.get("generationConfig", {}), **generation}
    return encode_json(fields | extras)


def _add_tools(
    fields: dict[str, Any],
    request: ChatRequest,
    settings: GeminiChatSettings,
    declarations: Declarations,
    *,
    searches: bool,
) -> None:
    offered = request.offered
    tools: list[dict[str, Any]] = []
    if offered:
        tools.append({"functionDeclarations": [declarations.of(tool) for tool in offered]})
    if searches:
        tools.append({"googleSearch": {}})
    if tools:
        fields["tools"] = tools
    config: dict[str, Any] = {}
    if must_call(request):
        config["functionCallingConfig"] = {"mode": "ANY"}
        if len(offered) == 1:
            config["functionCallingConfig"]["allowedFunctionNames"] = [offered[0].name]
    if offered and searches and settings.through == "developer":
        # Without it the Gemini API refuses functions beside a search, and with it Vertex does.
        config["includeServerSideToolInvocations"] = True
    if config:
        fields["toolConfig"] = config


def _generation(request: ChatRequest, settings: GeminiChatSettings) -> dict[str, Any]:
    thinking = {
        "thinkingLevel": settings.thinking_level and settings.thinking_level.upper(),
        "thinkingBudget": settings.thinking_budget,
        "includeThoughts": settings.include_thoughts or None,
    }
    thinking = {name: value for name, value in thinking.items() if value is not None}
    options: dict[str, Any] = {
        "temperature": request.temperature,
        "topP": request.top_p,
        "maxOutputTokens": request.max_tokens,
        "stopSequences": list(request.stop) or None,
        "seed": request.seed,
        "thinkingConfig": thinking or None,
    }
    if request.response_schema is not None:
        options["responseMimeType"] = "application/json"
        if request.response_schema != {"type": "object"}:
            options["responseJsonSchema"] = narrowed(request.response_schema)
    fields: dict[str, Any] = {}
    add_sampling(fields, options)
    return fields


def _contents(messages: Any, settings: GeminiChatSettings) -> Iterator[dict[str, Any]]:
    names: dict[str, str] = {}
    """The name of the function that was called, by the call's identifier."""
    results: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            if not all(isinstance(part, Text) for part in message.content):
                raise ValueError("a message of the role 'system' holds text, and nothing else")
            continue
        told, rest = ([], message) if message.role == "assistant" else split_results(message)
        # Gemini wants all results of one turn together.
        results += [_result(part, names) for part in told]
        if rest is None:
            continue
        if results:
            yield {"role": "user", "parts": results}
            results = []
        if message.role == "assistant":
            parts = list(_assistant(message, settings, names))
            if parts:
                yield {"role": "model", "parts": parts}
        else:
            parts = [_part(part, message.role) for part in rest.content if part != Text("")]
            yield {"role": "user", "parts": parts or [{"text": ""}]}
    if results:
        yield {"role": "user", "parts": results}


def _assistant(message: Message, settings: GeminiChatSettings, names: dict[str, str]) -> Iterator[dict[str, Any]]:
    signature: dict[str, Any] = {}
    unsigned = {} if _WITHOUT_SIGNATURES.search(settings.model) else {SIGNATURE: _UNSIGNED}
    """Of the first call of a turn; Gemini gives the others no signature."""
    for part in message.content:
        if isinstance(part, Reasoning):
            data = part.data
            if isinstance(data, Mapping) and _is_ours(part, maker_of(settings)):
                if data.keys() == {SIGNATURE}:
                    signature = dict(data)
                    continue
                yield dict(data)
        elif isinstance(part, Text):
            if part.text:
                yield {"text": part.text, **signature}
        elif isinstance(part, ToolCall):
            names[part.id] = _name(part.name)
            given = {} if part.id.startswith(MADE_ID) else {"id": part.id}
            call = {**given, "name": _name(part.name), "args": _arguments(part.arguments)}
            yield {"functionCall": call, **(signature or unsigned)}
            unsigned = {}
        else:
            raise no_place_for(part, "assistant")
        signature = {}


def _is_ours(part: Reasoning, maker: str) -> bool:
    return part.service == maker if part.service else not _SIGNED.isdisjoint(part.data.keys())


def _arguments(arguments: str) -> Any:
    """Return the arguments as JSON; what a model wrote wrongly goes back as a text in an object."""
    if not arguments.strip():
        return {}
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return {"arguments": arguments}
    return value if isinstance(value, dict) else {"arguments": value}


def _result(result: ToolResult, names: Mapping[str, str]) -> dict[str, Any]:
    value: Any = result.content
    with suppress(msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        value = msgspec.json.decode(value)
    response = {"error": value} if result.error else value if isinstance(value, dict) else {"result": value}
    given = {} if result.id.startswith(MADE_ID) else {"id": result.id}
    return {"functionResponse": {**given, "name": names.get(result.id) or _name(result.name), "response": response}}


def _part(part: Part, role: str) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"text": part.text}
    if not isinstance(part, Image | File | Audio):
        raise no_place_for(part, role)
    check_attached(part)
    if part.data is not None:
        data = base64.b64encode(part.data).decode("ascii")
        return {"inlineData": {"mimeType": part.media_type, "data": data}}
    address = urlsplit(part.url or "")
    if address.hostname in _OWN_ADDRESSES:
        return {"fileData": {"fileUri": part.url}}
    # The address says better what it is than a default does.
    return {"fileData": {"fileUri": part.url, "mimeType": mimetypes.guess_type(address.path)[0] or part.media_type}}


def _name(name: str) -> str:
    """Write a name with the letters that Gemini allows in one, at most 128, the first a letter or ``_``."""
    name = _UNFIT_IN_NAMES.sub("_", name)[:127]
    return name if name[:1].isalpha() or name[:1] == "_" else f"_{name}"
