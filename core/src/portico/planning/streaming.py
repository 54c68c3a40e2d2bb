"""Asking a chat service for a reply whose words may be the answer: piece by piece, within bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from portico.chat import ChatReply, ChatRequest, render_sources
from portico.errors import PlanError, ResponseInvalid
from portico.plans.task import ChatUsed, Emit, TextDelta
from portico.ports.chat_service import ChatService

__all__ = ["AnswerWords", "ask_streamed"]

_LONGEST = 1_000_000


async def ask_streamed(
    chat: ChatService,
    request: ChatRequest,
    emit: Emit,
    *,
    on_text: Callable[[str], None] = lambda text: None,
    longest: int = _LONGEST,
) -> ChatReply:
    """Return a planner's reply as `portico.planning.asking.ask` does, and hand its words on as they come.

    ``on_text`` is called with each piece; whether they are words of the answer is for the planner to tell.
    Raises ``PlanError`` for a reply that goes on for more than ``longest`` characters, calls of tools included, and
    ``ResponseInvalid`` for a stream that ends without a reply. The reply may be cut short: see its ``finish``.
    """
    if not chat.capabilities.sources:
        request = replace(request, messages=render_sources(request.messages))
    reply: ChatReply | None = None
    length = 0
    stream: Any = chat.stream(request)
    try:
        async for delta in stream:
            length += len(delta.text) + (len(delta.tool_call.arguments) if delta.tool_call is not None else 0)
            if length > longest:
                raise PlanError(
                    f"The reply of the chat service {chat.name!r} did not end within {longest:,} characters; it was "
                    "stopped. Bound it with max_tokens, or ask another model."
                )
            if delta.text:
                on_text(delta.text)
            reply = delta.reply or reply
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
    if reply is None:
        raise ResponseInvalid(f"The chat service {chat.name!r} ended its stream without a reply.")
    emit(ChatUsed(reply.service or chat.name, reply.model, reply.usage))
    return reply


class AnswerWords:
    """Show the words of an answer as they come, without the blank space around them.

    >>> shown = []
    >>> words = AnswerWords(lambda event: shown.append(event.text))
    >>> for piece in (" ", " Two ", "words. ", " "):
    ...     words.feed(piece)
    >>> shown, words.text
    (['Two', ' words.'], 'Two words.')

    What was shown is ``text``, to the letter: the answer's words are those that people saw. ``before`` is shown
    before the first of them, where others have been seen already.
    """

    def __init__(self, emit: Emit, *, before: str = "") -> None:
        self._emit = emit
        self._before = before
        self._blank = ""
        self.text = ""

    def feed(self, piece: str) -> None:
        """Take more of the text."""
        whole = self._blank + piece
        if not self.text:
            whole = whole.lstrip()
        words = whole.rstrip()
        self._blank = whole[len(words) :]
        if words:
            self._emit(TextDelta(words if self.text else self._before + words))
            self.text += words
