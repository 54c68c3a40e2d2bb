"""What the requests and replies of Chat Completions and of Responses have in common."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from portico import ChatRequest, Citation, File, Image, Message, Part, Text, Usage
from portico_openai.config import OpenAIChatSettings
from portico_wire.requests import check_attached

EXTRAS = frozenset(
    {
        "logprobs",
        "metadata",
        "parallel_tool_calls",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning_effort",
        "safety_identifier",
        "service_tier",
        "store",
        "top_logprobs",
        "user",
        "verbosity",
        "web_search",
    }
)
"""Options of OpenAI that both APIs have."""

_UNFIT_IN_NAMES = re.compile(r"[^0-9A-Za-z_-]")


class InputDetails(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class OutputDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


def usage_of(
    taken: int | None,
    given: int | None,
    of_taken: InputDetails | None,
    of_given: OutputDetails | None,
    cost: float | None,
) -> Usage:
    """Return the usage of a reply from the numbers of tokens, what they are made of, and the cost."""
    return Usage(
        taken or 0,
        given or 0,
        (of_taken and of_taken.cached_tokens) or 0,
        (of_given and of_given.reasoning_tokens) or 0,
        (of_taken and of_taken.cache_write_tokens) or 0,
        cost,
    )


def maker_of(settings: OpenAIChatSettings) -> str:
    """Return who makes the reasoning in replies: services of one protocol do not take each other's."""
    return f"openai at {settings.host}"


def fit_name(name: str) -> str:
    """Write a name with the letters that services allow in one, at most 64."""
    return _UNFIT_IN_NAMES.sub("_", name)[:64]


def fit_description(description: str, settings: OpenAIChatSettings) -> str:
    """Write a tool's description at the length that OpenAI takes."""
    cut = settings.is_openai and len(description) > 1_024
    return f"{description[:1_023]}…" if cut else description


def url_of(part: Image | File) -> str:
    """Return the link to a part, or a URL that holds its bytes; raises ``ValueError`` for both, and for neither."""
    check_attached(part)
    return part.url or f"data:{part.media_type};base64,{base64.b64encode(part.data or b'').decode('ascii')}"


def content_of(message: Message, write: Callable[[Part, str], dict[str, Any]]) -> Any:
    """Write the content of a message: words as one text, anything else as a list of parts."""
    if all(isinstance(part, Text) for part in message.content):
        return message.text
    return [write(part, message.role) for part in message.content]


def reply_format(request: ChatRequest, settings: OpenAIChatSettings) -> tuple[str, dict[str, Any]] | None:
    """Return the type of the format of the reply, and what belongs to it; None for plain text."""
    if request.response_schema is None:
        return None
    # OpenAI refuses json_object where no message has the word.
    asks = settings.takes_json_object and any("json" in message.text.lower() for message in request.messages)
    if asks and request.response_schema == {"type": "object"}:
        return "json_object", {}
    about: dict[str, Any] = {"name": fit_name(request.response_name) or "reply", "schema": request.response_schema}
    return "json_schema", about | ({"strict": True} if request.response_strict else {})


def citations_of(annotations: Iterable[Any]) -> tuple[Citation, ...]:
    """Return the pages that annotations of the type ``url_citation`` name, numbered by link.

    OpenRouter has the words of the page too; OpenAI has none.
    """
    numbers: dict[str, int] = {}
    found: dict[Citation, None] = {}
    for annotation in annotations:
        if isinstance(annotation, dict) and annotation.get("type") == "url_citation":
            # Chat Completions puts the members into an object of the same name.
            inside = annotation.get("url_citation")
            about = inside if isinstance(inside, dict) else annotation
            link, title, content = (
                each if isinstance(each, str) else "" for each in map(about.get, ("url", "title", "content"))
            )
            if link:
                number = numbers.setdefault(link, len(numbers) + 1)
                found[Citation(number, title or None, link, content)] = None
    return tuple(found)
