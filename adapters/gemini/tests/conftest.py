"""A server on loopback, what it embeds, and services that ask it in Gemini's form."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from llmock.testing import LLMockServer
from tests.support.loopback import Loopback as AnyLoopback, making

from portico_gemini.chat import GeminiChat
from portico_gemini.config import GeminiChatSettings, GeminiEmbeddingsSettings
from portico_gemini.embeddings import GeminiEmbeddings


class Loopback(AnyLoopback):
    """Answers at the address that Gemini's has."""

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1beta"


class Embedder:
    """Answers as batchEmbedContents does: each text has another direction, of any length."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def __call__(self, visit: Any) -> None:
        requests = visit.json["requests"]
        self.asked.append(visit.json)
        await asyncio.sleep(0.001)
        texts = [request["content"]["parts"][0]["text"] for request in requests]
        embeddings = [{"values": self.vector(text)} for text in texts]
        counted = {"promptTokenCount": len(texts), "promptTokenDetails": [{"modality": "TEXT"}]}
        await visit.send(Loopback.whole({"embeddings": embeddings, "usageMetadata": counted}))

    @staticmethod
    def vector(text: str) -> list[float]:
        return [float(len(text) + 1), float(sum(map(ord, text)) % 97 + 1), -3.0]


@pytest.fixture
async def loopback() -> AsyncIterator[Loopback]:
    server = Loopback()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
def embedder(loopback: Loopback) -> Embedder:
    server = Embedder()
    loopback.will(server)
    return server


@pytest.fixture
async def make_chat(loopback: Loopback) -> AsyncIterator[Callable[..., GeminiChat]]:
    """Make chat services on the loopback server."""
    async with making(GeminiChat, GeminiChatSettings, loopback.base_url) as make:
        yield make


@pytest.fixture
async def make_embeddings(loopback: Loopback) -> AsyncIterator[Callable[..., GeminiEmbeddings]]:
    """Make embedding generators on the loopback server."""
    async with making(GeminiEmbeddings, GeminiEmbeddingsSettings, loopback.base_url) as make:
        yield make


@pytest.fixture(scope="session")
def llmock_url() -> Iterator[str]:
    """Run llmock, a fake of Gemini's service among others, on loopback for all tests of the session."""
    with LLMockServer() as server:
        yield f"{server.base_url('gemini')}/v1beta"
