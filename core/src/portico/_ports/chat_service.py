"""The ChatService port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from portico._chat.messages import ChatCapabilities, ChatDelta, ChatReply, ChatRequest


class ChatService(Protocol):
    """Completes a conversation.

    Behaviour: an option outside ``capabilities`` raises ``UnsupportedOption`` before anything is sent. Calls may run
    concurrently. Cancelling a call also stops it at the vendor.
    A service may have ``knows_cost``, which is false where the `Usage.cost` of its replies will be None: a budget in
    money refuses it before it is asked.
    Errors: a ``ServiceError`` whose cause is the vendor's exception; ``ConfigurationError`` for a wrong setting.
    """

    name: str
    """The registered name ("extractive")."""

    capabilities: ChatCapabilities

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the whole reply."""
        ...

    def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        """Yield the reply in pieces; the joined texts of the pieces are the reply's text.

        The last delta has the ``reply``, as `complete` returns it. The stream is an asynchronous generator: ``aclose``
        stops the call and releases its connection, at any time and also twice. A dropped stream ends likewise.
        """
        ...
