"""What a server of OpenAI's protocol answers, and services that ask it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from llmock.testing import LLMockServer
from tests.support.loopback import Loopback as AnyLoopback, making

from portico_openai.chat import OpenAIChat
from portico_openai.config import OpenAIChatSettings, OpenAIEmbeddingsSettings
from portico_openai.embeddings import OpenAIEmbeddings


class Loopback(AnyLoopback):
    """Answers as OpenAI's Chat Completions do."""

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @staticmethod
    def event(delta: dict[str, Any] | None = None, finish: str | None = None, **further: Any) -> bytes:
        """Write one chunk of a streamed completion."""
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
        return b"data: " + json.dumps({"model": "m-1", "choices": choices, **further}).encode() + b"\n\n"

    @staticmethod
    def completion(text: str | None = "Hello.", finish: str = "stop", **message: Any) -> dict[str, Any]:
        """Return the body of a completion."""
        return {
            "model": "m-1",
            "choices": [
                {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
            ],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
        }


@pytest.fixture
async def loopback() -> AsyncIterator[Loopback]:
    server = Loopback()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def make_chat(loopback: Loopback) -> AsyncIterator[Callable[..., OpenAIChat]]:
    """Make chat services on the loopback server."""
    async with making(OpenAIChat, OpenAIChatSettings, loopback.base_url) as make:
        yield make


@pytest.fixture
async def make_embeddings(loopback: Loopback) -> AsyncIterator[Callable[..., OpenAIEmbeddings]]:
    """Make embedding generators on the loopback server."""
    async with making(OpenAIEmbeddings, OpenAIEmbeddingsSettings, loopback.base_url) as make:
        yield make


@pytest.fixture(scope="session")
def llmock_url() -> Iterator[str]:
    """Run llmock, a fake of OpenAI's service, on loopback for all tests of the session."""
    with LLMockServer() as server:
        yield server.base_url("openai")
