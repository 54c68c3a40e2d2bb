"""OpenAIChat and OpenAIEmbeddings do what every service of their ports must."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from portico_openai.chat import OpenAIChat
from portico_openai.config import OpenAIChatSettings, OpenAIEmbeddingsSettings
from portico_openai.embeddings import OpenAIEmbeddings
from portico_testkit.chat_service import ChatServiceKit
from portico_testkit.embedding_generator import EmbeddingGeneratorKit


class TestOpenAIChat(ChatServiceKit):
    deterministic = True

    @pytest.fixture
    async def chat_service(self, llmock_url: str) -> AsyncIterator[OpenAIChat]:
        chat = OpenAIChat(OpenAIChatSettings(model="gpt-4o-mini", base_url=llmock_url))
        yield chat
        await chat.aclose()


class TestOpenAIChatWithoutTheNewerOptions(ChatServiceKit):
    deterministic = True

    @pytest.fixture
    async def chat_service(self, llmock_url: str) -> AsyncIterator[OpenAIChat]:
        settings = OpenAIChatSettings(
            model="gpt-4o-mini", base_url=llmock_url, tools=False, response_schema=False, images=False
        )
        chat = OpenAIChat(settings)
        yield chat
        await chat.aclose()


class TestOpenAIEmbeddings(EmbeddingGeneratorKit):
    large = 300  # llmock writes every number as text

    @pytest.fixture
    async def embedding_generator(self, llmock_url: str) -> AsyncIterator[OpenAIEmbeddings]:
        generator = OpenAIEmbeddings(OpenAIEmbeddingsSettings(model="text-embedding-3-small", base_url=llmock_url))
        yield generator
        await generator.aclose()


class TestOpenAIEmbeddingsInSmallBatches(EmbeddingGeneratorKit):
    large = 60

    @pytest.fixture
    async def embedding_generator(self, llmock_url: str) -> AsyncIterator[OpenAIEmbeddings]:
        settings = OpenAIEmbeddingsSettings(
            model="text-embedding-3-small", base_url=llmock_url, batch_size=7, batch_characters=9_000, concurrency=3
        )
        generator = OpenAIEmbeddings(settings)
        yield generator
        await generator.aclose()
