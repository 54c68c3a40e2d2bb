"""The chat service."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from portico import ChatCapabilities, ChatDelta, ChatReply, ChatRequest, Services

from portico_acme._errors import vendor_errors
from portico_acme._vendor import VendorClient
from portico_acme._wire import documents_of, messages_of, reply_of
from portico_acme.config import AcmeSettings

__all__ = ["AcmeChat"]


class AcmeChat:
    """Answer by quoting the sentence of the sources that fits the question best.

    >>> import asyncio
    >>> from portico import Message, Source
    >>> source = Source(1, "An anvil is heavy. Rocket skates need a helmet.", name="Catalogue")
    >>> request = ChatRequest([Message.of("user", "What do rocket skates need?", source)])
    >>> service = AcmeChat(AcmeSettings(), None)
    >>> asyncio.run(service.complete(request)).text
    '“Rocket skates need a helmet.” [1]'

    What it can do is in ``capabilities``; anything else is refused before it is sent. ``client`` is used instead of one
    that it makes itself.
    """

    name = "acme"
    capabilities = ChatCapabilities(sources=True)

    def __init__(
        self,
        settings: AcmeSettings,
        services: Services | None,
        *,
        client: VendorClient | None = None,
    ) -> None:
        self._settings = settings
        self._client = client

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the whole reply."""
        return self._reply("".join([piece async for piece in self._pieces(request)]), request)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """Yield the reply in pieces, then the whole."""
        text = ""
        async with aclosing(self._pieces(request)) as pieces:
            async for piece in pieces:
                text += piece
                yield ChatDelta(piece)
        yield ChatDelta(reply=self._reply(text, request))

    async def aclose(self) -> None:
        """Close the client, where there is one."""
        if self._client is not None:
            await self._client.aclose()

    async def _pieces(self, request: ChatRequest) -> AsyncGenerator[str, None]:
        request.check(self.capabilities, self.name)
        with vendor_errors(self.name):
            stream = self._connected().stream(messages_of(request), documents_of(request))
            # Whoever gives the reply up ends it at the vendor too.
            async with aclosing(stream) as pieces:
                async for piece in pieces:
                    yield piece

    def _connected(self) -> VendorClient:
        # Made when it is first needed: a factory opens nothing.
        if self._client is None:
            key = self._settings.api_key
            self._client = VendorClient(self._settings.model, None if key is None else key.reveal())
        return self._client

    def _reply(self, text: str, request: ChatRequest) -> ChatReply:
        return reply_of(text, request, model=self._settings.model, service=self.name)
