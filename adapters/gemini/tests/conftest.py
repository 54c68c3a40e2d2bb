"""A server on loopback, and services that ask it in Gemini's form."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
from tests.support.loopback import Loopback as AnyLoopback, making

from portico_gemini.chat import GeminiChat
from portico_gemini.config import GeminiChatSettings, GeminiEmbeddingsSettings
from portico_gemini.embeddings import GeminiEmbeddings


class Loopback(AnyLoopback):
    """Answers at the address that Gemini's has."""

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1beta"


@pytest.fixture
async def loopback() -> AsyncIterator[Loopback]:
    server = Loopback()
    await server.start()
    yield server
    await server.stop()


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
