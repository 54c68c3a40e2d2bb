"""The ChatService on Gemini's generateContent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from portico import ChatRequest
from portico.plugins import Services
from portico_gemini._connection import GeminiConnection
from portico_gemini._replies import GeminiReader
from portico_gemini._schemas import Declarations
from portico_gemini._wire import capabilities, maker_of, request_body
from portico_gemini.config import GeminiChatSettings
from portico_wire.chat import ReplyReader, WireChat

if TYPE_CHECKING:
    import httpx2


class GeminiChat(WireChat):
    """Complete conversations with Gemini.

    >>> from portico_gemini.config import GeminiChatSettings
    >>> chat = GeminiChat(GeminiChatSettings(model="gemini-3.8-flash"))
    >>> chat.capabilities.audio, chat.capabilities.strict
    (True, False)

    Nothing is opened before the first call. Calls may run concurrently; cancelling one, or closing a stream, closes
    its connection at once. Failed connections and answers of 408, 409, 429 and 5xx are tried again as the settings
    say, a stream never once some of it was delivered. Whoever makes a service closes it with `aclose`; an injected
    HTTP client stays open. Raises ``UnsupportedOption`` and the ``ServiceError`` that fits.
    """

    name = "gemini"

    def __init__(
        self,
        settings: GeminiChatSettings,
        services: Services | None = None,
        *,
        http_client: httpx2.AsyncClient | None = None,
    ) -> None:
        connection = GeminiConnection(settings, "Chat service", http_client)
        super().__init__(connection, settings.stream_timeout)
        self.capabilities = capabilities(settings)
        self._settings = settings
        self._declarations = Declarations()
        self._whole = connection.path("generateContent")
        self._streamed = connection.path("streamGenerateContent?alt=sse")

    def _path(self, *, stream: bool) -> str:
        return self._streamed if stream else self._whole

    def _body(self, request: ChatRequest, *, stream: bool) -> bytes:
        return request_body(request, self._settings, self._declarations)

    def _reader(self, request: ChatRequest) -> ReplyReader:
        return GeminiReader(self._connection.peer, self.name, maker_of(self._settings))
