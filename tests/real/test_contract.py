"""OpenAIChat does what every ChatService must, with a real server at the other end."""

from __future__ import annotations

from typing import Any

import pytest

from portico_anthropic.chat import AnthropicChat
from portico_anthropic.config import AnthropicChatSettings
from portico_openai.chat import OpenAIChat
from portico_openai.config import OpenAIChatSettings
from portico_testkit.chat_service import ChatServiceKit


class TestOpenAIChatOnLlamaCpp(ChatServiceKit):
    calls_tools = False  # the model's chat template drops tools
    reports_usage = True
    max_output = 10

    @pytest.fixture
    async def chat_service(self, connection: dict[str, Any]) -> Any:
        service = OpenAIChat(
            OpenAIChatSettings(**connection, images=False, body={"temperature": 0, "repeat_penalty": 1.1})
        )
        yield service
        await service.aclose()


class TestOpenAIChatOnLlamaCppByResponses(ChatServiceKit):
    calls_tools = False  # the model's chat template drops tools
    reports_usage = True
    max_output = 10

    @pytest.fixture
    async def chat_service(self, connection: dict[str, Any]) -> Any:
        # llama.cpp takes a schema at Chat Completions only.
        settings = OpenAIChatSettings(
            **connection,
            api="responses",
            images=False,
            response_schema=False,
            body={"temperature": 0, "repeat_penalty": 1.1},
        )
        service = OpenAIChat(settings)
        yield service
        await service.aclose()


class TestAnthropicChatOnLlamaCpp(ChatServiceKit):
    calls_tools = False  # the model's chat template drops tools
    reports_usage = True
    max_output = 10

    @pytest.fixture
    async def chat_service(self, connection: dict[str, Any]) -> Any:
        service = AnthropicChat(
            AnthropicChatSettings(
                **connection,
                response_schema=False,  # it does not read output_config
                images=False,
                files=False,
                body={"temperature": 0, "repeat_penalty": 1.1},
            )
        )
        yield service
        await service.aclose()
