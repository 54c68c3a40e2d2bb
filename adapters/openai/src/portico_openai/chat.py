"""The ChatService on OpenAI's two APIs: Responses, and Chat Completions, which other servers speak too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from portico import ChatRequest
from portico.errors import UnsupportedOption
from portico.plugins import Services
from portico_openai._completions import requests as completions
from portico_openai._completions.replies import CompletionReader
from portico_openai._connection import OpenAIConnection
from portico_openai._responses import requests as responses
from portico_openai._responses.replies import ResponseReader
from portico_openai._shared_forms import maker_of
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
        self._settings = settings
        if settings.takes_responses:
            self.capabilities, self._write = responses.capabilities(settings), responses.request_body
        else:
            self.capabilities, self._write = completions.capabilities(settings), completions.request_body

    def _check(self, request: ChatRequest) -> None:
        try:
            super()._check(request)
        except UnsupportedOption as error:
            if self._settings.takes_responses:
                try:
                    request.check(completions.capabilities(self._settings), self.name)
                except UnsupportedOption:
                    raise error from None
                raise UnsupportedOption(f"{error} It does by Chat Completions: set api to 'chat'.") from None
            raise

    def _path(self, *, stream: bool) -> str:
        return "/responses" if self._settings.takes_responses else "/chat/completions"

    def _body(self, request: ChatRequest, *, stream: bool) -> bytes:
        return self._write(request, self._settings, stream=stream)

    def _reader(self, request: ChatRequest) -> ReplyReader:
        peer, maker = self._connection.peer, maker_of(self._settings)
        if self._settings.takes_responses:
            return ResponseReader(peer, self.name, maker)
        return CompletionReader(peer, self.name, maker, searched=completions.searches(request, self._settings))
