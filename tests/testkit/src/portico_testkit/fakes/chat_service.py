"""A chat service for tests that says what it was told to say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

from portico.chat import ChatCapabilities, ChatDelta, ChatReply, ChatRequest, Message, check_request

__all__ = ["Line", "ScriptedChat"]

Line: TypeAlias = str | ChatReply | Exception | Callable[[ChatRequest], str | ChatReply]
"""One line of a script: a reply, its text, an error to raise, or a function that makes a reply."""


class ScriptedChat:
    """Answer each call with the next line of a script, whole or in pieces of ``piece`` characters.

    >>> import asyncio
    >>> from portico.chat import ChatRequest, Message
    >>> chat = ScriptedChat("Noon.", "Midnight.")
    >>> asyncio.run(chat.complete(ChatRequest([Message.of("user", "When?")]))).text
    'Noon.'
    >>> [request.messages[0].text for request in chat.requests]
    ['When?']

    ``requests`` keeps what was asked. A call after the last line raises ``AssertionError``, unless ``repeat`` is
    true: then the last line is said again and again. Options outside ``capabilities`` are refused.
    """

    def __init__(
        self,
        *script: Line,
        capabilities: ChatCapabilities | None = None,
        name: str = "scripted",
        repeat: bool = False,
        piece: int = 7,
    ) -> None:
        self.name = name
        self.capabilities = capabilities or ChatCapabilities()
        self.requests: list[ChatRequest] = []
        self._script = script
        self._repeat = repeat
        self._piece = piece

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the next reply."""
        check_request(request, self.capabilities, self.name)
        reply = self._next(request)
        await asyncio.sleep(0)
        return reply

    async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        """Yield the next reply in pieces."""
        check_request(request, self.capabilities, self.name)
        reply = self._next(request)
        for start in range(0, len(reply.text), self._piece):
            await asyncio.sleep(0)
            yield ChatDelta(reply.text[start : start + self._piece])
        yield ChatDelta(reply=reply)

    def _next(self, request: ChatRequest) -> ChatReply:
        position = len(self.requests)
        self.requests.append(request)
        if position >= len(self._script) and not (self._repeat and self._script):
            raise AssertionError(f"the script has {len(self._script)} lines; this is call {position + 1}")
        line = self._script[min(position, len(self._script) - 1)]
        if isinstance(line, Exception):
            raise line
        said = line if isinstance(line, str | ChatReply) else line(request)
        if isinstance(said, ChatReply):
            return said
        return ChatReply(Message.of("assistant", said), model=self.name, service=self.name)
