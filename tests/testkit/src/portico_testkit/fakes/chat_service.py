"""A chat service for tests that says what it was told to say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import TypeAlias

from portico import (
    ChatCapabilities,
    ChatDelta,
    ChatReply,
    ChatRequest,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolCallDelta,
    Usage,
)

__all__ = ["Line", "Said", "ScriptedChat"]

Said: TypeAlias = str | Part | Sequence[str | Part] | ChatReply
"""A reply, or what one is made of: its words, its tool call, or several of those in order."""

Line: TypeAlias = Said | Exception | Callable[[ChatRequest], Said]
"""One line of a script: a reply, an error to raise, or a function that makes a reply."""


class ScriptedChat:
    """Answer each call with the next line of a script, whole or in pieces of ``piece`` characters.

    >>> import asyncio
    >>> from portico import ChatRequest, Message
    >>> chat = ScriptedChat(ToolCall("1", "Clock-Now", '{"town": "Oslo"}'), "Noon.", usage=Usage(9, 3))
    >>> request = ChatRequest([Message.of("user", "When is it in Oslo?")])
    >>> reply = asyncio.run(chat.complete(request))
    >>> reply.finish, reply.tool_calls, reply.usage.output_tokens
    ('tool_calls', (ToolCall(id='1', name='Clock-Now', arguments='{"town": "Oslo"}'),), 3)
    >>> asyncio.run(chat.complete(request)).text
    'Noon.'
    >>> [asked.messages[0].text for asked in chat.requests]
    ['When is it in Oslo?', 'When is it in Oslo?']

    ``requests`` keeps what was asked. A call after the last line raises ``AssertionError``, unless ``repeat`` is
    true: then the last line is said again and again. Options outside ``capabilities`` are refused, of which there
    are none by default. What the script says is said, whatever was asked: a call of a tool that was not offered too.
    Each reply has ``usage``, except one that the script gives whole. Streamed, the summaries of `Reasoning` parts
    come as ``reasoning``, calls as their id and name and then their arguments.
    """

    def __init__(
        self,
        *script: Line,
        capabilities: ChatCapabilities | None = None,
        name: str = "scripted",
        repeat: bool = False,
        piece: int = 7,
        usage: Usage | None = None,
    ) -> None:
        self.name = name
        self.capabilities = capabilities or ChatCapabilities()
        self.requests: list[ChatRequest] = []
        self._script = script
        self._repeat = repeat
        self._piece = piece
        self._usage = usage or Usage()

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the next reply."""
        request.check(self.capabilities, self.name)
        reply = self._next(request)
        await asyncio.sleep(0)
        return reply

    async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        """Yield the next reply in pieces."""
        request.check(self.capabilities, self.name)
        reply = self._next(request)
        for delta in self._deltas(reply):
            await asyncio.sleep(0)
            yield delta
        yield ChatDelta(reply=reply)

    def _next(self, request: ChatRequest) -> ChatReply:
        position = len(self.requests)
        self.requests.append(request)
        if position >= len(self._script) and not (self._repeat and self._script):
            raise AssertionError(f"the script has {len(self._script)} lines; this is call {position + 1}")
        line = self._script[min(position, len(self._script) - 1)]
        if isinstance(line, Exception):
            raise line
        said = line(request) if callable(line) else line
        if isinstance(said, ChatReply):
            return said
        parts = said if isinstance(said, Sequence) and not isinstance(said, str) else (said,)
        message = Message.of("assistant", *parts)
        calls = any(isinstance(part, ToolCall) for part in message.content)
        return ChatReply(message, "tool_calls" if calls else "stop", self._usage, model=self.name, service=self.name)

    def _deltas(self, reply: ChatReply) -> Iterator[ChatDelta]:
        index = 0
        for part in reply.message.content:
            match part:
                case Text(text):
                    yield from (ChatDelta(piece) for piece in self._pieces(text))
                case Reasoning(_, str(summary)):
                    yield from (ChatDelta(reasoning=piece) for piece in self._pieces(summary))
                case ToolCall(id, name, arguments):
                    yield ChatDelta(tool_call=ToolCallDelta(index, id, name))
                    for piece in self._pieces(arguments):
                        yield ChatDelta(tool_call=ToolCallDelta(index, arguments=piece))
                    index += 1

    def _pieces(self, text: str) -> Iterator[str]:
        return (text[start : start + self._piece] for start in range(0, len(text), self._piece))
