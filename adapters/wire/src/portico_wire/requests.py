"""What the requests of all chat services have in common: options, tool results, and what has no form on the wire."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from portico import Audio, ChatRequest, File, Image, Message, Part, ToolResult


def add_sampling(fields: dict[str, Any], options: Mapping[str, Any]) -> None:
    """Add those options that are set; raises ``ValueError`` for a number that JSON cannot hold."""
    for name, option in options.items():
        if isinstance(option, float) and not math.isfinite(option):
            raise ValueError(f"{name} is a finite number, not {option}")
        if option is not None:
            fields[name] = option


def must_call(request: ChatRequest) -> bool:
    """Tell whether the model must call a tool; raises ``ValueError`` where none is offered."""
    if request.tool_choice.mode != "required":
        return False
    if not request.offered:
        raise ValueError("the tool choice is 'required', but no tool is offered")
    return True


def split_results(message: Message) -> tuple[list[ToolResult], Message | None]:
    """Return the tool results in a message, and the message without them; raises ``ValueError`` for what cannot be."""
    results = [part for part in message.content if isinstance(part, ToolResult)]
    rest = message
    if results:
        rest = replace(message, content=tuple(part for part in message.content if not isinstance(part, ToolResult)))
    if message.role == "tool" and (rest.content or not results):
        raise ValueError("a message of the role 'tool' holds tool results, and nothing else")
    return results, rest if rest.content or not results else None


def check_attached(part: Image | File | Audio) -> None:
    """Raise ``ValueError`` for a part that has both data and a link, or neither."""
    if (part.data is None) == (part.url is None):
        raise ValueError(f"{type(part).__name__} has either data or a url")


def no_place_for(part: Part, role: str) -> ValueError:
    """Return the error for a part that has no form in a message of this role."""
    return ValueError(f"a message of the role {role!r} cannot hold the part {type(part).__name__}")
