"""The adapters do what every ChatService must, with LiteLLM's proxy at the other end, which speaks all their forms."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.model_servers.conftest import KEY

from portico.plugins import Secret
from portico_anthropic.chat import AnthropicChat
from portico_anthropic.config import AnthropicChatSettings
from portico_gemini.chat import GeminiChat
from portico_gemini.config import GeminiChatSettings
from portico_openai.chat import OpenAIChat
from portico_openai.config import OpenAIChatSettings
from portico_testkit.chat_service import ChatServiceKit


class TestCompletions(ChatServiceKit):
    deterministic = True
    reports_usage = True

    @pytest.fixture
    async def chat_service(self, proxy: str) -> AsyncIterator[OpenAIChat]:
        chat = OpenAIChat(OpenAIChatSettings(model="m-1", base_url=f"{proxy}/v1", api_key=Secret(KEY)))
        yield chat
        await chat.aclose()


class TestResponses(ChatServiceKit):
    deterministic = True
    reports_usage = True

    @pytest.fixture
    async def chat_service(self, proxy: str) -> AsyncIterator[OpenAIChat]:
        settings = OpenAIChatSettings(model="m-1", base_url=f"{proxy}/v1", api_key=Secret(KEY), api="responses")
        chat = OpenAIChat(settings)
        yield chat
        await chat.aclose()


class TestAnthropic(ChatServiceKit):
    deterministic = True
    reports_usage = True

    @pytest.fixture
    async def chat_service(self, proxy: str) -> AsyncIterator[AnthropicChat]:
        chat = AnthropicChat(AnthropicChatSettings(model="m-1", base_url=proxy, api_key=Secret(KEY)))
        yield chat
        await chat.aclose()


class TestGemini(ChatServiceKit):
    deterministic = True
    reports_usage = True

    @pytest.fixture
    async def chat_service(self, proxy: str) -> AsyncIterator[GeminiChat]:
        chat = GeminiChat(GeminiChatSettings(model="m-1", base_url=proxy, api_key=Secret(KEY)))
        yield chat
        await chat.aclose()
