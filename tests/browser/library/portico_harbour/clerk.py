"""A chat service that books, and else says what a file has, or that it heard."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from portico import ChatCapabilities, ChatDelta, ChatReply, ChatRequest, Message, ToolCall, Usage

_BOOKING = {"crossing": "09:00 to Oslo", "seats": "row 7, by the window"}


class Clerk:
    """Calls ``harbour-Book`` where it is asked to book; says what ``answer.md`` has, where there is one."""

    name = "clerk"

    def __init__(self, settings: None, services: Any) -> None:
        self.capabilities = ChatCapabilities(tools=True)

    async def complete(self, request: ChatRequest) -> ChatReply:
        return [delta async for delta in self.stream(request)][-1].reply or _reply("")

    async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        last = request.messages[-1]
        answer = Path("answer.md")
        if last.role == "tool":
            refused = "ticket" not in str(last.content[0])
            text = "Nothing is booked." if refused else "Your seats are booked: **ticket 4711**. Have a good trip."
        elif "book" in last.text.lower():
            yield ChatDelta(reply=_reply(ToolCall("c1", "harbour-Book", json.dumps(_BOOKING))))
            return
        else:
            text = answer.read_text("utf-8") if answer.exists() else f"You said: {last.text}"
        for start in range(0, len(text), 9):
            await asyncio.sleep(0.005)
            yield ChatDelta(text[start : start + 9])
        yield ChatDelta(reply=_reply(text))


def _reply(part: str | ToolCall) -> ChatReply:
    finish = "tool_calls" if isinstance(part, ToolCall) else "stop"
    return ChatReply(Message.of("assistant", part), finish, Usage(120, 30), "clerk-1", "clerk")
