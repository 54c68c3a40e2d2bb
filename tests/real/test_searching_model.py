"""A real model that must search: its call reaches a search service over HTTP, and what was found reaches the model.

The model is too small to search wisely; what is tested is the whole way, with nothing played.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from portico import Equal, Kernel, Message, ToolCall, ToolLoopLimits, ToolResult, search_plugin
from portico.errors import LimitExceeded
from portico.plugins import Secret
from portico.ports import HttpClient
from portico_bing.config import BingSettings
from portico_bing.search import BingTextSearch
from portico_llamacpp.chat import LlamaCppChat
from portico_testkit.fakes.services import FixedServices
from portico_testkit.recorded_server import RecordedServer
from portico_web.http.client import HttpxHttpClient
from portico_web.http.config import HttpxSettings

RECORDED = Path(__file__).parents[2] / "connectors/bing/tests/recorded/what_is_the_semantic_kernel.json"


@pytest.fixture
def service() -> Iterator[RecordedServer]:
    with RecordedServer({"/v7.0/search": RECORDED.read_bytes()}) as server:
        yield server


async def test_a_search_that_must_be_called_is_called_and_its_results_are_read(
    service: RecordedServer, local_chat: LlamaCppChat
) -> None:
    client = HttpxHttpClient(HttpxSettings(), None)
    settings = BingSettings(api_key=Secret("recorded"), base_url=f"{service.url}/v7.0")
    web = BingTextSearch(settings, FixedServices({HttpClient: client}))
    kernel = Kernel()
    kernel.add_plugin(
        search_plugin(
            web,
            "Web",
            functions=["Search"],
            filter=Equal("site", "learn.microsoft.com"),
            parameters={"count": None, "skip": None},
        )
    )
    messages: tuple[Message, ...]
    try:
        turn = await kernel.complete(
            "What is the Semantic Kernel?",
            functions=["Web"],
            tool_choice="required",
            chat=local_chat,
            limits=ToolLoopLimits(rounds=3),
            temperature=0,
            max_tokens=100,
        )
        messages = turn.messages
    except LimitExceeded as error:
        # It may go on searching for ever.
        messages = tuple(message for message in error.messages if isinstance(message, Message))
    await client.aclose()

    calls = [part for message in messages for part in message.content if isinstance(part, ToolCall)]
    results = [part for message in messages for part in message.content if isinstance(part, ToolResult)]
    assert calls[0].name == "Web-Search", f"it called {calls[0]}"
    assert len(results) >= 1, "its call was not answered"
    asked = [exchange.parameters["q"] for exchange in service.exchanges]
    assert asked, f"no question reached the service; the calls were answered {[result.content for result in results]}"
    assert all("site:learn.microsoft.com" in question for question in asked), f"a question left the site: {asked}"
    assert any("lightweight, open-source development kit" in result.content for result in results)
