"""The adapters do what every ChatService must, with LiteLLM's proxy at the other end, which speaks all their forms."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.model_servers.conftest import KEY, MODEL

from portico.plugins import Secret
from portico.ports import ChatService
from portico_anthropic.chat import AnthropicChat
from portico_anthropic.config import AnthropicChatSettings
from portico_gemini.chat import GeminiChat
from portico_gemini.config import GeminiChatSettings
from portico_openai.chat import OpenAIChat
from portico_openai.config import OpenAIChatSettings
from portico_testkit.chat_service import ChatServiceKit


class OnLiteLLM(ChatServiceKit):
    @pytest.mark.xfail(reason="llmock, which is behind it, fills what is nested deeply with null", strict=False)
    async def test_a_reply_is_held_to_its_schema(self, chat_service: ChatService) -> None:
        await super().test_a_reply_is_held_to_its_schema(chat_service)


class TestCompletions(OnLiteLLM):
    deterministic = True
    reports_usage = True

    @pytest.fixture
    async def chat_service(self, proxy: str) -> AsyncIterator[OpenAIChat]:
        chat = OpenAIChat(OpenAIChatSettings(model=MODEL, base_url=f"{proxy}/v1", api_key=Secret(KEY)))
        yield chat
        await chat.aclose()


class TestResponses(OnLiteLLM):
    deterministic = True
    reports_usage = True

    @pytest.fixture
    async def chat_service(self, proxy: str) -> AsyncIterator[OpenAIChat]:
        settings = OpenAIChatSettings(model=MODEL, base_url=f"{proxy}/v1", api_key=Secret(KEY), api="responses")
        chat = OpenAIChat(settings)
        yield chat
        await chat.aclose()


class TestAnthropic(OnLiteLLM):
    deterministic = True
    reports_usage = True

    @pytest.fixture
    async def chat_service(self, proxy: str) -> AsyncIterator[AnthropicChat]:
        chat = AnthropicChat(AnthropicChatSettings(model=MODEL, base_url=proxy, api_key=Secret(KEY)))
        yield chat
        await chat.aclose()


class TestGemini(OnLiteLLM):
    deterministic = True
    reports_usage = True

    @pytest.fixture
    async def chat_service(self, proxy: str) -> AsyncIterator[GeminiChat]:
        chat = GeminiChat(GeminiChatSettings(model=MODEL, base_url=proxy, api_key=Secret(KEY)))
        yield chat
        await chat.aclose()
