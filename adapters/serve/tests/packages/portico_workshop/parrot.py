"""A chat service that does what the last message says: it calls a function, dawdles, fails, or says the same again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from portico import ChatCapabilities, ChatDelta, ChatReply, ChatRequest, Message, ToolCall, Usage
from portico.errors import ServiceUnavailable


class Parrot:
    name = "parrot"

    def __init__(self, settings: None, services: Any) -> None:
        self.capabilities = ChatCapabilities(tools=True)

    async def complete(self, request: ChatRequest) -> ChatReply:
        reply = [delta async for delta in self.stream(request)][-1].reply
        assert reply is not None
        return reply

    async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        last = request.messages[-1]
        said = next(message.text for message in reversed(request.messages) if message.role == "user")
        call, text = None, f"You said: {said}"
        if last.role == "tool":
            text = f"It gave {last.content[0].content}. [1]"
        elif said.startswith("call "):
            name, _, arguments = said.removeprefix("call ").partition(" ")
            text, call = "", ToolCall("c1", name, arguments or "{}")
        elif said == "fail":
            raise ServiceUnavailable("The parrot is asleep.")
        elif said == "slow":
            yield ChatDelta("This takes ")
            for _ in range(4_000):
                if Path("on").exists():
                    break
                await asyncio.sleep(0.01)
        for start in range(0, len(text), 5):
            await asyncio.sleep(0)
            yield ChatDelta(text[start : start + 5])
        message = Message.of("assistant", *([call] if call else [text]))
        yield ChatDelta(reply=ChatReply(message, "tool_calls" if call else "stop", Usage(3, 2), "parrot-1", self.name))
