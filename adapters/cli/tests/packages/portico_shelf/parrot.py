"""A chat service that does what the last message says: it calls, dawdles, fails, or says the same again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from portico import ChatCapabilities, ChatDelta, ChatReply, ChatRequest, Citation, Message, Source, ToolCall, Usage
from portico.errors import ContextOverflow, ServiceUnavailable


@dataclass(frozen=True)
class ParrotSettings:
    tools: bool = True
    sources: bool = False
    most: int = 1_000


class Parrot:
    name = "parrot"

    def __init__(self, settings: ParrotSettings, services: Any) -> None:
        self.most = settings.most
        self.capabilities = ChatCapabilities(tools=settings.tools, sources=settings.sources)

    async def complete(self, request: ChatRequest) -> ChatReply:
        return [delta async for delta in self.stream(request)][-1].reply

    async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        request.check(self.capabilities, self.name)
        if len(request.messages) > self.most:
            raise ContextOverflow("The parrot cannot remember so much.")
        last = request.messages[-1]
        said = next(message.text for message in reversed(request.messages) if message.role == "user")
        call, text = None, f"You said: {said}"
        if last.role == "tool":
            text = f"It gave {last.content[0].content}."
        elif said.startswith("call "):
            name, _, arguments = said.removeprefix("call ").partition(" ")
            text, call = "", ToolCall("c1", name, arguments or "{}")
        elif said == "history":
            text = json.dumps([[message.role, message.text] for message in request.messages])
        elif said == "tools":
            text = " ".join(tool.name for tool in request.offered)
        elif said == "system":
            text = next((message.text for message in request.messages if message.role == "system"), "none")
        elif said == "sources":
            text = " ".join(
                f"{part.name} [{part.number}]"
                for message in request.messages
                for part in message.content
                if isinstance(part, Source)
            )
        elif said == "cite":
            text = "It is so [1], and so [77]."
        elif said.startswith("say "):
            text = json.loads(said.removeprefix("say "))
        elif said == "fail":
            raise ServiceUnavailable("The parrot is asleep.")
        elif said == "crash":
            raise RuntimeError("the parrot fell off")
        elif said == "slow":
            yield ChatDelta("This takes ")
            Path("slow").touch()
            for _ in range(2_500):
                if Path("on").exists():
                    break
                await asyncio.sleep(0.02)
        for start in range(0, len(text), 5):
            await asyncio.sleep(0)
            yield ChatDelta(text[start : start + 5])
        page = Citation(1, "Parrots", "https://parrots.example/", "It is so.")
        found = (page, page) if said == "web" else ()
        parts = [call] if call else [text]
        message = Message.of("assistant", *parts)
        finish = "tool_calls" if call else "stop"
        yield ChatDelta(reply=ChatReply(message, finish, Usage(3, 2), "parrot-1", self.name, found))
