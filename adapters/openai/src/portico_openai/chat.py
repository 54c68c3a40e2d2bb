"""The ChatService on OpenAI's chat completions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from portico import ChatRequest
from portico.plugins import Services
from portico_openai._connection import OpenAIConnection
from portico_openai._replies import CompletionReader
from portico_openai._wire import capabilities, maker_of, request_body
from portico_openai.config import OpenAIChatSettings
from portico_wire.chat import ReplyReader, WireChat

if TYPE_CHECKING:
    import httpx2


class OpenAIChat(WireChat):
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

    name = "openai"

    def __init__(
        self,
        settings: OpenAIChatSettings,
        services: Services | None = None,
        *,
        http_client: httpx2.AsyncClient | None = None,
    ) -> None:
        super().__init__(OpenAIConnection(settings, "Chat service", http_client), settings.stream_timeout)
        self.capabilities = capabilities(settings)
        self._settings = settings

    def _path(self, *, stream: bool) -> str:
        return "/chat/completions"

    def _body(self, request: ChatRequest, *, stream: bool) -> bytes:
        return request_body(request, self._settings, stream=stream)

    def _reader(self, request: ChatRequest) -> ReplyReader:
        return CompletionReader(self._connection.peer, self.name, maker_of(self._settings))
