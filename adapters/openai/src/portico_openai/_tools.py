"""Tools as they go on the wire, written once and used again with every request."""

from __future__ import annotations

from typing import Any

import msgspec

from portico import Tool
from portico_openai._json import encoded

_LISTS = 16
_TOOLS = 2048


class ToolTexts:
    """Keep the JSON of tools by identity.

    >>> texts = ToolTexts()
    >>> tools = (Tool("Clock-Now", "Tells the time.", {"type": "object", "properties": {}}),)
    >>> texts.of(tools) is texts.of(tools)
    True

    A kernel sends the same `Tool` objects with request after request, and mostly the same tuple of them. Tools are
    values: what they hold may not be changed once they were sent. The objects are kept as well as their texts, so
    that no other object can take their place in memory; of both the oldest go first.
    """

    def __init__(self) -> None:
        self._lists: dict[int, tuple[tuple[Tool, ...], msgspec.Raw]] = {}
        self._tools: dict[int, tuple[Tool, bytes]] = {}

    def of(self, tools: tuple[Tool, ...]) -> msgspec.Raw:
        """Return the JSON array of ``tools``; raises ``TypeError`` where a schema is not JSON."""
        known = self._lists.get(id(tools))
        if known is None:
            text = msgspec.Raw(b"[" + b",".join([self._text(tool) for tool in tools]) + b"]")
            known = self._lists[id(tools)] = (tools, text)
            if len(self._lists) > _LISTS:
                del self._lists[next(iter(self._lists))]
        return known[1]

    def _text(self, tool: Tool) -> bytes:
        known = self._tools.get(id(tool))
        if known is None:
            known = self._tools[id(tool)] = (tool, _text_of(tool))
            if len(self._tools) > _TOOLS:
                del self._tools[next(iter(self._tools))]
        return known[1]


def _text_of(tool: Tool) -> bytes:
    function: dict[str, Any] = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    if tool.strict:
        function["strict"] = True
    return encoded({"type": "function", "function": function})
