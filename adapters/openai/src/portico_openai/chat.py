"""The ChatService on OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from portico import ChatDelta, ChatReply, ChatRequest
from portico.errors import ResponseInvalid
from portico.plugins import Services
from portico_openai._connection import OpenAIConnection
from portico_openai._replies import ReplyBuilder, decode_piece
from portico_openai._wire import capabilities, maker_of, request_body
from portico_openai.config import OpenAIChatSettings
from portico_wire.connection import Incoming
from portico_wire.errors import invalid
from portico_wire.events import EventReader

if TYPE_CHECKING:
    import httpx2

_PATH = "/chat/completions"
_DONE = b"[DONE]"


class OpenAIChat:
    """Complete conversations with OpenAI, or with any server that speaks its protocol.

    >>> from portico_openai.config import OpenAIChatSettings
    >>> chat = OpenAIChat(OpenAIChatSettings(model="qwen3:8b", base_url="http://127.0.0.1:11434/v1"))
    >>> chat.capabilities.tools, chat.capabilities.strict
    (True, False)

    Nothing is opened before the first call. Calls may run concurrently; cancelling one, or closing a stream, closes
    its connection at once. Failed connections and answers of 408, 409, 429 and 5xx are tried again as the settings
    say, a stream never once some of it was delivered. Whoever makes a service closes it with `aclose`; an injected
    HTTP client stays open. Raises ``UnsupportedOption`` and the ``ServiceError`` that fits.
    """

    def __init__(
        self,
        settings: OpenAIChatSettings,
        services: Services | None = None,
        *,
        http_client: httpx2.AsyncClient | None = None,
    ) -> None:
        self.name = "openai"
        self.capabilities = capabilities(settings)
        self._settings = settings
        self._connection = OpenAIConnection(settings, "Chat service", http_client)

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the whole reply."""
        builder = ReplyBuilder(self._connection.peer, self.name, maker_of(self._settings))
        with self._connection.peer.hiding():
            text = await self._connection.fetch(_PATH, self._body(request, stream=False))
            builder.add(decode_piece(text, self._connection.peer, "a reply"))
            builder.end()
            return builder.reply()

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """Yield the reply in pieces: text, reasoning and tool calls as they come, then the reply itself."""
        peer = self._connection.peer
        builder = ReplyBuilder(peer, self.name, maker_of(self._settings))
        with peer.hiding():
            async with self._connection.open(_PATH, self._body(request, stream=True)) as incoming:
                if incoming.content_type == "application/json":
                    # A server that does not stream answers whole.
                    for delta in builder.add(decode_piece(await incoming.rest(), peer, "a reply")):
                        yield delta
                else:
                    reader = EventReader()
                    over = False
                    while not over:
                        data = await incoming.read(self._settings.stream_timeout)
                        over = not data
                        for event in filter(None, reader.feed(data) if data else reader.end()):
                            if event == _DONE:
                                over = True
                                builder.finish = builder.finish or "stop"
                                break
                            try:
                                piece = decode_piece(event, peer, "a piece of a stream")
                            except ResponseInvalid as error:
                                raise (error if data else self._cut_off_error(incoming, builder)) from error.__cause__
                            for delta in builder.add(piece):
                                yield delta
                    if builder.finish is None:
                        raise self._cut_off_error(incoming, builder)
                for delta in builder.end():
                    yield delta
                reply = builder.reply()
                await incoming.drain()
        yield ChatDelta(reply=reply)

    async def aclose(self) -> None:
        """Close the connections; a second time does nothing."""
        await self._connection.aclose()

    def _body(self, request: ChatRequest, *, stream: bool) -> bytes:
        request.check(self.capabilities, self.name)
        return request_body(request, self._settings, stream=stream)

    def _cut_off_error(self, incoming: Incoming, builder: ReplyBuilder) -> ResponseInvalid:
        peer = self._connection.peer
        if not builder.started:
            return invalid(peer, "sent no stream of events", incoming.beginning)
        size = f"{builder.characters:,} characters"
        return invalid(peer, f"ended its stream before the reply was complete: {size} of text had come.")
