"""What tests look for in requests and events."""

from __future__ import annotations

from collections.abc import Iterable

from portico import ChatRequest, ToolResult
from portico.plans import Event, RunEvent

__all__ = ["tool_results", "words_shown"]


def tool_results(request: ChatRequest) -> list[ToolResult]:
    """Return the results of calls that a model is told of, in their order."""
    return [part for message in request.messages for part in message.content if isinstance(part, ToolResult)]


def words_shown(events: Iterable[RunEvent]) -> str:
    """Return what a user has seen of an answer by its pieces."""
    return "".join(event.text for event in events if isinstance(event, Event.TextDelta))
