"""A server on loopback, and services that ask it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from llmock.testing import LLMockServer
from tests.support.loopback import Loopback as AnyLoopback, making

from portico_anthropic.chat import AnthropicChat
from portico_anthropic.config import AnthropicChatSettings


class Loopback(AnyLoopback):
    """Answers as Anthropic does."""

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @staticmethod
    def message(*content: dict[str, Any], stop: str = "end_turn", **further: Any) -> dict[str, Any]:
        """Return the body of a whole reply, of a text where no blocks are given."""
        return {
            "id": "msg_01",
            "type": "message",
            "role": "assistant",
            "model": "m-1",
            "content": list(content) or [{"type": "text", "text": "Hello."}],
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {"input_tokens": 3, "output_tokens": 2},
            **further,
        }


@pytest.fixture
async def loopback() -> AsyncIterator[Loopback]:
    server = Loopback()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def make_chat(loopback: Loopback) -> AsyncIterator[Callable[..., AnthropicChat]]:
    """Make chat services on the loopback server."""
    async with making(AnthropicChat, AnthropicChatSettings, loopback.base_url) as make:
        yield make


@pytest.fixture(scope="session")
def llmock_url() -> Iterator[str]:
    """Run llmock, a fake of Anthropic's service too, on loopback for all tests of the session."""
    with LLMockServer() as server:
        yield server.base_url("anthropic")
