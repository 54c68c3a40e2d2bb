"""The ChatService port."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from portico.chat import ChatCapabilities, ChatDelta, ChatReply, ChatRequest

__all__ = ["ChatService"]


class ChatService(Protocol):
    """Completes a conversation.

    Behaviour: an option outside ``capabilities`` raises ``UnsupportedOption`` before anything is sent. Calls
    may run concurrently on one service. Cancelling a call stops it at the vendor too.
    Errors: a subclass of ``ServiceError``, whose cause is the vendor's exception; ``ConfigurationError`` where a
    setting is wrong.
    """

    name: str
    """The registered name, as shown to people ("extractive")."""

    capabilities: ChatCapabilities

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the whole reply."""
        ...

    def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        """Yield the reply in pieces; the pieces' texts joined are the reply's text.

        The last delta carries the ``reply``, equal to what `complete` would have returned. As an asynchronous
        generator, the stream has an ``aclose``, which stops the call and gives its connection back. It may be called
        before the first piece, between two, after the last, and again. A stream that is forgotten ends likewise.
        """
        ...
