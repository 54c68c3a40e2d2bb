"""The ChatService on Anthropic's messages."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from portico import ChatRequest, Message
from portico.plugins import Services
from portico_anthropic._connection import AnthropicConnection
from portico_anthropic._event_stream import BedrockEvents
from portico_anthropic._replies import MessageReader
from portico_anthropic._wire import capabilities, maker_of, request_body
from portico_anthropic.config import AnthropicChatSettings
from portico_wire.chat import ReplyReader, WireChat
from portico_wire.events import EventReader

if TYPE_CHECKING:
    import httpx2


class AnthropicChat(WireChat):
    """Complete conversations with Claude: at Anthropic, on Bedrock, on Vertex, or with a server of its protocol.

    >>> from portico_anthropic.config import AnthropicChatSettings
    >>> chat = AnthropicChat(AnthropicChatSettings(model="claude-sonnet-5-5"))
    >>> chat.capabilities.strict, sorted(chat.capabilities.sampling)
    (True, ['max_tokens', 'stop'])

    Nothing is opened before the first call. Calls may run concurrently; cancelling one, or closing a stream, closes
    its connection at once. Failed connections and answers of 408, 409, 429 and 5xx are tried again as the settings
    say, a stream never once some of it was delivered. A turn that the service pauses, as long searches do, is
    continued, eight times at most. Whoever makes a service closes it with `aclose`; an injected HTTP client stays open.
    Raises ``ConfigurationError`` where a library for Bedrock or Vertex is missing, ``UnsupportedOption`` and the
    ``ServiceError`` that fits.
    """

    name = "anthropic"

    def __init__(
        self,
        settings: AnthropicChatSettings,
        services: Services | None = None,
        *,
        http_client: httpx2.AsyncClient | None = None,
    ) -> None:
        super().__init__(AnthropicConnection(settings, "Chat service", http_client), settings.stream_timeout)
        self.capabilities = capabilities(settings)
        self._settings = settings

    def _path(self, *, stream: bool) -> str:
        return self._settings.path(stream=stream)

    def _body(self, request: ChatRequest, *, stream: bool) -> bytes:
        return request_body(request, self._settings, stream=stream)

    def _reader(self, request: ChatRequest) -> ReplyReader:
        return MessageReader(self._connection.peer, self.name, maker_of(self._settings))

    def _events(self) -> EventReader:
        return BedrockEvents(self._connection.peer) if self._settings.through == "bedrock" else super()._events()

    def _further(self, request: ChatRequest, reader: ReplyReader, *, stream: bool) -> bytes | None:
        if not (isinstance(reader, MessageReader) and reader.go_on()):
            return None
        so_far = Message("assistant", tuple(reader.parts()))
        return self._body(replace(request, messages=(*request.messages, so_far)), stream=stream)
